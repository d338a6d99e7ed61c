"""A database of a test's own, and how tests capture it without an engine."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from examples.servers.postgresql import PostgresServer
from polynya.capture.postgresql.database import PostgresDatabase
from polynya.capture.postgresql.session import identifier
from polynya.capture.source import Access, Chunk, SourceSnapshot, SourceTable


@dataclass
class Shop:
    server: PostgresServer
    name: str
    _opened: list[PostgresDatabase] = field(default_factory=list)
    _views: list[SourceSnapshot] = field(default_factory=list)

    def run(self, *statements: str) -> Sequence[Sequence[Any]]:
        """Run statements as the superuser, each for itself; the rows of the last."""
        return self.server.run(*statements, database=self.name)

    def access(self, **more: Any) -> Access:
        given = {
            "type": "postgresql", "host": self.server.host, "port": self.server.port,
            "database": self.name, "user": self.server.user, "password": self.server.password,
            "tls": "disable", "task": self.name,
        }  # fmt: skip
        return Access(**{**given, **more})

    def open(self, **more: Any) -> PostgresDatabase:
        """The database as a capture sees it; closed after the test."""
        found = PostgresDatabase(self.access(**more))
        self._opened.append(found)
        return found

    def begin(self, *include: str, **more: Any) -> tuple[tuple[SourceTable, ...], SourceSnapshot]:
        """Its tables and the view that a capture begins with."""
        database = self.open(**more)
        tables = database.tables(include or ("*",), ())
        view = database.begin(tables).snapshot
        self._views.append(view)
        return tables, view

    def closes(self, view: SourceSnapshot) -> None:
        """Close a view after the test."""
        self._views.append(view)

    def close(self) -> None:
        for view in self._views:
            view.close()
        for one in self._opened:
            one.close()

    def clear(self) -> None:
        """Remove everything from the database, and end what still reads from it."""
        session = self.server.connect(database=self.name)
        session.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        slots = "FROM pg_replication_slots WHERE database = current_database()"
        while session.run(f"SELECT 1 {slots} AND active_pid IS NOT NULL"):
            time.sleep(0.02)
        session.run(f"SELECT pg_drop_replication_slot(slot_name) {slots}")
        schemas = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'"
        for (name,) in session.run(schemas):
            session.run(f"DROP SCHEMA {identifier(name)} CASCADE")
        for (name,) in session.run("SELECT pubname FROM pg_publication"):
            session.run(f"DROP PUBLICATION {identifier(name)}")
        session.run("CREATE SCHEMA public")
        session.close()


def rows(chunk: Chunk) -> list[dict[str, Any]]:
    """The rows of a chunk as their events have them."""
    return [json.loads(one)["value"]["after"] for one in chunk.lines.splitlines()]


def read_all(
    view: SourceSnapshot, table: SourceTable, size: int, where: str | None = None
) -> list[list[dict[str, Any]]]:
    """The rows of a table in chunks of a size."""
    chunks, after = [], None
    while True:
        chunk = view.read(table, after, size, where)
        if chunk.rows:
            chunks.append(rows(chunk))
            after = chunk.last
        if chunk.is_last:
            return chunks
