"""MariaDB servers for tests: without one they are skipped, but fail where everything is checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from examples.servers import mariadb
from examples.servers.mariadb import Server
from polynya.gateway.source import Access
from tests.absent import absent


def new_server(folder: Path, settings: Mapping[str, str] | None = None) -> Server:
    """A server that does not run yet."""
    try:
        return Server(folder, settings)
    except mariadb.UnavailableError as error:
        absent(str(error))


def access_to(server: Server, **more: object) -> Access:
    """How its superuser reaches it."""
    given: dict[str, Any] = {
        "type": "mariadb", "host": "127.0.0.1", "port": server.port, "database": "",
        "user": server.user, "password": server.password, "task": "shop_db", "tls": "disable",
    }  # fmt: skip
    return Access(**{**given, **more})
