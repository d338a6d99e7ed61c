"""Loading tables in threads: several at once, chunk by chunk, with or without a key.

A table without key lands as one batch, together with exactly the events that were held back for it.
So its load and the thread that lands the stream exclude each other. Rows and held events wait in a
scratch file without a name, which disappears with the process, however that ends. Losing it is
correct: the next load has a later view.
"""

from __future__ import annotations

import io
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from polynya.capture.landing.log import CaptureLander
from polynya.capture.landing.position import CapturePosition, ResumePoint, in_epoch, next_table
from polynya.capture.landing.stream import (
    KeylessEvents,
    StreamEvent,
    divide_keyless,
    has_all,
    is_seen,
    lands_unchecked,
    position_after,
)
from polynya.capture.source import (
    Chunk,
    GrowingColumn,
    GrowingSnapshot,
    Key,
    SeenTransactions,
    SourceSnapshot,
    SourceTable,
    WholeTable,
)
from polynya.capture.wire import TableChangedError, WorkerSettings, error_fields
from polynya.capture.worker.masks import TableMasks
from polynya.capture.worker.reporting import ReportEvent
from polynya.formats.debezium.captured import EventSchema, LoadChunk, packed_lines
from polynya.model.config.fields import KEEPING
from polynya.model.error_catalogue.capture import DATABASE_BEHIND_ITS_LOG, KEYLESS_LOAD_TOO_LARGE
from polynya.model.error_catalogue.capture_databases import (
    KEYLESS_LOAD_NOT_SEPARABLE,
    LOAD_NOT_CONTINUABLE,
    MYSQL_TABLE_CHANGED,
    POSTGRESQL_TABLE_CHANGED,
)
from polynya.model.errors import DependencyError, OperationError, PolynyaError

#: What S3 takes as one object, with room for a header.
MOST_BYTES: Final = 5_000_000_000


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines that have one schema, as a frame of the file."""

    first: int
    size: int
    events: int
    shape: Mapping[str, Any]


class Spool:
    """Lines of one table. Not for several threads at a time.

    Attributes:
        events: how many lines it has.
        size: their bytes, compressed.
    """

    def __init__(self, table: str, most_bytes: int = MOST_BYTES) -> None:
        """An empty one, of at most so many compressed bytes. It takes a file when it has lines."""
        self.events = self.size = 0
        self._table, self._most = table, most_bytes
        self._parts: list[_Part] = []

    @cached_property
    def file(self) -> BinaryIO:
        """The lines, compressed."""
        # Its end is that of the spool.
        return cast("BinaryIO", tempfile.TemporaryFile(prefix="polynya-load-"))

    @property
    def shapes(self) -> list[EventSchema]:
        """The schemas of the lines; 1 is the first line."""
        schemas: list[EventSchema] = []
        line = 1
        for part in self._parts:
            if not schemas or schemas[-1].schema is not part.shape:
                schemas.append(EventSchema(line, part.shape))
            line += part.events
        return schemas

    def add(self, lines: bytes, events: int, shape: Mapping[str, Any]) -> None:
        """Add lines, each with its end.

        Raises:
            OperationError: POLYNYA-GTW-011, they do not fit into one object or the scratch folder.
        """
        if not events:
            return
        packed = packed_lines(lines)
        if self.size + len(packed) > self._most:
            reason = f"they have more than {self._most:,} bytes, compressed"
            raise KEYLESS_LOAD_TOO_LARGE(table=self._table, reason=reason)
        try:
            self.file.seek(self.size)
            self.file.write(packed)
            self.file.flush()
        except OSError as error:
            reason = f"the scratch folder has no room: {error.strerror}"
            raise KEYLESS_LOAD_TOO_LARGE(table=self._table, reason=reason) from error
        self._parts.append(_Part(self.size, len(packed), events, shape))
        self.size += len(packed)
        self.events += events

    def parts(self) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
        """What was added, again: lines and their schema."""
        for part in self._parts:
            self.file.seek(part.first)
            packed = io.BytesIO(self.file.read(part.size))
            with pa.CompressedInputStream(packed, "zstd") as content:
                yield content.read(), part.shape

    def close(self) -> None:
        """Remove it."""
        if self._parts:
            self.file.close()


#: Connectors whose stream has a table as soon as it is made.
_AT_ONCE: Final = frozenset({"mariadb", "mysql"})
_WITHOUT_KEY: Final = b'{"key":null,'


class KeylessTables:
    """The tables without key of a round."""

    def __init__(
        self,
        connector: str,
        tables: Mapping[str, SourceTable],
        position: CapturePosition,
        *,
        loads: bool,
    ) -> None:
        """Begin a round.

        Args:
            connector: of the database.
            tables: that there are.
            position: at which the round begins.
            loads: what is not loaded is loaded in this round.
        """
        self.connector, self._known = connector, frozenset(tables)
        self._turn, self._lock = threading.Lock(), threading.Lock()
        names = [name for name, table in tables.items() if table.lacks_key]
        self._watched = {name for name in names if not lands_unchecked(position.tables.get(name))}
        waiting = [name for name in self._watched if position.tables[name].state == "queued"]
        self._held = {name: Spool(name) for name in waiting if loads}
        self._failed: dict[str, OperationError] = {}

    def are_apart(self, events: Sequence[StreamEvent]) -> Sequence[bool] | None:
        """Which events are for `divide` to decide; None: none of them."""
        if not self._watched and self.connector not in _AT_ONCE:
            return None
        apart = [event.table is not None and self._is_apart(event) for event in events]
        return apart if any(apart) else None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Nobody else lands what concerns these tables meanwhile."""
        with self._turn:
            yield

    def divide(self, events: Sequence[StreamEvent], position: CapturePosition) -> KeylessEvents:
        """What becomes of events that are apart; those of tables to be loaded are held."""
        divided = divide_keyless(self.connector, events, position)
        for _, group in groupby(divided.kept, key=lambda event: (event.table, id(event.shape))):
            self._hold(list(group))
        return divided

    def position_after(
        self, before: CapturePosition, stream: ResumePoint, divided: KeylessEvents
    ) -> CapturePosition:
        """The position after events of the stream."""
        return position_after(self.connector, before, stream, divided.left_out)

    def look_again(self, position: CapturePosition) -> None:
        """Let go of the tables whose events all land from now on."""
        for name in [name for name in self._watched if lands_unchecked(position.tables.get(name))]:
            self._watched.discard(name)

    def taken(self, table: str) -> Spool:
        """What has been held of a table since it was taken last. The caller closes it.

        Raises:
            OperationError: POLYNYA-GTW-011, there was no room for all.
        """
        with self._lock:
            if table in self._failed:
                raise self._failed[table]
            held, self._held[table] = self._held[table], Spool(table)
            return held

    def unseen(self, lines: bytes, seen: SeenTransactions) -> list[bytes]:
        """Those of event lines that a view has not."""
        every = lines.splitlines(keepends=True)
        return [line for line in every if not is_seen(self.connector, seen, line)]

    def drop(self, table: str) -> None:
        """Hold nothing of a table any more."""
        with self._lock:
            held = self._held.pop(table, None)
        if held is not None:
            held.close()

    def close(self) -> None:
        """Remove what is held."""
        for table in list(self._held):
            self.drop(table)

    def _is_apart(self, event: StreamEvent) -> bool:
        if event.table in self._watched:
            return True
        # A new table is in a binlog before anybody has looked for it.
        is_new = event.table not in self._known and self.connector in _AT_ONCE
        return is_new and event.line.startswith(_WITHOUT_KEY) and not _is_truncation(event.line)

    def _hold(self, events: Sequence[StreamEvent]) -> None:
        """Hold events of one table and one schema."""
        table, shape = str(events[0].table), events[0].shape or {}
        with self._lock:
            if table not in self._held or table in self._failed:
                return
            try:
                self._held[table].add(b"".join(event.line for event in events), len(events), shape)
            except OperationError as error:
                self._failed[table] = error


def _is_truncation(line: bytes) -> bool:
    return bool(json.loads(line)["value"].get("op") == "t")


#: How long a database may take to show what its stream has said already.
_VIEW_WAIT_SECONDS: Final = 60.0
_VIEW_INTERVAL_SECONDS: Final = 0.2


class LoadStoppedError(Exception):
    """The load was asked to end. Nothing of the table has landed."""


@dataclass(slots=True)
class KeylessLoad:
    """The load of one table without key, as one batch.

    Attributes:
        table: without key.
        stop: ends it.
    """

    table: SourceTable
    snapshot: SourceSnapshot
    lander: CaptureLander
    masks: TableMasks
    keyless: KeylessTables
    stop: threading.Event

    def land(self, rows: int, where: str | None, read: Callable[[Chunk], None]) -> None:
        """Load it, as one batch.

        Args:
            rows: about so many are read at a time.
            where: a condition of the user.
            read: gets what was read.

        Raises:
            LoadStoppedError: it was asked to end.
            OperationError: it cannot be read, or POLYNYA-GTW-011. Nothing of it has landed.
            DependencyError: POLYNYA-GTW-013, or what may pass.
        """
        with closing(Spool(self.table.name)) as spool, self._moment(rows, where) as whole:
            shape = self.snapshot.envelope(self.table)
            for chunk in whole.chunks:
                if self.stop.is_set():
                    raise LoadStoppedError
                self._add(spool, shape, chunk)
                read(chunk)
            loaded = spool.events
            # Most of what the stream brought meanwhile, while it continues; then the rest.
            self._add_held(spool, whole.seen)
            with self.keyless.turn():
                self._add_held(spool, whole.seen)
                self._land(spool, loaded, whole.seen)

    @contextmanager
    def _moment(self, rows: int, where: str | None) -> Iterator[WholeTable]:
        """A moment that has all events that were left out until now."""
        name, waited = self.table.name, 0.0
        left_out = self.lander.position.left_out.get(name)
        while True:
            with self.snapshot.whole(self.table, rows, where) as whole:
                if left_out is None or has_all(self.keyless.connector, whole.seen, left_out):
                    yield whole
                    return
            if self.stop.wait(_VIEW_INTERVAL_SECONDS):
                raise LoadStoppedError
            waited += _VIEW_INTERVAL_SECONDS
            if waited > _VIEW_WAIT_SECONDS:
                raise DATABASE_BEHIND_ITS_LOG(table=name)

    def _add(self, spool: Spool, shape: Mapping[str, Any], chunk: Chunk) -> None:
        masks, lines = self.masks.of_table(self.table.name, shape), chunk.lines
        if masks is not None:
            shape, lines = masks.schema, masks.lines(lines)
        spool.add(in_epoch(lines, self.lander.position.epoch), chunk.rows, shape)

    def _add_held(self, spool: Spool, seen: SeenTransactions) -> None:
        with closing(self.keyless.taken(self.table.name)) as held:
            for lines, shape in held.parts():
                fresh = self.keyless.unseen(lines, seen)
                spool.add(in_epoch(b"".join(fresh), self.lander.position.epoch), len(fresh), shape)

    def _land(self, spool: Spool, rows: int, seen: SeenTransactions) -> None:
        name = self.table.name

        def move(before: CapturePosition) -> CapturePosition:
            loaded = before.tables[name].with_whole(rows, seen, self.lander.number + 1)
            after = before.with_table(name, loaded)
            left_out = {
                other: position for other, position in before.left_out.items() if other != name
            }
            return replace(after, left_out=left_out)

        self.lander.land_file(spool.file, spool.events, {name: spool.shapes}, move)
        self.keyless.drop(name)


_RETRY_SECONDS: Final = 5.0
#: What another try would meet again, after all rows were read.
_LASTING_CODES: Final = frozenset(
    {KEYLESS_LOAD_TOO_LARGE.code, KEYLESS_LOAD_NOT_SEPARABLE.code, LOAD_NOT_CONTINUABLE.code}
)
#: The table was truncated, rewritten or altered, so this view has no more of its rows.
_CHANGED_CODES: Final = frozenset({POSTGRESQL_TABLE_CHANGED.code, MYSQL_TABLE_CHANGED.code})


@dataclass(slots=True)
class _TableLoad:
    """A table that is being loaded now."""

    table: SourceTable
    began: float
    after: Key | None
    rows: int
    bytes: int = 0
    failures: int = 0


@dataclass(slots=True)
class LoadThreads:
    """Threads that load until nothing is left, something fails or they are asked to stop.

    Attributes:
        settings: which table is next, and how a table is read.
        tables: those that there are, by name.
        emptied: by table, a last event of its load.
        keyless: tables without key, which land whole; None: they are read in parts as all others,
            since nothing follows their changes.
        growing: columns by which tables are read instead of as a whole, with their marks.
        failure: what ended the load; None as long as nothing did.
    """

    settings: WorkerSettings
    tables: Mapping[str, SourceTable]
    snapshot: SourceSnapshot
    lander: CaptureLander
    masks: TableMasks
    report: ReportEvent
    monotonic: Callable[[], float]
    ended: Callable[[], None]
    emptied: Mapping[str, bytes] = field(default_factory=dict)
    keyless: KeylessTables | None = None
    growing: Mapping[str, GrowingColumn] = field(default_factory=dict)
    failure: Exception | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: set[str] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to load."""
        for number in range(self.settings.parallel):
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
        """Whether a table is being loaded that would begin again after an end."""
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
            name = next_table(
                self.lander.position,
                self._running,
                parallel=self.settings.parallel,
                order=self.settings.order,
            )
            if name is not None:
                self._running.add(name)
            return name

    def _load(self, name: str) -> None:
        progress = self.lander.position.tables[name]
        load = _TableLoad(self.tables[name], self.monotonic(), progress.after, progress.rows)
        while not self._stop.is_set():
            try:
                if self._land_next(load):
                    return
            except LoadStoppedError:
                return
            except OperationError as error:
                load.failures += 1
                if error.code in _LASTING_CODES:
                    load.failures = self.settings.table_retries + 1
                if self._gives_up(load, error):
                    return
                self._stop.wait(_RETRY_SECONDS)
            except DependencyError as error:
                if error.code not in _CHANGED_CODES:
                    raise
                raise TableChangedError.of(name, error) from error

    def _land_next(self, load: _TableLoad) -> bool:
        """Land the next chunk; whether it was the last."""
        name = load.table.name
        where = self.settings.filter.get(name)
        if self._is_whole(load.table):
            return self._land_whole(load, where)
        chunk = self._next_chunk(load, where)
        shape, lines = self.snapshot.envelope(load.table), chunk.lines
        masks, hides_key = self.masks.of_table(name, shape), False
        if masks is not None:
            shape, lines, hides_key = masks.schema, masks.lines(lines), masks.hides_key

        def move(position: CapturePosition) -> CapturePosition:
            loaded = position.tables[name].with_chunk(chunk, self.lander.number + 1)
            if name in self.growing and chunk.last is not None:
                loaded = replace(loaded, mark=str(chunk.last[1]))
            # A key that is masked must not be written here either: after a kill such a table
            # begins again, which its key makes harmless.
            return position.with_table(name, replace(loaded, after=None) if hides_key else loaded)

        end = self.emptied.get(name, b"") if chunk.is_last else b""
        if name in self.growing and not chunk.rows and not self.lander.position.tables[name].chunks:
            # Nothing is new: only the position lands.
            end = b""
        events = chunk.rows + bool(end)
        loads = self._loads(name, is_last=chunk.is_last) if events else {}
        self.lander.land(
            lines + end,
            events,
            {name: [EventSchema(1, shape)]} if events else {},
            move,
            loads=loads,
        )
        load.failures = 0
        load.after = load.after if chunk.last is None else chunk.last
        self._read(load, chunk)
        if chunk.is_last:
            self._report_loaded(load)
        return chunk.is_last

    def _next_chunk(self, load: _TableLoad, where: str | None) -> Chunk:
        name, rows = load.table.name, self.settings.chunk_rows
        column = self.growing.get(name)
        if column is None:
            return self.snapshot.read(load.table, load.after, rows, where)
        assert isinstance(self.snapshot, GrowingSnapshot), "only such a view has growing columns"
        column = replace(column, mark=self.lander.position.tables[name].mark)
        return self.snapshot.read_grown(load.table, column, load.after, rows, where)

    def _loads(self, name: str, *, is_last: bool) -> dict[str, LoadChunk]:
        """What tells readers to compare the rows with what they have; nothing before they have."""
        progress = self.lander.position.tables[name]
        if progress.load is None:
            return {}
        mode = progress.mode or self.settings.reload_mode
        return {name: LoadChunk(progress.load, progress.chunks + 1, is_last, mode)}

    def _is_whole(self, table: SourceTable) -> bool:
        return self.keyless is not None and table.lacks_key

    def _land_whole(self, table_load: _TableLoad, where: str | None) -> bool:
        """Land all of a table without key."""
        assert self.keyless is not None
        table_load.rows = table_load.bytes = 0
        load = KeylessLoad(
            table_load.table, self.snapshot, self.lander, self.masks, self.keyless, self._stop
        )
        load.land(self.settings.chunk_rows, where, lambda chunk: self._read(table_load, chunk))
        self._report_loaded(table_load)
        return True

    def _report_loaded(self, load: _TableLoad) -> None:
        seconds = round(self.monotonic() - load.began, 3)
        self.report(
            "loaded", table=load.table.name, rows=load.rows, bytes=load.bytes, seconds=seconds
        )

    def _read(self, load: _TableLoad, chunk: Chunk) -> None:
        load.rows += chunk.rows
        load.bytes += len(chunk.lines)
        if chunk.is_last:
            return
        seconds = round(self.monotonic() - load.began, 3)
        table = load.table
        self.report(
            "progress",
            table=table.name,
            rows=load.rows,
            bytes=load.bytes,
            rows_estimate=table.rows_estimate,
            bytes_estimate=table.bytes_estimate,
            seconds=seconds,
        )

    def _gives_up(self, load: _TableLoad, error: PolynyaError) -> bool:
        """Whether a table is given up. Raises the error when that ends the capture."""
        name, gives_up = load.table.name, load.failures > self.settings.table_retries
        suspends = gives_up and self.settings.table_then == "suspend"
        is_out = suspends and not self._keeps_changes(name)
        self.report("table_failed", table=name, error=error_fields(error), suspended=is_out)
        if gives_up and not suspends:
            raise error
        if suspends and self.keyless is not None:
            self.keyless.drop(name)
        if suspends and self._keeps_changes(name):
            self._give_up_comparing(name)
            return True
        if suspends:
            self.lander.land(
                b"", 0, {}, lambda all_: all_.with_table(name, all_.tables[name].suspended(error))
            )
        return suspends

    def _keeps_changes(self, name: str) -> bool:
        """Whether a table is loaded beside its changes only to be compared: they go on without."""
        progress = self.lander.position.tables[name]
        return self.settings.mode != "reload" and progress.load is not None

    def _give_up_comparing(self, name: str) -> None:
        """End a load that cannot be read to its end, until it is due again.

        An empty load that keeps all rows takes its place, so that readers discard what they have of
        it: as long as they gather a load they do not apply changes.
        """
        shape = self.snapshot.envelope(self.tables[name])
        masks = self.masks.of_table(name, shape)
        shape = shape if masks is None else masks.schema

        def move(position: CapturePosition) -> CapturePosition:
            progress = position.tables[name]
            ended = replace(progress, state="loaded", after=None, load=None, mode=None, why=None)
            return position.with_table(name, ended)

        nothing = LoadChunk(self.lander.number + 1, 1, is_last=True, mode=KEEPING)
        self.lander.land(
            self.emptied[name], 1, {name: [EventSchema(1, shape)]}, move, loads={name: nothing}
        )
