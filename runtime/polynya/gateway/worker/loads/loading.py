"""The load of tables: several at once, each chunk by chunk, from one view of the database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from polynya.formats.debezium.captured.batch import Shape
from polynya.gateway.landing.lander import Lander
from polynya.gateway.landing.position import Position
from polynya.gateway.landing.progress import LoadPlan
from polynya.gateway.source import Chunk, Key, Snapshot, SourceTable
from polynya.gateway.wire import error_fields
from polynya.gateway.worker.loads.keyless import Keyless
from polynya.gateway.worker.loads.whole import Stopped, WholeLoad
from polynya.gateway.worker.masks import TableMasks
from polynya.gateway.worker.telling import Tell
from polynya.model.errors import OperationError, PolynyaError

_RETRY_SECONDS: Final = 5.0
#: What another try would meet again, after all rows were read.
_LASTING: Final = frozenset({"POLYNYA-GTW-011", "POLYNYA-GTW-051", "POLYNYA-GTW-056"})


@dataclass(slots=True)
class _Table:
    """A table that is being loaded now."""

    table: SourceTable
    began: float
    after: Key | None
    rows: int
    bytes: int = 0
    failures: int = 0


@dataclass(slots=True)
class Loading:
    """Threads that load until nothing is left, something fails or they are told to stop.

    Attributes:
        plan: which table is next, and how a table is read.
        tables: those that there are, by name.
        emptied: by table, a last event of its load.
        keyless: tables without key, which land whole; None: they are read in parts as all others,
            since nothing follows their changes.
        failure: what ended the load; None as long as nothing did.
    """

    plan: LoadPlan
    tables: Mapping[str, SourceTable]
    snapshot: Snapshot
    lander: Lander
    masks: TableMasks
    tell: Tell
    monotonic: Callable[[], float]
    ended: Callable[[], None]
    emptied: Mapping[str, bytes] = field(default_factory=dict)
    keyless: Keyless | None = None
    failure: Exception | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: set[str] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to load."""
        for number in range(self.plan.parallel):
            thread = threading.Thread(target=self._work, name=f"load-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End after the chunks that are being read. Waits for them."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def has_whole(self) -> bool:
        """Whether a table is being loaded that would begin anew after an end."""
        with self._lock:
            return any(self._is_whole(self.tables[name]) for name in self._running)

    @property
    def is_done(self) -> bool:
        """Whether all threads have ended."""
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        try:
            while not self._stop.is_set() and (name := self._claimed()) is not None:
                try:
                    self._load(name)
                finally:
                    with self._lock:
                        self._running.discard(name)
        except Exception as error:  # noqa: BLE001 - a thread's error ends the process by name
            self.failure = self.failure or error
            self._stop.set()
        finally:
            self.ended()

    def _claimed(self) -> str | None:
        with self._lock:
            name = self.plan.next_table(self.lander.position, self._running)
            if name is not None:
                self._running.add(name)
            return name

    def _load(self, name: str) -> None:
        progress = self.lander.position.tables[name]
        one = _Table(self.tables[name], self.monotonic(), progress.after, progress.rows)
        while not self._stop.is_set():
            try:
                if self._land_next(one):
                    return
            except Stopped:
                return
            except OperationError as error:
                one.failures += 1
                if error.code in _LASTING:
                    one.failures = self.plan.retries + 1
                if self._gives_up(one, error):
                    return
                self._stop.wait(_RETRY_SECONDS)

    def _land_next(self, one: _Table) -> bool:
        """Land the next chunk; whether it was the last."""
        name = one.table.name
        where = self.plan.where.get(name)
        if self._is_whole(one.table):
            return self._land_whole(one, where)
        chunk = self.snapshot.read(one.table, one.after, self.plan.chunk_rows, where)
        shape, lines = self.snapshot.envelope(one.table), chunk.lines
        masks, hides_key = self.masks.of_table(name, shape), False
        if masks is not None:
            shape, lines, hides_key = masks.schema, masks.lines(lines), masks.hides_key

        def move(position: Position) -> Position:
            moved = position.tables[name].with_chunk(chunk, self.lander.number + 1)
            # A key that is masked must not be written here either: after a kill such a table
            # begins anew, which its key makes harmless.
            return position.with_table(name, replace(moved, after=None) if hides_key else moved)

        end = self.emptied.get(name, b"") if chunk.is_last else b""
        events = chunk.rows + bool(end)
        self.lander.land(lines + end, events, {name: [Shape(1, shape)]} if events else {}, move)
        one.failures = 0
        one.after = one.after if chunk.last is None else chunk.last
        self._read(one, chunk)
        if chunk.is_last:
            self._tell_loaded(one)
        return chunk.is_last

    def _is_whole(self, table: SourceTable) -> bool:
        return self.keyless is not None and table.lacks_key

    def _land_whole(self, one: _Table, where: str | None) -> bool:
        """Land all of a table without key."""
        assert self.keyless is not None
        one.rows = one.bytes = 0
        load = WholeLoad(
            one.table, self.snapshot, self.lander, self.masks, self.keyless, self._stop
        )
        load.land(self.plan.chunk_rows, where, lambda chunk: self._read(one, chunk))
        self._tell_loaded(one)
        return True

    def _tell_loaded(self, one: _Table) -> None:
        seconds = round(self.monotonic() - one.began, 3)
        self.tell("loaded", table=one.table.name, rows=one.rows, bytes=one.bytes, seconds=seconds)

    def _read(self, one: _Table, chunk: Chunk) -> None:
        one.rows += chunk.rows
        one.bytes += len(chunk.lines)
        if chunk.is_last:
            return
        seconds = round(self.monotonic() - one.began, 3)
        table = one.table
        self.tell(
            "progress",
            table=table.name,
            rows=one.rows,
            bytes=one.bytes,
            rows_estimate=table.rows_estimate,
            bytes_estimate=table.bytes_estimate,
            seconds=seconds,
        )

    def _gives_up(self, one: _Table, error: PolynyaError) -> bool:
        """Whether a table is given up. Raises the error when that ends the capture."""
        name, gives_up = one.table.name, one.failures > self.plan.retries
        suspends = gives_up and self.plan.then == "suspend"
        self.tell("table_failed", table=name, error=error_fields(error), suspended=suspends)
        if gives_up and not suspends:
            raise error
        if suspends and self.keyless is not None:
            self.keyless.drop(name)
        if suspends:
            self.lander.land(
                b"", 0, {}, lambda all_: all_.with_table(name, all_.tables[name].suspended(error))
            )
        return suspends
