"""Run users' tests of their tasks: real engine, landing zone in memory, tables of their own.

Every test gets a schema that nothing else uses, in a temporary warehouse. The project's landing
folder and tables are neither read nor written.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.engine.context import EngineContext, EngineHooks
from polynya.engine.ledger import ledger_dataset
from polynya.engine.runner import run_once, units
from polynya.formats.files import glob_pattern
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.read.values import to_json
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import internal_path, view_catalog
from polynya.lake.table.dataset import DatasetTable
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset, of_source
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_tests import RELATIONS, Batch, Expectation, moment
from polynya.model.documents.problems import suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.configuration import (
    TEST_BATCH_CANNOT_LAND,
    UNKNOWN_COLUMN_IN_SETTING,
)
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.formats import rules_of
from polynya.model.headers import STREAM_HEADER_NAMES, Partition, StreamSource
from polynya.model.names import quote_path, shown
from polynya.model.promotion import storage_type
from polynya.model.task_tests import LoadedTest, LoadedTransformTest
from polynya.model.types import DataType
from polynya.store.object_store import LocalObjectStore
from polynya.streams.landing import ByHand, Message
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from polynya.testing.rows import Row, RowDifference, as_column, differences
from polynya.transform.named_columns import UnknownColumn

#: The relations that are views.
_VIEWS: Final = RELATIONS[:-1]


def landed_messages(test: LoadedTest, number: int) -> Mapping[str, bytes]:
    """The landed batch of the batch with this number (from 0), by its path in the landing zone.

    Raises ConfigError for a header column that the source does not have.
    """
    given = test.test.given
    clocks = [test.test.clock, *(batch.clock for batch in given[: number + 1] if batch.clock)]
    before = sum(len(_messages(batch)) for batch in given[:number])
    try:
        path, content = _landed_table(test).batch(
            number + 1, before, _messages(given[number]), moment(clocks[-1])
        )
    except ValueError as error:
        raise TEST_BATCH_CANNOT_LAND(
            where=test.where("given", number),
            fix="give the header columns of the source, with values of their types",
            reason=error,
        ) from error
    return {f"{test.task.landing.path}/{path}": content}


def _landed_table(test: LoadedTest) -> ByHand:
    """The landed table that the dataset reads; where a glob names several, one of them."""
    dataset, stream = test.dataset, test.stream
    glob = dataset.path or rules_of(test.task.landing.format).path.format(name=dataset.name)
    table = "".join(_letters(glob.rpartition("/")[0])) or dataset.name
    if stream is None:
        return ByHand(test.task.name, table)
    source: StreamSource = next(
        kind for kind in get_args(StreamSource) if kind in stream.source.chosen
    )
    return ByHand(stream.name, table, source, stream.content)


def _letters(glob: str) -> Iterator[str]:
    return (letter for letter in glob if letter not in "*?[]")


def _messages(batch: Batch) -> Sequence[Message]:
    if batch.lines is not None:
        return [Message(line.encode(), {}) for line in batch.lines.splitlines()]
    messages = []
    for event in batch.events or ():
        headers = {name: value for name, value in event.items() if name in STREAM_HEADER_NAMES}
        record = {name: value for name, value in event.items() if name not in headers}
        messages.append(Message(json.dumps(record, ensure_ascii=False).encode(), headers))
    return messages


def parquet_file(records: Sequence[Mapping[str, Any]], declared: Mapping[str, DataType]) -> bytes:
    """Return the bytes of a file with a column for each name, NULL where a record lacks it.

    A declared column has its declared type, and text in it is converted; another column has the
    type of its values. Raises ValueError when a value does not fit, or two do not fit together.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {
        name: typed_column(name, [record.get(name) for record in records], declared.get(name))
        for name in names
    }
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def typed_column(name: str, values: list[Any], kind: DataType | None) -> pa.Array:
    """Values of a column in its declared type, else in the type of the values.

    Text is converted. Raises ValueError when a value does not fit, or two do not fit together.
    """
    try:
        if kind is None:
            return pa.array(values)
        wanted = arrow_type(storage_type(kind))
        if all(value is None or isinstance(value, str) for value in values):
            return pa.array(values, pa.string()).cast(wanted)
        return pa.array(values, wanted)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise ValueError(f"column {name} of a Parquet file cannot hold this: {error}") from error


#: Parts of a glob, and what stands in their place in the name of a file; `{}` is its number.
_FILLED: Final = (
    (re.compile(r"\*\*/"), "{}/"),
    (re.compile(r"\*+"), "{}"),
    (re.compile(r"\?"), "0"),
    (re.compile(r"\[([^!\]/])[^\]/]*\]"), r"\1"),
)


def landing_files(test: LoadedTest, number: int, project: Path) -> Mapping[str, bytes]:
    """Return the files of the batch with this number (from 0), as they land.

    Raises ConfigError when a folder is empty, a value does not fit its column, or no name for a
    file can be made from the `path` of the dataset.
    """
    batch = test.test.given[number]
    root = test.task.landing.path
    if batch.folder is not None:
        store, prefix = LocalObjectStore(project), f"{batch.folder}/"
        files = {
            f"{root}/{info.path.removeprefix(prefix)}": store.get(info.path)
            for info in store.list(batch.folder)
        }
        if not files:
            raise _unusable(test, number, f"the folder {batch.folder} has no files")
        return files
    if rules_of(test.task.landing.format).events_in_tests == "messages":
        return landed_messages(test, number)
    return {f"{root}/{_name(test, number)}": _content(test, number)}


def _content(test: LoadedTest, number: int) -> bytes:
    batch = test.test.given[number]
    if batch.lines is not None:
        return batch.lines.encode()
    if rules_of(test.task.landing.format).events_in_tests == "parquet":
        declared = of_source(resolved(test.task, test.dataset)).events.columns
        try:
            return parquet_file(batch.events or (), declared)
        except ValueError as error:
            raise _unusable(test, number, str(error)) from error
    records = [
        json.dumps(_wrapped(event, test.task.landing.record_keys or ()), ensure_ascii=False)
        for event in batch.events or ()
    ]
    return "".join(f"{record}\n" for record in records).encode()


def _wrapped(event: object, keys: Sequence[str]) -> object:
    """An event as a document that has it at the path of records."""
    for key in reversed(keys):
        event = {key: event}
    return event


def _name(test: LoadedTest, number: int) -> str:
    batch, dataset = test.test.given[number], test.dataset
    if batch.file is not None:
        return batch.file
    if rules_of(test.task.landing.format).finds_tables:
        return _numbered("*.jsonl", number)
    glob = (dataset.initial_load if batch.load else dataset.path) or "*"
    name = _numbered(glob, number)
    if not glob_pattern(glob).fullmatch(name):
        raise _unusable(test, number, f"no file name could be made from the glob `{glob}`")
    return name


def _numbered(glob: str, number: int) -> str:
    name = glob.replace("{", "{{").replace("}", "}}")
    for pattern, filler in _FILLED:
        name = pattern.sub(filler, name)
    # Names sort as the batches do, also within one copy.
    return name.format(*[f"{number + 1:04d}"] * name.count("{}"))


def _unusable(test: LoadedTest, number: int, why: str) -> ConfigError:
    return TEST_BATCH_CANNOT_LAND(where=test.where("given", number), reason=why)


@dataclass(frozen=True, slots=True)
class RelationComparison:
    """The expected and the actual rows of a relation; `problems`: columns that do not exist.

    `keys` are those of its records. In a test of a transform `table` and `batch` say of which table
    and after which item of `given`, from 1.
    """

    relation: str
    rows: int
    differences: tuple[RowDifference, ...] = ()
    problems: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    table: str | None = None
    batch: int | None = None

    @property
    def path(self) -> NodePath:
        """Where the test says what is expected."""
        if self.batch is None or self.table is None:
            return ("expect", self.relation)
        return ("given", self.batch - 1, "expect", self.table, self.relation)

    @property
    def label(self) -> str:
        """What is compared, for people."""
        if self.table is None:
            return self.relation
        return f"{self.table} after item {self.batch}, {self.relation}"

    @property
    def ok(self) -> bool:
        """Whether the relation is as expected."""
        return not self.differences and not self.problems


@dataclass(frozen=True, slots=True)
class TaskTestResult:
    """The result of a test. `error`: why its task failed.

    `unmet` are columns that settings name and no record of the test has.
    """

    test: LoadedTest | LoadedTransformTest
    seconds: float
    comparisons: tuple[RelationComparison, ...] = ()
    error: PolynyaError | None = None
    unmet: frozenset[UnknownColumn] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether all is as expected."""
        return self.error is None and all(comparison.ok for comparison in self.comparisons)


def run_test(spark: SparkSession, test: LoadedTest, project: Path) -> TaskTestResult:
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
        return TaskTestResult(test, time.monotonic() - started, error=error)
    comparisons = tuple(_compared(spark, test, task, dataset))
    seconds = time.monotonic() - started
    return TaskTestResult(test, seconds, comparisons, unmet=frozenset(unmet))


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
    on_unknown_columns: Callable[[Sequence[UnknownColumn]], None],
) -> None:
    landing = MemoryObjectStore()
    clock = FakeClock(moment(test.test.clock))
    context = EngineContext(
        spark, landing, clock, hooks=EngineHooks(on_unknown_columns=on_unknown_columns)
    )
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
) -> Iterator[RelationComparison]:
    """Each expected relation against what it holds."""
    assert test.test.expect is not None, "a check of the file"
    yield from compared_views(spark, test.test.expect, dataset)
    expected = test.test.expect.quarantined
    if expected is not None:
        # Records that belong to no table stay with the position of the whole task.
        ledger = ledger_dataset(task) if rules_of(dataset.landing.format).finds_tables else None
        tables = [_internal_table(spark, one) for one in (dataset, ledger) if one is not None]
        yield _comparison("quarantined", expected, _quarantined(spark, *tables), _keys(tables[0]))


def compared_views(
    spark: SparkSession, expected: Expectation, dataset: ResolvedDataset
) -> Iterator[RelationComparison]:
    """The views of a dataset whose rows are expected, each against what it shows."""
    table = _internal_table(spark, dataset)
    for relation in _VIEWS:
        rows = getattr(expected, relation)
        if rows is not None:
            shown_rows = _view(spark, table, relation) if table else None
            yield _comparison(relation, rows, shown_rows, _keys(table))


def _keys(table: DatasetTable | None) -> tuple[str, ...]:
    return () if table is None else tuple(table.state.copy.columns.keys)


def _internal_table(spark: SparkSession, dataset: ResolvedDataset) -> DatasetTable | None:
    """The internal table, None when no record was found for it."""
    quoted = internal_path(spark, dataset)
    if not spark.catalog.tableExists(quoted):
        return None
    return DatasetTable.existing(spark, dataset)


def _view(spark: SparkSession, table: DatasetTable, relation: str) -> pa.Table | None:
    """All rows of a view, None when it does not exist because nothing could be copied."""
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
    relation: str, expected: Sequence[Row], actual: pa.Table | None, keys: tuple[str, ...]
) -> RelationComparison:
    if actual is None:
        return RelationComparison(relation, 0, tuple(differences(expected, [])), keys=keys)
    types = {member.name: member.type for member in actual.schema}
    unknown = sorted({name for row in expected for name in row if name not in types})
    if unknown:
        problems = [
            f"there is no column {shown(name)}; {suggest(name, list(types))}" for name in unknown
        ]
        return RelationComparison(relation, actual.num_rows, problems=tuple(problems))
    wanted = [{name: as_column(v, types[name]) for name, v in row.items()} for row in expected]
    rows = [
        {name: to_json(v, types[name]) for name, v in row.items()} for row in actual.to_pylist()
    ]
    found = tuple(differences(wanted, rows, keys))
    return RelationComparison(relation, actual.num_rows, found, keys=keys)


def unmet_columns(verdicts: Sequence[TaskTestResult]) -> Iterator[ConfigError]:
    """Columns that settings name and no test has; `verdicts` are the results of all tests.

    A single test may omit a column, to show what happens without it.
    """
    tests: dict[tuple[str, str], list[TaskTestResult]] = {}
    for verdict in verdicts:
        if verdict.error is None and isinstance(verdict.test, LoadedTest):
            tests.setdefault((verdict.test.task.name, verdict.test.dataset.name), []).append(
                verdict
            )
    for (task, dataset), done in tests.items():
        first = {(column.setting, column.column): column for column in done[0].unmet}
        for place in sorted(first):
            if all(any((c.setting, c.column) == place for c in result.unmet) for result in done):
                setting, column = place
                meant = first[place].meant
                guess = f"did you mean `{meant}`? " if meant else ""
                yield UNKNOWN_COLUMN_IN_SETTING(
                    f"{task}.{dataset}: `{setting}` names `{column}`, "
                    "which no record of its tests has",
                    where=done[0].test.where(),
                    state="the tests ran; no other table was touched",
                    fix=f"{guess}Correct it, give it to a record, or name it under "
                    "`optional_columns`",
                )
