"""One apply at work: statements over one snapshot, temporary views, figures counted on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa

from polynya.lake.fold.shape import Shape
from polynya.lake.fold.stored import AppliedRows
from polynya.lake.iceberg.deletes import Deleted
from polynya.lake.iceberg.files import DataFile
from polynya.lake.spark.api import DataFrame, Observation, SparkSession, StorageLevel, functions
from polynya.lake.spark.arrow import spark_schema
from polynya.lake.spark.session import is_local
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState
from polynya.lake.table.suspension import Replayed
from polynya.model import headers as h


class ApplyLaterError(Exception):
    """The apply of a batch that may wait is not made with its copy. Nothing was written."""


@dataclass(frozen=True, slots=True)
class CopyParts:
    """A batch that is copied by the same commit that applies it.

    `events` are its good rows and `rejected` its quarantined ones, both in the shape of the
    internal table; `state` is the copy state after it; `summary` goes to the snapshot; `replayed`
    are quarantined records that the batch read again; `consumed` are files that the batch was made
    of and that leave the table with it. `instead`: the batch takes the place of all that the table
    held, history included. `count` is the number of events, where that is known: few of them can
    be folded without a query.

    Few events may be in memory, with their `KEY_HASH`; `found` are then the stored versions of
    their records and maybe of others, where these are known. `may_wait`: the batch can be copied
    without being applied, so only an apply that costs little is worth making with it.
    """

    events: DataFrame | pa.Table
    rejected: DataFrame | None
    state: CopyState
    summary: Mapping[str, str] = field(default_factory=dict)
    replayed: Replayed | None = None
    consumed: Sequence[DataFile] = ()
    instead: bool = False
    count: int | None = None
    found: FoundVersions | None = None
    may_wait: bool = False

    def frame(self, spark: SparkSession) -> DataFrame:
        """The events for Spark."""
        if isinstance(self.events, pa.Table):
            rows = self.events.drop_columns([h.KEY_HASH])
            return spark.createDataFrame(rows, schema=spark_schema(rows.schema))
        return self.events


@dataclass(frozen=True, slots=True)
class FoundVersions:
    """Live stored versions of some records in one snapshot, with the columns of `records.FOUND`.

    They have their key too, and with history all their data. `paths` are the data files by the
    numbers in `rows`, and `deleted` are rows of theirs that are deleted. `is_small`: what is read
    of the table stays in memory.
    """

    snapshot: int
    rows: pa.Table
    paths: tuple[str, ...]
    deleted: Deleted
    is_small: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """Placed versions (see `fold.placed`), figures, and the highest change identifier seen.

    `late` counts stored versions of whose record an event is not newer than they are.
    """

    rows: DataFrame
    figures: AppliedRows
    applied_to: str | None
    late: int = 0


@dataclass(slots=True)
class ApplyRun:
    """One apply at work on one snapshot; its temporary views are dropped at its end.

    `fresh` is the batch that the same commit copies, None for what is pending alone.
    """

    target: DatasetTable
    shape: Shape
    snapshot: int
    fresh: CopyParts | None = None
    views: list[str] = field(default_factory=list)
    kept: list[DataFrame] = field(default_factory=list)
    pin: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def of(cls, target: DatasetTable, shape: Shape, fresh: CopyParts | None = None) -> ApplyRun:
        """A run on the snapshot that the state of `target` belongs to."""
        assert target.state.snapshot is not None
        return cls(target, shape, target.state.snapshot, fresh)

    def __enter__(self) -> Self:
        self.pin.enter_context(self.target.table.keeping(self.snapshot))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.pin.close()
        for frame in self.kept:
            frame.unpersist()
        for name in self.views:
            self.target.spark.catalog.dropTempView(name)

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
        """Compute a frame that is read several times; a cached one keeps a plan to analyse.

        On a cluster the rows can be computed again, so that a lost executor costs some tasks: a
        local checkpoint would be lost with it, and the step too.
        """
        if is_local(self.target.spark):
            return frame.localCheckpoint()
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self.kept.append(kept)
        kept.count()
        return self.of_unknown_size(kept)

    def of_unknown_size(self, frame: DataFrame) -> DataFrame:
        """A settled frame without Spark's estimate of its size.

        The estimate of a join is the product of both sides, as a number of any length: of frames
        that are joined with themselves round by round its digits grow exponentially.
        """
        java = frame._jdf
        session = self.target.spark._jsparkSession
        rows, is_streaming = java.queryExecution().toRdd(), False
        plain = session.internalCreateDataFrame(rows, java.schema(), is_streaming)
        return DataFrame(plain, self.target.spark)

    def settle_counting(
        self, frame: DataFrame, aggregates: Sequence[str]
    ) -> tuple[DataFrame, dict[str, Any]]:
        """Settle a frame and return aggregates of its rows that the same pass has counted.

        On a cluster the next pass counts them: a task that runs again would count twice.
        """
        if not is_local(self.target.spark):
            rows = self.settle(frame)
            return rows, _first(rows, aggregates)
        counted = Counted.over(frame, aggregates)
        rows = self.settle(counted.frame)
        seen = counted.read()
        if seen is None:
            seen = _first(rows, aggregates)
        return rows, seen


def _first(rows: DataFrame, aggregates: Sequence[str]) -> dict[str, Any]:
    counted = rows.selectExpr(*aggregates).first()
    assert counted is not None, "an aggregate has a row"
    return counted.asDict()


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
        # As one text: through py4j a map costs a dozen calls for each of its entries.
        jvm: Any = self.frame.sparkSession._jvm
        mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        counted: dict[str, Any] = json.loads(mapper.writeValueAsString(observed.getAsJava()))
        return counted or None
