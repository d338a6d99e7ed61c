"""Rows of an Iceberg table as of one commit, by partition, without a JVM.

PyIceberg reads them. Lists and maps of structs are read from the files by our own reader, because
PyIceberg 0.12 makes an empty one of NULL.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
)
from pyiceberg.expressions.visitors import bind, extract_field_ids
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _read_all_delete_files,
    expression_to_pyarrow,
    schema_to_pyarrow,
)
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from polynya.lake.iceberg.reading import TableFile, each_read, stored_file
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.query.committed_rows import Batches, RowLimits, within_memory
from polynya.query.statement_stop import current_stop
from polynya.query.translate import NotEmbeddedError
from polynya.store.aws.data_objects import S3Files
from polynya.store.data_files import DataFiles, LocalFiles

#: Bytes of the files that are read at a time.
_GROUP_BYTES: Final = 256 * 1024 * 1024
#: PyIceberg does not compare more values than this with the bounds of a file.
_PRUNED_VALUES: Final = 200
#: What PyIceberg raises for a table that it cannot read, or whose files are gone.
UNREADABLE: Final = (
    OSError, ValueError, NotImplementedError, ResolveError, ValidationError, pa.ArrowException,
)  # fmt: skip


class StoredRows:
    """Rows of a table as of the commit that it was loaded with, by partition."""

    def __init__(self, table: Table, limits: RowLimits | None = None) -> None:
        self._table, self._limits = table, limits
        self._planned: dict[str, list[FileScanTask]] = {}

    def plan(self, partitions: Collection[Partition]) -> None:
        """Find the files of some partitions now, in one look at the manifests."""
        planned: dict[str, list[FileScanTask]] = {str(partition): [] for partition in partitions}
        for task in self._files(_within(partitions)):
            planned[task.file.partition[0]].append(task)
        self._planned |= planned

    def schema(self, columns: Collection[str]) -> pa.Schema:
        """Names and types of some columns, in the order of the table."""
        return schema_to_pyarrow(self._chosen(columns), include_field_ids=False)

    def table(self, columns: Collection[str], partitions: Collection[Partition]) -> pa.Table:
        """Columns of all rows of some partitions."""
        batches = within_memory(self.batches(columns, partitions), self._limits)
        tables = [pa.Table.from_batches([one]) for one in batches]
        empty = self.schema(columns).empty_table()
        return pa.concat_tables([*tables, empty], promote_options="permissive")

    def batches(
        self,
        columns: Collection[str],
        partitions: Collection[Partition],
        where: BooleanExpression | None = None,
    ) -> Batches:
        """Columns of the rows of some partitions, where a condition holds.

        Files are read in groups, so that the memory of a read does not grow with the table.

        Raises:
            NotEmbeddedError: the rows are too many, or PyIceberg cannot read them.
        """
        chosen = self._chosen(columns)
        condition = AlwaysTrue() if where is None else where
        tasks = self._tasks(partitions, condition)
        if self._limits is not None:
            self._limits.check_files(
                sum(task.file.record_count for task in tasks),
                sum(task.file.file_size_in_bytes for task in tasks),
            )
        # A file holds rows of one partition, so that only the condition has to be looked at.
        scan = ArrowScan(self._table.metadata, self._table.io, chosen, condition)
        read = scan.to_record_batches
        if any(_loses_nulls(column.field_type) for column in chosen.fields):
            read = partial(self._of_files, chosen, condition)
        stop = current_stop()
        try:
            for group in _groups(tasks):
                for batch in read(group):
                    stop.check()
                    yield batch
        except UNREADABLE as error:
            raise unreadable(error) from error

    def among(
        self, columns: Collection[str], partitions: Collection[Partition], keys: pa.Table
    ) -> Batches:
        """The same of rows among which are all that have these keys, and few others."""
        return self.batches(columns, partitions, _among(keys))

    def matching(
        self,
        columns: Collection[str],
        partitions: Collection[Partition],
        values: Mapping[str, pa.Array],
    ) -> pa.Table:
        """Columns of the rows of some partitions in which each named column has one of its values.

        Of a file only the named columns are read, and the others of its row groups that have such a
        row: so the rows of one key cost little also in a large table. Values have the types of
        their columns. `rows` of the limits counts the rows that were looked through.

        Raises NotEmbeddedError as `batches` does.
        """
        names = list(dict.fromkeys([*values, *columns]))
        known = {column["name"]: column for column in self._columns}
        wanted, rest = [known[name] for name in values], [known[name] for name in names]
        condition = _within(partitions)
        for name, some in values.items():
            condition = And(condition, In(term=name, values=some.to_pylist()))  # type: ignore[call-arg]
        tasks = self._files(condition)
        if self._limits is not None:
            rows = sum(task.file.record_count for task in tasks)
            if rows > self._limits.rows:
                most = f"up to {self._limits.rows:,} are looked through here"
                raise NotEmbeddedError(f"{rows:,} stored rows may match; {most}")
        empty = self.schema(names).empty_table()
        try:
            deleted = _read_all_delete_files(self._table.io, tasks)
            read = each_read(
                self._data_files,
                lambda task: list(
                    _matching_rows(
                        self._opened(task, rest), wanted, rest, values, _gone(deleted, task)
                    )
                ),
                tasks,
            )
        except UNREADABLE as error:
            raise unreadable(error) from error
        found = [part for parts in read for part in parts]
        return pa.concat_tables([*found, empty], promote_options="permissive").select(names)

    def _opened(self, task: FileScanTask, columns: Sequence[Mapping[str, Any]]) -> TableFile:
        file = stored_file(self._data_files, task.file.file_path)
        if not file.reads(columns):
            raise NotEmbeddedError("columns that have changed since in a way that Spark reads")
        return file

    def _of_files(
        self, chosen: Schema, condition: BooleanExpression, tasks: Iterable[FileScanTask]
    ) -> Batches:
        """The rows of files as they are there."""
        tasks = list(tasks)
        names = [column.name for column in chosen.fields]
        read = {*names, *columns_of_condition(self._table, condition)}
        columns = [column for column in self._columns if column["name"] in read]
        deleted = _read_all_delete_files(self._table.io, tasks)
        for task in tasks:
            file = stored_file(self._data_files, task.file.file_path)
            if not file.reads(columns):
                raise NotEmbeddedError("lists or maps of structs that have changed since")
            for rows in _groups_of(file, columns, _gone(deleted, task)):
                yield from where_holds(self._table, rows, condition).select(names).to_batches()

    @cached_property
    def _columns(self) -> list[Mapping[str, Any]]:
        """The columns of the table as Iceberg's specification writes them in JSON."""
        fields: list[Mapping[str, Any]] = json.loads(self._table.schema().model_dump_json())[
            "fields"
        ]
        return fields

    @cached_property
    def _data_files(self) -> DataFiles:
        local, properties = LocalFiles(), self._table.io.properties
        if local.holds(self._table.location()):
            return local
        return S3Files(properties["client.region"], properties.get("s3.endpoint"))

    def count(self, partitions: Collection[Partition]) -> int:
        """Rows in the files of some partitions, deleted ones included."""
        return sum(task.file.record_count for task in self._tasks(partitions, AlwaysTrue()))

    def _chosen(self, columns: Collection[str]) -> Schema:
        return self._table.schema().select(*sorted(columns))

    def _tasks(
        self, partitions: Collection[Partition], condition: BooleanExpression
    ) -> list[FileScanTask]:
        if isinstance(condition, AlwaysTrue) and self._planned.keys() >= set(partitions):
            # In one order for every process: older versions before those of Current.
            ordered = sorted(partitions, reverse=True)
            return [task for partition in ordered for task in self._planned[partition]]
        return self._files(And(_within(partitions), condition))

    def _files(self, condition: BooleanExpression) -> list[FileScanTask]:
        try:
            tasks: Iterable[Any] = self._table.scan(row_filter=condition).plan_files()
            return list(tasks)
        except UNREADABLE as error:
            raise unreadable(error) from error


def _gone(deleted: Mapping[str, list[pa.ChunkedArray]], task: FileScanTask) -> pa.ChunkedArray:
    """The places of the deleted rows of a file."""
    arrays = deleted.get(task.file.file_path, [])
    return pa.chunked_array([part for array in arrays for part in array.chunks], pa.int64())


def _matching_rows(
    file: TableFile,
    wanted: Sequence[Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
    values: Mapping[str, pa.Array],
    deleted: pa.ChunkedArray,
) -> Iterator[pa.Table]:
    """Rows of a file that are not deleted and have the values, by row group."""
    for group, start in zip(file.groups, file.starts, strict=True):
        keys = file.read(group, wanted)
        holds = [
            pc.is_in(keys[name], value_set=some.cast(keys[name].type))
            for name, some in values.items()
        ]
        mask = holds[0]
        for other in holds[1:]:
            mask = pc.and_(mask, other)
        places = pc.indices_nonzero(mask).cast(pa.int64())
        if len(deleted):
            gone = pc.is_in(pc.add(places, start), value_set=deleted)
            places = places.filter(pc.invert(gone))
        if len(places):
            yield file.read(group, columns).take(places)


def _groups_of(
    file: TableFile, columns: Sequence[Mapping[str, Any]], deleted: pa.ChunkedArray
) -> Iterator[pa.Table]:
    """Rows of a file that are not deleted, by row group."""
    for group, start in zip(file.groups, file.starts, strict=True):
        rows = file.read(group, columns)
        if len(deleted):
            places = pa.arange(start, start + rows.num_rows)
            rows = rows.filter(pc.invert(pc.is_in(places, value_set=deleted)))
        yield rows


def where_holds(table: Table, rows: pa.Table, condition: BooleanExpression) -> pa.Table:
    """The rows for which a condition holds; they have the columns that it is about."""
    if isinstance(condition, AlwaysTrue):
        return rows
    bound = bind(table.schema(), condition, case_sensitive=True)
    return rows.filter(expression_to_pyarrow(bound, table.schema()))


def _groups(tasks: Sequence[FileScanTask]) -> Iterator[list[FileScanTask]]:
    """Files that are read together: PyIceberg holds the rows of all that it is given."""
    group: list[FileScanTask] = []
    size = 0
    for task in tasks:
        size += task.file.file_size_in_bytes
        if group and size > _GROUP_BYTES:
            yield group
            group, size = [], task.file.file_size_in_bytes
        group.append(task)
    if group:
        yield group


def _loses_nulls(kind: IcebergType) -> bool:
    """Whether PyIceberg 0.12 makes an empty list or map of NULL somewhere in a type.

    `ArrowProjectionVisitor` rebuilds lists and maps of structs from their offsets alone, which do
    not record NULL.
    """
    match kind:
        case StructType():
            return any(_loses_nulls(field.field_type) for field in kind.fields)
        case ListType():
            return isinstance(kind.element_type, StructType) or _loses_nulls(kind.element_type)
        case MapType():
            return isinstance(kind.value_type, StructType) or _loses_nulls(kind.value_type)
        case _:
            return False


def _among(keys: pa.Table) -> BooleanExpression:
    """Condition that holds for these keys, and for few others: files without them are not read."""
    condition: BooleanExpression = AlwaysTrue()
    for name in keys.column_names:
        values = keys[name].unique()
        if pa.types.is_boolean(values.type) or pa.types.is_binary(values.type):
            continue
        if len(values) <= _PRUNED_VALUES:
            among: BooleanExpression = In(term=name, values=values.to_pylist())  # type: ignore[call-arg]
        else:
            bounds = pc.min_max(values).as_py()
            among = And(
                GreaterThanOrEqual(term=name, value=bounds["min"]),
                LessThanOrEqual(term=name, value=bounds["max"]),
            )
        condition = And(condition, among)
    return condition


def _within(partitions: Collection[Partition]) -> BooleanExpression:
    names = sorted(map(str, partitions))
    # PyIceberg's own annotations hide the positional form of its expressions.
    if len(names) == 1:
        return EqualTo(term=h.PARTITION, value=names[0])
    return In(term=h.PARTITION, values=names)  # type: ignore[call-arg]


def columns_of_condition(table: Table, where: BooleanExpression) -> set[str]:
    """Names of the columns that a condition is about. Raises ValueError for an unknown one."""
    if isinstance(where, AlwaysTrue):
        return set()
    schema = table.schema()
    asked = extract_field_ids(bind(schema, where, case_sensitive=True))
    return {
        column.name
        for column in schema.fields
        if asked & {column.field_id, *schema.select(column.name).field_ids}
    }


def unreadable(error: BaseException) -> NotEmbeddedError:
    """The reason for what PyIceberg or Arrow raised."""
    text = str(error).splitlines()
    return NotEmbeddedError(f"PyIceberg: {text[0] if text else type(error).__name__}")
