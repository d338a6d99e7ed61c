"""The address of a PostgreSQL database, as JDBC writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

POSTGRESQL: Final = "jdbc:postgresql:"
_PORT: Final = 5432
_NAME: Final = re.compile(r"[^/?#@\s]+")
#: What a connection may be told in the address; who logs in is said elsewhere.
_TLS: Final = frozenset({"disable", "prefer", "require", "verify-ca", "verify-full"})


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is. `tls` is the `sslmode` of the driver."""

    host: str
    database: str
    port: int = _PORT
    tls: str = "prefer"

    @property
    def text(self) -> str:
        """As people read it: `host:port/database`."""
        return f"{self.host}:{self.port}/{self.database}"


def postgres_address(uri: str) -> PostgresAddress:
    """Read `jdbc:postgresql://HOST:PORT/DATABASE?sslmode=…`.

    Raises ValueError, with what is wrong in words that hold nothing of the address.
    """
    try:
        parts = urlsplit(uri.removeprefix("jdbc:"))
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        raise ValueError("the address of the catalog cannot be read") from None
    database = unquote(parts.path.removeprefix("/"))
    if parts.username is not None or parts.password is not None:
        raise ValueError("the address of the catalog says who logs in")
    if parts.scheme != "postgresql" or not host or not _NAME.fullmatch(database):
        raise ValueError("the address of the catalog names no host and no database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if {"user", "password"} & options.keys():
        raise ValueError("the address of the catalog says who logs in")
    tls = options.pop("sslmode", "prefer")
    if options or tls not in _TLS:
        raise ValueError(f"of the options of an address only `sslmode` is known: {_listed()}")
    return PostgresAddress(host, database, port, tls)


def _listed() -> str:
    return ", ".join(f"`{one}`" for one in sorted(_TLS))
