"""Copy: append landed events to Changes, rejected ones to Quarantine, a first load to Current.

One write for all of it, by Spark or in Arrow, and one commit with the source position, so that the
figures come from
what was committed and nothing can be counted twice or lost (semantics sections 8, 10, 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from polynya.formats.batch import DatasetBatch
from polynya.lake.apply.applier import Applier, ApplyResult
from polynya.lake.apply.retention import Retention
from polynya.lake.apply.run import CopyParts
from polynya.lake.copy.after import state_after
from polynya.lake.copy.arrow_rows import arrow_rows
from polynya.lake.copy.arrow_rows import first_rejected as first_in_arrow
from polynya.lake.copy.derive import HELPERS, derive, first_rejected, has_truncates
from polynya.lake.copy.routes import (
    TRUNCATES,
    Route,
    is_first_load,
    reason_to_apply_at_once,
    route_of_load,
)
from polynya.lake.copy.times import Times
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.staging import stage, write_rows
from polynya.lake.spark.api import DataFrame
from polynya.lake.spark.collecting import arrow_rows as collected
from polynya.lake.table.books import booked, rows_by_partition
from polynya.lake.table.copy_state import CopyState
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import agreed_keys
from polynya.lake.table.replayed import Replayed
from polynya.lake.table.suspension import refuse_bad_records
from polynya.model.contract.headers import Partition

#: Below this many rows one task writes the batch: more tasks would make more, smaller files.
ONE_TASK_ROWS = 200_000
#: Up to so many rows, of so many bytes in memory, are written without Spark.
FEW_ROWS = 20_000
FEW_BYTES = 32 * 1024 * 1024


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
    """Commit one landed batch to a table that was entered (`guards.enter`).

    `live_files` are the landed files that still exist; the position forgets all others. `replayed`
    are quarantined records that this batch read again: they leave the quarantine in the same
    commit. Most batches only append. A batch that the live views could not show by themselves (a
    truncate, say) is applied in the same commit. Raises SuspendedError or TaskStoppedError for a
    bad record of a dataset that does not quarantine them.
    """
    keys = agreed_keys(target, batch)
    target.grow(batch.schema)
    following = state_after(target, batch, keys, now=now, live_files=live_files)
    if replayed is not None:
        following = replayed.discounted(following)
    shape = target.shape(batch.schema, keys, following)
    times = Times(now, following.position.load_started_at, target.state.apply.horizon)
    copying = _Copying(target, batch, shape, following, times, replayed)
    reason = reason_to_apply_at_once(target, batch, shape)
    loads = reason is None and is_first_load(target, batch, shape)
    rows = None if reason or loads else arrow_rows(batch, target.dataset, shape, times)
    if rows is not None:
        copying.refuse_bad_records(lambda: first_in_arrow(rows))
        return copying.append(write_rows(target.table, rows))
    derived = derive(target.spark, batch, target.dataset, shape, times)
    copying.refuse_bad_records(lambda: first_rejected(derived))
    if reason is None and batch.rows.num_rows and has_truncates(derived, target.dataset):
        reason = TRUNCATES
    if reason is not None and not shape.append_only:
        return copying.apply_at_once(derived, applier, reason)
    loading = route_of_load(target, batch, derived, shape, now) if loads else Route(derived)
    files = staged_rows(target.table, loading.rows.drop(*HELPERS), batch)
    return copying.append(files, loading.keeping)


@dataclass(frozen=True, slots=True)
class _Copying:
    """A batch on its way into a table, with the state after it."""

    target: DatasetTable
    batch: DatasetBatch
    shape: Shape
    following: CopyState
    times: Times
    replayed: Replayed | None

    def refuse_bad_records(self, first: Callable[[], Mapping[str, Any] | None]) -> None:
        """See `suspension.refuse_bad_records`; records that are read again were let in before."""
        if self.replayed is None:
            refuse_bad_records(self.target, first, self.times.now)

    def append(self, staged: Sequence[DataFile], keeping: Retention | None = None) -> CopyResult:
        """Commit the files of a batch as they are."""
        batch, target = self.batch, self.target
        counts = rows_by_partition(staged)
        quarantined = counts.pop(Partition.QUARANTINE, 0)
        kept = counts.pop(Partition.RETAINED, 0)
        out = sum(counts.values())
        following, summary = booked(
            target, batch, self.following, step="copy", out=out, quarantined=quarantined
        )
        apply = None
        if kept and keeping is not None:
            apply = replace(target.state.apply, retaining=keeping.following(kept))
        snapshot = target.commit(
            copy=following,
            apply=apply,
            add=staged,
            removed=self.replayed.places if self.replayed is not None else None,
            summary=summary,
        )
        return CopyResult(batch.rows_in, out, batch.rows_filtered, quarantined, snapshot)

    def apply_at_once(self, derived: DataFrame, applier: Applier, reason: str) -> CopyResult:
        """Commit a batch together with the apply of all that is pending."""
        batch, target, now = self.batch, self.target, self.times.now
        parts = self._parts(derived.persist())
        try:
            done = applier.apply(target, self.shape, reason=reason, now=now, fresh=parts)
        finally:
            derived.unpersist()
        quarantined = int(parts.summary["polynya.rows-quarantined"])
        out = batch.rows_in - batch.rows_filtered - quarantined
        return CopyResult(batch.rows_in, out, batch.rows_filtered, quarantined, done.snapshot, done)

    def _parts(self, derived: DataFrame) -> CopyParts:
        """The batch as the applier takes it, counted. `derived` is read several times."""
        rejected = within(Partition.QUARANTINE)
        good = derived.where(f"NOT ({rejected})")
        bad = sized(derived.where(rejected).drop(*HELPERS), self.batch)
        out, quarantined = good.count(), bad.count()
        following, summary = booked(
            self.target, self.batch, self.following, step="copy+apply",
            out=out, quarantined=quarantined,
        )  # fmt: skip
        return CopyParts(good, bad, following, summary, self.replayed)


def staged_rows(table: IcebergTable, rows: DataFrame, batch: DatasetBatch) -> list[DataFile]:
    """Write rows of a batch: few without Spark, whose plan of a write costs more than they do."""
    if batch.rows_held <= FEW_ROWS and batch.size_bytes <= FEW_BYTES:
        return write_rows(table, collected(rows))
    return stage(table, sized(rows, batch))


def sized(rows: DataFrame, batch: DatasetBatch) -> DataFrame:
    """Rows of a batch in as many tasks as are worth their files."""
    return rows.coalesce(1) if batch.rows.num_rows <= ONE_TASK_ROWS else rows
