"""The kinds of databases that can be captured, by the type of their connection."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast

from polynya.gateway.source import Access, Database
from polynya.model.errors import OperationError

# Modules are imported when they are needed: each brings a driver.
_KINDS: Final = {
    "postgresql": ("polynya.gateway.postgresql.database", "PostgresDatabase"),
    "mariadb": ("polynya.gateway.mysql.database", "MysqlDatabase"),
    "mysql": ("polynya.gateway.mysql.database", "MysqlDatabase"),
    **dict.fromkeys(
        ("sqlserver", "oracle", "db2", "mongodb"),
        ("polynya.gateway.generic.database", "GenericDatabase"),
    ),
}


def open_database(access: Access) -> Database:
    """The database that an access leads to; nothing is connected yet.

    Raises:
        OperationError: POLYNYA-GTW-001, there is no such kind.
    """
    known = _KINDS.get(access.type)
    if known is None:
        raise OperationError(
            "POLYNYA-GTW-001",
            f"databases of type {access.type} cannot be captured",
            where=access.task,
            state="nothing was captured",
            fix=f"use one of {', '.join(sorted(_KINDS))}",
        )
    module, name = known
    return cast("Database", getattr(import_module(module), name)(access))
