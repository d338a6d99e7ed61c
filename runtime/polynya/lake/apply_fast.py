"""The fast applier: probe Current by key, stage only the rows that changed, commit one `RowDelta`.

No shuffle of Current, no rewrite of a row that did not change, no equality delete. Figures stand
in docs/benchmarks.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from polynya.lake import stored, truncates, versions
from polynya.lake.apply import ApplyResult, CopyParts, next_state
from polynya.lake.carry import linked_keys
from polynya.lake.commit import Step, commit_row_delta
from polynya.lake.dataset import DatasetTable
from polynya.lake.run import Folded, Run, folded, pending_events
from polynya.lake.shape import Shape
from polynya.lake.state import ApplyState
from polynya.lake.states import write_apply_state, write_copy_state
from polynya.lake.tombstones import Purge, find_purge
from polynya.model.datatypes import Primitive
from polynya.model.headers import Partition
from polynya.model.identifiers import quote

#: From this many rows in Current on, the range of the touched keys is looked up first.
LARGE_ROWS = 500_000
#: Key types whose range is a pair of plain literals.
RANGED = (Primitive("int"), Primitive("bigint"))
#: Up to this many changed rows one task writes them: more tasks would make more, smaller files.
ONE_TASK_ROWS = 500_000


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
    ) -> ApplyResult:
        """See `Applier.apply`."""
        started = time.monotonic()
        target.take_over()
        run = Run.of(target, shape)
        try:
            new = truncates.collect(fresh.events) if fresh is not None else []
            known = truncates.merged(target.state.apply.truncates, new)
            events = run.view(pending_events(run, fresh))
            result = folded(run, _fold_input(run, events, whole=bool(new)), known)
            purge = find_purge(target, shape, run.snapshot, now)
            state = next_state(
                target,
                now=now,
                reason=reason,
                seconds=time.monotonic() - started,
                rows=result.figures,
                truncates=known,
                purge=purge,
                applied_to=result.applied_to,
            )
            snapshot = commit_row_delta(
                target.table, _step(run, result, state, purge, fresh=fresh, now=now)
            )
        finally:
            run.release()
        target.reload()
        return ApplyResult(snapshot, reason, round(time.monotonic() - started, 3), result.figures)


def _fold_input(run: Run, events: str, *, whole: bool) -> DataFrame:
    """Events and the stored versions that they can change."""
    shape = run.shape
    fresh = run.sql(f"SELECT * FROM {events}")
    if whole:
        return run.sql(stored.everything(shape, run.table)).unionByName(fresh)
    touched = run.view(run.settle(run.sql(stored.touched_keys(shape, events))))
    if shape.links:
        linked = linked_keys(
            run.sql, run.view, shape, table=run.table, touched=touched, events=events
        )
        touched = run.view(run.settle(linked))
    condition = _key_condition(run, touched)
    if shape.history:
        return _with_late(run, touched, condition).unionByName(fresh)
    if shape.fills_deletes:
        newest = run.sql(stored.newest(shape, run.table, touched, condition=condition))
        return newest.drop("__min").unionByName(fresh)
    return _without_values(run, touched, condition).unionByName(fresh)


def _with_late(run: Run, touched: str, condition: str) -> DataFrame:
    """Newest versions; all older ones too for the records that have a late event."""
    newest = run.settle(run.sql(stored.newest(run.shape, run.table, touched, condition=condition)))
    late = run.view(run.sql(stored.late_keys(run.shape, run.view(newest))))
    found = newest.drop("__min")
    if run.sql(f"SELECT 1 FROM {late} LIMIT 1").isEmpty():
        return found
    return found.unionByName(run.sql(stored.older(run.shape, run.table, late)))


def _without_values(run: Run, touched: str, condition: str) -> DataFrame:
    """Keys and headers only: a version that is replaced leaves nothing behind.

    Its values do not matter. Those of records with a late or repeated event do: their stored
    version may stay.
    """
    shape = run.shape
    narrow = stored.newest(shape, run.table, touched, values=False, condition=condition)
    found = run.settle(run.sql(narrow))
    view = run.view(found)
    late = run.settle(run.sql(stored.late_keys(shape, view)))
    if late.isEmpty():
        return found.drop("__min")
    late_view = run.view(late)
    others = run.sql(
        f"SELECT n.* FROM {view} n LEFT ANTI JOIN {late_view} k ON {shape.key_match('n', 'k')}"
    )
    wide = run.sql(stored.newest(shape, run.table, late_view, condition=condition))
    return others.unionByName(wide).drop("__min")


def _key_condition(run: Run, touched: str) -> str:
    """A range of the first key column, for tables so large that skipping files pays for looking."""
    key = run.shape.keys[0]
    current = run.target.table.files(Partition.CURRENT, run.snapshot)
    if sum(file.rows for file in current) < LARGE_ROWS or run.shape.columns[key] not in RANGED:
        return "true"
    row = run.sql(stored.key_range(run.shape, touched)).first()
    if row is None or row["low"] is None:
        return "true"
    return f"{quote(key)} BETWEEN {int(row['low'])} AND {int(row['high'])}"


def _step(
    run: Run,
    result: Folded,
    state: ApplyState,
    purge: Purge,
    *,
    fresh: CopyParts | None,
    now: datetime,
) -> Step:
    """Stage all files of the apply."""
    target = run.target
    add = [*_stage(run, result, now), write_apply_state(target.table, state)]
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
            *target.table.files(Partition.CHANGES, run.snapshot),
            *(file for file in replaced if file is not None),
        ],
        deletes=deletes,
        touched=touched,
        summary=_summary(state, result.figures, fresh),
    )


def _stage(run: Run, result: Folded, now: datetime) -> list[Any]:
    written = result.figures["current"] + result.figures["prior"]
    if written == 0:
        return []
    # The time of insertion looks at all versions of a record, so rows are made before the choice.
    made = f"SELECT {versions.table_rows(run.shape, now)}, __write FROM {run.view(result.rows)}"
    rows = run.sql(made).where("__write").drop("__write")
    return run.target.table.stage(rows.coalesce(1) if written <= ONE_TASK_ROWS else rows)


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
