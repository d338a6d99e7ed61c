"""A session with a server: TLS, the settings that texts depend on, errors with codes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pg8000.native

from polynya.gateway.postgresql.errors import FAILURES, failed
from polynya.gateway.source import Access

#: Seconds until a server that does not answer a connection is given up.
_PATIENCE: Final = 15
#: Milliseconds that sent bytes may stay without answer before the network counts as cut.
_SILENCE: Final = 60_000
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


class Session:
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
        try:
            self._connection.run(statement, stream=_Sink(write))
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


def _connect(access: Access, *, replicates: bool) -> Any:
    plain = socket.create_connection((access.host, access.port), timeout=_PATIENCE)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE)
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
    found = access.ca or ssl.get_default_verify_paths().openssl_cafile
    return found if Path(found).is_file() else None
