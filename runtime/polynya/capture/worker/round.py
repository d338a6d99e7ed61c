"""A round of a capture: the load and the stream, until the tables change or a request comes.

Load and stream run at the same time and land into one log. The next round begins at the newest
position in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from polynya.capture.debezium import MisreadStatements
from polynya.capture.landing.log import CaptureLander
from polynya.capture.landing.position import (
    LogPosition,
    log_place,
    position_of_offset,
    position_of_rows,
    unloaded,
)
from polynya.capture.landing.stream import RollLimits, StreamEvent, cutter_of
from polynya.capture.mysql.catalog import matching
from polynya.capture.source import Offset, SourceSnapshot
from polynya.capture.wire import asks_for_all, error_fields
from polynya.capture.worker.changes import Changes
from polynya.capture.worker.context import CaptureContext
from polynya.capture.worker.engines import StreamEngine
from polynya.capture.worker.extraction import start_extraction
from polynya.capture.worker.loads import KeylessTables, LoadThreads
from polynya.capture.worker.masks import TableMasks
from polynya.capture.worker.starting import (
    RoundStart,
    continue_capture,
    has_begun,
    has_changed,
    is_reload_due,
    require_stream,
    start_capture,
    start_reload,
)
from polynya.model.error_catalogue.capture import STREAM_UNREADABLE
from polynya.model.errors import PolynyaError

_TABLE_CHECK_SECONDS: Final = 30.0
"""So often the database is asked for tables that are new."""
_LAG_INTERVAL_SECONDS: Final = 5.0
#: A `once` capture of a source whose end is unknown ends after so much silence.
_QUIET_SECONDS: Final = 20.0


class ReadAgainError(PolynyaError):
    """Ends an engine, so that a new one starts behind a statement that this one has not understood.

    The new one gets the statement in words that it understands.
    """

    def __init__(self) -> None:
        super().__init__(STREAM_UNREADABLE.code, "the engine restarts to reread a statement")


#: The one connector whose events have lists.
_WITH_LISTS: Final = "postgresql"


class Round:
    """From one look at the tables to the next."""

    def __init__(
        self, capture: CaptureContext, lander: CaptureLander, *, is_anew: bool = False
    ) -> None:
        self._of, self._lander, self._is_anew = capture, lander, is_anew
        #: Somebody asked for a load of all tables.
        self.is_for_all = False
        self._masks = TableMasks()
        self._snapshot: SourceSnapshot | None = None
        self._loading: LoadThreads | None = None
        self._changes: Changes | None = None
        self._engine: StreamEngine | None = None
        self._keyless: KeylessTables | None = None
        self._target: LogPosition | None = None
        #: A place up to which the stream was read, and that of the look at the lag before.
        self._read_to: Offset | None = None
        self._rested_at: Offset | None = None
        self._misreading: MisreadStatements | None = None
        self._heard_at = capture.monotonic()

    def __enter__(self) -> Round:
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads. What they had read and not landed is read again."""
        if self._loading is not None:
            self._loading.stop()
        if self._changes is not None:
            # An engine that waits for room is let go.
            self._changes.close()
        if self._engine is not None:
            self._engine.stop()
        if self._keyless is not None:
            self._keyless.close()
        self._leave_view()

    def _leave_view(self) -> None:
        """End the view that rows are loaded from, as soon as nothing is left to be read.

        It holds locks on what was read, so that its columns could not be changed and it could not
        be truncated, and keeps the database from cleaning up old rows.
        """
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.close()

    def run(self) -> None:
        """Load and follow until something asks for a new round."""
        of = self._of
        start = self._started()
        self._report_tables(start)
        if self._has_landed_all():
            # An engine that is ended while it starts may take a minute.
            of.report("streaming")
            of.end()
            return
        self._masks = masks = TableMasks.of(
            of.settings.masks, start.tables, of.settings.limit, unsent=of.unsent,
            guards_lists=of.database.connector == _WITH_LISTS,
        )  # fmt: skip
        if of.settings.mode != "reload":
            self._follow(start, masks)
        self._load(start, masks)
        self._watch()
        if self._engine is not None and self._changes is not None:
            self._engine.stop()
            self._raise_failures()
            self._land_read_position(at_rest=False)
            self._changes.finish()
            if self._misreading is not None and self._misreading.rewritten is not None:
                self._of.understood.add(self._misreading.rewritten)

    def _load(self, start: RoundStart, masks: TableMasks) -> None:
        of, snapshot = self._of, self._snapshot
        if snapshot is None or not unloaded(self._lander.position):
            return
        self._loading = LoadThreads(
            of.settings, start.tables, snapshot, self._lander, masks, of.report, of.monotonic,
            of.wake.set, start.emptied, self._keyless, start.growing,
        )  # fmt: skip
        self._loading.start()

    def _started(self) -> RoundStart:
        of, requests = self._of, self._of.taken_requests()
        self.is_for_all = asks_for_all(requests)
        if of.settings.mode == "reload" and of.settings.growing:
            start = start_extraction(
                of.database, of.settings, self._lander, of.log, requests, now=of.now()
            )
        elif of.settings.mode == "reload":
            start = start_reload(of.database, of.settings, self._lander, of.log)
        elif self._is_anew or not has_begun(self._lander):
            if self._is_anew:
                # What is left of the old stream would be in the way of a new one.
                of.database.drop()
            start = start_capture(of.database, of.settings, self._lander, of.log, of.now())
        else:
            start = continue_capture(
                of.database, of.settings, self._lander, of.log, requests, now=of.now()
            )
        self._snapshot = start.snapshot
        if of.settings.mode == "once" and start.snapshot is not None:
            self._target = position_of_rows(of.database.connector, start.snapshot.source)
        return start

    def _follow(self, start: RoundStart, masks: TableMasks) -> None:
        of = self._of
        position = self._lander.position
        cutter = cutter_of(of.database.connector, position.stream)
        has_view = self._snapshot is not None
        keyless = KeylessTables(of.database.connector, start.tables, position, loads=has_view)
        self._keyless = keyless
        history = of.engines.history(of.database, of.log)
        roll = RollLimits(of.settings.roll_bytes, of.settings.roll_seconds)
        changes = Changes(
            cutter, self._lander, masks, of.monotonic, keyless=keyless, roll=roll,
            history=history, lacking=position.lacking, landed=of.wake.set,
        )  # fmt: skip
        tables = tuple(start.tables.values())

        self._misreading = misreading = MisreadStatements(self._is_captured, of.understood)
        is_sure = False

        def take(events: Sequence[StreamEvent]) -> Any:
            nonlocal is_sure
            if not is_sure:
                # Until now another capture could have taken away what this one reads.
                require_stream(of.database, of.settings, position)
                is_sure = True
            if any(event.kind != "end" for event in events):
                self._heard_at = of.monotonic()
            taken = misreading.take(events)
            landed = changes.take(taken.events, taken.replaced)
            of.wake.set()
            if taken.ends:
                if taken.begin is not None:
                    changes.begin_at(taken.begin)
                raise ReadAgainError
            return landed

        self._changes = changes
        self._engine = of.engines.engine(of.database, tables, position, take, of.wake.set)
        changes.start()
        self._engine.start()
        of.report("streaming")

    def _is_captured(self, table: str) -> bool:
        settings = self._of.settings
        return table in self._lander.position.tables or bool(
            matching([table], settings.include, settings.exclude)
        )

    @property
    def _reads_again(self) -> bool:
        """Whether the stream has to begin again behind what it has brought, in a new round."""
        return self._engine is not None and isinstance(self._engine.failure, ReadAgainError)

    def _watch(self) -> None:
        of = self._of
        looked = reported = asked = of.monotonic()
        while not of.stop.is_set():
            of.wake.wait(1.0)
            of.wake.clear()
            self._raise_failures()
            if self._loading is None or self._loading.is_done:
                self._leave_view()
            now = of.monotonic()
            if now - reported >= _LAG_INTERVAL_SECONDS:
                reported = now
                self._report_lag()
                self._land_read_position()
            if now - asked >= 1.0:
                asked = now
                self._look_how_far()
            if not of.requests.empty() or self._reads_again:
                return
            is_free = self._loading is None or not self._loading.has_whole
            if is_free and self._changes is not None and self._lander.position.replaced:
                return
            if of.settings.mode == "follow" and is_free and now - looked >= _TABLE_CHECK_SECONDS:
                looked = now
                if self._has_other_tables() or self._is_reload_due():
                    return
            if self._is_all():
                of.end()

    @property
    def _is_blind(self) -> bool:
        """Whether Debezium loads the rows, so that it is not known where the source is."""
        return self._snapshot is not None and not self._snapshot.source

    def _raise_failures(self) -> None:
        if self._loading is not None and self._loading.failure is not None:
            raise self._loading.failure
        if self._changes is not None and self._changes.failure is not None:
            raise self._changes.failure
        failure = None if self._engine is None else self._engine.failure
        if failure is not None and not self._reads_again:
            raise failure

    def _is_reload_due(self) -> bool:
        """Whether the schedule asks for a new load of a table."""
        tables, now = self._lander.position.tables, self._of.now()
        return any(
            is_reload_due(self._of.settings, name, progress, now)
            for name, progress in tables.items()
        )

    def _has_other_tables(self) -> bool:
        settings = self._of.settings
        tables = self._of.database.tables(settings.include, settings.exclude)
        return has_changed(self._lander.position, {table.name: table for table in tables})

    def _has_landed_all(self) -> bool:
        """Whether there is nothing to be read: all up to the start has landed before it."""
        position = self._lander.position
        if self._target is None or unloaded(position):
            return False
        offsets = (position.stream.offset, position.read_to)
        return (
            max(self._log_position(offset) for offset in offsets if offset is not None)
            >= self._target
        )

    def _is_all(self) -> bool:
        """Whether a capture that does not follow has done all that it was asked for."""
        if self._of.settings.mode == "follow" or unloaded(self._lander.position):
            return False
        if self._changes is None or self._target is None:
            return True
        if self._reads_again or self._changes.waits:
            return False
        if self._is_blind and self._of.monotonic() - self._heard_at < _QUIET_SECONDS:
            return False
        return self._log_position(self._reached(self._changes)) >= self._target

    def _look_how_far(self) -> None:
        if self._engine is not None:
            self._read_to = self._engine.read_to() or self._read_to

    def _land_read_position(self, *, at_rest: bool = True) -> None:
        """Let the place land up to which all was read, where no offset says it.

        While the stream continues its offsets say it soon enough.
        """
        read_to, before = self._read_to, self._rested_at
        self._rested_at = read_to
        if self._changes is None or read_to is None or (at_rest and read_to != before):
            return
        landed = self._lander.position
        offsets = [self._changes.position.offset, *([landed.read_to] if landed.read_to else [])]
        if all(self._log_position(read_to) > self._log_position(offset) for offset in offsets):
            self._changes.has_read_to(read_to)

    def _reached(self, changes: Changes) -> Offset:
        """The place up to which all of the stream was taken."""
        offsets = (changes.position.offset, self._read_to, self._lander.position.read_to)
        return max((offset for offset in offsets if offset is not None), key=self._log_position)

    def _log_position(self, offset: Offset) -> LogPosition:
        return position_of_offset(self._of.database.connector, offset)

    def _report_lag(self) -> None:
        if self._changes is None:
            return
        offset = self._changes.position.offset
        lag = self._of.database.lag({**offset, **self._reached(self._changes)})
        notes = [*lag.notes, *self._masks.notes]
        self._of.report(
            "lag",
            bytes=lag.bytes,
            seconds=lag.seconds,
            notes=notes,
            log_bytes=lag.log_bytes,
            log_limit_bytes=lag.log_limit_bytes,
            landed=log_place(self._lander.position, self._log_position),
        )

    def _report_tables(self, start: RoundStart) -> None:
        tables, shown = start.tables, dict[str, Any]()
        of_tables = self._lander.position.tables
        for name, progress in of_tables.items():
            shown[name] = {
                "state": "running" if progress.state == "loaded" else progress.state,
                "rows": progress.rows,
                "bytes": None,
                "rows_estimate": tables[name].rows_estimate,
                "bytes_estimate": tables[name].bytes_estimate,
            }
        self._of.report("tables", tables=shown)
        if start.notes:
            self._of.report("notes", tables=dict(start.notes))
        for name, error in start.refused.items():
            is_out = of_tables[name].state == "suspended"
            self._of.report(
                "table_failed", table=name, error=error_fields(error), suspended=is_out,
                refused=not is_out,
            )  # fmt: skip
