"""A capture process that dies at a boundary: `-m tests.capture.worker.deadly BOUNDARY COUNT`.

It is the real one, with the real database and the real Java; only a call of it is the last. It dies
as by `kill -9`, so that nothing is finished, flushed or told.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from polynya.capture.debezium import DebeziumEngine
from polynya.capture.landing.log import CaptureLog
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.mysql.snapshot import MysqlSnapshot
from polynya.capture.postgresql.database import PostgresDatabase
from polynya.capture.postgresql.snapshot import PostgresSnapshot
from polynya.capture.worker import __main__ as worker
from polynya.capture.worker.changes import Changes
from polynya.formats.debezium.captured import CaptureHeader


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """Replaces one call by one after or before which the process dies, the so-manieth time."""

    def __init__(self, count: int) -> None:
        self._left = count

    def _dies(self, *, when: bool = True) -> None:
        self._left -= when
        if when and self._left <= 0:
            _die()

    def begun(self) -> None:
        """The slot is made, where there are slots, and nothing has landed that says so."""
        self._after("begin", PostgresDatabase, MysqlDatabase)

    def resumed(self) -> None:
        """A later view is taken."""
        self._after("resume", PostgresDatabase, MysqlDatabase)

    def chunk(self) -> None:
        """Rows of a load are read and have not landed."""
        self._after("read", PostgresSnapshot, MysqlSnapshot)

    def put(self) -> None:
        """A batch is ready and has not been put."""
        real = CaptureLog.put

        def put(log: CaptureLog, header: CaptureHeader, packed: bytes) -> int:
            self._dies()
            return real(log, header, packed)

        CaptureLog.put = put  # type: ignore[method-assign]

    def landed(self) -> None:
        """A batch is put, and nobody was told."""
        self._after("put", CaptureLog)

    def inside(self) -> None:
        """A batch is put that ends inside of a transaction."""
        real = CaptureLog.put

        def put(log: CaptureLog, header: CaptureHeader, packed: bytes) -> int:
            size = real(log, header, packed)
            stream = header.position["stream"]
            # PostgreSQL, and how many events a binlog goes on after.
            self._dies(when="passed" in stream or bool(stream["offset"].get("event")))
            return size

        CaptureLog.put = put  # type: ignore[method-assign]

    def telling(self) -> None:
        """All up to an event has landed, and the database is about to be told."""
        real = Changes.take

        def take(changes: Changes, events: Any, replaced: Any = ()) -> Any:
            told = real(changes, events, replaced)
            self._dies(when=told is not None)
            return told

        Changes.take = take  # type: ignore[method-assign]

    def told(self) -> None:
        """The database was told."""
        real_take, real_handle = Changes.take, DebeziumEngine.handleBatch
        seen = []

        def take(changes: Changes, events: Any, replaced: Any = ()) -> Any:
            told = real_take(changes, events, replaced)
            seen.append(told is not None)
            return told

        def handle(engine: DebeziumEngine, records: Any, committer: Any) -> None:
            real_handle(engine, records, committer)
            self._dies(when=seen[-1])

        Changes.take = take  # type: ignore[method-assign]
        DebeziumEngine.handleBatch = handle  # type: ignore[method-assign]

    # Faults that somebody could build in: the checks of the tests have to notice them.

    def position_first(self) -> None:
        """A faulty capture: where it goes on lands before the events do."""
        real = CaptureLog.put

        def put(log: CaptureLog, header: CaptureHeader, packed: bytes) -> int:
            self._left -= bool(header.events)
            if self._left <= 0:
                real(log, replace(header, events=0, schemas={}), b"")
                _die()
            return real(log, header, packed)

        CaptureLog.put = put  # type: ignore[method-assign]

    def events_first(self) -> None:
        """A faulty capture: events land before where it goes on does."""
        before: list[Any] = []
        real = CaptureLog.put

        def put(log: CaptureLog, header: CaptureHeader, packed: bytes) -> int:
            of_stream = before and before[-1]["stream"] != header.position["stream"]
            if header.events and of_stream:
                self._left -= 1
                if self._left <= 0:
                    real(log, replace(header, position=before[-1]), packed)
                    _die()
            before.append(header.position)
            return real(log, header, packed)

        CaptureLog.put = put  # type: ignore[method-assign]

    def _after(self, name: str, *owners: type) -> None:
        for owner in owners:
            setattr(owner, name, self._last(getattr(owner, name)))

    def _last(self, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def called(*args: Any, **more: Any) -> Any:
            result = real(*args, **more)
            self._dies()
            return result

        return called


#: Where a capture can be killed, so that each is another state of log, slot and database.
BOUNDARIES = ("begun", "resumed", "chunk", "put", "landed", "inside", "telling", "told")
FAULTS = ("position_first", "events_first")

if __name__ == "__main__":
    getattr(Deadly(int(sys.argv[2])), sys.argv[1])()
    code = worker.main()
    sys.stdout.flush()
    os._exit(code)
