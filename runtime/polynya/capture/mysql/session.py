"""Sessions of MariaDB and MySQL: TLS, quoting, and what their failures mean."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import pymysql
from pymysql.cursors import SSCursor

from polynya.capture.source import Access
from polynya.model.error_catalogue.capture_databases import (
    MYSQL_LOGIN_REFUSED,
    MYSQL_PASSWORD_NEEDS_TLS,
    MYSQL_RIGHT_MISSING,
    MYSQL_ROW_TOO_LARGE,
    MYSQL_STATEMENT_REFUSED,
    MYSQL_TABLE_CHANGED,
    MYSQL_TLS_FAILED,
    MYSQL_UNREACHABLE,
)
from polynya.model.errors import DependencyError, PolynyaError

#: Who may log in: wrong password, no right to the database, plugin, expired, locked.
_LOGIN_ERRORS: Final = frozenset({1044, 1045, 1130, 1251, 1524, 1698, 1820, 1862, 4151})
#: A right that is missing: for a command, a table, a column.
_RIGHT_ERRORS: Final = frozenset({1142, 1143, 1227, 1370, 1410})
#: The table is another one than when it was listed, or is gone.
_CHANGED_ERRORS: Final = frozenset({1054, 1146, 1412})
_TOO_LARGE_ERRORS: Final = frozenset({1153, 1301})
#: Too many sessions, shutting down, locks, killed, out of a limit, timeouts; lost connections.
_PASSING_ERRORS: Final = frozenset(
    {1040, 1053, 1077, 1079, 1105, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1205, 1213,
     1226, 1317, 1927, 1969, 2002, 2003, 2006, 2013, 2055, 3024}
)  # fmt: skip


@contextmanager
def explained(access: Access, activity: str) -> Iterator[None]:
    """Raise failures of the driver in the block as Polynya's.

    Args:
        access: of the database.
        activity: what fails, such as "reading shop.orders".

    Raises:
        DependencyError: POLYNYA-GTW-040 for what may pass by itself, -045 for a changed table.
        OperationError: POLYNYA-GTW-041 log-in, -042 TLS, -043 a right, -046 too large, -044 else;
            -059, the password needs TLS.
    """
    try:
        yield
    except RuntimeError as error:
        # What the driver says of a password that it would have to encrypt itself.
        if "cryptography" not in str(error):
            raise
        raise MYSQL_PASSWORD_NEEDS_TLS(
            where=where_of(access), reason="the connection has `tls: {mode: disable}`"
        ) from None
    except pymysql.err.Error as error:
        raise failure(error, access, activity) from error
    except OSError as error:
        raise _unreachable(str(error.strerror or error), access, activity) from error


def failure(error: pymysql.err.Error, access: Access, activity: str) -> PolynyaError:
    """The error of the catalogue for an error of the driver."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    reason = _one_line(str(error.args[-1]) if error.args else type(error).__name__, access)
    where = where_of(access)
    if _is_about_tls(error, number):
        return MYSQL_TLS_FAILED(where=where, reason=reason)
    if number in _LOGIN_ERRORS:
        return MYSQL_LOGIN_REFUSED(where=where, reason=reason)
    if number in _RIGHT_ERRORS:
        return MYSQL_RIGHT_MISSING(where=where, activity=activity, reason=reason)
    if number in _CHANGED_ERRORS:
        return MYSQL_TABLE_CHANGED(where=where, activity=activity, reason=reason)
    if number in _TOO_LARGE_ERRORS:
        return MYSQL_ROW_TOO_LARGE(where=where, activity=activity, reason=reason)
    if number in _PASSING_ERRORS:
        return _unreachable(reason, access, activity)
    return MYSQL_STATEMENT_REFUSED(where=where, activity=activity, reason=reason, number=number)


def _unreachable(reason: str, access: Access, activity: str) -> DependencyError:
    return MYSQL_UNREACHABLE(
        where=where_of(access), activity=activity, reason=_one_line(reason, access)
    )


def _is_about_tls(error: pymysql.err.Error, number: int) -> bool:
    """CR_SSL_CONNECTION_ERROR, or what the driver makes of a handshake that failed."""
    cause = getattr(error, "original_exception", None)
    return number == 2026 or isinstance(cause, ssl.SSLError)


def _one_line(message: str, access: Access) -> str:
    """A message of the server or driver on one line, bounded, and without the password."""
    line = " ".join(message.split())[:400]
    return line.replace(access.password, "***") if access.password else line


def where_of(access: Access) -> str:
    """Task and address, as errors name them."""
    return f"{access.task}: {access.host}:{access.port}"


_CHARSET: Final = re.compile(r"[a-z0-9_]+", re.ASCII)


def quoted(*names: str) -> str:
    """A name as an identifier; several are the parts of one, as in `shop`.`orders`."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def literal(text: str) -> str:
    """A text as a constant that no setting of the session reads in another way.

    It takes the collation of what it is compared with.
    """
    return text_of_bytes(text.encode(), "utf8mb4")


def text_of_bytes(content: bytes, charset: str) -> str:
    """The same from the bytes of a text in a character set. Raises ValueError."""
    if not _CHARSET.fullmatch(charset):
        raise ValueError(f"{charset[:60]!r} is not a character set")
    return f"_{charset} X'{content.hex()}'"


_CONNECT_SECONDS: Final = 20
#: The longest silence of a server that reads rows; a dead connection is noticed after it.
_READ_SECONDS: Final = 600
#: Values come as these say, whatever the server's own settings are: times in UTC, zero dates as
#: they are, no quotes of another meaning; a read waits for no lock of a table for hours.
_SETTINGS: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', lock_wait_timeout = 60,"
    " net_write_timeout = 600"
)


class MysqlSession:
    """One connection. Not for several threads at a time."""

    def __init__(self, access: Access) -> None:
        """Connect. Raises what `explained` does."""
        self._access = access
        with explained(access, "connecting"):
            self._link = pymysql.connect(
                host=access.host, port=access.port, user=access.user,
                password=access.password, charset="utf8mb4", use_unicode=True, conv={},
                connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS,
                write_timeout=_READ_SECONDS, autocommit=True, program_name="polynya",
                local_infile=False, **_tls_options(access),
            )  # fmt: skip
        self.run(_SETTINGS)

    def run(self, statement: str) -> None:
        """Run a statement that has no rows."""
        self.rows(statement)

    def rows(self, statement: str, activity: str = "a query") -> list[tuple[str | None, ...]]:
        """All rows of a query, each value as text (bytes for a binary one), NULL as None."""
        with explained(self._access, activity), self._link.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def first(self, statement: str, activity: str = "a query") -> tuple[str | None, ...] | None:
        """The first row, or None."""
        return next(iter(self.rows(statement, activity)), None)

    def stream(self, statement: str, activity: str) -> Iterator[Sequence[bytes | None]]:
        """Rows as they come, each value as bytes; the session is busy until the last one."""
        self._link.use_unicode = False
        try:
            with explained(self._access, activity), SSCursor(self._link) as cursor:
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


def _tls_options(access: Access) -> dict[str, Any]:
    if access.tls == "disable":
        return {"ssl_disabled": True}
    with explained(access, "reading the certificates of `tls.ca`"):
        context = ssl.create_default_context(cafile=access.ca)
    if access.tls == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}
