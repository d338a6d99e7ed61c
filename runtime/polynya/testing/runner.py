"""Runs users' tests of their tasks: real engine, landing zone in memory, tables of their own.

Every test gets a schema that nothing else uses, in a warehouse that is thrown away. The project's
landing folder and tables are neither read nor written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from polynya.engine.runner import run_once, units
from polynya.engine.work.context import EngineContext
from polynya.engine.work.ledger import ledger_dataset
from polynya.lake.read.values import to_json
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.naming import internal_path, view_catalog
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.streaming.direct import DirectTask
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_tests import RELATIONS, moment
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote_path, shown
from polynya.model.documents.problems import suggest
from polynya.model.errors import PolynyaError
from polynya.model.formats.registry import rules_of
from polynya.model.reading.task_test_loader import LoadedTest
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from polynya.testing.given import landing_files
from polynya.testing.rows import Difference, Row, as_column, differences
from polynya.transform.named_columns import UnknownColumn


@dataclass(frozen=True, slots=True)
class Comparison:
    """One relation as expected against what it holds; `problems` are columns that do not exist."""

    relation: str
    rows: int
    differences: tuple[Difference, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the relation is as expected."""
        return not self.differences and not self.problems


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a test went. `error` says why its task could not do its work; `keys` are its records'.

    `unmet` are columns that settings name and no record of the test has.
    """

    test: LoadedTest
    seconds: float
    keys: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    error: PolynyaError | None = None
    unmet: frozenset[UnknownColumn] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether all is as expected."""
        return self.error is None and all(one.ok for one in self.comparisons)


def run_test(spark: SparkSession, test: LoadedTest, project: Path) -> Verdict:
    """Run one test in a schema of its own.

    `project` is the folder that its `folder` batches are in.
    """
    started = time.monotonic()
    task = _isolated(test)
    dataset = resolved(task, test.dataset)
    unmet: set[UnknownColumn] = set()
    try:
        _run(spark, test, task, project, unmet.update)
    except PolynyaError as error:
        return Verdict(test, time.monotonic() - started, error=error)
    keys, comparisons = _compared(spark, test, task, dataset)
    seconds = time.monotonic() - started
    return Verdict(test, seconds, keys, comparisons, unmet=frozenset(unmet))


def _isolated(test: LoadedTest) -> StorageTask:
    """The task with a schema of its own and, where each has its own files, only this dataset."""
    changes: dict[str, Any] = {
        "schema_": f"test_{uuid4().hex[:12]}",
        "internal_schema": None,
    }
    if not rules_of(test.task.landing.format).finds_tables:
        changes["datasets"] = (test.dataset,)
    task = test.task.landed() if isinstance(test.task, DirectTask) else test.task
    return task.model_copy(update=changes)


def _run(
    spark: SparkSession,
    test: LoadedTest,
    task: StorageTask,
    project: Path,
    at_unknown: Callable[[Sequence[UnknownColumn]], None],
) -> None:
    landing = MemoryObjectStore()
    clock = FakeClock(moment(test.test.clock))
    context = EngineContext(spark, landing, clock, at_unknown=at_unknown)
    work = units(context, [task])
    for number, batch in enumerate(test.test.given):
        if batch.clock is not None:
            context.clock = FakeClock(moment(batch.clock))
        context.apply_mode = "always" if batch.apply else "never"
        for path, content in landing_files(test, number, project).items():
            landing.put(path, content)
        failure = next(iter(run_once(context, work).failures.values()), None)
        if failure is not None:
            raise failure


def _compared(
    spark: SparkSession, test: LoadedTest, task: StorageTask, dataset: ResolvedDataset
) -> tuple[tuple[str, ...], tuple[Comparison, ...]]:
    """Keys of the dataset, and each expected relation against what it holds."""
    table = _table(spark, dataset)
    comparisons = []
    for relation in RELATIONS:
        expected = getattr(test.test.expect, relation)
        if expected is None:
            continue
        if relation == "quarantined":
            # Records that belong to no table stay with the position of the whole task.
            ledger = ledger_dataset(task) if rules_of(dataset.landing.format).finds_tables else None
            found = _quarantined(spark, table, _table(spark, ledger) if ledger else None)
        else:
            found = _view(spark, table, relation) if table else None
        keys = table.state.copy.columns.keys if table else []
        comparisons.append(_comparison(relation, expected, found, keys))
    return tuple(table.state.copy.columns.keys if table else ()), tuple(comparisons)


def _table(spark: SparkSession, dataset: ResolvedDataset) -> DatasetTable | None:
    """The internal table, None when nothing was ever found for it."""
    quoted = internal_path(spark, dataset)
    if not spark.catalog.tableExists(quoted):
        return None
    return DatasetTable.existing(spark, dataset)


def _view(spark: SparkSession, table: DatasetTable, relation: str) -> pa.Table | None:
    """All rows of a view, None when it was never made because nothing could be copied."""
    dataset, shape = table.dataset, table.shape()
    if not shape.columns or (relation == "history" and not shape.history):
        return None
    names = dataset.relations
    views = {
        "current": names.view,
        "history": names.history_view,
        "changes": names.changes_view,
    }
    quoted = quote_path(view_catalog(spark), names.schema, views[relation])
    return spark.sql(f"SELECT * FROM {quoted}").toArrow()


def _quarantined(spark: SparkSession, *tables: DatasetTable | None) -> pa.Table | None:
    """Rejected records of tables; `raw` as text, whatever bytes it holds."""
    there = [
        spark.sql(
            f"SELECT {h.QUARANTINE}.* FROM {table.table.quoted} "
            f"WHERE {h.PARTITION} = '{Partition.QUARANTINE}'"
        ).toArrow()
        for table in tables
        if table is not None
    ]
    if not there:
        return None
    rows = pa.concat_tables(there)
    texts = [
        raw if raw is None else raw.decode(errors="backslashreplace")
        for raw in rows.column("raw").to_pylist()
    ]
    columns = rows.select(["file", "offset", "rule", "error"])
    return columns.append_column("raw", pa.array(texts, pa.string()))


def _comparison(
    relation: str, expected: Sequence[Row], found: pa.Table | None, keys: Sequence[str]
) -> Comparison:
    if found is None:
        return Comparison(relation, 0, tuple(differences(expected, [])))
    types = {member.name: member.type for member in found.schema}
    unknown = sorted({name for row in expected for name in row if name not in types})
    if unknown:
        problems = [
            f"there is no column {shown(name)}; {suggest(name, list(types))}" for name in unknown
        ]
        return Comparison(relation, found.num_rows, problems=tuple(problems))
    wanted = [{name: as_column(v, types[name]) for name, v in row.items()} for row in expected]
    rows = [{name: to_json(v, types[name]) for name, v in row.items()} for row in found.to_pylist()]
    return Comparison(relation, found.num_rows, tuple(differences(wanted, rows, keys)))
