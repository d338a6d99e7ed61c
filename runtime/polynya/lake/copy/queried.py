"""The way of all other batches: SQL makes their rows, and looks where they go.

A first load goes to Current, a truncate is applied in the same commit.
"""

from __future__ import annotations

from polynya.formats.batch import DatasetBatch
from polynya.lake.apply.applier import Applier
from polynya.lake.apply.run import CopyParts
from polynya.lake.copy.derive import HELPERS, derive, first_rejected, has_truncates
from polynya.lake.copy.loads.repeated import placed_again
from polynya.lake.copy.routes import TRUNCATES, Route, route_of_load
from polynya.lake.copy.way import Copying, CopyResult
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.staging import stage, write_rows
from polynya.lake.spark.api import DataFrame
from polynya.lake.spark.arrow import collected_rows
from polynya.lake.table.books import booked
from polynya.model.contract.headers import Partition

#: Below this many rows one task writes the batch: more tasks would make more, smaller files.
ONE_TASK_ROWS = 200_000
#: Up to so many rows, of so many bytes in memory, are written without Spark.
FEW_ROWS = 20_000
FEW_BYTES = 32 * 1024 * 1024


class Queried:
    """See the module. `applier` applies what cannot wait."""

    def __init__(self, applier: Applier) -> None:
        self._applier = applier

    def take(self, copying: Copying) -> CopyResult:
        """See `Way`. There is no batch that it refuses."""
        target, batch, shape = copying.target, copying.batch, copying.shape
        derived = derive(target.spark, batch, target.dataset, shape, copying.times)
        copying.refuse_bad_records(lambda: first_rejected(derived))
        if copying.repeats_load:
            derived = placed_again(target, derived, shape)
        reason = copying.at_once
        if (
            reason is None
            and not shape.append_only
            and has_truncates(batch, derived, target.dataset)
        ):
            reason = TRUNCATES
        if reason is not None:
            return self._apply_at_once(copying, derived, reason)
        route = Route(derived)
        if copying.first_load:
            route = route_of_load(target, batch, derived, shape, copying.times.now)
        at_once = copying.first_load or shape.append_only
        rows = route.rows.drop(*HELPERS)
        files = staged_rows(target.table, rows, batch, laid_out=at_once)
        return copying.append(files, route.keeping)

    def _apply_at_once(self, copying: Copying, derived: DataFrame, reason: str) -> CopyResult:
        """Commit a batch together with the apply of all that is pending."""
        batch, target, now = copying.batch, copying.target, copying.times.now
        parts = _parts(copying, derived.persist())
        try:
            done = self._applier.apply(target, copying.shape, reason=reason, now=now, fresh=parts)
        finally:
            derived.unpersist()
        quarantined = int(parts.summary["polynya.rows-quarantined"])
        out = batch.rows_in - batch.rows_filtered - quarantined
        return CopyResult(batch.rows_in, out, batch.rows_filtered, quarantined, done.snapshot, done)


def _parts(copying: Copying, derived: DataFrame) -> CopyParts:
    """The batch as the applier takes it, counted. `derived` is read several times."""
    rejected = within(Partition.QUARANTINE)
    good = derived.where(f"NOT ({rejected})")
    bad = sized(derived.where(rejected).drop(*HELPERS), copying.batch)
    out, quarantined = good.count(), bad.count()
    following, summary = booked(
        copying.target, copying.batch, copying.following, step="copy+apply",
        out=out, quarantined=quarantined,
    )  # fmt: skip
    return CopyParts(good, bad, following, summary, copying.replayed)


def staged_rows(
    table: IcebergTable, rows: DataFrame, batch: DatasetBatch, *, laid_out: bool = False
) -> list[DataFile]:
    """Write rows of a batch: few without Spark, whose plan of a write costs more than they do.

    `laid_out`: there may be rows of Current.
    """
    if batch.rows_held <= FEW_ROWS and batch.size_bytes <= FEW_BYTES:
        return write_rows(table, collected_rows(rows))
    return stage(table, sized(rows, batch), laid_out=laid_out)


def sized(rows: DataFrame, batch: DatasetBatch) -> DataFrame:
    """Rows of a batch in as many tasks as are worth their files."""
    return rows.coalesce(1) if batch.rows.num_rows <= ONE_TASK_ROWS else rows
