"""Rows of tables that others maintain, for the embedded engine: as they are now, without a JVM.

A table is read at one version. What PyIceberg or Arrow may read otherwise than Spark is left to
Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.types import PrimitiveType, TimeType, UUIDType

from polynya.formats.values.arrow_types import arrow_type, from_arrow
from polynya.lake.read.parquet_folder import FolderVersion
from polynya.lake.read.registered_folders import TableFolder
from polynya.model.config.registered import RegisteredDataset
from polynya.model.types import DataType
from polynya.observe.events import counted
from polynya.query.committed_rows import FAR_LIMITS, RowLimits
from polynya.query.statement_stop import current_stop
from polynya.query.stored_rows import UNREADABLE, unreadable
from polynya.query.translate import NotEmbeddedError
from polynya.query.values import distinct_names


@dataclass
class RegisteredFolder:
    """A folder of Parquet files, or of a Delta table. Raises what its `newest` raises."""

    folder: TableFolder
    #: Any column counts the rows.
    keys: Sequence[str] = ()

    @property
    def name(self) -> str:
        """`schema.table`."""
        return self.folder.dataset.relations.current

    @cached_property
    def _version(self) -> FolderVersion:
        return self.folder.newest()

    @property
    def columns(self) -> Mapping[str, DataType]:
        """Names and types of the columns."""
        return self._version.columns

    @property
    def types(self) -> Mapping[str, DataType]:
        """The same."""
        return self.columns

    @property
    def summary(self) -> str:
        """What is there, for people."""
        files = counted(len(self._version.files), "file")
        return f"{files} of {self._version.form}, {counted(len(self.columns), 'column')}"

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns of all rows. Raises NotEmbeddedError for more than the limits."""
        limits = limits.least(FAR_LIMITS)
        _refuse_large_files(sum(file.size for file in self._version.files), limits)
        schema = pa.schema([self._version.schema.field(name) for name in columns])
        batches = (batch.select(columns) for batch in self.folder.batches(self._version))
        return _within(batches, schema, limits)


@dataclass
class RegisteredSnapshot:
    """An Iceberg table at the snapshot that it was loaded with."""

    dataset: RegisteredDataset
    table: Table
    #: Any column counts the rows.
    keys: Sequence[str] = ()

    @property
    def name(self) -> str:
        """`schema.table`."""
        return self.dataset.relations.current

    @cached_property
    def columns(self) -> Mapping[str, DataType]:
        """Names and types of the columns. Raises NotEmbeddedError for nested and rare types."""
        fields = self.table.schema().fields
        if not distinct_names([field.name for field in fields]):
            raise NotEmbeddedError(f"{self.name} has columns that differ in capitals only")
        for field in fields:
            kind = field.field_type
            if not isinstance(kind, PrimitiveType) or isinstance(kind, TimeType | UUIDType):
                raise NotEmbeddedError(f"{self.name} has a column of the type {kind}")
        return self.types

    @property
    def types(self) -> Mapping[str, DataType]:
        """The same of all columns, nested ones too. Raises NotEmbeddedError for rare types."""
        try:
            schema = schema_to_pyarrow(self.table.schema(), include_field_ids=False)
            return {field.name: from_arrow(field.type) for field in schema}
        except UNREADABLE as error:
            raise unreadable(error) from error

    @property
    def summary(self) -> str:
        """What is there, for people."""
        snapshot = self.table.current_snapshot()
        version = "no snapshot yet" if snapshot is None else f"snapshot {snapshot.snapshot_id}"
        return f"{version}, {counted(len(self.table.schema().fields), 'column')}"

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns of all rows. Raises NotEmbeddedError for more than the limits."""
        limits = limits.least(FAR_LIMITS)
        schema = pa.schema([pa.field(name, arrow_type(self.columns[name])) for name in columns])
        scan = self.table.scan(selected_fields=tuple(columns))
        try:
            size = sum(task.file.file_size_in_bytes for task in scan.plan_files())
            _refuse_large_files(size, limits)
            batches = (
                pa.RecordBatch.from_arrays(
                    [batch.column(name).cast(schema.field(name).type) for name in columns],
                    schema=schema,
                )
                for batch in scan.to_arrow_batch_reader()
            )
            return _within(batches, schema, limits)
        except UNREADABLE as error:
            raise unreadable(error) from error


def _refuse_large_files(size: int, limits: RowLimits) -> None:
    if size > limits.file_bytes:
        raise NotEmbeddedError(f"more than {limits.file_bytes:,} bytes of files")


def _within(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, limits: RowLimits
) -> pa.RecordBatchReader:
    """The rows, read at once. Raises NotEmbeddedError for more than the limits."""

    def limited() -> Iterator[pa.RecordBatch]:
        stop, rows, size = current_stop(), 0, 0
        for batch in batches:
            stop.check()
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows > limits.rows or size > limits.memory_bytes:
                raise NotEmbeddedError(f"more than {limits.rows:,} rows, or too many bytes")
            yield batch

    return pa.Table.from_batches(limited(), schema=schema).to_reader()
