"""What both appliers do alike: gather events, fold them, count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from polynya.lake.apply.applier import CopyParts
from polynya.lake.fold import truncates, versions
from polynya.lake.fold.carry import with_carried_values
from polynya.lake.fold.fold import event_columns, fold, with_clause
from polynya.lake.fold.shape import Shape
from polynya.lake.spark.api import DataFrame, Observation, functions
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition


@dataclass(slots=True)
class Run:
    """One apply at work on one snapshot; its temporary views are dropped at its end."""

    target: DatasetTable
    shape: Shape
    snapshot: int
    views: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, target: DatasetTable, shape: Shape) -> Run:
        """A run on the snapshot that the state of `target` belongs to."""
        assert target.state.snapshot is not None
        return cls(target, shape, target.state.snapshot)

    @property
    def table(self) -> str:
        """SQL relation of the pinned table."""
        return self.target.table.at(self.snapshot)

    def sql(self, text: str) -> DataFrame:
        """Run a statement."""
        return self.target.spark.sql(text)

    def view(self, frame: DataFrame) -> str:
        """Give a frame a name for SQL."""
        name = f"apply_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self.views.append(name)
        return name

    def settle(self, frame: DataFrame) -> DataFrame:
        """Compute a frame that is read several times; a cached one keeps a plan to analyse."""
        return frame.localCheckpoint()

    def settle_counting(
        self, frame: DataFrame, aggregates: Sequence[str]
    ) -> tuple[DataFrame, dict[str, Any]]:
        """Settle a frame and return aggregates of its rows that the same pass has counted."""
        counted = Counted.over(frame, aggregates)
        rows = self.settle(counted.frame)
        seen = counted.read()
        if seen is None:
            first = rows.selectExpr(*aggregates).first()
            assert first is not None
            seen = first.asDict()
        return rows, seen

    def release(self) -> None:
        """Drop the views."""
        for name in self.views:
            self.target.spark.catalog.dropTempView(name)


@dataclass(frozen=True, slots=True)
class Counted:
    """A frame whose rows are counted by whatever action reads it first: no job of its own."""

    frame: DataFrame
    observation: Observation

    @classmethod
    def over(cls, frame: DataFrame, aggregates: Sequence[str]) -> Counted:
        """Count `aggregates`, each `expression AS name`."""
        observation = Observation(f"count_{uuid4().hex}")
        return cls(frame.observe(observation, *map(functions.expr, aggregates)), observation)

    def read(self) -> dict[str, Any] | None:
        """The figures, after an action; None when Spark planned the counting away."""
        # `Observation.get` fails on the answer of an observation that was planned away.
        observed: Any = self.observation._jo
        return dict(observed.getAsJava()) or None


@dataclass(frozen=True, slots=True)
class Folded:
    """Placed versions (see `versions.placed`), figures, and the highest change identifier seen."""

    rows: DataFrame
    figures: Mapping[str, int]
    applied_to: str | None


def pending_events(run: Run, fresh: CopyParts | None) -> DataFrame:
    """Events of Changes and of the batch that is being copied, as input of the fold."""
    columns = event_columns(run.shape)
    pending = run.sql(
        f"SELECT {columns} FROM {run.table} WHERE {h.PARTITION} = '{Partition.CHANGES}'"
    )
    if fresh is None:
        return pending
    view = run.view(fresh.events)
    # A truncate has no key: it takes part in the fold through the list of truncates.
    return pending.unionByName(run.sql(f"SELECT {columns} FROM {view} WHERE {h.OPERATION} <> 'T'"))


def folded(run: Run, frame: DataFrame, known_truncates: Sequence[Sequence[Any]]) -> Folded:
    """Fold events and stored versions, decide where each version goes."""
    listed = truncates.as_sql(known_truncates)
    if run.shape.links:
        frame = with_carried_values(run.sql, run.view, run.shape, frame, truncates=listed)
    steps = [
        *fold(run.shape, run.view(frame), truncates=listed),
        ("placed", versions.placed(run.shape)),
    ]
    rows, counted = run.settle_counting(
        run.sql(f"{with_clause(steps)} SELECT * FROM placed"),
        [*versions.figures(run.shape), "max(__ci) AS applied_to"],
    )
    applied_to = counted.pop("applied_to")
    return Folded(rows, {name: int(value) for name, value in counted.items()}, applied_to)
