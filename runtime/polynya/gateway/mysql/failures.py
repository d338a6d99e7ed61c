"""What a failure of MariaDB or MySQL means: worth another try, or for a person to change."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pymysql

from polynya.gateway.source import Access
from polynya.model.errors import DependencyError, OperationError, PolynyaError

_STATE: Final = "what has landed is whole, and the capture goes on from there"
#: Who may log in: wrong password, no right to the database, plugin, expired, locked.
_LOG_IN: Final = frozenset({1044, 1045, 1130, 1251, 1524, 1698, 1820, 1862, 4151})
#: A right that is missing: for a command, a table, a column.
_RIGHTS: Final = frozenset({1142, 1143, 1227, 1370, 1410})
#: The table is another one than when it was listed, or is gone.
_CHANGED: Final = frozenset({1054, 1146, 1412})
_TOO_LARGE: Final = frozenset({1153, 1301})
#: Too many sessions, shutting down, locks, killed, out of a limit, timeouts; lost connections.
_PASSING: Final = frozenset(
    {1040, 1053, 1077, 1079, 1105, 1129, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1205, 1213,
     1226, 1317, 1927, 1969, 2002, 2003, 2006, 2013, 2055, 3024}
)  # fmt: skip


@contextmanager
def explained(access: Access, doing: str) -> Iterator[None]:
    """Raise failures of the driver in the block as Polynya's; `doing` is a noun phrase.

    Raises:
        DependencyError: POLYNYA-GTW-040 for what may pass by itself, -045 for a changed table.
        OperationError: POLYNYA-GTW-041 log-in, -042 TLS, -043 a right, -046 too large, -044 else.
    """
    try:
        yield
    except pymysql.err.Error as error:
        raise failure(error, access, doing) from error
    except OSError as error:
        raise _passing(str(error.strerror or error), access, doing) from error


def failure(error: pymysql.err.Error, access: Access, doing: str) -> PolynyaError:
    """The error as people read it."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    said = _told(str(error.args[-1]) if error.args else type(error).__name__, access)
    if _of_tls(error, number):
        return _tls(said, access)
    if number in _LOG_IN:
        return _log_in(said, access)
    if number in _RIGHTS:
        return OperationError(
            "POLYNYA-GTW-043", f"a right is missing for {doing}: {said}",
            where=_where(access), state=_STATE,
            fix="grant it; `polynya connection test` says what the user needs",
        )  # fmt: skip
    if number in _CHANGED:
        return DependencyError(
            "POLYNYA-GTW-045", f"a table changed meanwhile; {doing}: {said}",
            where=_where(access), state=_STATE,
            fix="nothing to do: it is looked at again",
        )  # fmt: skip
    if number in _TOO_LARGE:
        return too_large(said, access, doing)
    if number in _PASSING:
        return _passing(said, access, doing)
    return OperationError(
        "POLYNYA-GTW-044", f"the database refused {doing}: {said} (error {number})",
        where=_where(access), state=_STATE, fix="see the message of the database",
    )  # fmt: skip


def too_large(said: str, access: Access, doing: str) -> OperationError:
    """A row is larger than the server lets anybody read."""
    return OperationError(
        "POLYNYA-GTW-046", f"a row is too large for {doing}: {said}",
        where=_where(access), state=_STATE,
        fix="raise max_allowed_packet of the server, or leave the table out",
    )  # fmt: skip


def _of_tls(error: pymysql.err.Error, number: int) -> bool:
    """CR_SSL_CONNECTION_ERROR, or what the driver makes of a handshake that failed."""
    cause = getattr(error, "original_exception", None)
    return number == 2026 or isinstance(cause, ssl.SSLError)


def _tls(said: str, access: Access) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-042", f"TLS to the database fails: {said}",
        where=_where(access), state="no password was sent, nothing was read",
        fix="give the certificate of its authority as `tls: {ca: PATH}`; the host of the connection"
        " has to be the name in the server's certificate",
    )  # fmt: skip


def _log_in(said: str, access: Access) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-041", f"the database does not let us in: {said}",
        where=_where(access), state="nothing was read",
        fix="look at user and password of the connection, and from where the user may come",
    )  # fmt: skip


def _passing(said: str, access: Access, doing: str) -> DependencyError:
    return DependencyError(
        "POLYNYA-GTW-040", f"the database does not answer; {doing}: {_told(said, access)}",
        where=_where(access), state=_STATE,
        fix="nothing to do when it comes back; else look at host and port of the connection",
    )  # fmt: skip


def _told(said: str, access: Access) -> str:
    """What the database said, on one line, bounded, and without the password."""
    line = " ".join(said.split())[:400]
    return line.replace(access.password, "***") if access.password else line


def _where(access: Access) -> str:
    return f"{access.task}: {access.host}:{access.port}"
