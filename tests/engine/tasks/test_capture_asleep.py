"""A real capture that has ended: its database waits when something changes, and only then.

The place is the one that the capture reported last, as a leader writes it for the function that
looks at the sources of an empty cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from polynya.cluster.control.watch_list import watch_list
from polynya.engine.backlog import CaptureFigures
from polynya.engine.tasks.capture import supervisor_of
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.target import ResolvedTarget
from polynya.store.clock import SystemClock
from polynya.store.object_store import LocalObjectStore
from polynya_constructs.functions.wake.probe import look_at
from tests.capture.worker.shop import a_shop
from tests.engine.tasks.test_capture_outage import until
from tests.mariadb import new_server

pytestmark = pytest.mark.slow

#: The process says each five seconds how far it is.
_TOLD_SECONDS = 7.0


class Capture:
    """A capture that is started and ended, and a look at its database meanwhile."""

    def __init__(self, folder: Path, password: str, include: str, **database: Any) -> None:
        self._folder, self._password = folder, password
        self._figures = CaptureFigures()
        self.task = ConnectedCapture.model_validate(
            {
                "apiVersion": "polynya/v1", "kind": "landing", "name": "shop_db",
                "connection": "shop", "tables": {"include": [include]},
                "write": {"roll": {"size": "1MB", "age": "1s"}},
                "database": {
                    "host": "127.0.0.1", "password": {"env": "SHOP_PASSWORD"},
                    "tls": {"mode": "disable"}, **database,
                },
            }
        )  # fmt: skip

    @contextmanager
    def runs(self) -> Iterator[Callable[[int], None]]:
        """The capture, and what waits until so many events have landed since it began.

        A server at rest says with a sign of life each 48 seconds where its binlog ends.
        """
        landing = self._folder / "landing"
        supervisor = supervisor_of(
            self.task,
            ResolvedTarget("local", landing, self._folder / "tables", "jdbc", ""),
            LocalObjectStore(landing),
            clock=SystemClock(),
            sink=lambda _: None,
        )

        def landed(events: int) -> None:
            until(supervisor, lambda now: now.events >= events)
            told = time.monotonic() + _TOLD_SECONDS

            def is_at_rest(now: CaptureFigures) -> bool:
                self._figures = now
                return time.monotonic() > told and self.waits()[0] is False

            until(supervisor, is_at_rest)

        try:
            yield landed
        finally:
            supervisor.close()

    def waits(self) -> tuple[bool | None, str]:
        """What a look finds."""
        now = datetime.now(UTC)
        (source,) = watch_list([self.task], {}, {"shop_db": self._figures}, now).sources
        login = {"user": self.task.database.user, "password": self._password}
        asked = {**source.model_dump(), "place": {**source.place, **login}, "age_seconds": 1.0}
        (found,) = look_at([asked])
        return found.waits, found.why


def test_a_postgresql_whose_capture_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_shop(rows=10) as server:
        monkeypatch.setenv("SHOP_PASSWORD", server.password)
        capture = Capture(
            tmp_path, server.password, "public.%",
            type="postgresql", port=server.port, database=server.database, user=server.user,
        )  # fmt: skip
        with capture.runs() as landed:
            landed(30)
            server.run("INSERT INTO a VALUES (-1, 'x')")
            server.run("INSERT INTO a VALUES (-2, 'y')")
            landed(32)
        assert capture.waits() == (False, "nothing that is captured has changed")
        server.run("CREATE TABLE public.later (id int)", "CREATE SCHEMA other")
        server.run("CREATE TABLE other.t (id int)", "INSERT INTO other.t VALUES (1)")
        assert capture.waits()[0] is False

        server.run("UPDATE a SET v = 'z' WHERE id = -1")
        assert capture.waits() == (True, "1 transactions or more have changes")

        with capture.runs() as landed:
            landed(1)
        assert capture.waits()[0] is False


def test_a_mariadb_whose_capture_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = new_server(tmp_path / "server")
    try:
        server.start()
        server.execute("CREATE DATABASE shop", "CREATE TABLE shop.a (id int primary key, v text)")
        server.execute("CREATE DATABASE other", "CREATE TABLE other.t (id int)")
        server.execute("INSERT INTO shop.a VALUES (1, 'a')")
        monkeypatch.setenv("SHOP_PASSWORD", server.password)
        capture = Capture(
            tmp_path, server.password, "shop.%", type="mariadb", port=server.port, user=server.user
        )
        with capture.runs() as landed:
            landed(1)
            server.execute("INSERT INTO shop.a VALUES (2, 'b')")
            server.execute("INSERT INTO shop.a VALUES (3, 'c')")
            landed(3)
        assert capture.waits()[0] is False
        server.execute("INSERT INTO other.t VALUES (1)")
        assert capture.waits() == (False, "nothing that is captured has changed")

        server.execute("UPDATE shop.a SET v = 'z' WHERE id = 1")
        assert capture.waits() == (True, "shop.a has changed")

        with capture.runs() as landed:
            landed(1)
        assert capture.waits()[0] is False
    finally:
        server.close()
