"""The kinds of databases whose tables can be compared, by the type of their connection."""

from __future__ import annotations

from polynya.gateway.compare.source import ComparedDatabase
from polynya.gateway.source import Access
from polynya.model.errors import OperationError


def compared_database(access: Access) -> ComparedDatabase:
    """The database that an access leads to; nothing is connected yet.

    Raises:
        OperationError: POLYNYA-GTW-090, its tables cannot be compared.
    """
    if access.type == "postgresql":
        # Start-up time: its driver.
        from polynya.gateway.compare.postgresql import ComparedPostgres

        return ComparedPostgres(access)
    if access.type in ("mariadb", "mysql"):
        from polynya.gateway.compare.mysql import ComparedMysql

        return ComparedMysql(access)
    raise OperationError(
        "POLYNYA-GTW-090",
        f"tables of {access.type} cannot be compared yet",
        where=access.task,
        state="nothing was read and nothing was changed",
        fix="`polynya verify` checks the tables without their source",
    )
