"""Rows of a local table as of one commit, by partition, read by our own readers alone.

To load PyIceberg takes a quarter of a second, and to plan a scan with it takes longer than to read
a hundred thousand rows. Tables that are elsewhere, and types that our readers do not know, are left
to `stored_rows.py`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.reading import TableFile, is_read_by, stored_file
from polynya.lake.read.committed import CommittedTable, LiveFile
from polynya.model.errors import OperationError
from polynya.model.headers import Partition
from polynya.query.file_rows import FileRows, duckdb_type, may_be_read
from polynya.query.statement_stop import current_stop
from polynya.query.translate import NotEmbeddedError
from polynya.store.data_files import LocalFiles, local_path

Batches: TypeAlias = Iterator[pa.RecordBatch]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RowLimits:
    """What one read may take: stored rows, bytes of files, and bytes that are held in memory."""

    rows: int
    file_bytes: int
    memory_bytes: int

    def least(self, other: RowLimits) -> RowLimits:
        """The lower of each limit."""
        return RowLimits(
            min(self.rows, other.rows),
            min(self.file_bytes, other.file_bytes),
            min(self.memory_bytes, other.memory_bytes),
        )

    def check_files(self, rows: int, size_bytes: int) -> None:
        """Raise NotEmbeddedError for files with more."""
        if rows > self.rows:
            raise NotEmbeddedError(f"{rows:,} stored rows; up to {self.rows:,} are read here")
        if size_bytes > self.file_bytes:
            raise NotEmbeddedError(
                f"{size_bytes:,} bytes of files; up to {self.file_bytes:,} are read here"
            )


#: What is read of a table over a network: Spark reads more than that sooner.
FAR_LIMITS: Final = RowLimits(
    rows=5_000_000, file_bytes=256 * 1024 * 1024, memory_bytes=1024 * 1024 * 1024
)


class NotReadHereError(Exception):
    """The rows are not read here: their files are elsewhere, or not as expected."""


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """A row group of a data file, and the places of the deleted rows of the file."""

    file: TableFile
    number: int
    deleted: pa.Array

    def may_hold(self, ranges: Sequence[tuple[Mapping[str, Any], Any, Any]]) -> bool:
        """Whether a row may have values within these ranges of columns, both ends included."""
        for column, least, most in ranges:
            bounds = self.file.bounds(self.number, column)
            if bounds is not None and (bounds[0] > most or bounds[1] < least):
                return False
        return True

    def rows(self, columns: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Columns of the rows that are not deleted."""
        rows = self.file.read(self.number, columns)
        if not len(self.deleted):
            return rows
        start = self.file.starts[self.number]
        places = pa.arange(start, start + rows.num_rows)
        return rows.filter(pc.invert(pc.is_in(places, value_set=self.deleted)))


class CommittedRows:
    """Rows of a table, by partition. All raise NotReadHereError for what another reader reads."""

    def __init__(self, table: CommittedTable, limits: RowLimits | None = None) -> None:
        self._table, self._limits = table, limits

    def plan(self, partitions: Collection[Partition]) -> None:
        """Find the files of some partitions now."""
        self._files(partitions)

    def count(self, partitions: Collection[Partition]) -> int:
        """Rows in the files of some partitions, deleted ones included."""
        return sum(file.rows for file in self._files(partitions))

    def schema(self, columns: Collection[str]) -> pa.Schema:
        """Names and types of some columns, in the order of the table."""
        fields = []
        for column in self._columns(columns):
            kind = arrow_type(column["type"])
            if kind is None:
                raise NotReadHereError
            fields.append(pa.field(column["name"], kind))
        return pa.schema(fields)

    def table(self, columns: Collection[str], partitions: Collection[Partition]) -> pa.Table:
        """Columns of all rows of some partitions."""
        rows = within_memory(self.batches(columns, partitions), self._limits)
        return pa.Table.from_batches(rows, self.schema(columns))

    def among(
        self, columns: Collection[str], partitions: Collection[Partition], keys: pa.Table
    ) -> Batches:
        """The same of rows among which are all that have these keys."""
        return self._batches(columns, partitions, self._ranges(keys))

    def batches(self, columns: Collection[str], partitions: Collection[Partition]) -> Batches:
        """Columns of the rows of some partitions."""
        return self._batches(columns, partitions, ())

    def _ranges(self, keys: pa.Table) -> list[tuple[Mapping[str, Any], Any, Any]]:
        """The columns whose bounds tell that a row group has none of the keys, with their range."""
        ranges = []
        for name in keys.column_names:
            column, known = self._table.columns[name], pc.min_max(keys.column(name)).as_py()
            if column["type"] in ("int", "long") and known["min"] is not None:
                ranges.append((column, known["min"], known["max"]))
        return ranges

    def _batches(
        self,
        columns: Collection[str],
        partitions: Collection[Partition],
        ranges: Sequence[tuple[Mapping[str, Any], Any, Any]],
    ) -> Batches:
        chosen = self._columns(columns)
        self.schema(columns)
        groups = [
            _RowGroup(file, group, deleted)
            for _, file, deleted in self._opened_files(chosen, partitions)
            for group in file.groups
        ]
        needed = (group for group in groups if group.may_hold(ranges))
        stop = current_stop()
        try:
            for rows in in_parallel(lambda group: group.rows(chosen), needed):
                for batch in rows.to_batches():
                    stop.check()
                    yield batch
        except (OSError, pa.ArrowException) as error:
            raise NotReadHereError from error

    def in_files(
        self, schema: pa.Schema, more: Collection[str], partition: Partition
    ) -> FileRows | None:
        """The rows of a partition where DuckDB reads them itself as it is told; else None.

        `more` are columns that are read beside those of `schema`.
        """
        columns = self._columns({*schema.names, *more})
        if any(duckdb_type(column["type"]) is None for column in columns):
            return None
        if any(arrow_type(self._table.columns[one.name]["type"]) != one.type for one in schema):
            return None
        files = self._opened_files(columns, {partition})
        deleted = {local_path(file.path): gone for file, _, gone in files}
        names = [opened.footer.schema.names for _, opened, _ in files]
        if not deleted or not all(map(may_be_read, deleted, names)):
            return None
        return FileRows(schema, columns, deleted)

    def _opened_files(
        self, columns: Sequence[Mapping[str, Any]], partitions: Collection[Partition]
    ) -> list[tuple[LiveFile, TableFile, pa.Array]]:
        """The files of some partitions with the places of their deleted rows.

        In one order for every process: older versions before those of Current.
        """
        opened = [(file, self._opened(file, columns)) for file in self._files(partitions)]
        found = []
        for partition in sorted(partitions, reverse=True):
            own = [(file, one) for file, one in opened if file.partition == str(partition)]
            try:
                gone = self._table.deleted_positions(partition, [file for file, _ in own])
            except (OSError, OperationError) as error:
                raise NotReadHereError from error
            found += [(file, one, places) for (file, one), places in zip(own, gone, strict=True)]
        return found

    def _opened(self, file: LiveFile, columns: Sequence[Mapping[str, Any]]) -> TableFile:
        local = LocalFiles()
        if not is_read_by(local, file.path):
            raise NotReadHereError
        try:
            opened = stored_file(local, file.path)
        except (OSError, pa.ArrowException) as error:
            raise NotReadHereError from error
        if not opened.reads(columns) or any("initial-default" in column for column in columns):
            raise NotReadHereError
        return opened

    def _files(self, partitions: Collection[Partition]) -> list[LiveFile]:
        files = self._table.data_files(partitions)
        if self._limits is not None:
            self._limits.check_files(
                sum(file.rows for file in files), sum(file.size_bytes for file in files)
            )
        return files

    def _columns(self, columns: Collection[str]) -> list[Mapping[str, Any]]:
        return [column for name, column in self._table.columns.items() if name in columns]


def within_memory(batches: Iterable[pa.RecordBatch], limits: RowLimits | None) -> Batches:
    """The batches, which are all held. Raises NotEmbeddedError for more bytes than the limits."""
    size = 0
    for batch in batches:
        # Compressed files say little of the memory that they take.
        size += batch.nbytes
        if limits is not None and size > limits.memory_bytes:
            raise NotEmbeddedError(f"more than {limits.memory_bytes:,} bytes in memory")
        yield batch


def in_parallel(change: Callable[[T], R], things: Iterable[T]) -> Iterator[R]:
    """What becomes of each thing, in their order; as many at a time as there are processors."""
    most = os.cpu_count() or 1
    with ThreadPoolExecutor(most, "polynya-rows") as workers:
        waiting: deque[Future[R]] = deque()
        for thing in things:
            waiting.append(workers.submit(change, thing))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
