"""Data files that a task of a large load writes without the JVM.

A loaded row whose operation, key and position need no SQL is written to a data file of Current as
it stands in Arrow, with the header columns that `rows.py` and `copy.to_current` give it. They make
all other rows. The load of a reload goes to the partition `reload` the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.formats.batch import NO_ORDER
from polynya.lake.copy.rows import can_hash, choice_in, chosen, key_hashes
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.arrow_columns import as_stored
from polynya.lake.iceberg.layout import DEFAULT_FILE_BYTES
from polynya.lake.iceberg.writing import footer_of
from polynya.lake.table.dataset import DatasetTable
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.types import DataType
from polynya.store.data_files import DataFiles
from polynya.transform.expressions import TextCondition

_ROW_GROUP_BYTES = 32 * 1024 * 1024
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A data file that a task wrote: its location, rows, bytes, and footer (`footer_of`)."""

    path: str
    rows: int
    size_bytes: int
    footer: bytes


@dataclass(frozen=True, slots=True)
class Direct:
    """How rows are written. It is sent to the tasks.

    Attributes:
        files: what writes data files.
        folder: the location where they go, with a `/` at the end.
        columns: of the table, as Iceberg's specification writes a schema in JSON.
        data: source columns that are in the table.
        keys: key columns.
        deletes: loaded rows that are deletes.
        loaded: time of the load.
        now: engine time of the step.
        to: the partition of the files.
        file_bytes: size from which on a file ends.
    """

    files: DataFiles
    folder: str
    columns: Sequence[Mapping[str, Any]]
    data: tuple[str, ...]
    keys: tuple[str, ...]
    deletes: TextCondition
    loaded: datetime
    now: datetime
    to: Partition = Partition.CURRENT
    file_bytes: int = DEFAULT_FILE_BYTES


@dataclass(slots=True)
class DirectWriter:
    """The files of one task."""

    how: Direct
    written: list[LoadedFile] = field(default_factory=list)
    _held: list[pa.Table] = field(default_factory=list)
    _held_bytes: int = 0
    _writer: pq.ParquetWriter | None = None
    _stream: Any = None
    _path: str = ""
    _footers: list[Any] = field(default_factory=list)
    _rows: int = 0

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Write the rows that can be written as they are; those that are left."""
        plain = _plain(batch, self.how)
        rows = batch if plain is None else batch.filter(plain)
        if rows.num_rows:
            table = as_stored(_stored(rows, self.how), self.how.columns)
            self._held.append(table)
            self._held_bytes += table.nbytes
        if self._held_bytes >= _ROW_GROUP_BYTES:
            self._flush()
        return batch.slice(0, 0) if plain is None else batch.filter(pc.invert(plain))

    def close(self) -> list[LoadedFile]:
        """End the last file; all that were written."""
        self._flush()
        self._end_file()
        return self.written

    def _flush(self) -> None:
        if not self._held:
            return
        rows = pa.concat_tables(self._held)
        self._held, self._held_bytes = [], 0
        if self._writer is None:
            self._path = f"{self.how.folder}{uuid4()}.parquet"
            self._stream = self.how.files.create(self._path)
            self._writer = pq.ParquetWriter(
                self._stream, rows.schema, compression="zstd", compression_level=1,
                use_dictionary=self._in_dictionaries(rows), metadata_collector=self._footers,
            )  # fmt: skip
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._rows += rows.num_rows
        if self._stream.tell() >= self.how.file_bytes:
            self._end_file()

    def _in_dictionaries(self, rows: pa.Table) -> bool | list[str]:
        """The columns whose distinct values are written once; True for all.

        Data of a reload is read once and leaves the table: to find its distinct values takes longer
        than to write and read it as it is.
        """
        if self.how.to is Partition.RELOAD:
            return [name for name in rows.column_names if name in h.HEADER_NAMES]
        return True

    def _end_file(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        footer = footer_of(self._footers.pop())
        self.written.append(LoadedFile(self._path, self._rows, size, footer))
        self._writer, self._rows = None, 0


def _plain(batch: pa.RecordBatch, how: Direct) -> pa.Array | None:
    """Which rows can be written as they are; None for all."""
    doubts: list[pa.Array] = []
    if batch.column("__rule").null_count < batch.num_rows:
        doubts.append(pc.is_valid(batch.column("__rule")))
    doubts += (pc.is_null(key) for key in map(batch.column, how.keys) if key.null_count)
    deleted = chosen(how.deletes, batch)
    if deleted is not None:
        doubts.append(deleted)
    return pc.invert(reduce(pc.or_, doubts)) if doubts else None


def _stored(rows: pa.RecordBatch, how: Direct) -> pa.Table:
    """Rows of the partition. Header columns that are NULL are left out."""
    count, names = rows.num_rows, rows.schema.names
    identifiers = rows.column("__ci") if "__ci" in names else _same(NO_ORDER, count)
    loaded, now = (_same(pa.scalar(time, _TIME), count) for time in (how.loaded, how.now))
    columns: dict[str, pa.Array] = {
        h.PARTITION: _same(str(how.to), count),
        h.CHANGE_IDENTIFIER: identifiers,
        h.OPERATION: _same("L", count),
        h.TIMESTAMP: loaded,
    }
    if how.to is Partition.CURRENT:
        columns |= {
            h.KEY_HASH: key_hashes([rows.column(key) for key in how.keys]),
            h.FROM_TIMESTAMP: loaded,
            h.INSERTED_TIMESTAMP: loaded,
            h.MODIFIED_TIMESTAMP: now,
            h.WAS_CURRENT_FROM: now,
        }
    else:
        # They are compared by their keys, and leave the table with that.
        columns[h.INSERTED_TIMESTAMP] = now
    if "__tail" in names:
        columns[h.SEQUENCE_TAIL] = rows.column("__tail")
    columns |= {name: rows.column(name) for name in how.data if name in names}
    return pa.table(columns)


def _same(value: Any, count: int) -> pa.Array:
    return pa.repeat(value if isinstance(value, pa.Scalar) else pa.scalar(value), count)


def direct_of(
    target: DatasetTable,
    shape: Shape,
    schema: Mapping[str, DataType],
    files: DataFiles,
    folder: str,
    *,
    loaded: datetime,
    now: datetime,
    to: Partition,
) -> Direct | None:
    """How tasks write rows of a table into a folder; None when that takes SQL.

    `schema` has all source columns.
    """
    deletes = choice_in(target.dataset.deletes, schema)
    if deletes is None or shape.append_only or not (to is Partition.RELOAD or can_hash(shape)):
        return None
    return Direct(
        files=files,
        folder=folder,
        columns=target.table.columns(),
        data=shape.data,
        keys=shape.keys,
        deletes=deletes,
        loaded=loaded,
        now=now,
        to=to,
        file_bytes=target.dataset.layout.file_bytes or DEFAULT_FILE_BYTES,
    )
