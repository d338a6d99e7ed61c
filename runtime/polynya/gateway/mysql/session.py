"""Sessions of MariaDB and MySQL: TLS as the connection says, settings that nobody changed."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import pymysql
from pymysql.cursors import SSCursor

from polynya.gateway.mysql.failures import explained
from polynya.gateway.source import Access

_CONNECT_SECONDS: Final = 20
#: The longest silence of a server that reads rows; a dead connection is noticed after it.
_READ_SECONDS: Final = 600
#: Values come as these say, whatever the server's own settings are: times in UTC, zero dates as
#: they are, no quotes of another meaning; a read waits for no lock of a table for hours.
_SETTINGS: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', lock_wait_timeout = 60,"
    " net_write_timeout = 600"
)


class Session:
    """One connection. Not for several threads at a time."""

    def __init__(self, access: Access) -> None:
        """Connect. Raises what `failures.explained` says."""
        self._access = access
        with explained(access, "connecting"):
            self._link = pymysql.connect(
                host=access.host, port=access.port, user=access.user,
                password=access.password, charset="utf8mb4", use_unicode=True, conv={},
                connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS,
                write_timeout=_READ_SECONDS, autocommit=True, program_name="polynya",
                local_infile=False, **_tls(access),
            )  # fmt: skip
        self.run(_SETTINGS)

    def run(self, statement: str) -> None:
        """Run a statement that has no rows."""
        self.rows(statement)

    def rows(self, statement: str, doing: str = "a question") -> list[tuple[str | None, ...]]:
        """All rows of a query, each value as text (bytes for a binary one), NULL as None."""
        with explained(self._access, doing), self._link.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def one(self, statement: str, doing: str = "a question") -> tuple[str | None, ...] | None:
        """The first row, or None."""
        return next(iter(self.rows(statement, doing)), None)

    def stream(self, statement: str, doing: str) -> Iterator[Sequence[bytes | None]]:
        """Rows as they come, each value as bytes; the session is busy until the last one."""
        self._link.use_unicode = False
        try:
            with explained(self._access, doing), SSCursor(self._link) as cursor:
                cursor.execute(statement)
                yield from cursor.fetchall_unbuffered()
        finally:
            self._link.use_unicode = True

    def close(self) -> None:
        """End it; what was open on the server is rolled back, rows on their way are dropped."""
        with suppress(pymysql.err.Error):  # closed already
            self._link.close()
        # Else the driver would read on where nothing comes any more.
        result = self._link._result
        if result is not None:
            result.unbuffered_active = False


def _tls(access: Access) -> dict[str, Any]:
    if access.tls == "disable":
        return {"ssl_disabled": True}
    with explained(access, "the certificates of `tls.ca`"):
        context = ssl.create_default_context(cafile=access.ca)
    if access.tls == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}
