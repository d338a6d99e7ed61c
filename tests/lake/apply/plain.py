"""The reference applier: fold everything, overwrite whole partitions with one DataFrame write.

It needs no internals of Iceberg, and reads and rewrites all of Current and Prior. Tests compare the
applier in use with it. It replaces the copy state too, so that an append that runs meanwhile makes
it fail instead of being lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from polynya.lake.apply.apply import Applier, ApplyOutcome, StagedApply
from polynya.lake.apply.folding import folded_with_all, pending_events
from polynya.lake.apply.run import ApplyRun, Folded
from polynya.lake.errors import is_refusal, refusal
from polynya.lake.fold import fold
from polynya.lake.fold.fold import TruncateEvent
from polynya.lake.fold.sql import selected, table_row, timestamp_literal, within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.spark.api import DataFrame, Py4JJavaError, functions
from polynya.lake.table.refused import refuse_fenced
from polynya.lake.table.state import ApplyState, CopyState
from polynya.lake.table.suspension import Replayed
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import literal

_REPLACED = (Partition.CHANGES, Partition.CURRENT, Partition.PRIOR, Partition.ASSET_STATE)


class PlainApplier(Applier):
    """See the module."""

    def with_stored(
        self, run: ApplyRun, truncates: Sequence[TruncateEvent], _now: datetime
    ) -> Folded:
        """Fold the events of a run with every stored version."""
        return folded_with_all(run, pending_events(run), truncates)

    def stage(self, run: ApplyRun, outcome: ApplyOutcome) -> StagedApply:
        """Nothing: one statement writes and commits."""
        del run, outcome
        return StagedApply()

    def commit(self, run: ApplyRun, outcome: ApplyOutcome, staged: StagedApply) -> int:
        """Overwrite the partitions that change with all rows that they hold then."""
        del staged
        table, ownership = run.target.table, run.target.ownership()
        outcome = replace(outcome, state=replace(outcome.state, ownership=ownership))
        rows, partitions = _contents(run, outcome)
        writer = (
            rows.writeTo(table.quoted)
            .option("isolation-level", "serializable")
            .option("validate-from-snapshot-id", str(run.snapshot))
            .option("snapshot-property.polynya.commit", ownership.commit)
            .option("snapshot-property.polynya.step", "apply-plain")
        )
        try:
            writer.overwrite(functions.expr(within(*partitions)))
        except Py4JJavaError as error:
            if not is_refusal(error):
                raise
            refuse_fenced(run.target.table, run.target.granted)
            raise refusal(table.name, error) from error
        run.target.reload()
        assert run.target.state.snapshot is not None
        return run.target.state.snapshot


def _contents(run: ApplyRun, outcome: ApplyOutcome) -> tuple[DataFrame, list[Partition]]:
    """All rows of the partitions that the apply replaces, and these partitions."""
    fresh, keeping = run.fresh, outcome.keeping
    rows, partitions = _versions(run, outcome).coalesce(1), [*_REPLACED]
    # Each branch of a union is a task of its own, so that each state row gets a file of its own.
    copy = run.target.state.copy
    if fresh is not None:
        copy = replace(fresh.state, ownership=outcome.state.ownership)
    for state_row in _state_rows(run, copy, outcome.state):
        rows = rows.unionByName(state_row)
    if keeping.add is not None:
        rows = rows.unionByName(keeping.add)
    if keeping.remove:
        partitions.append(Partition.RETAINED)
        rows = rows.unionByName(_retained_without(run, keeping.remove))
    if fresh is None:
        return rows, partitions
    if fresh.rejected is not None:
        rows = rows.unionByName(fresh.rejected)
    if fresh.consumed:
        partitions.append(Partition.RELOAD)
    if fresh.replayed is not None:
        partitions.append(Partition.QUARANTINE)
        rows = rows.unionByName(_quarantine_without(run, fresh.replayed))
    return rows, partitions


def _versions(run: ApplyRun, outcome: ApplyOutcome) -> DataFrame:
    """All versions that stay, changed or not."""
    assert isinstance(outcome.versions, Folded), "the plain applier collects nothing"
    rows = run.sql(
        f"SELECT {fold.table_rows(run.shape, timestamp_literal(outcome.now))}, "
        "IF(__same, __stored.file, NULL) AS _file, __stored.pos AS _pos "
        f"FROM {run.view(outcome.versions.rows)} WHERE __kept"
    )
    if outcome.purge.positions is not None:
        rows = _without(run, rows, outcome.purge.positions.drop_columns(["part"]))
    return rows.drop("_file", "_pos")


def _quarantine_without(run: ApplyRun, replayed: Replayed) -> DataFrame:
    """Quarantined records that were not read again."""
    kept = run.sql(f"SELECT *, _file, _pos FROM {run.table} WHERE {within(Partition.QUARANTINE)}")
    return _without(run, kept, replayed.places.drop_columns(["part"])).drop("_file", "_pos")


def _retained_without(run: ApplyRun, removed: Sequence[DataFile]) -> DataFrame:
    """Kept events that stay."""
    kept = run.sql(f"SELECT *, _file FROM {run.table} WHERE {within(Partition.RETAINED)}")
    return kept.where(~kept["_file"].isin([file.path for file in removed])).drop("_file")


def _without(run: ApplyRun, rows: DataFrame, positions: pa.Table) -> DataFrame:
    """Rows that do not stand at one of the positions; `_file` and `_pos` tell where they stand."""
    gone = run.target.spark.createDataFrame(positions.rename_columns(["_file", "_pos"]))
    return rows.join(gone, on=["_file", "_pos"], how="left_anti")


def _state_rows(run: ApplyRun, copy: CopyState, apply: ApplyState) -> list[DataFrame]:
    """Both state rows in the shape of the internal table, each in a frame of its own."""
    nothing = {name: f"CAST(NULL AS {run.shape.type_of(name)})" for name in run.shape.data}
    rows = (
        {h.COPY_CHANGE_IDENTIFIER: copy.position.copied_to or "", h.STATE: copy.to_json()},
        {h.APPLY_CHANGE_IDENTIFIER: apply.applied_to or "", h.STATE: apply.to_json()},
    )
    frames = []
    for row in rows:
        texts = {h.PARTITION: str(Partition.ASSET_STATE), **row}
        values = {name: literal(text) for name, text in texts.items()}
        frames.append(run.sql(f"SELECT {selected(table_row(run.shape, values, nothing))}"))
    return frames
