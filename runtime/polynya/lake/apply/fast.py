"""The fast applier: probe Current by key, stage only the rows that changed, commit one `RowDelta`.

No shuffle of Current, no rewrite of a row that did not change, no equality delete. Figures are
in docs/benchmarks.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply import retention
from polynya.lake.apply.applier import ApplyResult, CopyParts, next_state
from polynya.lake.apply.derived import rebuilt
from polynya.lake.apply.probe import probed, probed_whole
from polynya.lake.apply.retention import Retention
from polynya.lake.apply.run import Folded, Run, folded, pending_events
from polynya.lake.apply.tombstones import Purge, find_purge
from polynya.lake.fold import truncates, versions
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.commit import Step, commit_row_delta
from polynya.lake.iceberg.gateway import LiveFile
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import ApplyState
from polynya.lake.table.state_files import write_apply_state, write_copy_state
from polynya.model.contract.headers import Partition

#: One task writes this many changed rows: more tasks would make more, smaller files.
ONE_TASK_ROWS = 50_000


class FastApplier:
    """See the module. Needs a classic SparkSession and Iceberg 1.10 or newer (`removeRows`)."""

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
            pending = pending_events(run, fresh)
            if anew:
                result = rebuilt(run, known)
            elif fresh is not None and fresh.instead:
                known = []
                result = folded(run, pending, known)
            elif new:
                result = probed_whole(run, run.view(pending), known)
            else:
                result = probed(run, run.view(pending), known, pending=fresh is None)
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
            snapshot = commit_row_delta(
                target.table, _step(run, result, state, purge=purge, keeping=keeping, fresh=fresh)
            )
        finally:
            run.release()
        target.reload()
        return ApplyResult(snapshot, reason, round(time.monotonic() - started, 3), result.figures)


def _step(
    run: Run,
    result: Folded,
    state: ApplyState,
    *,
    purge: Purge,
    keeping: Retention,
    fresh: CopyParts | None,
) -> Step:
    """Stage all files of the apply."""
    target = run.target
    add = [*_stage(run, result, keeping), write_apply_state(target.table, state)]
    replaced = [target.state.apply_file]
    if fresh is not None:
        add += [*target.table.stage(fresh.rejected), write_copy_state(target.table, fresh.state)]
        replaced.append(target.state.copy_file)
    deletes, touched = _deletes(run, result, purge)
    if fresh is not None and fresh.replayed is not None:
        deletes.append(fresh.replayed.delete_file(target.table))
        touched += fresh.replayed.touched()
    return Step(
        commit_id=state.ownership.commit,
        based_on=run.snapshot,
        add=add,
        remove=[
            *_consumed(run, fresh),
            *keeping.remove,
            *(file for file in replaced if file is not None),
        ],
        deletes=deletes,
        touched=touched,
        summary=_summary(state, result.figures, fresh),
    )


def _consumed(run: Run, fresh: CopyParts | None) -> list[LiveFile]:
    """Files whose rows this apply takes in, or takes the place of."""
    partitions = [Partition.CHANGES]
    if fresh is not None and fresh.instead:
        partitions += [Partition.CURRENT, Partition.PRIOR]
    files = [file for one in partitions for file in run.target.table.files(one, run.snapshot)]
    return [*files, *(fresh.consumed if fresh is not None else ())]


def _stage(run: Run, result: Folded, keeping: Retention) -> list[Any]:
    """Files of the versions that changed, and of the events that are kept."""
    staged: list[Any] = []
    written = result.figures["current"] + result.figures["prior"]
    if written:
        columns = versions.table_rows(run.shape, keeping.now)
        rows = run.sql(f"SELECT {columns} FROM {run.view(result.rows)} WHERE __write")
        staged += run.target.table.stage(rows.coalesce(1 + written // ONE_TASK_ROWS))
    if keeping.add is not None:
        staged += run.target.table.stage(keeping.add.coalesce(1 + keeping.count // ONE_TASK_ROWS))
    return staged


def _deletes(run: Run, result: Folded, purge: Purge) -> tuple[list[Any], list[str]]:
    """Position delete files, one for each partition, and the data files that they refer to."""
    if result.figures["removed"] == 0 and purge.positions is None:
        return [], []
    dropped = result.rows.where("__drop")
    positions = dropped.selectExpr(
        "__s.part AS part", "__s.file AS file_path", "__s.pos AS pos"
    ).toArrow()
    if purge.positions is not None:
        both = pa.concat_tables([positions, purge.positions.cast(positions.schema)])
        positions = both.group_by(["part", "file_path", "pos"]).aggregate([])
    files: list[Any] = []
    touched: set[str] = set()
    for partition in (Partition.CURRENT, Partition.PRIOR):
        rows = positions.filter(pc.equal(positions.column("part"), str(partition)))
        if rows.num_rows:
            files.append(
                run.target.table.write_position_deletes(
                    partition, rows.select(["file_path", "pos"])
                )
            )
            touched.update(rows.column("file_path").to_pylist())
    return files, sorted(touched)


def _summary(
    state: ApplyState, figures: Mapping[str, int], fresh: CopyParts | None
) -> dict[str, str]:
    summary = {f"polynya.{name.replace('_', '-')}": str(value) for name, value in figures.items()}
    summary |= {"polynya.step": "apply", "polynya.reason": state.reason or ""}
    return {**summary, **(fresh.summary if fresh is not None else {})}
