"""MariaDB and MySQL servers for tests.

Without a server they are skipped, but fail where everything is checked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from examples.servers.mariadb import Server, UnavailableError
from examples.servers.mysql import MysqlServer
from polynya.capture.source import Access
from tests.absent import absent


def new_server(
    folder: Path, settings: Mapping[str, str] | None = None, kind: str = Server.kind
) -> Server:
    """A server that does not run yet; `kind` is the type of its connections."""
    try:
        return (MysqlServer if kind == MysqlServer.kind else Server)(folder, settings)
    except UnavailableError as error:
        absent(str(error))


def access_to(server: Server, **more: object) -> Access:
    """How its superuser reaches it."""
    given: dict[str, Any] = {
        "type": server.kind, "host": "127.0.0.1", "port": server.port, "database": "",
        "user": server.user, "password": server.password, "task": "shop_db",
        # MySQL takes a password by TLS only, as it is set up.
        "tls": "require" if server.kind == MysqlServer.kind else "disable",
    }  # fmt: skip
    return Access(**{**given, **more})


@contextmanager
def busy_neighbour(server: Server) -> Iterator[None]:
    """Somebody writes to a database that nobody captures, as on most servers.

    Where nobody writes at all, Debezium hears of the end of the last transaction with the server's
    next sign of life, 48 seconds later.
    """
    # Not in the binlog, for there are captures that follow all statements.
    server.execute(
        "SET sql_log_bin = 0",
        "CREATE DATABASE IF NOT EXISTS neighbour",
        "CREATE TABLE IF NOT EXISTS neighbour.notes (n INT)",
    )
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.5):
            server.execute("INSERT INTO neighbour.notes VALUES (1)")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def numbers(last: int) -> str:
    """A table of the numbers from 1 in SQL, whose column is `seq`."""
    more = f"SELECT seq + 1 FROM numbered WHERE seq < {last}"
    return (
        f"(WITH RECURSIVE numbered AS (SELECT 1 AS seq UNION ALL {more}) SELECT seq FROM numbered)"
        " AS numbers"
    )
