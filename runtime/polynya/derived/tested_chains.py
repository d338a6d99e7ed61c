"""Which tables a test of a transform fills with rows, and which transforms run for it.

A table with rows of its own stands for whatever makes it in the project. Every other table that the
expected ones are made of, query by query, has to come from a transform, which then runs too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from polynya.derived.expectations import referenced
from polynya.derived.flow import tables_read
from polynya.derived.inputs import dataset_named
from polynya.derived.tables import parsed_query
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.settings import Dataset, Landing
from polynya.model.config.task import StorageTask, resolved
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import (
    MISSING_KEY,
    TEST_SUBJECT_UNKNOWN,
    WRONG_VALUE,
)
from polynya.model.errors import ConfigError, OperationError
from polynya.model.formats import rules_of
from polynya.model.names import shown
from polynya.model.task_tests import LoadedTransformTest
from polynya.model.types import DataType


@dataclass(frozen=True, slots=True)
class GivenTable:
    """A table to which a test gives rows.

    `keys` tell its rows apart, none of a table whose rows are only ever appended. `columns` are
    the types that are known.
    """

    task: StorageTask
    dataset: Dataset
    keys: tuple[str, ...]
    columns: Mapping[str, DataType]

    @property
    def identity(self) -> tuple[str, str]:
        """Its task and its name."""
        return self.task.name, self.dataset.name


@dataclass(frozen=True, slots=True)
class TransformChain:
    """The tables of a test of a transform.

    Attributes:
        given: the tables with rows, by the names that the test gives them.
        expected: the tables whose rows are compared, by their names in the test.
        running: the datasets of each transform that has to run, by the name of the task.
        tasks: those transforms, each after the ones that it reads.
    """

    given: Mapping[str, GivenTable]
    expected: Mapping[str, tuple[DerivedTask, Dataset]]
    running: Mapping[str, tuple[Dataset, ...]]
    tasks: tuple[DerivedTask, ...]


def chain_errors(tests: Iterable[object]) -> list[ConfigError]:
    """What is wrong with the tables that tests of transforms name."""
    return [
        error
        for test in tests
        if isinstance(test, LoadedTransformTest)
        for error in chain_of_test(test)[1]
    ]


def chain_of_test(test: LoadedTransformTest) -> tuple[TransformChain, list[ConfigError]]:
    """The tables of a test, and what is wrong with those that it names."""
    search = _Search(test, _in_the_test(test.task))
    given = search.given()
    expected = search.expected()
    if not search.errors:
        # Without any, the test says only that a step fails.
        whole = [(search.task, dataset) for dataset in search.task.datasets]
        for task, dataset in expected.values() or whole:
            search.need(task, dataset)
        search.check_rows(given)
    running = {
        task.name: tuple(one for one in task.datasets if (task.name, one.name) in search.needed)
        for task in search.tasks
        if isinstance(task, DerivedTask)
    }
    running = {name: datasets for name, datasets in running.items() if datasets}
    tasks = [
        task for task in search.tasks if isinstance(task, DerivedTask) and task.name in running
    ]
    in_order = tuple(sorted(tasks, key=lambda task: task.depth))
    return TransformChain(given, expected, running, in_order), search.errors


def _in_the_test(task: DerivedTask) -> DerivedTask:
    """A transform that reads storage tasks in place of registered tables, and so does all below."""
    reads = [_in_the_test(read) if isinstance(read, DerivedTask) else read for read in task.reads]
    reads += [_stand_in(registered) for registered in task.registered]
    return task.model_copy(update={"reads": tuple(reads), "registered": ()})


def _stand_in(registered: RegisteredTask) -> StorageTask:
    """A storage task with the tables of a registered one, whose rows only a test gives.

    Rows of a table without keys are appended, since they may be equal.
    """
    return StorageTask(
        apiVersion=registered.apiVersion,
        kind="storage",
        name=registered.name,
        schema_=registered.schema_ or registered.name,
        landing=Landing(path=registered.name, format="parquet"),
        datasets=tuple(
            Dataset(name=table.name, path=f"{table.name}/*", mode="merge", keys=table.keys)
            if table.keys
            else Dataset(name=table.name, path=f"{table.name}/*", mode="append_only")
            for table in registered.tables
        ),
    )


def _with_inputs(task: StorageTask) -> Iterator[StorageTask]:
    """A task and all that it reads, directly or not."""
    yield task
    for read in task.reads if isinstance(task, DerivedTask) else ():
        yield from _with_inputs(read)


@dataclass(slots=True)
class _Search:
    """Resolves the names of one test; errors are collected."""

    test: LoadedTransformTest
    task: DerivedTask
    tasks: tuple[StorageTask, ...] = ()
    errors: list[ConfigError] = field(default_factory=list)
    found: set[tuple[str, str]] = field(default_factory=set)
    needed: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tasks = tuple({task.name: task for task in _with_inputs(self.task)}.values())

    def given(self) -> dict[str, GivenTable]:
        """The tables with rows."""
        given: dict[str, GivenTable] = {}
        inputs = self.test.test.inputs
        for number, batch in enumerate(self.test.test.given):
            for key, tables in (("rows", batch.rows), ("deletes", batch.deletes)):
                for name in tables or ():
                    if name in given:
                        continue
                    where = self.test.where("given", number, key, name)
                    table = self._table(name, self.tasks, where, "the test")
                    if table is None:
                        continue
                    given[name] = self._given(name, *table, where)
                    if given[name].identity in self.found:
                        message = f"{shown(name)} has another name above: a test uses one of them"
                        self.errors.append(WRONG_VALUE(message, where=where))
                    self.found.add(given[name].identity)
        for name in inputs.keys() - given.keys():
            self.errors.append(
                TEST_SUBJECT_UNKNOWN(
                    f"no item of `given` has rows of {shown(name)}",
                    where=self.test.where("inputs", name),
                    fix=suggest(name, list(given)),
                )
            )
        return given

    def _given(self, name: str, task: StorageTask, dataset: Dataset, where: str) -> GivenTable:
        settings = resolved(task, dataset)
        said = self.test.test.inputs.get(name)
        keys = settings.events.keys
        if said is not None and said.keys is not None:
            keys = said.keys
        elif not keys and settings.kept.mode != "append_only":
            self.errors.append(
                MISSING_KEY(
                    f"nothing says which columns tell the rows of {shown(name)} apart",
                    where=where,
                    fix=f"add `inputs: {{{name}: {{keys: [id]}}}}` to the test",
                )
            )
        columns = {
            column: kind
            for column, kind in settings.events.columns.items()
            if column not in settings.events.except_columns
        }
        return GivenTable(task, dataset, keys, columns | (said.columns if said is not None else {}))

    def expected(self) -> dict[str, tuple[DerivedTask, Dataset]]:
        """The tables whose rows are compared."""
        expected: dict[str, tuple[DerivedTask, Dataset]] = {}
        transforms = [task for task in self.tasks if isinstance(task, DerivedTask)]
        for number, batch in enumerate(self.test.test.given):
            for name, expectation in (batch.expect or {}).items():
                where = self.test.where("given", number, "expect", name)
                table = self._table(name, transforms, where, "the test")
                if table is None or not isinstance(table[0], DerivedTask):
                    continue
                expected[name] = (table[0], table[1])
                if expectation.history is not None and not resolved(*table).kept.history:
                    self.errors.append(
                        TEST_SUBJECT_UNKNOWN(
                            f"{shown(name)} keeps no history",
                            where=self.test.where("given", number, "expect", name, "history"),
                            fix="set `history: true` in the task, or remove the line",
                        )
                    )
        return expected

    def _table(
        self, name: str, tasks: Sequence[StorageTask], where: str, reader: str
    ) -> tuple[StorageTask, Dataset] | None:
        """The table that a name means; None, and an error, without one."""
        growing = [task for task in tasks if rules_of(task.landing.format).finds_tables]
        known = [
            (resolved(task, dataset), task, dataset) for task in tasks for dataset in task.datasets
        ]
        try:
            found = dataset_named(
                name, [one[0] for one in known], where=where, may_grow=bool(growing), reader=reader
            )
        except OperationError as error:
            message = error.message.replace("reads", "names").replace(
                ", which none of the tasks in `from` has", ", which the transform does not have"
            )
            self.errors.append(TEST_SUBJECT_UNKNOWN(message, where=where, fix=error.fix))
            return None
        if isinstance(found, ResolvedDataset):
            return next((task, dataset) for one, task, dataset in known if _same(one, found))
        schema, _, table = name.rpartition(".")
        finding = [one for one in growing if not schema or one.schema_.lower() == schema.lower()]
        if len(finding) != 1:
            self.errors.append(
                TEST_SUBJECT_UNKNOWN(
                    f"{reader} names {shown(name)}, and no task has this table",
                    where=where,
                    fix=suggest(name, [one.relations.current for one, _, _ in known])
                    or "write the name with the schema of its task",
                )
            )
            return None
        return finding[0], Dataset(name=table.removeprefix(finding[0].prefix))

    def need(self, task: DerivedTask, dataset: Dataset) -> None:
        """Let a table be derived, and all that it is made of."""
        if (task.name, dataset.name) in self.needed | self.found:
            return
        self.needed.add((task.name, dataset.name))
        for name in _names_read(task, dataset):
            table = self._table(name, task.reads, self.test.where("given"), "the query")
            if table is None or (table[0].name, table[1].name) in self.found:
                continue
            if isinstance(table[0], DerivedTask):
                self.need(table[0], table[1])
                continue
            about = resolved(task, dataset).relations.current
            self.errors.append(
                TEST_SUBJECT_UNKNOWN(
                    f"{about} reads {shown(name)}, and no item of `given` has rows of it",
                    where=self.test.where("given"),
                    fix=f"give it rows, or none: `rows: {{{name}: []}}`",
                )
            )

    def check_rows(self, given: Mapping[str, GivenTable]) -> None:
        """Collect the errors of rows without a value of a key, and of deletes without keys."""
        for number, batch in enumerate(self.test.test.given):
            for key, tables in (("rows", batch.rows), ("deletes", batch.deletes)):
                for name, rows in (tables or {}).items():
                    if name not in given:
                        continue
                    keys = given[name].keys
                    where = self.test.where("given", number, key, name)
                    if key == "deletes" and not keys:
                        message = f"rows of {shown(name)} are only appended: it has no keys"
                        self.errors.append(WRONG_VALUE(message, where=where))
                        continue
                    for index, row in enumerate(rows):
                        lacking = [one for one in keys if row.get(one) is None]
                        if lacking:
                            self.errors.append(
                                MISSING_KEY(
                                    key=f"`{lacking[0]}`, a key of {shown(name)}",
                                    where=self.test.where("given", number, key, name, index),
                                )
                            )


def _same(one: ResolvedDataset, other: ResolvedDataset) -> bool:
    return (one.task, one.name) == (other.task, other.name)


def _names_read(task: DerivedTask, dataset: Dataset) -> list[str]:
    """The tables that a query reads and that its relationships name; none of a wrong query."""
    query = task.query_of(dataset.name)
    named = referenced(query.expect)
    if query.flow:
        read = tables_read(query.flow)
        if read is not None:
            return [*read, *named]
        datasets = [resolved(one, inner) for one in task.reads for inner in one.datasets]
        return [*(one.relations.current for one in datasets[:1]), *named]
    try:
        return [*parsed_query(query.text, dataset.name).names, *named]
    except OperationError:
        # `validate` and the run say what is wrong with it.
        return named
