"""Tables that others maintain, as Spark reads them: each at one version. Nothing writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import pyarrow as pa
from typing_extensions import override

from polynya.lake.errors import machine_error
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.read.changed_keys import (
    MOST_ROWS,
    changed_keys_of_others,
    columns_at,
    may_change,
)
from polynya.lake.read.commits import snapshots_between
from polynya.lake.read.parquet_folder import (
    UNREADABLE,
    FileReplacedError,
    FolderVersion,
)
from polynya.lake.read.registered_folders import TableFolder, folder_of
from polynya.lake.spark.api import DataFrame, Py4JError, PySparkException, SparkSession
from polynya.lake.spark.catalog import CATALOG
from polynya.lake.spark.tasks import rows_of_tasks
from polynya.model.config.aws import AwsAccess
from polynya.model.config.registered import RegisteredDataset
from polynya.model.error_catalogue.registered import (
    REGISTERED_CHANGED,
    REGISTERED_KEYS_WRONG,
    REGISTERED_MISSING,
    REGISTERED_UNREADABLE,
)
from polynya.model.errors import PolynyaError
from polynya.model.names import literal, quote, quote_path, shown
from polynya.store.object_store import ObjectInfo, ObjectStore

#: Bytes of files that one task reads, at least.
_TASK_BYTES: Final = 64 * 1024 * 1024
#: The version of an Iceberg table without a snapshot, which has no rows.
_EMPTY: Final = 0
#: What a task says of a file that it cannot read: the sentence between the marks.
_MARK: Final = "\u2997"
_SAID: Final = re.compile(rf"{_MARK}(changed|unreadable) (\S+) (.*?){_MARK}", re.DOTALL)


class RegisteredReader(Protocol):
    """One registered table. A version is a number that stands for its rows and columns."""

    dataset: RegisteredDataset

    def newest(self) -> int:
        """See what others have done; the newest version.

        Raises OperationError for a table that is missing or cannot be read.
        """
        ...

    def holds(self, version: int) -> bool:
        """Whether a version can still be read."""
        ...

    def shows_same_rows(self, before: int, now: int) -> bool:
        """Whether two versions surely have the same rows and columns; `before` is the older one."""
        ...

    def rows(self, version: int, columns: Sequence[str] | None = None) -> DataFrame:
        """The rows of a version that can be read; of `columns` those that it has.

        Raises OperationError.
        """
        ...

    def changes(self, before: int, now: int) -> RegisteredChanges | str:
        """What differs between two versions with the same columns, by the declared keys.

        These tell the rows of both apart. The reason, as a sentence, where that is not known.
        """
        ...


@dataclass(frozen=True, slots=True)
class RegisteredChanges:
    """The keys of all rows that differ between two versions; more is allowed.

    `share` is that of the table that was read for them. `rows` are those that differ, before and
    now, and more with these keys; None: they are not known apart from the others.
    """

    keys: pa.Table
    share: float
    rows: tuple[DataFrame, DataFrame] | None = None


def reader_of(
    spark: SparkSession, dataset: RegisteredDataset, access: AwsAccess
) -> RegisteredReader:
    """What reads a registered table. Nothing is read yet."""
    folder = folder_of(dataset, access)
    return RegisteredIceberg(spark, dataset) if folder is None else RegisteredParquet(spark, folder)


@dataclass(slots=True)
class RegisteredIceberg(RegisteredReader):
    """An Iceberg table of the target's catalog. A version is a snapshot."""

    spark: SparkSession
    dataset: RegisteredDataset
    _table: IcebergTable | None = None

    @override
    def newest(self) -> int:
        try:
            if self._table is None:
                if not self.spark.catalog.tableExists(self._quoted):
                    raise self._missing()
                self._table = IcebergTable(self.spark, self._name, self._quoted)
            self._table.refresh()
            snapshot = self._table.snapshot_id()
        except (PySparkException, Py4JError) as error:
            self._table = None
            raise _unreadable(self._name, error) from error
        return _EMPTY if snapshot is None else snapshot

    @override
    def holds(self, version: int) -> bool:
        table = self._opened
        return table.snapshot_id() is None if version == _EMPTY else bool(table.snapshot(version))

    @override
    def shows_same_rows(self, before: int, now: int) -> bool:
        metadata = self._opened.metadata()
        if before == now or snapshots_between(metadata, before, now, may_change) != []:
            return before == now
        # The columns of a snapshot are those that the table had when it was committed.
        columns = columns_at(metadata, before)
        return columns is not None and columns == columns_at(metadata, now)

    @override
    def rows(self, version: int, columns: Sequence[str] | None = None) -> DataFrame:
        # Spark reads the columns that count.
        del columns
        text = f"SELECT * FROM {self._quoted} WHERE false"
        if version != _EMPTY:
            text = f"SELECT * FROM {self._opened.at(version)}"
        try:
            return self.spark.sql(text)
        except (PySparkException, Py4JError) as error:
            raise _unreadable(self._name, error) from error

    @override
    def changes(self, before: int, now: int) -> RegisteredChanges | str:
        if before == _EMPTY:
            return "it was empty"
        table = self._opened
        keys = changed_keys_of_others(table, self.dataset.table.keys, before, now)
        if isinstance(keys, str):
            return keys
        return RegisteredChanges(keys, keys.num_rows / max(1, table.rows()))

    @property
    def _opened(self) -> IcebergTable:
        assert self._table is not None, "`newest` opens it"
        return self._table

    @property
    def _name(self) -> str:
        return self.dataset.relations.current

    @property
    def _quoted(self) -> str:
        return quote_path(CATALOG, *self.dataset.table.source.split("."))

    def _missing(self) -> PolynyaError:
        reason = f"the catalog has no table {shown(self.dataset.table.source)}"
        return REGISTERED_MISSING(where=self._name, table=self._name, reason=reason)


@dataclass(slots=True)
class RegisteredParquet(RegisteredReader):
    """A folder of Parquet files, with or without the log of a Delta table."""

    spark: SparkSession
    folder: TableFolder

    @property
    def dataset(self) -> RegisteredDataset:  # type: ignore[override]
        """See `RegisteredReader`."""
        return self.folder.dataset

    @override
    def newest(self) -> int:
        return self.folder.newest().number

    @override
    def holds(self, version: int) -> bool:
        return self.folder.at(version) is not None

    @override
    def shows_same_rows(self, before: int, now: int) -> bool:
        return self.folder.shows_same_rows(before, now)

    @override
    def rows(self, version: int, columns: Sequence[str] | None = None) -> DataFrame:
        found = self.folder.at(version)
        assert found is not None, "`holds` is asked first"
        if columns is not None:
            some = {name: kind for name, kind in found.columns.items() if name in columns}
            found = replace(found, columns=some)
        return self._rows(found)

    @override
    def changes(self, before: int, now: int) -> RegisteredChanges | str:
        found = self.folder.changes(before, now)
        if isinstance(found, str):
            return found
        keys = found.keys(self.folder.store, self.dataset.table.keys, MOST_ROWS)
        if isinstance(keys, str):
            return keys
        rows = self._rows(found.removed), self._rows(found.added)
        return RegisteredChanges(keys, found.share, rows)

    def _rows(self, found: FolderVersion) -> DataFrame:
        tasks = _tasks(found.files, self.spark.sparkContext.defaultParallelism) or [[]]
        name = self.dataset.relations.current
        make = _FilesOfTasks(name, self.folder.store, tasks, replace(found, files=()))
        return rows_of_tasks(self.spark, len(tasks), make, found.schema)


def _tasks(files: Sequence[ObjectInfo], cores: int) -> list[list[ObjectInfo]]:
    """The files that each task reads."""
    most = max(_TASK_BYTES, sum(file.size for file in files) // (4 * cores))
    tasks: list[list[ObjectInfo]] = []
    size = most
    for file in files:
        if size + file.size > most:
            tasks.append([])
            size = 0
        tasks[-1].append(file)
        size += file.size
    return tasks


@dataclass(frozen=True, slots=True)
class _FilesOfTasks:
    """Reads the files of a task by its number; sent to the tasks."""

    table: str
    store: ObjectStore
    tasks: list[list[ObjectInfo]]
    version: FolderVersion

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        for file in self.tasks[number]:
            try:
                yield from self.version.rows_of(self.store, file)
            except FileReplacedError:
                raise RuntimeError(f"{_MARK}changed {self.table} {file.path}{_MARK}") from None
            except (*UNREADABLE, PolynyaError) as error:
                what = f"{shown(file.path)}: {error}".replace(_MARK, " ")
                raise RuntimeError(f"{_MARK}unreadable {self.table} {what}{_MARK}") from None


def task_error(error: BaseException) -> PolynyaError | None:
    """What a task has said of a file of a registered table; None for another failure."""
    said = _SAID.search(str(error))
    if said is None:
        return None
    name = said[2]
    if said[1] == "changed":
        return REGISTERED_CHANGED(where=name, table=name)
    return REGISTERED_UNREADABLE(where=name, table=name, reason=said[3][:500])


def refuse_wrong_keys(reader: RegisteredReader, rows: DataFrame) -> None:
    """Raise OperationError unless the declared keys tell these rows of a version apart.

    Raises what Spark raises.
    """
    name, keys = reader.dataset.relations.current, reader.dataset.table.keys
    if not keys:
        return
    lacking = [one for one in reader.dataset.table.named_columns if one not in rows.columns]
    if lacking:
        problem = f"it has no column {shown(lacking[0])}"
        raise REGISTERED_KEYS_WRONG(where=name, table=name, problem=problem)
    fields = ", ".join(f"{literal(key)}, {quote(key)}" for key in keys)
    counted: Any = rows.selectExpr(
        "count(*) AS n",
        f"count_if({' OR '.join(f'{quote(key)} IS NULL' for key in keys)}) AS lacking",
        f"count(DISTINCT named_struct({fields})) AS apart",
    ).first()
    shown_keys = ", ".join(map(shown, keys))
    problem = ""
    if counted["lacking"]:
        problem = f"{counted['lacking']:,} of {counted['n']:,} rows have no value in {shown_keys}"
    elif counted["apart"] != counted["n"]:
        more = counted["n"] - counted["apart"]
        problem = f"{more:,} of {counted['n']:,} rows repeat the values of another in {shown_keys}"
    if problem:
        raise REGISTERED_KEYS_WRONG(where=name, table=name, problem=problem)


def _unreadable(name: str, error: PySparkException | Py4JError) -> PolynyaError:
    fault = machine_error(error)
    if fault is not None:
        return fault
    reason = str(error).strip().splitlines()[0][:500]
    return REGISTERED_UNREADABLE(where=name, table=name, reason=reason)
