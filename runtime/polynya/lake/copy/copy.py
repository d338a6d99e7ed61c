"""Copy: append landed events to Changes, rejected ones to Quarantine, a first load to Current.

One Spark write for all of it and one commit with the source position, so that the figures come from
what was committed and nothing can be counted twice or lost (semantics sections 8, 10, 11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.apply import retention
from polynya.lake.apply.applier import Applier, ApplyResult
from polynya.lake.apply.retention import Retention
from polynya.lake.apply.run import CopyParts
from polynya.lake.copy.derive import HELPERS, derive, landed_frame
from polynya.lake.copy.routes import into_current, is_first_load, reason_to_apply_at_once
from polynya.lake.fold.sql import within
from polynya.lake.fold.unsent import ignored_nulls
from polynya.lake.iceberg.commit import Step, commit_row_delta
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.bad_records import refuse_bad_records
from polynya.lake.table.books import accounted, counted, rows_by_partition, summary
from polynya.lake.table.copy_state import CopyState
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import agreed_keys, has_rows, refuse_other_order, refuse_second_task
from polynya.lake.table.replayed import Replayed
from polynya.lake.table.stored_state import write_apply_state, write_copy_state
from polynya.model.config.recorded import recorded
from polynya.model.contract.headers import Partition
from polynya.model.formats.registry import rules_of

#: Below this many rows one task writes the batch: more tasks would make more, smaller files.
ONE_TASK_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What one batch became. rows_in = rows_out + rows_filtered + rows_quarantined.

    `applied` tells of the apply in the same commit, None when the batch was only copied.
    """

    rows_in: int
    rows_out: int
    rows_filtered: int
    rows_quarantined: int
    snapshot: int
    applied: ApplyResult | None = None


def copy_batch(
    target: DatasetTable,
    batch: DatasetBatch,
    applier: Applier,
    *,
    now: datetime,
    live_files: Iterable[str] | None = None,
    replayed: Replayed | None = None,
) -> CopyResult:
    """Commit one landed batch.

    `live_files` are the landed files that still exist; the position forgets all others. `replayed`
    are quarantined records that this batch read again: they leave the quarantine in the same
    commit. Most batches only append. A batch that the live views could not show by themselves (a
    truncate, say) is applied in the same commit. Raises SuspendedError or TaskStoppedError for a
    bad record of a dataset that does not quarantine them.
    """
    refuse_second_task(target)
    refuse_other_order(target)
    target.take_over()
    keys = agreed_keys(target, batch)
    target.grow(batch.schema, keys)
    started = _load_started(target, batch, now)
    before = target.state.copy
    unsent = {*before.columns.unsent, *_unsent(batch), *ignored_nulls(target.dataset)}
    columns = replace(
        before.columns,
        schema={name: str(datatype) for name, datatype in batch.schema.items()},
        keys=list(keys),
        unsent=sorted(unsent),
        has_old_keys=before.columns.has_old_keys or _carries(batch),
    )
    following = replace(
        before,
        columns=columns,
        membership=replace(before.membership, task=target.dataset.task),
        settings=recorded(target.dataset, before.settings, has_rows=has_rows(target)),
        position=replace(
            before.position,
            load_started=started.isoformat() if started else None,
            pending_since=_pending_since(target, now),
        ),
    )
    shape = target.shape(batch.schema, keys, following)
    landed = landed_frame(target.spark, batch)
    derived = derive(
        landed,
        target.dataset,
        shape,
        schema=batch.schema,
        now=now,
        load_started=started,
        horizon=target.state.apply.horizon,
    )
    if replayed is None:
        refuse_bad_records(target, derived, now)
    following = _advanced(following, batch, live_files, now)
    if replayed is not None:
        following = replayed.discounted(following)
    reason = reason_to_apply_at_once(target, batch, derived, shape)
    if reason is not None:
        parts = _parts(target, batch, derived.persist(), following, replayed)
        try:
            done = applier.apply(target, shape, reason=reason, now=now, fresh=parts)
        finally:
            derived.unpersist()
        quarantined = int(parts.summary["polynya.rows-quarantined"])
        out = batch.rows_in - batch.rows_filtered - quarantined
        return CopyResult(batch.rows_in, out, batch.rows_filtered, quarantined, done.snapshot, done)
    if not is_first_load(target, batch, shape):
        return _append(target, batch, derived, following, replayed)
    keeping = retention.before(target, shape, now)
    loaded = into_current(target, derived, shape, keeping.now)
    if keeping.state is not None:
        loaded = retention.with_loaded_events(loaded, keeping.now)
    return _append(target, batch, loaded, following, replayed, keeping=keeping)


def _append(
    target: DatasetTable,
    batch: DatasetBatch,
    derived: DataFrame,
    following: CopyState,
    replayed: Replayed | None,
    *,
    keeping: Retention | None = None,
) -> CopyResult:
    staged = target.table.stage(sized(derived.drop(*HELPERS), batch))
    counts = rows_by_partition(target, staged)
    quarantined = counts.pop(Partition.QUARANTINE, 0)
    kept = counts.pop(Partition.RETAINED, 0)
    following = accounted(target, batch, following, sum(counts.values()), quarantined)
    state = target.state
    add, replaced = [*staged, write_copy_state(target.table, following)], [state.copy_file]
    if kept and keeping is not None:
        retaining = keeping.following(kept)
        apply = replace(state.apply, ownership=following.ownership, retaining=retaining)
        add.append(write_apply_state(target.table, apply))
        replaced.append(state.apply_file)
    step = Step(
        commit_id=following.ownership.commit,
        based_on=state.snapshot,
        add=add,
        remove=[file for file in replaced if file is not None],
        deletes=[replayed.delete_file(target.table)] if replayed is not None else [],
        touched=replayed.touched() if replayed is not None else [],
        summary=summary("copy", batch, sum(counts.values()), quarantined),
    )
    snapshot = commit_row_delta(target.table, step)
    target.reload()
    return CopyResult(
        batch.rows_in, sum(counts.values()), batch.rows_filtered, quarantined, snapshot
    )


def _parts(
    target: DatasetTable,
    batch: DatasetBatch,
    derived: DataFrame,
    following: CopyState,
    replayed: Replayed | None,
) -> CopyParts:
    """The batch as the applier takes it, counted. `derived` is read several times."""
    rejected = within(Partition.QUARANTINE)
    good = derived.where(f"NOT ({rejected})")
    bad = sized(derived.where(rejected).drop(*HELPERS), batch)
    out, quarantined = good.count(), bad.count()
    following = accounted(target, batch, following, out, quarantined)
    return CopyParts(good, bad, following, summary("copy+apply", batch, out, quarantined), replayed)


def sized(rows: DataFrame, batch: DatasetBatch) -> DataFrame:
    """Rows of a batch in as many tasks as are worth their files."""
    return rows.coalesce(1) if batch.rows.num_rows <= ONE_TASK_ROWS else rows


def _unsent(batch: DatasetBatch) -> set[str]:
    column = batch.rows.column("__unsent")
    if column.null_count == len(column):
        return set()
    return set(pc.unique(pc.list_flatten(column)).to_pylist())


def _carries(batch: DatasetBatch) -> bool:
    old, unsent = batch.rows.column("__old"), batch.rows.column("__unsent")
    return bool(pc.any(pc.and_(pc.is_valid(old), pc.is_valid(unsent))).as_py() or False)


def _load_started(target: DatasetTable, batch: DatasetBatch, now: datetime) -> datetime | None:
    """Start of the first full load: what the source says of it, else when we began to read it."""
    if target.state.copy.position.load_started is not None:
        return datetime.fromisoformat(target.state.copy.position.load_started)
    loads = batch.rows.filter(pc.equal(batch.rows.column("__op"), "L"))
    if loads.num_rows == 0:
        return None
    told = rules_of(target.dataset.landing.format).tells_load_time
    earliest = pc.min(loads.column("__ts")).as_py() if told else None
    return earliest.astimezone(UTC) if earliest is not None else now


def _pending_since(target: DatasetTable, now: datetime) -> str:
    pending = target.table.files(Partition.CHANGES, target.state.snapshot)
    return (
        target.state.copy.position.pending_since or now.isoformat() if pending else now.isoformat()
    )


def _advanced(
    state: CopyState, batch: DatasetBatch, live_files: Iterable[str] | None, now: datetime
) -> CopyState:
    """Position, freshness and counters after the batch."""
    before, columns, called = state.position, state.columns, state.membership.called
    files = {**before.files, **batch.files}
    if live_files is not None:
        live = {*live_files, *batch.files}
        files = {path: progress for path, progress in files.items() if path in live}
    newest = pc.max(batch.rows.column("__ts")).as_py()
    stamp = newest.astimezone(UTC).isoformat() if newest else None
    seen = [t for t in (before.newest_event, stamp) if t]
    copied = [c for c in (before.copied_to, pc.max(batch.rows.column("__ci")).as_py()) if c]
    position = replace(
        before,
        files=files,
        newest_event=max(seen, key=datetime.fromisoformat) if seen else None,
        copied_to=max(copied) if copied else None,
        copied_at=now.isoformat(),
    )
    if batch.declared is not None:
        columns = replace(columns, declared=list(batch.declared))
    return replace(
        state,
        position=position,
        columns=columns,
        books=counted(state.books, batch),
        membership=replace(state.membership, called=batch.called or called),
        decisions=replace(state.decisions, accepted={}),
    )
