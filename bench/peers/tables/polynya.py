"""Polynya, as `polynya run` works: it copies and applies what has landed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame

from bench.floors.lake import Lake, take_in, work_of
from bench.floors.tasks import task, write_project
from bench.peers.tables.session import count
from bench.peers.tables.table import Table
from polynya.engine.session import start_spark
from polynya.lake.apply.apply import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.model.loader import load_project


class Polynya:
    """A dataset, with history or without; `applier` replaces the usual one."""

    def __init__(
        self, lake: Lake, name: str, *, applier: Applier | None = None, history: bool = False
    ) -> None:
        self._lake = lake
        self._name = name
        context = lake.engine()
        self._context = replace(context, applier=applier) if applier is not None else context
        declared = task(name, "parquet", history=history, schema=lake.schema)
        declared["datasets"][0]["columns"] = {"ts": "timestamp"}
        self._work = work_of(self._context, declared)

    def load(self, folder: Path) -> None:
        """See `Table`."""
        for file in sorted(folder.iterdir()):
            self._land("load", file)
        take_in(self._context, self._work)

    def take(self, file: Path) -> None:
        """See `Table`. The file that all contenders read lands as a hard link."""
        self._land("changes", file)
        take_in(self._context, self._work)

    def rows(self) -> DataFrame:
        """See `Table`."""
        return self._lake.spark.table(f"{self._lake.schema}.{self._name}")

    def files(self) -> int:
        """See `Table`. Those of the internal table, history and state included."""
        internal = f"{self._lake.schema}_internal.{self._name}_internal"
        return count(self._lake.spark, f"SELECT count(*) FROM {internal}.files")

    def _land(self, folder: str, file: Path) -> None:
        landed = self._lake.landing / self._name / folder / file.name
        landed.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, landed)


def opened(
    folder: Path, memory: str, *, applier: Applier | None = None, history: bool = False
) -> Callable[[str], Table]:
    """Start Polynya's own session; the result opens a table."""
    os.environ["POLYNYA_DRIVER_MEMORY"] = memory
    project = load_project(write_project(folder / "project"))
    lake = Lake(
        start_spark(project, long_lived=True), project.target, folder / "project" / "landing"
    )
    return lambda name: Polynya(lake, name, applier=applier, history=history)


def fast(folder: Path, _jars: list[str], memory: str) -> Callable[[str], Table]:
    """The applier that is used."""
    return opened(folder, memory)


def no_index(folder: Path, _jars: list[str], memory: str) -> Callable[[str], Table]:
    """That applier without an index: the keys of Current are read in each apply."""
    return opened(folder, memory, applier=FastApplier())


def plain(folder: Path, _jars: list[str], memory: str) -> Callable[[str], Table]:
    """The reference applier, which rewrites the table: it belongs to the tests, not to the wheel.

    Benchmarks run from a checkout, so this one may import it.
    """
    from tests.lake.apply.plain import PlainApplier

    return opened(folder, memory, applier=PlainApplier())


def history(folder: Path, _jars: list[str], memory: str) -> Callable[[str], Table]:
    """With every older version of each row."""
    return opened(folder, memory, history=True)
