"""How a round starts: the position to continue from, and the tables to reload."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from polynya.capture.debezium import put_history
from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import (
    BINLOGS,
    CapturePosition,
    ResumePoint,
    TableProgress,
    next_epoch,
    position_of_rows,
    truncation,
    unloaded,
)
from polynya.capture.landing.stream import would_load_twice
from polynya.capture.source import (
    CaptureStart,
    GrowingColumn,
    SourceDatabase,
    SourceSnapshot,
    SourceTable,
)
from polynya.capture.wire import CaptureRequest, TableError, WorkerSettings, asks_for_all
from polynya.capture.worker.masks import TableMasks
from polynya.formats.debezium.captured import EventSchema
from polynya.model.config.capture import takes
from polynya.model.config.schedule import parse_schedule
from polynya.model.error_catalogue.capture import (
    KEYLESS_TABLE_NOT_RELOADABLE,
    NO_TABLE_INCLUDED,
    STREAM_POSITION_LOST,
    STREAM_UNREADABLE,
)
from polynya.model.errors import OperationError


def position_after_requests(
    before: CapturePosition, tables: Mapping[str, SourceTable], requests: Sequence[CaptureRequest]
) -> tuple[CapturePosition, list[str], dict[str, OperationError]]:
    """The position after what was asked for and what has changed meanwhile.

    With it the tables that are emptied and loaded again, and those that cannot be, with the reason.
    """
    stale = [name for name in tables if _is_stale(before, tables[name])]
    resumed = _named(requests, tables, reload=False)
    lacking = before.lacking & set(resumed)
    back = before.gone & set(tables)
    wanted = {*_named(requests, tables, reload=True), *stale, *back}
    wanted |= {*_lacking_with_key(before, tables, lacking)}
    refused = {
        name: KEYLESS_TABLE_NOT_RELOADABLE(table=name)
        for name in wanted
        if would_load_twice(before.tables.get(name), tables[name])
    }
    again = sorted(wanted - set(refused))
    filled = [name for name in tables if _lacks_defaults(before, tables[name])]
    position = with_catalog_facts(before.with_tables(tables, {*again, *filled}), tables)
    for name in resumed:
        position = position.with_table(name, _resumed(position.tables[name], tables[name]))
    position, half = _without_twice(position, tables, stale)
    refused |= half
    return position, again, refused


def has_changed(position: CapturePosition, tables: Mapping[str, SourceTable]) -> bool:
    """Whether tables came, or were changed in a way that the stream does not report."""
    return any(
        name not in position.tables
        or _is_stale(position, table)
        or _lacks_defaults(position, table)
        for name, table in tables.items()
    )


def with_catalog_facts(
    position: CapturePosition, tables: Mapping[str, SourceTable]
) -> CapturePosition:
    """With what is known of tables whose load is still to come, or began before this was kept."""
    progress = {name: table.of_table(tables[name]) for name, table in position.tables.items()}
    return replace(position, tables=progress)


def _without_twice(
    position: CapturePosition, tables: Mapping[str, SourceTable], stale: Collection[str]
) -> tuple[CapturePosition, dict[str, OperationError]]:
    """Tables without key suspended that would have to be loaded again, and why."""
    refused = {}
    for name in {*stale, *unloaded(position)}:
        if would_load_twice(position.tables[name], tables[name]):
            refused[name] = KEYLESS_TABLE_NOT_RELOADABLE(table=name)
            position = position.with_table(name, position.tables[name].suspended(refused[name]))
    return position, refused


def _lacking_with_key(
    position: CapturePosition, tables: Mapping[str, SourceTable], lacking: Collection[str]
) -> list[str]:
    """Of tables that lack changes those that are loaded again when they are resumed."""
    return [name for name in lacking if not would_load_twice(position.tables[name], tables[name])]


def _is_stale(position: CapturePosition, table: SourceTable) -> bool:
    progress = position.tables.get(table.name)
    return progress is not None and _follows(progress) and progress.is_stale(table)


def _lacks_defaults(position: CapturePosition, table: SourceTable) -> bool:
    if table.lacks_key:
        # Its rows would come twice.
        return False
    progress = position.tables.get(table.name)
    return progress is not None and _follows(progress) and progress.lacks_defaults(table)


def _follows(progress: TableProgress) -> bool:
    """A table that was given up waits for an operator, whatever becomes of it."""
    return progress.state != "suspended"


def _named(
    requests: Sequence[CaptureRequest], tables: Mapping[str, SourceTable], *, reload: bool
) -> list[str]:
    """The tables that the requests to reload, or to resume, name."""
    wanted = [request for request in requests if request.reload == reload]
    if any(not request.tables for request in wanted):
        return list(tables)
    return sorted({name for request in wanted for name in request.tables if name in tables})


def _resumed(progress: TableProgress, table: SourceTable) -> TableProgress:
    """A suspended table in its load again; any other stays as it is.

    One without key whose rows have landed is followed again, and lacks what came meanwhile.
    """
    if progress.state != "suspended":
        return progress
    if would_load_twice(progress, table):
        return replace(progress, state="loaded", why=None, lacks_changes=False)
    return replace(progress, state="loading" if progress.chunks else "queued", why=None)


@dataclass(frozen=True, slots=True)
class RoundStart:
    """How a round begins.

    Attributes:
        tables: those that there are.
        snapshot: the view that they are loaded from; None: none is needed.
        emptied: by table, the event that ends its load: what was there before it goes.
        refused: tables without key that are not loaded again, and why.
        growing: tables of which only new rows are read, and how they are found.
        notes: sentences for an operator, by table.
    """

    tables: Mapping[str, SourceTable]
    snapshot: SourceSnapshot | None
    emptied: Mapping[str, bytes] = field(default_factory=dict)
    refused: Mapping[str, OperationError] = field(default_factory=dict)
    growing: Mapping[str, GrowingColumn] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def start_capture(
    database: SourceDatabase,
    settings: WorkerSettings,
    lander: CaptureLander,
    log: CaptureLog,
    now: datetime,
) -> RoundStart:
    """Begin a capture, and land where it begins before anything else.

    Where something has landed before, all tables are emptied and loaded again: nobody knows what
    has changed in between. Tables without key are suspended then.
    """
    tables = included_tables(database, settings)
    if not has_begun(lander):
        # Of two captures that begin at once the other one stops here or at its own beginning,
        # before it has taken the slot from this one and continues all the same.
        lander.begin(CapturePosition(ResumePoint({})))
    progress = lander.position.tables
    beginning = database.begin(tuple(tables.values()))
    refused = {
        name: KEYLESS_TABLE_NOT_RELOADABLE(table=name)
        for name in tables
        if would_load_twice(progress.get(name), tables[name])
    }
    start = RoundStart(tables, beginning.snapshot, refused=refused)
    position = position_to_load_all(database.connector, beginning, tables, lander, log)
    position = loaded_at(position, settings, now)
    position = still_compared(lander.position, position, lander.number + 1)
    for name, error in refused.items():
        position = position.with_table(name, progress[name].suspended(error))
    # Rows that Debezium loads are not emptied here: where they will stand is not known.
    has_place = bool(beginning.snapshot.source)
    landed = {*progress, *lander.position.gone}
    anew = [name for name in tables if name in landed and name not in refused and has_place]
    _land_emptied(database, settings, start, anew, lander=lander, position=position)
    return start


def has_begun(lander: CaptureLander) -> bool:
    """Whether a place in the stream has landed: before it there may be a claim to begin."""
    return bool(lander.number and lander.position.stream.offset)


def start_reload(
    database: SourceDatabase, settings: WorkerSettings, lander: CaptureLander, log: CaptureLog
) -> RoundStart:
    """Load everything again, of a capture that follows no changes.

    The last event of a table's load empties it, and stands right before the load's rows in the
    order of events: whoever reads meanwhile sees old rows or new ones, and never none. Tables that
    can compare rows by key do that instead, as soon as an earlier load was complete.
    """
    tables = included_tables(database, settings)
    before = lander.position if lander.number else None
    beyond = None if before is None else before.stream.offset or None
    beginning = database.look(tuple(tables.values()), beyond)
    landed = () if before is None else [name for name in tables if name in before.tables]
    source = beginning.snapshot.source
    emptied = {name: truncation(database.connector, name, source) for name in landed}
    position = position_to_load_all(database.connector, beginning, tables, lander, log)
    for name in landed:
        if before is not None and was_loaded(before.tables[name]):
            compared = replace(
                position.tables[name],
                was_loaded=True,
                load=lander.number + 1,
                mode=settings.reload_mode,
            )
            position = position.with_table(name, compared)
    lander.begin(position)
    return RoundStart(tables, beginning.snapshot, emptied)


def was_loaded(progress: TableProgress) -> bool:
    """Whether an earlier load of a table was complete."""
    return progress.was_loaded or progress.state == "loaded"


def continue_capture(
    database: SourceDatabase,
    settings: WorkerSettings,
    lander: CaptureLander,
    log: CaptureLog,
    requests: Sequence[CaptureRequest],
    *,
    now: datetime,
) -> RoundStart:
    """Go on where the log says.

    Raises:
        OperationError: POLYNYA-GTW-008, the database has no more what the stream would need.
    """
    tables = included_tables(database, settings)
    before = lander.position
    is_over = database.lost(before.stream.offset) is not None or _is_unreadable(before)
    if is_over and asks_for_all(requests):
        # What is left of the old stream is of no use, and would be in the way of a new one.
        database.drop()
        return start_capture(database, settings, lander, log, now)
    require_stream(database, settings, before)
    position, again, refused = position_after_requests(before, tables, requests)
    position = still_compared(before, position, lander.number + 1)
    position, keyless = begin_due_loads(position, settings, tables, lander.number + 1, now)
    refused |= keyless
    new = set(tables) - set(before.tables) - before.gone
    is_needed = bool(unloaded(position)) or settings.mode == "once"
    snapshot = None
    if is_needed:
        snapshot, outside = _snapshot_without_unfit(database, settings, tables, position)
        for name, error in outside.items():
            position = position.with_table(name, position.tables[name].without_changes(error))
        refused |= outside
        position = _with_load_start(database.connector, position, snapshot)
        again = [name for name in again if name not in outside]
    if snapshot is not None and again and not snapshot.source:
        # What Debezium loads it loads as a whole.
        return start_capture(database, settings, lander, log, now)
    ends: dict[str, bytes] = {}
    if snapshot is not None:
        ends = ends_of_compared(database.connector, position, snapshot)
    start = RoundStart(tables, snapshot, ends, refused=refused)
    if snapshot is not None and again:
        emptied = {name for name in again if name not in new}
        misfits = _tables_with_unfit_masks(settings, start, snapshot, emptied)
        for name, error in misfits.items():
            position = position.with_table(name, before.tables[name].without_changes(error))
        refused |= misfits
        emptied -= set(misfits)
        _land_emptied(database, settings, start, sorted(emptied), lander=lander, position=position)
    elif position != before:
        lander.begin(position)
    return start


def loaded_at(
    position: CapturePosition, settings: WorkerSettings, now: datetime
) -> CapturePosition:
    """With the time at which loads begin that have just come, where later ones are scheduled."""
    if settings.reload_schedule is None:
        return position
    tables = {
        name: replace(table, loaded_at=now.isoformat())
        if table.state == "queued" and table.loaded_at is None
        else table
        for name, table in position.tables.items()
    }
    return replace(position, tables=tables)


def still_compared(before: CapturePosition, after: CapturePosition, number: int) -> CapturePosition:
    """With other loads for those tables whose load was being compared, and begins again.

    Readers that have a part of a load apply nothing until it is complete, or another one begins.
    """
    for name, table in after.tables.items():
        known = before.tables.get(name)
        if known is not None and known.load is not None and table.state == "queued":
            restarted = replace(table, load=number, mode=known.mode, loaded_at=known.loaded_at)
            after = after.with_table(name, restarted)
    return after


def begin_due_loads(
    position: CapturePosition,
    settings: WorkerSettings,
    tables: Mapping[str, SourceTable],
    number: int,
    now: datetime,
) -> tuple[CapturePosition, dict[str, OperationError]]:
    """The position with the loads that the schedule asks for; why some tables have none.

    Their changes continue to land meanwhile. A moment counts as done with the beginning of its
    load: a capture that is killed continues it.
    """
    refused: dict[str, OperationError] = {}
    for name, progress in position.tables.items():
        if not is_reload_due(settings, name, progress, now):
            continue
        if tables[name].lacks_key:
            refused[name] = KEYLESS_TABLE_NOT_RELOADABLE(table=name)
            begun = replace(progress, loaded_at=now.isoformat())
        else:
            begun = replace(
                TableProgress().of_table(tables[name]),
                load=number,
                mode=settings.reload_mode,
                loaded_at=now.isoformat(),
            )
        position = position.with_table(name, begun)
    return loaded_at(position, settings, now), refused


def is_reload_due(
    settings: WorkerSettings, table: str, progress: TableProgress, now: datetime
) -> bool:
    """Whether all rows of a table are to be loaded again by the schedule."""
    if settings.reload_schedule is None or not takes(settings.reload_tables, (), table):
        return False
    due = progress.reload_due(parse_schedule(settings.reload_schedule))
    return due is not None and due <= now


def ends_of_compared(
    connector: str, position: CapturePosition, snapshot: SourceSnapshot
) -> dict[str, bytes]:
    """By table, the event with which a load ends that readers compare; they take nothing else."""
    if not snapshot.source:
        return {}
    return {
        name: truncation(connector, name, snapshot.source)
        for name in unloaded(position)
        if position.tables[name].load is not None
    }


def position_to_load_all(
    connector: str,
    beginning: CaptureStart,
    tables: Mapping[str, SourceTable],
    lander: CaptureLander,
    log: CaptureLog,
) -> CapturePosition:
    """A position from which everything is loaded. What a history begins with is put before it."""
    # A load by Debezium begins its history as well.
    history = lander.position.history if lander.number and beginning.snapshot.source else 0
    if beginning.history:
        history = put_history(log, history + 1, beginning.history)
    epoch = 0
    if has_begun(lander):
        before = lander.position
        epoch = next_epoch(connector, before.epoch, before.stream.offset, beginning.offset)
    position = CapturePosition(ResumePoint(beginning.offset), history=history, epoch=epoch)
    position = with_catalog_facts(position.with_tables(tables), tables)
    return _with_load_start(connector, position, beginning.snapshot)


def _with_load_start(
    connector: str, position: CapturePosition, snapshot: SourceSnapshot
) -> CapturePosition:
    """With the place in the binlog that all views of the loads to come are behind."""
    if connector not in BINLOGS or not snapshot.source:
        return position
    return position.loaded_from(position_of_rows(connector, snapshot.source))


def _is_unreadable(position: CapturePosition) -> bool:
    """Whether rows of a table would not be read after another load of it either."""
    return any(
        table.lacks_changes and str(table.why).startswith(f"{STREAM_UNREADABLE.code}:")
        for table in position.tables.values()
    )


def require_stream(
    database: SourceDatabase, settings: WorkerSettings, position: CapturePosition
) -> None:
    """See that the stream can continue from a position.

    Raises:
        OperationError: POLYNYA-GTW-008, the database has no more what it would need.
    """
    lost = database.lost(position.stream.offset)
    if lost is not None:
        raise STREAM_POSITION_LOST(where=settings.task, reason=lost)


def _snapshot_without_unfit(
    database: SourceDatabase,
    settings: WorkerSettings,
    tables: Mapping[str, SourceTable],
    position: CapturePosition,
) -> tuple[SourceSnapshot, dict[str, OperationError]]:
    """A view of the tables whose changes land, and why some of them cannot be captured.

    Raises the error of such a table where the task says so.
    """
    outside: dict[str, OperationError] = {}
    while True:
        left = [
            table
            for name, table in tables.items()
            if name not in outside and name not in position.lacking
        ]
        try:
            return database.resume(left), outside
        except TableError as error:
            if settings.table_then == "stop" or error.table not in {table.name for table in left}:
                raise
            outside[error.table] = error


def _tables_with_unfit_masks(
    settings: WorkerSettings, start: RoundStart, snapshot: SourceSnapshot, names: Collection[str]
) -> dict[str, OperationError]:
    """Tables that their masks do not fit, so that nothing of them can land, not even their end.

    Raises the error where the task says so.
    """
    masks = TableMasks.of(settings.masks, start.tables, settings.limit)
    misfits = {}
    for name in names:
        try:
            masks.of_table(name, snapshot.envelope(start.tables[name]))
        except OperationError as error:
            if settings.table_then == "stop":
                raise
            misfits[name] = error
    return misfits


def _land_emptied(
    database: SourceDatabase,
    settings: WorkerSettings,
    start: RoundStart,
    names: Collection[str],
    *,
    lander: CaptureLander,
    position: CapturePosition,
) -> None:
    snapshot, tables = start.snapshot, start.tables
    if snapshot is None:
        raise ValueError("without a view nothing is loaded anew")
    lines = [truncation(database.connector, name, snapshot.source) for name in names]
    masks, shapes = TableMasks.of(settings.masks, tables, settings.limit), {}
    for number, name in enumerate(names, 1):
        schema = snapshot.envelope(tables[name])
        # Columns that are left out are not named either.
        hidden = masks.of_table(name, schema)
        shapes[name] = [EventSchema(number, schema if hidden is None else hidden.schema)]
    lander.land(b"".join(lines), len(lines), shapes, lambda _: position, epoch=position.epoch)


def included_tables(database: SourceDatabase, settings: WorkerSettings) -> dict[str, SourceTable]:
    """The tables that there are now, by name. Raises OperationError, POLYNYA-GTW-007: none."""
    tables = database.tables(settings.include, settings.exclude)
    if not tables:
        raise NO_TABLE_INCLUDED(where=settings.task)
    return {table.name: table for table in sorted(tables, key=lambda one: one.name)}
