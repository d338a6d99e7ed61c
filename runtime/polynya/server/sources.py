"""Captures and streams as the API shows them: read at most every few seconds, from what landed.

No request waits for a database. Who looks at a capture has the server ask its database for the lag
in the background, at most twice a minute; requests show the last answer with its age.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from polynya.capture.source import Lag
from polynya.engine.commands.captures import CaptureStatus, capture_status
from polynya.engine.errors import as_polynya
from polynya.engine.inventory import tables_of
from polynya.lake.read.inspect import states
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.store.clock import Clock
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.streams.landed_status import StreamStatus

T = TypeVar("T")

#: Seconds for which what was read is shown again.
_KEPT_SECONDS: Final = 5.0
#: Seconds between two questions to a database.
_ASK_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class LagSeen:
    """What a database answered at `at`; `error` where it did not, and since when it does not."""

    at: datetime
    lag: Lag | None
    error: PolynyaError | None
    since: datetime | None = None


@dataclass(slots=True)
class SourceWatch:
    """What is known of the captures and streams of a project. Usable from many threads."""

    clock: Clock
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[tuple[str, str], tuple[float, object]] = field(default_factory=dict)
    _lags: dict[str, LagSeen] = field(default_factory=dict)
    _asked: dict[str, float] = field(default_factory=dict)
    _failing: dict[str, datetime] = field(default_factory=dict)

    def capture(self, project: LoadedProject, task: ConnectedCapture) -> CaptureStatus:
        """A capture, from its newest landed batch. Raises PolynyaError where that is unreadable."""
        key = ("capture", task.name)
        try:
            found = self._read(key, lambda: self._capture(project, task, ask=False))
        except PolynyaError:
            self._failing.setdefault(task.name, self.clock.now())
            raise
        self._failing.pop(task.name, None)
        return found

    def failing_since(self, task: str) -> datetime | None:
        """Since when a capture cannot be read; None if the last reading was answered."""
        return self._failing.get(task)

    def lag(self, project: LoadedProject, task: ConnectedCapture) -> LagSeen | None:
        """The last answer of the database, None before the first; asks again in the background."""
        if not task.follows:
            return None
        now = self.clock.monotonic()
        with self._lock:
            last, self._asked[task.name] = self._asked.get(task.name), now
            if last is not None and now - last < _ASK_SECONDS:
                self._asked[task.name] = last
                return self._lags.get(task.name)
        threading.Thread(
            target=self.ask, args=(project, task), name=f"lag {task.name}", daemon=True
        ).start()
        return self._lags.get(task.name)

    def ask(self, project: LoadedProject, task: ConnectedCapture) -> None:
        """Ask the database of a capture how far it is ahead, and keep its answer."""
        lag: Lag | None = None
        error: PolynyaError | None = None
        try:
            found = self._capture(project, task, ask=True)
            lag, error = found.lag, found.lag_error
        except Exception as failure:  # noqa: BLE001 - the end of a thread: the answer says it
            error = as_polynya(failure)
        now, before = self.clock.now(), self._lags.get(task.name)
        since = (before.since if before else None) or now
        self._lags[task.name] = LagSeen(now, lag, error, None if error is None else since)

    def _capture(
        self, project: LoadedProject, task: ConnectedCapture, *, ask: bool
    ) -> CaptureStatus:
        store = store_at(project.target.landing, project.target.aws)
        return capture_status(project, store, task, self.clock.now(), ask_database=ask)

    def streams(self, project: LoadedProject, task: StreamingLanding) -> list[StreamStatus]:
        """The landed tables of a landing. Raises PolynyaError where a batch is unreadable."""
        # Start-up time: the batches of streams.
        from polynya.streams.landed_status import stream_statuses

        def read() -> list[StreamStatus]:
            store = store_at(project.target.landing, project.target.aws)
            return list(stream_statuses(store, task, self.clock.now()))

        return self._read(("stream", task.name), read)

    def direct(self, project: LoadedProject, task: DirectTask) -> list[StreamStatus]:
        """What the tables of a task have read of its stream themselves. Raises PolynyaError."""
        # Start-up time: as above.
        from polynya.streams.landed_status import status_of_direct

        def read() -> list[StreamStatus]:
            if not has_tables(project.target):
                return []
            now, catalog = self.clock.now(), python_catalog(project.target)
            tables = (one.table for one in tables_of(task, catalog) if one.table is not None)
            positions = (states(table)[0].position.stream for table in tables)
            return [status_of_direct(one, now) for one in positions if one is not None]

        return self._read(("direct", task.name), read)

    def _read(self, key: tuple[str, str], read: Callable[[], T]) -> T:
        """What was read of an object a moment ago, or now."""
        now = self.clock.monotonic()
        known = self._kept.get(key)
        if known is not None and now - known[0] < _KEPT_SECONDS:
            found: T = known[1]  # type: ignore[assignment]
            return found
        found = read()
        self._kept[key] = now, found
        return found
