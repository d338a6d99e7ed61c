"""A reload: gather a new full load beside Current, then move only the differences, in one commit.

The load gathers in the partition `reload`, batch by batch, each in a commit with its position, so
that a reload that was killed goes on where it stood. Readers see none of it before the last commit,
which folds the differences (`compare.py`), removes what was gathered and ends the reload. Changes
that are copied meanwhile wait as pending and are folded with it, each in its place in the order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from polynya.formats.batch import NO_ORDER, DatasetBatch, FileProgress
from polynya.lake.apply.applier import Applier, ApplyResult
from polynya.lake.apply.run import CopyParts
from polynya.lake.copy.after import named_after, remembered, source_after
from polynya.lake.copy.compare import Comparison, events
from polynya.lake.copy.derive import HELPERS, derive, first_rejected
from polynya.lake.copy.queried import staged_rows
from polynya.lake.copy.rejected_before import without_rejected_before
from polynya.lake.copy.times import Times
from polynya.lake.copy.way import CopyResult
from polynya.lake.table.books import booked, discounted, rows_by_partition
from polynya.lake.table.copy_state import CopyState, Reloading
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import agreed_keys, enter, has_rows
from polynya.lake.table.suspension import BadRecordError, held_at, refuse_bad_records
from polynya.model.config.recorded import recorded
from polynya.model.config.reload import DELETING, KEEPING, Incomplete, ReloadMode
from polynya.model.contract import headers as h
from polynya.model.contract.direct_position import DirectPosition
from polynya.model.contract.headers import Partition
from polynya.model.contract.landed_until import LandedUntil
from polynya.model.errors import OperationError


def begin(
    target: DatasetTable,
    mode: ReloadMode,
    *,
    now: datetime,
    extract: str | None = None,
    place: str | None = None,
    glob: str | None = None,
    until: LandedUntil | None = None,
) -> Reloading:
    """Begin a reload, or return the one that has begun and not ended.

    `now` becomes the time of the changes that are found. `extract` names the full extract that is
    loaded, None when a user asked for a reload. `place` is the change identifier after which the
    load comes, by default all that was copied. `glob` names the files that a user asked for.
    `until` is where a landed stream ends that is read at its source.

    Raises OperationError for a table without keys, and when another reload is under way.
    """
    enter(target)
    state = target.state.copy
    if state.reloading is not None:
        begun = state.reloading
        if (begun.mode, begun.extract, begun.until) != (mode, extract, until):
            raise _other_mode(target, state.reloading, mode)
        return state.reloading
    if target.shape(keys=_keys(target)).append_only:
        raise _without_keys(target)
    reloading = Reloading(
        mode,
        state.reloads + 1,
        now.isoformat(),
        place=place or state.position.copied_to or NO_ORDER,
        extract=extract,
        glob=glob,
        until=until,
    )
    following = replace(state, reloading=reloading, reloads=reloading.number)
    target.commit_copy_state(following, "reload-begin")
    return reloading


def load(target: DatasetTable, batch: DatasetBatch, *, now: datetime) -> CopyResult:
    """Commit one batch of the load to the partition `reload`; rejected records to quarantine.

    Those of a stream that are there since they were copied stay there, and the load lacks nothing.
    """
    keys = agreed_keys(target, batch)
    target.grow(batch.schema)
    shape = target.shape(batch.schema, keys)
    times = Times(now, under_way(target).started_at)
    frame = derive(target.spark, batch, target.dataset, shape, times)
    if under_way(target).extract is not None:
        # A reload that a user asked for is refused at its end when it is not whole.
        try:
            refuse_bad_records(target, lambda: first_rejected(frame), now)
        except BadRecordError as found:
            # A part of an extract cannot be compared.
            raise held_at(target, found) from None
    frame, known = without_rejected_before(target, frame)
    rows = frame.drop(*HELPERS).replace(
        str(Partition.CHANGES), str(Partition.RELOAD), [h.PARTITION]
    )
    staged = staged_rows(target.table, rows, batch)
    counts = rows_by_partition(staged)
    quarantined = counts.pop(Partition.QUARANTINE, 0)
    loaded = sum(counts.values())
    following = _after(target, batch, keys, loaded, quarantined)
    following, summary = booked(
        target, batch, following, step="reload", out=loaded, quarantined=quarantined + known.records
    )
    following = discounted(following, known.records, unparsed=known.unparsed)
    snapshot = target.commit(copy=following, add=staged, summary=summary)
    rejected = quarantined + known.records
    return CopyResult(batch.rows_in, loaded, batch.rows_filtered, rejected, snapshot)


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
    comparison = Comparison.of(target.dataset, shape, reloading)
    found = target.spark.sql(events(shape, table, reloading, comparison))
    nothing = target.spark.sql(f"SELECT * FROM {table} WHERE false")
    # The next run must not take the files of this load for new ones.
    read = {**state.position.files, **reloading.files, **_landed(reloading)}
    files = remembered(target, read, {}, live_files)
    following = replace(
        state,
        reloading=None,
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
    parts = CopyParts(
        found.localCheckpoint(),
        nothing,
        following,
        {"polynya.reload": reloading.mode, "polynya.rows-loaded": str(reloading.rows)},
        consumed=gathered,
        instead=reloading.mode == "drop_and_create",
    )
    return applier.apply(target, shape, reason=f"reload: {reloading.mode}", now=now, fresh=parts)


def _stream(reloading: Reloading) -> DirectPosition | None:
    """How far the table has read its stream itself; None where it copies landed batches."""
    return None if reloading.until is not None else reloading.stream


def _landed(reloading: Reloading) -> dict[str, FileProgress]:
    """The landed batch up to which a stream was read at its source: those before it are done."""
    until = reloading.until
    if until is None:
        return {}
    return {until.path: FileProgress(until.size_bytes, until.records, complete=True)}


def abandon(target: DatasetTable) -> None:
    """Give a reload up: what was gathered goes, Current stays as it is."""
    target.take_over()
    under_way(target)
    target.commit_copy_state(
        replace(target.state.copy, reloading=None),
        "reload-abandon",
        remove=target.table.files(Partition.RELOAD, target.state.snapshot),
    )


def _keys(target: DatasetTable) -> tuple[str, ...]:
    """Keys of the table; those of the configuration while it holds nothing."""
    return target.known_keys() or target.dataset.events.keys


def _after(
    target: DatasetTable,
    batch: DatasetBatch,
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


def under_way(target: DatasetTable) -> Reloading:
    """The reload that has begun and not ended. Raises OperationError when there is none."""
    if target.state.copy.reloading is None:
        raise OperationError(
            "POLYNYA-LAKE-011",
            f"no reload of {target.table.name} is under way",
            where=target.table.name,
            state="nothing was changed",
            fix="begin one with `polynya reload`",
        )
    return target.state.copy.reloading


def _final_mode(target: DatasetTable, reloading: Reloading, incomplete: Incomplete) -> ReloadMode:
    """How the load is taken in, now that it is known whether it is whole."""
    if reloading.is_whole or incomplete == "accept" or reloading.mode == KEEPING:
        return reloading.mode
    if incomplete == "refuse":
        raise _not_whole(target, reloading)
    return KEEPING if reloading.mode == DELETING else reloading.mode


def _not_whole(target: DatasetTable, reloading: Reloading) -> OperationError:
    if reloading.rows:
        lacks = f"{reloading.quarantined} of its records went to quarantine"
    else:
        lacks = "it holds no row"
    return OperationError(
        "POLYNYA-LAKE-015",
        f"the load of {target.table.name} is not whole ({lacks}): "
        "records that it lacks would be deleted",
        where=target.table.name,
        state="the load is kept beside Current, which is as before",
        fix="`--abandon` it, fix the files and reload; "
        "or go on with `--accept-incomplete` if those records shall be deleted",
    )


def _other_mode(target: DatasetTable, reloading: Reloading, mode: ReloadMode) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-012",
        f"another reload of {target.table.name} is under way: "
        f"{reloading.mode} of {_what(reloading)}, not {mode}",
        where=target.table.name,
        state=f"{reloading.rows} rows are loaded, Current is as before",
        fix="give it up with `--abandon`"
        if reloading.extract is not None
        else f"go on with `--mode {reloading.mode}`, or give it up with `--abandon`",
    )


def _what(reloading: Reloading) -> str:
    from_source = "its source" if reloading.until is not None else "its full load"
    return reloading.extract or from_source


def _without_keys(target: DatasetTable) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-013",
        f"{target.table.name} has no keys yet, or keeps every event as a row: "
        "there is nothing to compare a load by",
        where=target.table.name,
        state="nothing was changed",
        fix="give the dataset `keys` and run it once",
    )
