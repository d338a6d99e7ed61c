"""Reload: gather a full load next to Current, then apply only the differences.

The load gathers in the partition `reload`, batch by batch, each in a commit with its position, so
that a killed reload resumes where it stopped. Readers see none of it before the last commit, which
folds the differences, removes what was gathered and ends the reload. Changes that are copied
meanwhile wait as pending and are folded with it, each in its place in the order.

The differences are events, made by SQL from the loaded rows and Current (semantics section 8). A
row that is equal in all columns makes no event, so that an apply writes nothing for it. NULL equals
NULL, NaN equals NaN, and nested values are compared whole.

Of a stream, a rejected record that an earlier copy had rejected too does not make the load
incomplete: the table never held it. Only a stream can tell, because its messages have fixed
positions, while a file of another load may have the same name. And rows of a record may come from
several partitions, shards or files of a stream: each row then names its own (`at_places`), and
order is known only within one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER, UNPARSED, AnyBatch, DatasetBatch, FileProgress
from polynya.formats.loads import SplitPlan
from polynya.lake.apply.apply import Applier, ApplyResult
from polynya.lake.apply.run import CopyParts
from polynya.lake.copy.compared_load import compared_load
from polynya.lake.copy.copy import (
    CopyResult,
    named_after,
    remembered,
    source_after,
    staged_rows,
)
from polynya.lake.copy.first_full_load import OF_ROWS, commit_first_load, goes_to_current
from polynya.lake.copy.load import (
    SplitJob,
    StagedRows,
    TellSoFar,
    batch_of,
    direct_for,
    forget,
    loaded_batch,
    staged_by_tasks,
)
from polynya.lake.copy.rows import (
    HELPERS,
    Times,
    arrow_rows,
    derive,
    first_rejected_in_arrow,
    first_rejected_in_spark,
)
from polynya.lake.fold.fold import newest_elements
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import STORED_SEQUENCE, is_delete, joined, timestamp_literal, within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.writing import write_rows
from polynya.lake.spark.api import Column, DataFrame, functions
from polynya.lake.table.books import booked, discounted, rows_by_partition
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import agreed_keys, enter, has_rows
from polynya.lake.table.shape_changes import decided_changes
from polynya.lake.table.state import CopyState, Reloading, ReloadRecord, ScheduledLoad
from polynya.lake.table.suspension import BadRecordError, held_at, refuse_bad_records
from polynya.model import headers as h
from polynya.model.config.dataset import (
    DELETING,
    KEEPING,
    Incomplete,
    ReloadMode,
    ResolvedDataset,
    recorded,
)
from polynya.model.error_catalogue.lake import (
    LOAD_INCOMPLETE,
    NO_RELOAD,
    NO_SUCH_COMPARED_COLUMN,
    NOTHING_TO_COMPARE_BY,
    OTHER_RELOAD,
)
from polynya.model.errors import OperationError
from polynya.model.formats import rules_of
from polynya.model.headers import LANDED_AT, PLACE_HEADERS, Partition, StreamSource
from polynya.model.names import literal, quote, shown
from polynya.model.positions import DirectPosition, LandedUntil
from polynya.observe.trace import span

log = logging.getLogger(__name__)
#: Modes in which the loaded rows replace all others, compared with nothing.
REPLACING = ("drop_and_create", "truncate_and_insert")
#: Operation in the quarantine of a record that a reload rejected, and that no copy did: as long as
#: it is there the table may hold what an earlier copy made of the message.
BY_RELOAD = "L"
_POSITION = "__position"


def begin(
    target: DatasetTable,
    mode: ReloadMode,
    *,
    now: datetime,
    extract: str | None = None,
    place: str | None = None,
    glob: str | None = None,
    until: LandedUntil | None = None,
    scheduled: ScheduledLoad | None = None,
    keys: tuple[str, ...] = (),
    due: datetime | None = None,
) -> Reloading:
    """Begin a reload, or return the one that has begun and not ended.

    `now` becomes the time of the changes that are found. `extract` names the full extract that is
    loaded, None when a user asked for a reload. `place` is the change identifier after which the
    load comes, by default all that was copied. `glob` names the files that a user asked for.
    `until` is where a landed stream ends that is read at its source. `scheduled` is the load of a
    capture; `keys` are those of its rows, for a table that has none yet. `due` is the moment up to
    which the load makes up for the schedule of the dataset.

    Raises OperationError for a table without keys, and when another reload is under way.
    """
    enter(target)
    state = target.state.copy
    if state.reloading is not None:
        begun = state.reloading
        if (begun.mode, begun.extract, begun.until) != (mode, extract, until):
            raise _other_mode(target, state.reloading, mode)
        return state.reloading
    if target.shape(keys=_keys(target) or keys).append_only:
        raise NOTHING_TO_COMPARE_BY(where=target.table.name, table=target.table.name)
    reloading = Reloading(
        mode,
        state.reloads + 1,
        now.isoformat(),
        place=place or state.position.copied_to or NO_ORDER,
        extract=extract,
        glob=glob,
        until=until,
        scheduled=scheduled,
        due=None if due is None else due.isoformat(),
    )
    following = replace(state, reloading=reloading, reloads=reloading.number)
    target.commit_copy_state(following, "reload-begin")
    return reloading


def _other_mode(target: DatasetTable, reloading: Reloading, mode: ReloadMode) -> OperationError:
    return OTHER_RELOAD(
        where=target.table.name,
        fix="discard it with `--abandon`" if reloading.extract is not None else None,
        table=target.table.name,
        mode=reloading.mode,
        source=_what(reloading),
        requested=mode,
        rows=reloading.rows,
    )


def _what(reloading: Reloading) -> str:
    from_source = "its source" if reloading.until is not None else "its full load"
    return reloading.extract or from_source


def load(
    target: DatasetTable,
    batch: DatasetBatch,
    *,
    now: datetime,
    scheduled: ScheduledLoad | None = None,
) -> CopyResult:
    """Commit one batch of the load to the partition `reload`; rejected records to quarantine.

    Those of a stream that are there since they were copied stay there, and the load lacks nothing.
    `scheduled` is how far a scheduled load is gathered with the batch.
    """
    keys = agreed_keys(target, batch)
    target.grow(batch.schema, decided_changes(target.state.copy, batch.changes, now))
    shape = target.shape(batch.schema, keys)
    times = Times(now, under_way(target).started_at)
    rows = _rows_in_arrow(target, batch, shape, times)
    known_rejects = KnownRejects()
    if rows is None:
        frame = derive(target.spark, batch, target.dataset, shape, times)
        _refuse_bad_records(target, lambda: first_rejected_in_spark(frame), now)
        good, known_rejects = without_rejected_before(target, frame)
        staged = staged_rows(target.table, _gathered(good.drop(*HELPERS)), batch)
    else:
        _refuse_bad_records(target, lambda: first_rejected_in_arrow(rows), now)
        staged = write_rows(target.table, rows)
    return _committed(
        target, batch, staged, keys, now=now, known_rejects=known_rejects, scheduled=scheduled
    )


def _rows_in_arrow(
    target: DatasetTable, batch: DatasetBatch, shape: Shape, times: Times
) -> pa.Table | None:
    """The rows of a batch for the partition `reload` and the quarantine; None: they take a query.

    As those that tasks gather, they have no hash of their key.
    """
    rows = arrow_rows(batch, target.dataset, shape, times, hashed=False)
    if rows is None:
        return None
    at = rows.schema.get_field_index(h.PARTITION)
    is_row = pc.equal(rows.column(at), str(Partition.CHANGES))
    if _tells_rejects(target) and not pc.all(is_row, min_count=0).as_py():
        return None
    partition = pc.if_else(is_row, str(Partition.RELOAD), rows.column(at))
    return rows.set_column(at, h.PARTITION, partition)


@span("stage reload")
def stage_reload(
    target: DatasetTable, plan: SplitPlan, *, now: datetime, tell: TellSoFar
) -> StagedRows:
    """Let tasks read a part of the load and write its rows; nothing is committed.

    See `stage_load`. Raises what the store raises when it does not give a file.
    """
    keys = agreed_keys(target, loaded_batch(target, plan, {}, rows_in=0))
    target.grow(plan.schema)
    shape, began = target.shape(plan.schema, keys), under_way(target).started_at
    job = SplitJob(target, plan, shape, began, now)
    rows = job.rows(direct_for(target, plan, shape, began, now, to=Partition.RELOAD))
    return staged_by_tasks(job, _gathered(rows), tell, to=Partition.RELOAD, laid_out=False)


def commit_reload(
    target: DatasetTable, plan: SplitPlan, staged: StagedRows, *, now: datetime
) -> CopyResult:
    """Commit what tasks wrote of the load, as `load` does with a batch."""
    if rows_by_partition(staged.files)[Partition.QUARANTINE]:
        try:
            bad = staged.job.rows()
            _refuse_bad_records(target, lambda: first_rejected_in_spark(bad), now)
        except OperationError:
            forget(target, staged)
            raise
    batch = batch_of(target, plan, staged)
    return _committed(target, batch, staged.files, agreed_keys(target, batch), now=now)


def _refuse_bad_records(
    target: DatasetTable, first: Callable[[], Mapping[str, Any] | None], now: datetime
) -> None:
    """Raise for a bad record as a policy says, unless a user asked for the reload.

    That one is refused at its end when it is not whole.
    """
    if not under_way(target).starts_by_itself:
        return
    try:
        refuse_bad_records(target, first, now)
    except BadRecordError as found:
        # A part of an extract, or of a scheduled load, cannot be compared.
        raise held_at(target, found) from None


def _gathered(rows: DataFrame) -> DataFrame:
    """Rows of changes as rows of the load."""
    return rows.replace(str(Partition.CHANGES), str(Partition.RELOAD), [h.PARTITION])


def _tells_rejects(target: DatasetTable) -> bool:
    """Whether a rejected record is known again: messages of a stream have fixed positions."""
    return rules_of(target.dataset.landing.format).in_order


def _committed(
    target: DatasetTable,
    batch: AnyBatch,
    staged: Sequence[DataFile],
    keys: tuple[str, ...],
    *,
    now: datetime,
    known_rejects: KnownRejects | None = None,
    scheduled: ScheduledLoad | None = None,
) -> CopyResult:
    """Commit the files of a part of the load, with the position after it."""
    known_rejects = known_rejects or KnownRejects()
    counts = rows_by_partition(staged)
    quarantined = counts.pop(Partition.QUARANTINE, 0)
    loaded = sum(counts.values())
    following = _after(target, batch, keys, loaded, quarantined)
    following = following.with_shape_changes(decided_changes(following, batch.changes, now))
    if scheduled is not None:
        following = _with_landed(target, following, batch, scheduled)
    following, summary = booked(
        target,
        batch,
        following,
        step="reload",
        out=loaded,
        quarantined=quarantined + known_rejects.records,
    )
    following = discounted(following, known_rejects.records, unparsed=known_rejects.unparsed)
    snapshot = target.commit(copy=following, add=staged, summary=summary)
    rejected = quarantined + known_rejects.records
    return CopyResult(batch.rows_in, loaded, batch.rows_filtered, rejected, snapshot)


def without_rejected_before(
    target: DatasetTable, frame: DataFrame
) -> tuple[DataFrame, KnownRejects]:
    """Rows of a load without the rejected records that stay in quarantine as they are.

    Returns the rows, and those records: they have the same place and the same bytes.
    """
    if not _tells_rejects(target):
        return frame, KnownRejects()
    is_bad = within(Partition.QUARANTINE)
    bad = frame.where(is_bad).selectExpr(
        *(f"{h.QUARANTINE}.{name} AS {name}" for name in ("id", "raw", "rule"))
    )
    if target.state.snapshot is None or bad.isEmpty():
        return frame, KnownRejects()
    kept = target.spark.sql(
        f"SELECT DISTINCT {h.QUARANTINE}.id AS id, {h.QUARANTINE}.raw AS raw "
        f"FROM {target.table.at(target.state.snapshot)} WHERE {is_bad} AND {h.OPERATION} IS NULL"
    )
    reloading = target.state.copy.reloading
    if reloading is not None and reloading.until is not None:
        # Its place in the landed batches is unknown. That in the source is among the bytes.
        same = _message(bad["raw"]) == _message(kept["raw"])
    else:
        same = (bad["id"] == kept["id"]) & bad["raw"].eqNullSafe(kept["raw"])
    matches = bad.join(kept, same).select(bad["id"], bad["rule"]).localCheckpoint()
    rest = frame.join(matches, frame[h.QUARANTINE]["id"] == matches["id"], "left_anti")
    marked = f"IF({is_bad}, '{BY_RELOAD}', {h.OPERATION}) AS {h.OPERATION}"
    columns = [marked if name == h.OPERATION else quote(name) for name in frame.columns]
    is_unparsed = functions.count_if(matches["rule"].isin(*UNPARSED))
    (counted,) = matches.agg(functions.count("*"), is_unparsed).collect()
    return rest.selectExpr(*columns), KnownRejects(*counted)


@dataclass(frozen=True, slots=True)
class KnownRejects:
    """Rejected records that are in quarantine already, and how many could not be parsed."""

    records: int = 0
    unparsed: int = 0


def _message(raw: Column) -> Column:
    """The bytes of a message of a stream as text, without what its landing added."""
    text = functions.decode(raw, "ISO-8859-1")
    head = functions.substring_index(text, "\n", 1)
    rest = text.substr(functions.length(head) + 1, functions.length(text))
    for pattern in (f',"{LANDED_AT}":"[^"]*"', ',"place":"[^"]*"'):
        head = functions.regexp_replace(head, pattern, "")
    return functions.concat(head, rest)


def finish(
    target: DatasetTable,
    applier: Applier,
    *,
    now: datetime,
    incomplete: Incomplete = "refuse",
    live_files: Iterable[str] | None = None,
) -> ApplyResult:
    """Move what differs, and end the reload: one commit.

    `live_files` are the landed files that still exist; the position forgets all others.

    Raises OperationError when records would be deleted only because they could not be read: the
    load is empty, or some of it went to quarantine, and `incomplete` refuses that.
    """
    reloading = under_way(target)
    reloading = replace(reloading, mode=_final_mode(target, reloading, incomplete))
    assert target.state.snapshot is not None
    shape, state = target.stored_shape(keys=_keys(target)), target.state.copy
    table = target.table.at(target.state.snapshot)
    comparison = ChangeCriteria.of(target.dataset, shape, reloading)
    query = events(shape, table, reloading, comparison)
    changed = _changed_in_memory(target, shape, reloading, comparison)
    # The next run must not take the files of this load for new ones.
    read = {**state.position.files, **reloading.files, **_landed(reloading)}
    files = remembered(target, read, {}, live_files)
    following = replace(
        state,
        reloading=None,
        reloaded=_record(reloading, now) or state.reloaded,
        decisions=replace(state.decisions, accepted={}),
        position=replace(
            state.position,
            copied_at=now.isoformat(),
            files=files,
            last_extract=reloading.extract or state.position.last_extract,
            stream=_stream(reloading) or state.position.stream,
        ),
    )
    gathered = target.table.files(Partition.RELOAD, target.state.snapshot)
    if goes_to_current(target, shape, reloading):
        return commit_first_load(target, shape, reloading, following, now=now)
    moved: DataFrame | pa.Table
    if changed is None:
        moved = target.spark.sql(query).localCheckpoint()
    elif changed.num_rows:
        moved = changed
    else:
        moved = target.spark.sql(f"SELECT * FROM {table} WHERE false")
    parts = CopyParts(
        moved,
        None,
        following,
        {"polynya.reload": reloading.mode, "polynya.rows-loaded": str(reloading.rows)},
        consumed=gathered,
        instead=reloading.mode == "drop_and_create",
        count=changed.num_rows or None if changed is not None else None,
    )
    return applier.apply(target, shape, reason=f"reload: {reloading.mode}", now=now, fresh=parts)


def _changed_in_memory(
    target: DatasetTable, shape: Shape, reloading: Reloading, comparison: ChangeCriteria
) -> pa.Table | None:
    """The events of a finished load that are found in memory; None where Spark finds them."""
    if reloading.mode in REPLACING or comparison.newer is not None:
        return None
    assert target.state.snapshot is not None, "a reload has begun"
    found = compared_load(target, shape, target.state.snapshot, reloading, comparison.columns)
    if isinstance(found, str):
        log.debug("the load of %s is compared by Spark: %s", target.table.name, found)
        return None
    return found


def abandon(target: DatasetTable) -> None:
    """Give a reload up: what was gathered goes, Current stays as it is."""
    target.take_over()
    under_way(target)
    target.commit_copy_state(
        replace(target.state.copy, reloading=None),
        "reload-abandon",
        remove=target.table.files(Partition.RELOAD, target.state.snapshot),
    )


def _record(reloading: Reloading, now: datetime) -> ReloadRecord | None:
    if reloading.due is None:
        return None
    return ReloadRecord(reloading.due, now.isoformat(), reloading.rows, reloading.quarantined)


def _stream(reloading: Reloading) -> DirectPosition | None:
    """How far the table has read its stream itself; None where it copies landed batches."""
    return None if reloading.until is not None else reloading.stream


def _landed(reloading: Reloading) -> dict[str, FileProgress]:
    """The landed batch up to which a stream was read at its source: those before it are done."""
    until = reloading.until
    if until is None:
        return {}
    return {until.path: FileProgress(until.size_bytes, until.records, complete=True)}


def _keys(target: DatasetTable) -> tuple[str, ...]:
    """Keys of the table; those of the configuration while it holds nothing."""
    return target.known_keys() or target.dataset.events.keys


def _final_mode(target: DatasetTable, reloading: Reloading, incomplete: Incomplete) -> ReloadMode:
    """How the load is taken in, now that it is known whether it is whole."""
    if reloading.is_whole or incomplete == "accept" or reloading.mode == KEEPING:
        return reloading.mode
    if incomplete == "refuse":
        raise _not_whole(target, reloading)
    # Replacing what an extract finds is for an empty table.
    by_itself = reloading.scheduled is not None or reloading.due is not None
    is_compared = reloading.mode == DELETING or by_itself
    return KEEPING if is_compared else reloading.mode


def _not_whole(target: DatasetTable, reloading: Reloading) -> OperationError:
    if reloading.rows:
        lacks = f"{reloading.quarantined} of its records went to quarantine"
    else:
        lacks = "it holds no row"
    return LOAD_INCOMPLETE(where=target.table.name, table=target.table.name, problem=lacks)


def _after(
    target: DatasetTable,
    batch: AnyBatch,
    keys: tuple[str, ...],
    loaded: int,
    quarantined: int,
) -> CopyState:
    reloading, before = under_way(target), target.state.copy
    schema = {name: str(datatype) for name, datatype in batch.schema.items()}
    settings = recorded(target.dataset, before.settings, has_rows=has_rows(target))
    return replace(
        before.with_settings(settings),
        columns=replace(
            before.columns,
            schema=schema,
            keys=list(keys),
            named=named_after(target, batch),
            source=source_after(batch),
        ),
        membership=replace(before.membership, task=target.dataset.task),
        reloading=replace(
            reloading,
            files=reloading.files
            if batch.stream is not None
            else remembered(target, reloading.files, batch.files, None),
            stream=batch.stream or reloading.stream,
            rows=reloading.rows + loaded,
            quarantined=reloading.quarantined + quarantined,
        ),
    )


def _with_landed(
    target: DatasetTable, state: CopyState, batch: AnyBatch, scheduled: ScheduledLoad
) -> CopyState:
    """The state with what a copy remembers of landed batches, which a scheduled load comes in."""
    assert state.reloading is not None, "the load has begun"
    columns, position, of_source = state.columns, state.position, batch.of_source
    newest = batch.facts.newest
    stamps = [position.newest_event, newest.astimezone(UTC).isoformat() if newest else None]
    if of_source is not None:
        columns = replace(columns, key_names=[list(names) for names in of_source.key_names])
        position = replace(position, eras=list(of_source.eras))
    if batch.declared is not None:
        columns = replace(columns, declared=list(batch.declared))
    position = replace(
        position,
        files=remembered(target, position.files, batch.files, None),
        newest_event=max(filter(None, stamps), key=datetime.fromisoformat, default=None),
    )
    reloading = replace(state.reloading, files={}, scheduled=scheduled)
    return replace(state, columns=columns, position=position, reloading=reloading)


def under_way(target: DatasetTable) -> Reloading:
    """The reload that has begun and not ended. Raises OperationError when there is none."""
    if target.state.copy.reloading is None:
        raise NO_RELOAD(where=target.table.name, table=target.table.name)
    return target.state.copy.reloading


@dataclass(frozen=True, slots=True)
class ChangeCriteria:
    """What tells that a record changed: a difference in `columns`, or a greater `newer`."""

    columns: tuple[str, ...]
    newer: str | None = None

    @classmethod
    def of(cls, dataset: ResolvedDataset, shape: Shape, reloading: Reloading) -> ChangeCriteria:
        """How a load is compared with the table of a dataset."""
        # A column that is excluded is in no load.
        values = tuple(name for name in shape.values if name not in shape.hidden)
        extracts = dataset.landing.extracts
        if extracts is not None and reloading.extract is not None:
            return cls(extracts.check_columns or values, extracts.updated_at)
        # A service writes the time of the load there, and of the change into a change.
        stamp = dataset.landing.delivery.timestamp_column
        return cls(tuple(name for name in values if name != stamp))


def events(shape: Shape, table: str, reloading: Reloading, comparison: ChangeCriteria) -> str:
    """Query of the events that a finished load makes of `table`, in the columns of Changes.

    Comparing gives `i` `u` `d`. Replacing gives `L` for every loaded row, after a truncate where
    what was there before ends with it.

    Raises OperationError when the table lacks a column to compare.
    """
    if reloading.mode not in REPLACING:
        return differences(shape, table, reloading, comparison, loaded=_loaded(shape, table))
    loaded = _event(shape, "'L'", "l", reloading, suffix=OF_ROWS)
    rows = f"SELECT {loaded} FROM ({_loaded(shape, table)}) l WHERE l.__live"
    if reloading.mode == "drop_and_create":
        return rows
    nothing = {name: f"CAST(NULL AS {shape.type_of(name)})" for name in shape.data}
    truncate = _columns(nothing, "'T'", reloading, suffix="a")
    return f"SELECT {truncate} UNION ALL {rows}"


def _differs(shape: Shape, comparison: ChangeCriteria) -> str:
    """Condition that the loaded row `l` is another version than the row `c` of Current."""
    newer = comparison.newer
    for name in (*comparison.columns, *filter(None, (newer,))):
        if name not in shape.columns:
            raise NO_SUCH_COMPARED_COLUMN(where=f"column {shown(name)}", column=shown(name))
    if newer is not None:
        loaded, current = (comparable(f"{a}.{quote(newer)}", shape.columns[newer]) for a in "lc")
        return f"{loaded} IS NOT NULL AND coalesce({loaded} > {current}, true)"
    same = (
        f"{comparable(f'l.{quote(name)}', shape.columns[name])} <=> "
        f"{comparable(f'c.{quote(name)}', shape.columns[name])}"
        for name in comparison.columns
    )
    return f"NOT ({joined(same, 'AND') or 'true'})"


def differences(
    shape: Shape,
    table: str,
    reloading: Reloading,
    comparison: ChangeCriteria,
    *,
    loaded: str,
    current: str | None = None,
) -> str:
    """Query of the events `i` `u` `d` that turn Current of `table` into the loaded rows.

    `loaded` has one row for each record: the data columns, `__ts` with the time of the event (NULL:
    that of the load), and `__live`, false for a record that the load only says is deleted.
    `current` are the rows of `current_rows` that are compared; None: all of them.

    Raises OperationError when the table lacks a column to compare.
    """
    changed = _differs(shape, comparison)
    absent = "'d'" if reloading.mode == DELETING else "NULL"
    operation = (
        f"CASE WHEN l.__live IS NULL THEN IF(c.__live, {absent}, NULL) "
        "WHEN NOT l.__live THEN IF(c.__live, 'd', NULL) "
        f"WHEN NOT coalesce(c.__live, false) THEN 'i' WHEN {changed} THEN 'u' END"
    )
    # What changed after the load began is newer than what was loaded.
    newer = f"coalesce(c.__seq > {literal(reloading.sequence)}, false)"
    sides = {name: f"IF(l.__live, l.{quote(name)}, NULL)" for name in shape.values}
    sides |= {name: f"coalesce(l.{quote(name)}, c.{quote(name)})" for name in shape.keys}
    current, join = current or current_rows(shape, table), "FULL OUTER"
    if reloading.mode == KEEPING:
        # Rows that the load lacks stay, so only the others have to be brought together.
        wanted = f"SELECT {shape.key_list()} FROM ({loaded})"
        current = (
            f"SELECT c.* FROM ({current}) c LEFT SEMI JOIN ({wanted}) k "
            f"ON {shape.key_match('k', 'c')}"
        )
        join = "LEFT OUTER"
    joined = (
        f"SELECT {', '.join(f'{sides[name]} AS {quote(name)}' for name in shape.data)}, "
        f"IF(l.__live, l.__ts, NULL) AS __ts, {operation} AS __op "
        f"FROM ({loaded}) l "
        f"{join} JOIN ({current}) c ON {shape.key_match('l', 'c')} "
        f"WHERE NOT {newer}"
    )
    selected = _event(shape, "__op", "f", reloading)
    return f"SELECT {selected} FROM ({joined}) f WHERE __op IS NOT NULL"


def _loaded(shape: Shape, table: str) -> str:
    """One row for each loaded record: of several with one key the newest, else the greatest.

    `__live` is false for a row that only says that its record is deleted.
    """
    content = ", ".join(f"{literal(name)}, {quote(name)}" for name in sorted(shape.data))
    order = (
        f"{h.CHANGE_IDENTIFIER} DESC, {h.SEQUENCE_TAIL} DESC NULLS LAST, __live, "
        f"to_json(named_struct({content})) DESC"
    )
    names = ", ".join(map(quote, shape.data))
    rows = (
        f"SELECT *, {h.OPERATION} = 'L' AS __live, {h.TIMESTAMP} AS __ts FROM {table} "
        f"WHERE {within(Partition.RELOAD)} AND {h.OPERATION} IN ('L', 'D')"
    )
    if shape.replaces:
        rows = newest_elements(shape, rows)
    return (
        f"SELECT {names}, __ts, __live FROM (SELECT *, row_number() OVER "
        f"(PARTITION BY {shape.key_list()} ORDER BY {order}) AS __rank FROM ({rows})) "
        "WHERE __rank = 1"
    )


def current_rows(shape: Shape, table: str) -> str:
    """Query of the stored rows of Current: the data columns, `__live` and `__seq`, their order."""
    return (
        f"SELECT {', '.join(map(quote, shape.data))}, "
        f"NOT ({is_delete()}) AS __live, {STORED_SEQUENCE} AS __seq "
        f"FROM {table} WHERE {within(Partition.CURRENT)}"
    )


def _event(
    shape: Shape, operation: str, alias: str, reloading: Reloading, *, suffix: str = ""
) -> str:
    data = {name: f"{alias}.{quote(name)}" for name in shape.data}
    return _columns(data, operation, reloading, suffix=suffix, time=f"{alias}.__ts")


def _columns(
    data: Mapping[str, str],
    operation: str,
    reloading: Reloading,
    *,
    suffix: str = "",
    time: str = "NULL",
) -> str:
    headers = {
        h.CHANGE_IDENTIFIER: literal(reloading.place),
        h.SEQUENCE_TAIL: literal(reloading.tail + suffix),
        h.SOURCE_POSITION: "CAST(NULL AS STRING)",
        h.OPERATION: operation,
        h.TIMESTAMP: f"coalesce({time}, {timestamp_literal(reloading.started_at)})",
        h.UNSENT: "CAST(NULL AS STRING)",
        h.OLD_KEY: "CAST(NULL AS STRING)",
    }
    columns = {**{quote(name): value for name, value in data.items()}, **headers}
    return ", ".join(f"{value} AS {name}" for name, value in columns.items())


def at_places(batch: DatasetBatch, source: StreamSource) -> DatasetBatch:
    """The batch of a stream whose rows say which partition, shard or file they came from."""
    rows = batch.rows
    if not rows.num_rows:
        return batch
    names = PLACE_HEADERS[source][:-1]
    parts = [rows.column(name).cast(pa.string()) for name in names]
    places = pc.binary_join_element_wise(*parts, "/")
    at = rows.schema.get_field_index(_POSITION)
    return replace(batch, rows=rows.set_column(at, rows.schema.field(at), places))


def pairs_of_places(target: DatasetTable) -> list[tuple[str, str]]:
    """Pairs of places where one record has rows, and either may hold the newest.

    Where settings name an order, that are the rows that have the last place in it.
    """
    assert target.state.snapshot is not None, "a reload has begun"
    shape = target.stored_shape(keys=target.known_keys())
    # Which record is the newest decides which elements there are.
    table, keys = target.table.at(target.state.snapshot), shape.touching_list()
    last = f"max({h.CHANGE_IDENTIFIER}) OVER (PARTITION BY {keys})"
    ordered = target.dataset.events.sequence_by
    newest = f"{h.CHANGE_IDENTIFIER} = __latest" if ordered else "true"
    rows = (
        f"SELECT {keys}, {h.SOURCE_POSITION}, {h.CHANGE_IDENTIFIER}, {last} AS __latest "
        f"FROM {table} WHERE {within(Partition.RELOAD)} AND {h.OPERATION} IN ('L', 'D')"
    )
    of_records = (
        f"SELECT sort_array(collect_set({h.SOURCE_POSITION})) AS __places FROM ({rows}) "
        f"WHERE {newest} GROUP BY {keys}"
    )
    pairs = (
        "explode(flatten(transform(__places, (a, i) -> "
        "transform(slice(__places, i + 2, size(__places)), "
        "b -> named_struct('a', a, 'b', b)))))"
    )
    found = target.spark.sql(
        f"SELECT DISTINCT __pair.a, __pair.b FROM (SELECT {pairs} AS __pair FROM ({of_records}) "
        "WHERE size(__places) > 1)"
    )
    return sorted((row["a"], row["b"]) for row in found.collect())
