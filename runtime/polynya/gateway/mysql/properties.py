"""Debezium's settings for the binlog of MariaDB and MySQL. Pure."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Sequence
from typing import Final

from polynya.gateway.source import Access
from polynya.model.contract.wildcards import joined

_CLASSES: Final = {
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
}
_TLS: Final = {
    "mariadb": {"verify": "verify-full", "require": "trust", "disable": "disable"},
    "mysql": {"verify": "verify_identity", "require": "required", "disable": "disabled"},
}
#: Numbers below are those of real servers.
_FIRST_SERVER: Final = 1_000_000_000


def properties(
    access: Access,
    include: Sequence[str],
    exclude: Sequence[str],
    *,
    without: Collection[str] = (),
) -> dict[str, str]:
    """All settings of the connector, but for a store of certificates. They have the password.

    Args:
        access: how the server is reached.
        include: patterns of the tables' names; tables that come later are captured at once.
        exclude: likewise.
        without: names of tables that are not read either.
    """
    return {
        "connector.class": _CLASSES[access.type],
        "database.hostname": access.host,
        "database.port": str(access.port),
        "database.user": access.user,
        "database.password": access.password,
        "database.server.id": str(server_number(access.task)),
        "database.ssl.mode": _TLS[access.type][access.tls],
        "table.include.list": java_pattern(include, exclude, without),
        # The years 0 to 99 are themselves.
        "enable.time.adjuster": "false",
        # A NULL stays NULL where the column has a default.
        "converter.replace.null.with.default": "false",
        "inconsistent.schema.handling.mode": "fail",
        "snapshot.locking.mode": "none",
    }


def server_number(task: str) -> int:
    """By which the server knows the reader: of two with one number the server ends the older."""
    return _FIRST_SERVER + zlib.crc32(task.encode()) % _FIRST_SERVER


def java_pattern(
    include: Sequence[str], exclude: Sequence[str], without: Collection[str] = ()
) -> str:
    """Patterns of names as one regular expression of Java, in which there is no comma.

    `without` has names that are not patterns.
    """
    wanted = "|".join(_java(one) for one in include)
    refused = [*(_java(one) for one in exclude), *(_exactly(one) for one in sorted(without))]
    if not refused:
        return f"(?:{wanted})"
    return f"(?!(?:{'|'.join(refused)})$)(?:{wanted})"


def _java(pattern: str) -> str:
    return joined([_exactly(part) for part in re.split("[%*]", pattern)])


def _exactly(name: str) -> str:
    return "".join(c if re.fullmatch(r"\w", c, re.ASCII) else f"\\x{{{ord(c):x}}}" for c in name)
