"""The fast applier: probe Current by key, stage only the rows that changed, commit one `RowDelta`.

No shuffle of Current, no rewrite of a row that did not change, no equality delete. Figures: docs/benchmarks.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from polynya.lake import stored, truncates, versions
from polynya.lake.apply import ApplyResult, CopyParts, next_state
from polynya.lake.carry import linked_keys, with_carried_values
from polynya.lake.commit import Step, commit_row_delta
from polynya.lake.dataset import DatasetTable
from polynya.lake.fold import event_columns, fold, with_clause
from polynya.lake.shape import Shape
from polynya.lake.states import write_apply_state, write_copy_state
from polynya.lake.tombstones import Purge, find_purge
from polynya.model import headers as h
from polynya.model.headers import Partition

#: Up to this many changed rows one task writes them: more tasks would make more, smaller files.
ONE_TASK_ROWS = 500_000


@dataclass(slots=True)
class _Run:
    """What one apply works on; temporary views and cached frames are released at its end."""

    target: DatasetTable
    shape: Shape
    snapshot: int
    cached: list[DataFrame]
    views: list[str]

    def sql(self, text: str) -> DataFrame:
        return self.target.spark.sql(text)

    def view(self, frame: DataFrame) -> str:
        name = f"apply_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self.views.append(name)
        return name

    def cache(self, frame: DataFrame) -> DataFrame:
        self.cached.append(frame.persist())
        return frame

    def release(self) -> None:
        for frame in self.cached:
            frame.unpersist()
        for name in self.views:
            self.target.spark.catalog.dropTempView(name)


class FastApplier:
    """See the module. Needs a classic SparkSession and Iceberg 1.10 or newer (`RowDelta.removeRows`)."""

    def apply(
        self, target: DatasetTable, shape: Shape, *, reason: str, now: datetime, fresh: CopyParts | None = None
    ) -> ApplyResult:
        """See `Applier.apply`."""
        started = time.monotonic()
        target.take_over()
        assert target.state.snapshot is not None
        run = _Run(target, shape, target.state.snapshot, [], [])
        try:
            return _apply(run, reason=reason, now=now, fresh=fresh, started=started)
        finally:
            run.release()


def _apply(run: _Run, *, reason: str, now: datetime, fresh: CopyParts | None, started: float) -> ApplyResult:
    target, shape = run.target, run.shape
    pending = target.table.files(Partition.CHANGES, run.snapshot)
    new_truncates = truncates.collect(fresh.events) if fresh is not None else []
    known = truncates.merged(target.state.apply.truncates, new_truncates)
    events = run.view(_events(run, fresh))
    listed = truncates.as_sql(known)
    frame = _fold_input(run, events, whole=bool(new_truncates))
    if shape.links:
        frame = with_carried_values(run.sql, run.view, shape, frame, truncates=listed)
    steps = [*fold(shape, run.view(frame), truncates=listed), ("placed", versions.placed(shape))]
    result = run.cache(run.sql(f"{with_clause(steps)} SELECT * FROM placed"))
    rows = result.selectExpr(*versions.figures(), "max(__ci) AS applied_to").first()
    assert rows is not None
    applied_to = rows["applied_to"]
    figures = {name: int(value) for name, value in rows.asDict().items() if name != "applied_to"}
    purge = find_purge(target, shape, run.snapshot, now)
    staged = _stage(run, result, figures, now)
    deletes, touched = _deletes(run, result, purge)
    seconds = time.monotonic() - started
    state = next_state(
        target, now=now, reason=reason, seconds=seconds, rows=figures, truncates=known,
        horizon=purge.horizon, oldest_tombstone=purge.oldest_tombstone(figures, now),
        applied_to=applied_to,
    )
    add = [*staged, write_apply_state(target.table, state)]
    replaced = [target.state.apply_file]
    if fresh is not None:
        add += [*fresh.staged, write_copy_state(target.table, fresh.state)]
        replaced.append(target.state.copy_file)
    step = Step(
        commit_id=state.ownership.commit,
        based_on=run.snapshot,
        add=add,
        remove=[*pending, *(file for file in replaced if file is not None)],
        deletes=deletes,
        touched=touched,
        summary=_summary(reason, figures, fresh),
    )
    snapshot = commit_row_delta(target.table, step)
    target.reload()
    return ApplyResult(snapshot, reason, round(time.monotonic() - started, 3), figures)


def _events(run: _Run, fresh: CopyParts | None) -> DataFrame:
    columns = event_columns(run.shape)
    table = run.target.table.at(run.snapshot)
    pending = run.sql(f"SELECT {columns} FROM {table} WHERE {h.PARTITION} = '{Partition.CHANGES}'")
    if fresh is None:
        return pending
    view = run.view(fresh.events)
    # A truncate has no key: it takes part in the fold through the list of truncates.
    return pending.unionByName(run.sql(f"SELECT {columns} FROM {view} WHERE {h.OPERATION} <> 'T'"))


def _fold_input(run: _Run, events: str, *, whole: bool) -> DataFrame:
    """Events and the stored versions that they can change."""
    shape, table = run.shape, run.target.table.at(run.snapshot)
    if whole:
        return run.sql(stored.everything(shape, table)).unionByName(run.sql(f"SELECT * FROM {events}"))
    touched = run.view(run.sql(stored.touched_keys(shape, events)))
    if shape.links:
        touched = run.view(run.cache(linked_keys(run.sql, run.view, shape, table, touched, events)))
    newest = run.sql(stored.newest(shape, table, touched))
    found = newest.drop("__min")
    if shape.history:
        newest = run.cache(newest)
        view = run.view(newest)
        late = run.view(run.sql(stored.late_keys(shape, view)))
        found = newest.drop("__min")
        if not run.sql(f"SELECT 1 FROM {late} LIMIT 1").isEmpty():
            found = found.unionByName(run.sql(stored.older(shape, table, late)))
    return found.unionByName(run.sql(f"SELECT * FROM {events}"))


def _stage(run: _Run, result: DataFrame, figures: Mapping[str, int], now: datetime) -> list[Any]:
    written = figures["current"] + figures["prior"]
    if written == 0:
        return []
    view = run.view(result)
    # Inserted timestamps look at all versions of a record, so rows are chosen after they are made.
    rows = run.sql(f"SELECT {versions.table_rows(run.shape, now)}, __write FROM {view}").where("__write").drop("__write")
    if written <= ONE_TASK_ROWS:
        rows = rows.coalesce(1)
    return run.target.table.stage(rows)


def _deletes(run: _Run, result: DataFrame, purge: Purge) -> tuple[list[Any], list[str]]:
    """Position delete files, one for each partition, and the data files that they refer to."""
    positions = (
        result.where("__drop")
        .selectExpr("__s.part AS part", "__s.file AS file_path", "__s.pos AS pos")
        .toArrow()
    )
    if purge.positions is not None:
        positions = pa.concat_tables([positions, purge.positions.cast(positions.schema)])
        positions = positions.group_by(["part", "file_path", "pos"]).aggregate([])
    files, touched = [], set()
    for partition in (Partition.CURRENT, Partition.PRIOR):
        part = positions.filter(pc.equal(positions.column("part"), str(partition)))
        if part.num_rows:
            files.append(run.target.table.write_position_deletes(partition, part.select(["file_path", "pos"])))
            touched.update(part.column("file_path").to_pylist())
    return files, sorted(touched)


def _summary(reason: str, figures: Mapping[str, int], fresh: CopyParts | None) -> dict[str, str]:
    summary = {f"polynya.{name.replace('_', '-')}": str(value) for name, value in figures.items()}
    return {**summary, "polynya.step": "apply", "polynya.reason": reason, **(fresh.summary if fresh else {})}
