"""How a run of an incremental extraction starts: which tables are read whole, and which from where.

A table is read whole the first time, when its full compare is due, when an operator asks, and when
another column finds its new rows now. Otherwise the rows are read whose column is not below the
mark, less the overlap. The mark is in the position of each landed batch, so a process that is
killed neither loses rows nor reads more than the overlap again.

New rows land as a load that readers compare with what they have, in the mode that keeps all other
rows: a row that was read again and is equal is not written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import TableProgress, truncation, unloaded
from polynya.capture.source import GrowingColumn, GrowingSnapshot, SourceDatabase, SourceTable
from polynya.capture.wire import CaptureRequest, GrowingSettings, WorkerSettings, asks_for_all
from polynya.capture.worker.starting import (
    RoundStart,
    ends_of_compared,
    included_tables,
    is_reload_due,
    position_to_load_all,
    was_loaded,
)
from polynya.model.config.fields import KEEPING
from polynya.model.error_catalogue.capture import TABLE_NOT_EXTRACTABLE
from polynya.model.errors import OperationError, PolynyaError
from polynya.model.names import shown

#: Overlaps where the settings name none.
_NUMBERS: Final = 1000
_MICROS: Final = 10 * 60 * 1_000_000
#: Types of columns that grow, by what their names begin with. A rounded number equals nothing.
_NUMBER: Final = re.compile(
    r"(smallint|integer|bigint|numeric|double precision|tinyint|mediumint|int|decimal|double|year)"
    r"\b"
)
_TIME: Final = re.compile(r"(date|timestamp|datetime)\b")


def growing_column(
    task: str, table: SourceTable, settings: Mapping[str, GrowingSettings]
) -> GrowingColumn:
    """The column by which new rows of a table are found.

    Raises OperationError, POLYNYA-GTW-095: it is not there, or nothing tells what comes after it.
    """
    general = settings.get("*", GrowingSettings())
    own = settings.get(table.name, GrowingSettings())
    name = own.column or general.column
    if name is None:
        raise _refused(task, table, "`incremental` names no column for it")
    column = next((column for column in table.columns if column.name == name), None)
    if column is None:
        raise _refused(task, table, f"it has no column {shown(name)}")
    if not table.key:
        raise _refused(task, table, "it has no key, so that equal rows cannot be told")
    kind = _kind(column.type_name)
    if kind is None:
        reason = f"column {shown(name)} is of type {column.type_name}, not of numbers or times"
        raise _refused(task, table, reason)
    chosen = own if (own.overlap, own.overlap_seconds) != (None, None) else general
    return GrowingColumn(name, kind, _overlap(task, table, name, kind, chosen))


def _kind(type_name: str) -> Literal["number", "time"] | None:
    lowered = type_name.lower()
    if "[" in lowered:
        # A list, whatever its elements are.
        return None
    if _NUMBER.match(lowered):
        return "number"
    return "time" if _TIME.match(lowered) else None


def _overlap(task: str, table: SourceTable, name: str, kind: str, settings: GrowingSettings) -> int:
    if kind == "number":
        if settings.overlap_seconds is not None:
            reason = f"column {shown(name)} has numbers, and its `overlap` is a duration"
            raise _refused(task, table, reason)
        return _NUMBERS if settings.overlap is None else settings.overlap
    if settings.overlap:
        reason = f"column {shown(name)} has times, and its `overlap` is a number"
        raise _refused(task, table, reason)
    if settings.overlap_seconds is None:
        return _MICROS if settings.overlap is None else 0
    return round(settings.overlap_seconds * 1_000_000)


def _refused(task: str, table: SourceTable, reason: str) -> OperationError:
    return TABLE_NOT_EXTRACTABLE(where=task, table=table.name, reason=reason)


def is_read_whole(
    settings: WorkerSettings,
    table: str,
    progress: TableProgress | None,
    column: str,
    now: datetime,
) -> bool:
    """Whether all rows of a table are read, and not only the new ones."""
    if progress is None or not was_loaded(progress):
        return True
    # What was interrupted begins again: of a load of all rows nothing says which were deleted.
    unfinished = progress.state != "loaded" and progress.load is not None
    if unfinished and (progress.mode != KEEPING or progress.mark is None):
        return True
    if progress.column != column:
        return True
    return is_reload_due(settings, table, replace(progress, state="loaded", load=None), now)


def start_extraction(
    database: SourceDatabase,
    settings: WorkerSettings,
    lander: CaptureLander,
    log: CaptureLog,
    requests: Sequence[CaptureRequest],
    *,
    now: datetime,
) -> RoundStart:
    """Begin to read what is new; tables that cannot be read so are left out, with the reason.

    Raises the error of such a table where the task says so.
    """
    tables = included_tables(database, settings)
    before = lander.position if lander.number else None
    known = {} if before is None else before.tables
    beyond = None if before is None else before.stream.offset or None
    beginning = database.look(tuple(tables.values()), beyond)
    snapshot = beginning.snapshot
    assert isinstance(snapshot, GrowingSnapshot), "the settings allow no other database"
    position = position_to_load_all(database.connector, beginning, tables, lander, log)
    asked = {name for request in requests if request.reload for name in request.tables}
    growing: dict[str, GrowingColumn] = {}
    refused: dict[str, OperationError] = {}
    notes: dict[str, str] = {}
    for name, table in tables.items():
        progress = known.get(name)
        fresh = replace(
            position.tables[name],
            was_loaded=progress is not None and was_loaded(progress),
            loaded_at=None if progress is None else progress.loaded_at,
        )
        try:
            column = growing_column(settings.task, table, settings.growing)
            whole = asks_for_all(requests) or name in asked
            whole = whole or is_read_whole(settings, name, progress, column.name, now)
            newest = snapshot.newest(table, column.name) if whole else None
        except OperationError as error:
            if settings.table_then == "stop":
                raise
            refused[name] = error
            kept = fresh if progress is None else replace(progress, was_loaded=fresh.was_loaded)
            position = position.with_table(name, kept.suspended(error))
            continue
        fresh = replace(fresh, column=column.name)
        if fresh.was_loaded:
            fresh = replace(fresh, load=lander.number + 1, mode=settings.reload_mode)
        if whole:
            fresh = replace(fresh, loaded_at=now.isoformat(), next_mark=newest)
        else:
            assert progress is not None, "it was read whole before"
            fresh = replace(fresh, mode=KEEPING, mark=progress.mark)
            growing[name] = column
            reason = _lacks_index(snapshot, table, column)
            if reason is not None:
                notes[name] = reason
        position = position.with_table(name, fresh)
    lander.begin(position)
    ends = ends_of_compared(database.connector, position, snapshot)
    for name in set(known) & set(unloaded(position)):
        if not position.tables[name].was_loaded:
            # Rows of a first load that was killed may be gone at the source.
            ends[name] = truncation(database.connector, name, snapshot.source)
    return RoundStart(tables, snapshot, ends, refused=refused, growing=growing, notes=notes)


def _lacks_index(
    snapshot: GrowingSnapshot, table: SourceTable, column: GrowingColumn
) -> str | None:
    try:
        return snapshot.lacks_index(table, column.name)
    except PolynyaError:
        # A hint is not worth an extraction.
        return None
