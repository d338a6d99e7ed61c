"""The warm process that both contenders work in: one session, one catalog, one landing zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog

from bench.floors.tasks import SCHEMA, write_project
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.engine.session import start_spark
from polynya.engine.unit import Unit
from polynya.lake.apply.fast import FastApplier
from polynya.lake.apply.key_index import Costs, Folder, KeyIndexes
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import python_catalog
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask
from polynya.model.loader import load_project
from polynya.observe.events import EventSink, discard
from polynya.store.object_store import LocalObjectStore

#: A table that is applied to for hours has its index of keys: here the first round builds it.
AT_ONCE = Costs(build_ns=0)
_INDEX_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Lake:
    """A session with its catalog, and a landing zone. Tables of ours are in `schema`."""

    spark: SparkSession
    target: ResolvedTarget
    landing: Path
    schema: str = SCHEMA

    def __post_init__(self) -> None:
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.peer}")

    def engine(self, sink: EventSink = discard) -> EngineContext:
        """What our units run with."""
        landing = LocalObjectStore(self.landing)
        indexes = KeyIndexes(Folder(self.landing.parent / "keys", _INDEX_BYTES), costs=AT_ONCE)
        applier = FastApplier(indexes)
        return EngineContext(
            spark=self.spark, landing=landing, sink=sink, applier=applier, apply_mode="always"
        )

    @property
    def catalog(self) -> Catalog:
        """The catalog for readers without a JVM."""
        return python_catalog(self.target)

    @property
    def peer(self) -> str:
        """The schema of the peer's tables."""
        return f"{self.schema}_peer"


@contextmanager
def lake_in(folder: Path) -> Iterator[Lake]:
    """A lake of a project's own in a folder, with the session of `polynya run`."""
    project = load_project(write_project(folder / "project"))
    spark = start_spark(project, long_lived=True)
    try:
        yield Lake(spark, project.target, folder / "project" / "landing")
    finally:
        spark.stop()


def work_of(context: EngineContext, *tasks: dict[str, Any]) -> list[Unit]:
    """The units of tasks."""
    return units(context, [StorageTask.model_validate(task) for task in tasks])


def take_in(context: EngineContext, work: list[Unit]) -> None:
    """Copy and apply all that has landed; raises the first error."""
    for failure in run_once(context, work).failures.values():
        raise failure
