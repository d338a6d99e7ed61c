"""Rows of a small table as of one commit, by partition, read by our own readers alone.

To load PyIceberg takes a quarter of a second, and to plan a scan with it some milliseconds for each
manifest: for a table of a few files that is most of what an answer takes. Larger tables are left to
`stored_rows.py`, where PyIceberg leaves out files by their bounds, and reads several at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.reading import TableFile, is_read_by, stored_file
from polynya.lake.read.committed import CommittedTable, LiveFile
from polynya.model.errors import OperationError
from polynya.model.headers import Partition
from polynya.query.statement_stop import current_stop
from polynya.query.translate import NotEmbeddedError
from polynya.store.data_files import LocalFiles

Batches: TypeAlias = Iterator[pa.RecordBatch]

#: Rows and files of a small table: PyIceberg pays above that.
_FEW_ROWS: Final = 200_000
_FEW_FILES: Final = 100


@dataclass(frozen=True, slots=True)
class RowLimits:
    """What one read may take: stored rows, bytes of files, and bytes in memory."""

    rows: int
    file_bytes: int
    memory_bytes: int


class NotSmallError(Exception):
    """The rows are not read here: they are too many, or their files are not as expected."""


class CommittedRows:
    """Rows of a small table, by partition. All raise NotSmallError where it is none."""

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
                raise NotSmallError
            fields.append(pa.field(column["name"], kind))
        return pa.schema(fields)

    def table(self, columns: Collection[str], partitions: Collection[Partition]) -> pa.Table:
        """Columns of all rows of some partitions."""
        return pa.Table.from_batches(self.batches(columns, partitions), self.schema(columns))

    def among(
        self, columns: Collection[str], partitions: Collection[Partition], keys: pa.Table
    ) -> Batches:
        """The same of rows among which are all that have these keys."""
        del keys
        return self.batches(columns, partitions)

    def batches(self, columns: Collection[str], partitions: Collection[Partition]) -> Batches:
        """Columns of the rows of some partitions."""
        chosen = self._columns(columns)
        self.schema(columns)
        opened = [(file, self._opened(file, chosen)) for file in self._files(partitions)]
        stop, size = current_stop(), 0
        # In one order for every process: older versions before those of Current.
        for partition in sorted(partitions, reverse=True):
            own = [(file, one) for file, one in opened if file.partition == str(partition)]
            for rows in self._rows(partition, own, chosen):
                for batch in rows.to_batches():
                    stop.check()
                    size += batch.nbytes
                    if self._limits is not None and size > self._limits.memory_bytes:
                        raise NotEmbeddedError(
                            f"more than {self._limits.memory_bytes:,} bytes in memory"
                        )
                    yield batch

    def _rows(
        self,
        partition: Partition,
        files: Sequence[tuple[LiveFile, TableFile]],
        columns: Sequence[Mapping[str, Any]],
    ) -> Iterator[pa.Table]:
        try:
            gone = self._table.deleted_positions(partition, [file for file, _ in files])
        except (OSError, OperationError) as error:
            raise NotSmallError from error
        for (_, opened), deleted in zip(files, gone, strict=True):
            for group, start in zip(opened.groups, opened.starts, strict=True):
                try:
                    rows = opened.read(group, columns)
                except (OSError, pa.ArrowException) as error:
                    raise NotSmallError from error
                if len(deleted):
                    places = pa.arange(start, start + rows.num_rows)
                    rows = rows.filter(pc.invert(pc.is_in(places, value_set=deleted)))
                yield rows

    def _opened(self, file: LiveFile, columns: Sequence[Mapping[str, Any]]) -> TableFile:
        local = LocalFiles()
        if not is_read_by(local, file.path):
            raise NotSmallError
        try:
            opened = stored_file(local, file.path)
        except (OSError, pa.ArrowException) as error:
            raise NotSmallError from error
        if not opened.reads(columns) or any("initial-default" in column for column in columns):
            raise NotSmallError
        return opened

    def _files(self, partitions: Collection[Partition]) -> list[LiveFile]:
        files = self._table.data_files(partitions)
        rows, size = sum(file.rows for file in files), sum(file.size_bytes for file in files)
        limits = self._limits
        if len(files) > _FEW_FILES or rows > _FEW_ROWS:
            raise NotSmallError
        if limits is not None and (rows > limits.rows or size > limits.file_bytes):
            raise NotSmallError
        return files

    def _columns(self, columns: Collection[str]) -> list[Mapping[str, Any]]:
        return [column for name, column in self._table.columns.items() if name in columns]
