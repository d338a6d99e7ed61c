"""Run users' tests of transforms: rows of the tables that queries read, and what must come of them.

The rows land as Parquet and are copied by storage tasks that stand for the real ones: they have the
same names, so that the queries find them. All internal tables are in schemas that nothing else
uses, in a temporary warehouse.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.derived.tested_chains import GivenTable, TransformChain, chain_of_test
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.lake.spark.api import SparkSession
from polynya.model.config.derived import DerivedTask
from polynya.model.config.settings import Dataset, Landing
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_tests import Batch, moment
from polynya.model.error_catalogue.configuration import TEST_BATCH_CANNOT_LAND
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.model.names import shown
from polynya.model.task_tests import LoadedTransformTest
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from polynya.testing.rows import Row
from polynya.testing.runner import (
    RelationComparison,
    TaskTestResult,
    compared_views,
    typed_column,
)

#: Columns of the files that no view shows: the order of the rows, and whether one is deleted.
_ORDER: Final = "polynya_test_order"
_DELETED: Final = "polynya_test_deleted"


def run_transform_test(spark: SparkSession, test: LoadedTransformTest) -> TaskTestResult:
    """Run one test; what follows an item that is not as expected does not run."""
    started = time.monotonic()
    comparisons: list[RelationComparison] = []
    error = None
    try:
        chain, errors = chain_of_test(test)
        if errors:
            raise ConfigErrors(errors)
        for compared in _batches(spark, test, chain):
            comparisons += compared
            if not all(comparison.ok for comparison in compared):
                break
    except PolynyaError as failure:
        error = failure
    return TaskTestResult(test, time.monotonic() - started, tuple(comparisons), error=error)


def _batches(
    spark: SparkSession, test: LoadedTransformTest, chain: TransformChain
) -> Iterator[list[RelationComparison]]:
    """Run one item of `given` after the other; yield what is compared after each."""
    landing = MemoryObjectStore()
    context = EngineContext(spark, landing, FakeClock(moment(test.test.clock)))
    storing, transforms = isolated_tasks(chain)
    work = units(context, [*storing, *transforms.values()])
    files = {name: given_rows(test, name, table) for name, table in chain.given.items()}
    for number, batch in enumerate(test.test.given):
        if batch.clock is not None:
            context.clock = FakeClock(moment(batch.clock))
        context.apply_mode = "always" if batch.apply else "never"
        for name, table in chain.given.items():
            if number in files[name]:
                path = f"{table.task.name}/{table.dataset.name}/{number + 1:04d}.parquet"
                landing.put(path, files[name][number])
        failures = run_once(context, work).failures.values()
        failed = [failure for failure in failures if failure.code == batch.fails]
        for failure in failures:
            if failure not in failed:
                raise failure
        compared = list(_compared(spark, batch, number, chain, transforms))
        if batch.fails is not None and not failed:
            problem = f"no step failed with {batch.fails}"
            compared.append(RelationComparison(f"item {number + 1}", 0, problems=(problem,)))
        yield compared


def _compared(
    spark: SparkSession,
    batch: Batch,
    number: int,
    chain: TransformChain,
    transforms: Mapping[str, DerivedTask],
) -> Iterator[RelationComparison]:
    for name, expected in (batch.expect or {}).items():
        task, dataset = chain.expected[name]
        settings = resolved(transforms[task.name], dataset)
        for comparison in compared_views(spark, expected, settings):
            yield replace(comparison, table=name, batch=number + 1)


def isolated_tasks(chain: TransformChain) -> tuple[list[StorageTask], Mapping[str, DerivedTask]]:
    """The tasks that copy the given rows, and the transforms that run, by name.

    Their views have the names of the project's, their internal tables have not.
    """
    run = uuid4().hex[:12]
    standing: dict[str, StorageTask] = {}
    by_task: dict[str, dict[str, GivenTable]] = {}
    for table in chain.given.values():
        by_task.setdefault(table.task.name, {})[table.dataset.name] = table
    for number, (name, tables) in enumerate(by_task.items()):
        standing[name] = _standing_for(
            next(iter(tables.values())).task,
            [_dataset(table) for table in tables.values()],
            f"test_{run}_{number}",
        )
    storing = list(standing.values())
    transforms: dict[str, DerivedTask] = {}
    for number, task in enumerate(chain.tasks):
        reads = []
        for read in task.reads:
            # A transform may make some of its tables while others are given.
            reads += [known[read.name] for known in (standing, transforms) if read.name in known]
        transforms[task.name] = task.model_copy(
            update={
                "internal_schema": f"test_{run}_derived_{number}",
                "datasets": chain.running[task.name],
                "reads": tuple(reads),
            }
        )
    return storing, transforms


def _standing_for(task: StorageTask, datasets: list[Dataset], schema: str) -> StorageTask:
    """A storage task that copies given rows into tables with the names of another task."""
    return StorageTask(
        apiVersion=task.apiVersion,
        kind="storage",
        # The name of a task of another project is none of a file.
        name=task.name.replace("/", "_"),
        schema_=task.schema_,
        prefix=task.prefix,
        internal_schema=schema,
        landing=Landing(path=task.name, format="parquet"),
        datasets=tuple(datasets),
        views=task.views,
    )


def _dataset(table: GivenTable) -> Dataset:
    common: dict[str, Any] = {
        "name": table.dataset.name,
        "path": f"{table.dataset.name}/*",
        "columns": dict(table.columns),
        "except_columns": (_ORDER, _DELETED),
    }
    if not table.keys:
        return Dataset(mode="append_only", **common)
    kept = resolved(table.task, table.dataset).kept
    return Dataset(
        mode="merge",
        keys=table.keys,
        sequence_by=(_ORDER,),
        apply_as_deletes=_DELETED,
        delete_mode=kept.delete_mode,
        **common,
    )


def given_rows(test: LoadedTransformTest, name: str, table: GivenTable) -> Mapping[int, bytes]:
    """The Parquet file of a table for each item of `given` that names it, by its number from 0.

    All files of a table have the same columns: those of all its rows, and those that are declared.
    A column has its declared type, else that of its values.

    Raises ConfigError for values that do not fit their column.
    """
    rows: list[Row] = []
    deleted: list[bool] = []
    ends: dict[int, tuple[int, int]] = {}
    for number, batch in enumerate(test.test.given):
        before = len(rows)
        for part, is_delete in ((batch.rows, False), (batch.deletes, True)):
            if part is not None and name in part:
                rows += part[name]
                deleted += [is_delete] * len(part[name])
                ends[number] = (before, len(rows))
    written = (one for row in rows for one in row)
    names = list(dict.fromkeys([*written, *table.keys, *table.columns]))
    try:
        columns = {
            one: typed_column(one, [row.get(one) for row in rows], table.columns.get(one))
            for one in names
        }
    except ValueError as error:
        raise TEST_BATCH_CANNOT_LAND(
            where=test.where("given", next(iter(ends))),
            reason=error,
            fix=f"correct the values, or give the column a type: "
            f"`inputs: {{{name}: {{columns: {{…}}}}}}`",
        ) from error
    untyped = [one for one in names if columns[one].type == pa.null()]
    if untyped:
        raise TEST_BATCH_CANNOT_LAND(
            where=test.where("given", next(iter(ends))),
            reason=f"no row has a value of {shown(untyped[0])}, so that it has no type",
            fix=f"give it one: `inputs: {{{name}: {{columns: {{{untyped[0]}: string}}}}}}`",
        )
    columns[_ORDER] = pa.arange(0, len(rows))
    columns[_DELETED] = pa.array(deleted, pa.bool_())
    whole = pa.table(columns)
    return {number: _file(whole.slice(first, end - first)) for number, (first, end) in ends.items()}


def _file(rows: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(rows, file)
    return file.getvalue()
