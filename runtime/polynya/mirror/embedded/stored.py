"""Stored rows of one commit of a table, read without Spark, up to what this process can hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.expressions import EqualTo, In
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition

#: What PyIceberg raises for a table that it cannot read, or whose files are gone by now.
_UNREADABLE: Final = (
    OSError, ValueError, NotImplementedError, ResolveError, ValidationError, pa.ArrowException,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """What one statement may read: rows, bytes of files, and bytes in memory, of all its tables."""

    rows: int = 5_000_000
    file_bytes: int = 256 * 1024 * 1024
    memory_bytes: int = 1024 * 1024 * 1024


class StoredRows:
    """The rows of a table as of the commit that it was loaded with."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def pending(self) -> int:
        """Rows of changes that are not applied yet, deleted ones included."""
        return _rows(self._tasks([Partition.CHANGES]))

    def read(
        self,
        columns: Sequence[str],
        partitions: Collection[Partition],
        limits: Limits,
        *,
        blank: Collection[str] = (),
    ) -> pa.Table:
        """Columns of the rows of some partitions; those that are `blank` are NULL.

        Raises:
            NotEmbeddedError: they are too many, or PyIceberg cannot read them.
        """
        wanted = self._table.schema().select(*columns)
        for field in wanted.fields:
            if _loses_nulls(field.field_type):
                raise NotEmbeddedError(f"PyIceberg reads NULL in {field.name} as empty")
        tasks = self._tasks(partitions)
        refuse_large(_rows(tasks), sum(one.file.file_size_in_bytes for one in tasks), limits)
        scan = ArrowScan(
            self._table.metadata,
            self._table.io,
            wanted,
            _within(partitions),
        )
        try:
            # Batch by batch, because compressed files say little of the memory that they take.
            found: list[pa.Table] = []
            size = 0
            for batch in scan.to_record_batches(tasks):
                found.append(pa.Table.from_batches([batch]))
                size += batch.nbytes
                if size > limits.memory_bytes:
                    raise NotEmbeddedError(f"more than {limits.memory_bytes:,} bytes in memory")
            rows = pa.concat_tables(found or [scan.to_table([])], promote_options="permissive")
            for field in schema_to_pyarrow(self._table.schema().select(*blank)):
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
            return rows
        except _UNREADABLE as error:
            raise _unreadable(error) from error

    def _tasks(self, partitions: Collection[Partition]) -> list[FileScanTask]:
        try:
            tasks: Iterable[Any] = self._table.scan(row_filter=_within(partitions)).plan_files()
            return list(tasks)
        except _UNREADABLE as error:
            raise _unreadable(error) from error


def refuse_large(rows: int, size: int, limits: Limits) -> None:
    """Raise NotEmbeddedError for more than the limits."""
    if rows > limits.rows:
        raise NotEmbeddedError(f"{rows:,} stored rows; up to {limits.rows:,} are read here")
    if size > limits.file_bytes:
        raise NotEmbeddedError(
            f"{size:,} bytes of files; up to {limits.file_bytes:,} are read here"
        )


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


def _rows(tasks: Iterable[FileScanTask]) -> int:
    return sum(task.file.record_count for task in tasks)


def _within(partitions: Collection[Partition]) -> Any:
    # PyIceberg's own annotations hide the positional form of its expressions.
    names = [str(one) for one in partitions]
    if len(names) == 1:
        return EqualTo(term=h.PARTITION, value=names[0])
    return In(term=h.PARTITION, values=names)  # type: ignore[call-arg]


def _unreadable(error: BaseException) -> NotEmbeddedError:
    text = str(error).splitlines()
    return NotEmbeddedError(f"PyIceberg: {text[0] if text else type(error).__name__}")
