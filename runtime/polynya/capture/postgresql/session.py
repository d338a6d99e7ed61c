"""Sessions of PostgreSQL: TLS, quoting, log positions, and errors with codes.

Identifiers are quoted here and nowhere else. Statements use the simple protocol without parameters,
because COPY takes none.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pg8000.native
from pg8000.core import COPY_DATA

from polynya.capture.source import Access
from polynya.model.error_catalogue.capture_databases import (
    POSTGRESQL_LOGIN_REFUSED,
    POSTGRESQL_NOT_SECURE,
    POSTGRESQL_RIGHT_MISSING,
    POSTGRESQL_STATEMENT_REFUSED,
    POSTGRESQL_TABLE_CHANGED,
    POSTGRESQL_UNREACHABLE,
)
from polynya.model.errors import PolynyaError

#: What a driver raises while a server is asked.
FAILURES: Final = (pg8000.native.Error, OSError)

#: Beginnings of SQL states that pass by themselves: connection, resources, the server's stop and
#: start, its storage, transactions that lost against others, locks that are waited for.
_PASSING_STATES: Final = ("08", "53", "57P0", "58", "40", "55P03", "55006")
_LOGIN_STATES: Final = ("28", "3D000")
#: A right that is missing, and a role that may not replicate.
_RIGHT_STATES: Final = ("42501",)
#: What is not as the catalog said a moment ago: tables and columns come and go.
_CHANGED_STATES: Final = ("42P01", "42703", "42883", "42804", "3F000")
#: How the server says that a slot shows it the catalog from before a table was altered.
UNDECODABLE: Final = ("could not map filen", "pg_attribute catalog is missing")


def sql_state(error: BaseException) -> str:
    """The SQL state of an error of the server; empty for all others."""
    return str(_said(error).get("C", ""))


def why(error: BaseException) -> str:
    """What the server said, in one line, without the statement."""
    fields = _said(error)
    if not fields:
        return str(error) or type(error).__name__
    detail = f" ({fields['D']})" if fields.get("D") else ""
    return f"{fields.get('M', '')}{detail}".replace("\n", " ")


def failed(access: Access, error: BaseException) -> PolynyaError:
    """The error for a server that did not do as it was asked."""
    where, state = f"{access.task}: {access.host}:{access.port}/{access.database}", sql_state(error)
    if _is_about_tls(error):
        return POSTGRESQL_NOT_SECURE(where=where, why=why(error))
    if state.startswith(_LOGIN_STATES):
        return POSTGRESQL_LOGIN_REFUSED(where=where, why=why(error))
    if state.startswith(_RIGHT_STATES):
        return POSTGRESQL_RIGHT_MISSING(where=where, why=why(error))
    if state.startswith(_CHANGED_STATES) or why(error).startswith(UNDECODABLE):
        return POSTGRESQL_TABLE_CHANGED(where=access.task, why=why(error))
    if not state or state.startswith(_PASSING_STATES):
        return POSTGRESQL_UNREACHABLE(where=where, why=why(error))
    return POSTGRESQL_STATEMENT_REFUSED(where=where, why=f"{why(error)} (SQL state {state})")


def _said(error: BaseException) -> dict[str, Any]:
    first = error.args[0] if error.args else None
    return first if isinstance(first, dict) else {}


def _is_about_tls(error: BaseException) -> bool:
    # Without TLS at the server pg8000 has this text only.
    return isinstance(error, ssl.SSLCertVerificationError) or "refuses SSL" in str(error)


_NUL: Final = "\0"
#: What messages of our own in the log begin with, and the one that a capture answers: it lands how
#: far it is.
MESSAGE_PREFIX: Final = "polynya"
POSITION_REQUEST: Final = "compare"


def identifier(name: str) -> str:
    """A name as an identifier. Raises ValueError for one that cannot be one."""
    if not name or _NUL in name:
        raise ValueError(f"{name!r} cannot be a name")
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    """A name within its schema."""
    return f"{identifier(schema)}.{identifier(name)}"


def literal(text: str) -> str:
    """A text as a literal; the server uses standard strings. Raises ValueError."""
    if _NUL in text:
        raise ValueError("a text of PostgreSQL holds no zero bytes")
    return "'" + text.replace("'", "''") + "'"


def lsn_number(text: str) -> int:
    """A position of the log, `16/B374D848`, as Debezium's number. Raises ValueError."""
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_text(number: int) -> str:
    """The same as PostgreSQL writes it."""
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


#: Seconds until a server that does not answer a connection is given up.
_CONNECT_SECONDS: Final = 15
#: Milliseconds that sent bytes may stay without answer before the network counts as cut.
_UNACKNOWLEDGED_MILLIS: Final = 60_000
#: Bytes that are received at a time, and those before the content of a message.
_BUFFER_BYTES: Final = 1 << 18
_HEAD: Final = 5
#: What values look like as text, and that nothing ends or filters a long load unseen.
_SETTINGS: Final = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    # A policy that hides rows from this user is an error, not a table with fewer rows.
    "row_security": "off",
}


class PostgresSession:
    """A connection that is not shared between threads."""

    def __init__(self, access: Access, *, replicates: bool = False) -> None:
        """Connect. Raises DependencyError and OperationError (POLYNYA-GTW-020 to -023)."""
        self._access = access
        try:
            self._connection = _connect(access, replicates=replicates)
        except FAILURES as error:
            raise failed(access, error) from None

    def run(self, statement: str) -> list[list[Any]]:
        """The rows of a statement; [] for one that has none."""
        try:
            return list(self._connection.run(statement) or [])
        except FAILURES as error:
            raise failed(self._access, error) from None

    def run_alone(self, statement: str) -> list[list[Any]]:
        """As `run`, of a statement with text of a user in it: the server refuses a second one."""
        try:
            return list(self._connection.execute_unnamed(statement).rows or [])
        except FAILURES as error:
            raise failed(self._access, error) from None

    def copy(self, statement: str, write: Callable[[bytes], Any]) -> None:
        """Hand what `COPY … TO STDOUT` sends to `write`, a row at a time."""
        connection = self._connection
        connection.message_types[COPY_DATA] = _rows_of(connection._sock, write)
        try:
            connection.run(statement, stream=_Sink(write))
        except FAILURES as error:
            raise failed(self._access, error) from None

    def close(self) -> None:
        """End it; an open transaction is rolled back."""
        with suppress(*FAILURES):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()


class _Sink:
    """What pg8000 writes a copy to."""

    def __init__(self, write: Callable[[bytes], Any]) -> None:
        self.write = write


def _rows_of(sock: Any, write: Callable[[bytes], Any]) -> Callable[[bytes, Any], None]:
    """A handler of one row that also takes those that have arrived behind it.

    The driver needs twice as long for a row, and other loads wait for the interpreter meanwhile.
    """
    (code,) = COPY_DATA

    def take(row: bytes, _context: Any) -> None:
        write(row)
        while True:
            arrived = sock.peek(1)
            at, end = 0, len(arrived)
            # A message: its code, the length of the rest with these four bytes, the row.
            while at + _HEAD <= end and arrived[at] == code:
                after = at + 1 + int.from_bytes(arrived[at + 1 : at + _HEAD])
                if after > end:
                    break
                write(arrived[at + _HEAD : after])
                at = after
            if not at:
                return
            sock.read(at)

    return take


def _connect(access: Access, *, replicates: bool) -> Any:
    plain = socket.create_connection((access.host, access.port), timeout=_CONNECT_SECONDS)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MILLIS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    try:
        connection = pg8000.native.Connection(
            access.user, host=access.host, port=access.port, database=access.database,
            password=access.password, sock=plain, ssl_context=tls_context(access),
            application_name=f"polynya {access.task}"[:63],
            replication="database" if replicates else None, startup_params=_SETTINGS,
        )  # fmt: skip
    except BaseException:
        plain.close()
        raise
    # A statement may take hours; a network that is cut is found by the limits above.
    connection._usock.settimeout(None)
    connection._sock = connection._usock.makefile(mode="rwb", buffering=_BUFFER_BYTES)
    return connection


def tls_context(access: Access) -> ssl.SSLContext | bool:
    """What a connection is encrypted with; False for none. Raises OSError: `ca` cannot be read."""
    if access.tls == "disable":
        return False
    context = ssl.create_default_context(cafile=access.ca)
    if access.tls == "require":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def authorities(access: Access) -> str | None:
    """The file of authorities by which Debezium proves the server; None: those of Java."""
    path = access.ca or ssl.get_default_verify_paths().openssl_cafile
    return path if Path(path).is_file() else None
