"""The plain applier: fold everything, overwrite whole partitions with one ordinary DataFrame write.

Needs no internals of Iceberg, and reads and rewrites all of Current and Prior. It is the oracle of
the fast applier and the fallback for engines without py4j staging. It replaces the copy state too,
so that an append that runs meanwhile makes it fail instead of being lost.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from polynya.lake.apply import retention
from polynya.lake.apply.applier import ApplyResult, CopyParts, next_state
from polynya.lake.apply.derived import rebuilt
from polynya.lake.apply.retention import Retention
from polynya.lake.apply.run import Folded, Run, folded, pending_events
from polynya.lake.apply.tombstones import Purge, find_purge
from polynya.lake.fold import stored, truncates, versions
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import literal
from polynya.lake.iceberg.commit import is_refusal, refusal
from polynya.lake.iceberg.gateway import LiveFile
from polynya.lake.spark.api import DataFrame, Py4JJavaError, functions
from polynya.lake.table.copy_state import CopyState
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.replayed import Replayed
from polynya.lake.table.state import ApplyState
from polynya.model.contract import headers as h
from polynya.model.contract.headers import HEADERS, Partition
from polynya.model.contract.identifiers import quote

_REPLACED = (Partition.CHANGES, Partition.CURRENT, Partition.PRIOR, Partition.ASSET_STATE)


class PlainApplier:
    """See the module."""

    def apply(
        self,
        target: DatasetTable,
        shape: Shape,
        *,
        reason: str,
        now: datetime,
        fresh: CopyParts | None = None,
        anew: bool = False,
    ) -> ApplyResult:
        """See `Applier.apply`."""
        started = time.monotonic()
        target.take_over()
        run = Run.of(target, shape)
        try:
            new = truncates.collect(fresh.events) if fresh is not None else []
            known = truncates.merged(target.state.apply.truncates, new)
            keeping = retention.plan(run, fresh, now)
            now = keeping.now
            frame = pending_events(run, fresh)
            if fresh is not None and fresh.instead:
                known = []
            else:
                frame = run.sql(stored.everything(shape, run.table)).unionByName(frame)
            result = rebuilt(run, known) if anew else folded(run, frame, known)
            spared = retention.events(run, keeping)
            purge = find_purge(target, shape, run.snapshot, now, spared)
            state = next_state(
                target,
                now=now,
                reason=reason,
                seconds=time.monotonic() - started,
                rows=result.figures,
                truncates=known,
                purge=purge,
                retaining=keeping.following(keeping.count),
                applied_to=result.applied_to,
            )
            _overwrite(run, _rows(run, result, purge, now), state, keeping, fresh)
        finally:
            run.release()
        target.reload()
        assert target.state.snapshot is not None
        return ApplyResult(
            target.state.snapshot, reason, round(time.monotonic() - started, 3), result.figures
        )


def _rows(run: Run, result: Folded, purge: Purge, now: datetime) -> DataFrame:
    """All versions that stay, changed or not."""
    made = (
        f"SELECT {versions.table_rows(run.shape, now)}, IF(__same, __s.file, NULL) AS _file, "
        f"__s.pos AS _pos FROM {run.view(result.rows)} WHERE __kept"
    )
    rows = run.sql(made)
    if purge.positions is not None:
        rows = _without(run, rows, purge.positions.drop_columns(["part"]))
    return rows.drop("_file", "_pos")


def _overwrite(
    run: Run, rows: DataFrame, state: ApplyState, keeping: Retention, fresh: CopyParts | None
) -> None:
    target = run.target
    copy = fresh.state if fresh is not None else target.state.copy
    rows = rows.coalesce(1)
    # Each branch of a union is a task of its own, so that each state row gets a file of its own.
    for state_row in _state_rows(run, copy, state):
        rows = rows.unionByName(state_row)
    if fresh is not None:
        rows = rows.unionByName(fresh.rejected)
    partitions = list(_REPLACED)
    if keeping.add is not None:
        rows = rows.unionByName(keeping.add)
    if keeping.remove:
        partitions.append(Partition.RETAINED)
        rows = rows.unionByName(_retained_without(run, keeping.remove))
    if fresh is not None and fresh.consumed:
        partitions.append(Partition.RELOAD)
    if fresh is not None and fresh.replayed is not None:
        partitions.append(Partition.QUARANTINE)
        rows = rows.unionByName(_quarantine_without(run, fresh.replayed))
    replaced = ", ".join(f"'{partition}'" for partition in partitions)
    writer = (
        rows.writeTo(target.table.quoted)
        .option("isolation-level", "serializable")
        .option("validate-from-snapshot-id", str(run.snapshot))
        .option("snapshot-property.polynya.commit", state.ownership.commit)
        .option("snapshot-property.polynya.step", "apply-plain")
    )
    try:
        writer.overwrite(functions.expr(f"{h.PARTITION} IN ({replaced})"))
    except Py4JJavaError as error:
        if not is_refusal(error):
            raise
        raise refusal(target.table, error) from error


def _quarantine_without(run: Run, replayed: Replayed) -> DataFrame:
    """Quarantined records that were not read again."""
    kept = run.sql(
        f"SELECT *, _file, _pos FROM {run.table} WHERE {h.PARTITION} = '{Partition.QUARANTINE}'"
    )
    return _without(run, kept, replayed.positions).drop("_file", "_pos")


def _retained_without(run: Run, removed: Sequence[LiveFile]) -> DataFrame:
    """Kept events that stay."""
    kept = run.sql(f"SELECT *, _file FROM {run.table} WHERE {h.PARTITION} = '{Partition.RETAINED}'")
    return kept.where(~kept["_file"].isin([file.path for file in removed])).drop("_file")


def _without(run: Run, rows: DataFrame, positions: pa.Table) -> DataFrame:
    """Rows that do not stand at one of the positions; `_file` and `_pos` tell where they stand."""
    gone = run.target.spark.createDataFrame(positions.rename_columns(["_file", "_pos"]))
    return rows.join(gone, on=["_file", "_pos"], how="left_anti")


def _state_rows(run: Run, copy: CopyState, apply: ApplyState) -> list[DataFrame]:
    """Both state rows in the shape of the internal table, each in a frame of its own."""
    names = [header.name for header in HEADERS]
    rows = [
        {
            h.PARTITION: Partition.ASSET_STATE,
            h.COPY_CHANGE_IDENTIFIER: copy.position.copied_to or "",
            h.STATE: copy.to_json(),
        },
        {
            h.PARTITION: Partition.ASSET_STATE,
            h.APPLY_CHANGE_IDENTIFIER: apply.applied_to or "",
            h.STATE: apply.to_json(),
        },
    ]
    types = {header.name: header.type for header in HEADERS} | {
        name: run.shape.type_of(name) for name in run.shape.data
    }
    frames = []
    for row in rows:
        values = [
            f"CAST({literal(str(row[name])) if name in row else 'NULL'} AS {types[name]}) "
            f"AS {quote(name)}"
            for name in [*names, *run.shape.data]
        ]
        frames.append(run.sql(f"SELECT {', '.join(values)}"))
    return frames
