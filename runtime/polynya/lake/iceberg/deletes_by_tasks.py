"""Delete files that tasks of Spark write: for more removed rows than fit into the driver.

A place is a path and a number, some two hundred bytes. A step that removes millions of rows has as
many, so none of them comes to the driver: they are sorted by data file, and each task writes the
deletes of the data files that fall to it. What comes back is one line for each file. The files are
those of `deletes.py`: position deletes in format v2, deletion vectors in format v3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.lake.iceberg.deletes import VECTORS_SINCE
from polynya.lake.iceberg.deletion_vectors import Blob, decoded, puffin
from polynya.lake.iceberg.files import DataFile, DeleteFile, FilePartition
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import POSITION_DELETE_SCHEMA, data_folder
from polynya.lake.spark.api import DataFrame
from polynya.lake.spark.tasks import mapped_rows
from polynya.model.headers import Partition
from polynya.observe.trace import count, span
from polynya.store.data_files import DataFiles

#: Places that one task sorts and writes.
_TASK_PLACES: Final = 1_000_000
#: Places of a row group.
_GROUP_PLACES: Final = 200_000
_REPORTS = pa.schema([pa.field("report", pa.string())])


@dataclass(frozen=True, slots=True)
class _TaskDeletes:
    """How tasks write deletes. It is sent to them.

    Attributes:
        files: what writes files.
        folder: the location where they go, with a `/` at the end.
        vectors: whether the table takes deletion vectors.
        slots: partitions of data files that are found by more than `PARTITION`, by their path.
        before: the vector of a data file so far, as the path of its file and its place there.
    """

    files: DataFiles
    folder: str
    vectors: bool
    slots: Mapping[str, FilePartition]
    before: Mapping[str, tuple[str, Blob]]

    def written(self, places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the places of a task, sorted by file and position; one report a file."""
        writer = _Vectors(self) if self.vectors else _Positions(self)
        for batch in places:
            for part, path, positions in _by_file(batch):
                writer.take(part, path, positions)
        reports = [json.dumps(report) for report in writer.close()]
        yield pa.RecordBatch.from_arrays([pa.array(reports, pa.string())], schema=_REPORTS)

    def slot(self, part: str, path: str) -> FilePartition:
        """The partition of Iceberg that a data file is in."""
        return self.slots.get(path) or FilePartition(part)


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, str, pa.Array]]:
    """Partition, path and positions of each data file of a sorted batch."""
    paths, at = batch.column("file_path"), 0
    for ends in pc.run_end_encode(paths).run_ends.to_pylist():
        yield batch.column("part")[at].as_py(), paths[at].as_py(), _positions(batch, at, ends)
        at = ends


def _positions(batch: pa.RecordBatch, begin: int, end: int) -> pa.Array:
    return batch.column("pos").slice(begin, end - begin)


@dataclass(slots=True)
class _DeletePart:
    """The delete file of one partition of Iceberg that a task is writing."""

    path: str
    stream: Any
    writer: pq.ParquetWriter
    rows: int = 0
    touched: list[str] = field(default_factory=list)
    held: list[pa.Table] = field(default_factory=list)
    held_rows: int = 0

    def flush(self) -> None:
        """Write what is held as a row group."""
        if self.held:
            self.writer.write_table(pa.concat_tables(self.held), row_group_size=self.held_rows)
            self.held, self.held_rows = [], 0


@dataclass(slots=True)
class _Positions:
    """Position deletes of a task: one file for each partition of Iceberg."""

    how: _TaskDeletes
    parts: dict[FilePartition, _DeletePart] = field(default_factory=dict)

    def take(self, part: str, path: str, positions: pa.Array) -> None:
        """Write deletes of a data file; those of another one have come before, or follow."""
        slot = self.how.slot(part, path)
        if slot not in self.parts:
            location = f"{self.how.folder}{uuid4()}-deletes.parquet"
            stream = self.how.files.create(location)
            writer = pq.ParquetWriter(
                stream, POSITION_DELETE_SCHEMA, compression="zstd", compression_level=1
            )
            self.parts[slot] = _DeletePart(location, stream, writer)
        to = self.parts[slot]
        if to.touched[-1:] != [path]:
            to.touched.append(path)
        paths = pa.repeat(pa.scalar(path, pa.string()), len(positions))
        to.held.append(pa.Table.from_arrays([paths, positions], schema=POSITION_DELETE_SCHEMA))
        to.held_rows += len(positions)
        to.rows += len(positions)
        if to.held_rows >= _GROUP_PLACES:
            to.flush()

    def close(self) -> Iterator[Mapping[str, Any]]:
        """End the files; the report of each."""
        for slot, to in self.parts.items():
            to.flush()
            to.writer.close()
            size = to.stream.tell()
            to.stream.close()
            yield {
                "path": to.path, "size": size, "slot": [slot.partition, slot.spec, slot.values],
                "rows": to.rows, "touched": to.touched,
            }  # fmt: skip


@dataclass(slots=True)
class _Vectors:
    """Deletion vectors of a task, in one file: that of a data file has its earlier deletes, too."""

    how: _TaskDeletes
    found: dict[str, list[pa.Array]] = field(default_factory=dict)
    partitions: dict[str, str] = field(default_factory=dict)

    def take(self, part: str, path: str, positions: pa.Array) -> None:
        """Add deletes of a data file."""
        self.partitions[path] = part
        self.found.setdefault(path, []).append(positions)

    def close(self) -> Iterator[Mapping[str, Any]]:
        """Write the vectors; one report."""
        if not self.found:
            return
        content, blobs = puffin([(path, self._all(path)) for path in sorted(self.found)])
        location = f"{self.how.folder}{uuid4()}-deletes.puffin"
        self.how.files.put(location, content)
        slots = {path: self.how.slot(part, path) for path, part in self.partitions.items()}
        yield {
            "path": location, "size": len(content),
            "blobs": [[blob.data_file, blob.offset, blob.size, blob.rows] for blob in blobs],
            "slots": [
                [slot.partition, slot.spec, slot.values]
                for slot in (slots[blob.data_file] for blob in blobs)
            ],
        }  # fmt: skip

    def _all(self, path: str) -> pa.Array:
        """Positions of a data file, earlier ones too, in ascending order and each once."""
        parts = self.found[path]
        if earlier := self.how.before.get(path):
            location, blob = earlier
            with self.how.files.open(location) as source:
                parts = [*parts, decoded(source.read_at(blob.size, blob.offset))]
        positions = pc.unique(pa.concat_arrays(parts))
        return positions.take(pc.sort_indices(positions))


@dataclass(frozen=True, slots=True)
class DeletesByTasks:
    """What tasks need to write the deletes of a step on `snapshot`."""

    table: IcebergTable
    snapshot: int
    how: _TaskDeletes

    @classmethod
    def of(cls, table: IcebergTable, snapshot: int) -> DeletesByTasks | str:
        """The same for a table; else why the driver must write them."""
        files, folder = table.reach().writes, data_folder(table)
        if isinstance(files, str):
            return files
        if not files.holds(folder):
            return "its files are elsewhere"
        before: dict[str, tuple[str, Blob]] = {}
        vectors = table.format_version() >= VECTORS_SINCE
        if vectors:
            live = table.position_deletes(snapshot)
            if live is None or any(file.blob is None for file in live):
                return "it has deletes that are no vectors"
            vectors_of = [(file.path, file.blob) for file in live if file.blob is not None]
            before = {blob.data_file: (path, blob) for path, blob in vectors_of}
        slots: dict[str, FilePartition] = {}
        if table.java_files().has_several:
            live_files = chain.from_iterable(
                table.files(part, snapshot) for part in (Partition.CURRENT, Partition.PRIOR)
            )
            slots = {file.path: file.slot for file in live_files if file.values is not None}
        return cls(table, snapshot, _TaskDeletes(files, folder, vectors, slots, before))

    @span("write deletes", by="tasks")
    def write(self, places: DataFrame, rows: int) -> tuple[list[DeleteFile], list[DeleteFile]]:
        """Delete files for about `rows` places, and live vectors that they replace.

        `places` has the columns `writing.PLACES`, each place once.
        """
        tasks = 1 + rows // _TASK_PLACES
        ordered = places.repartition(tasks, "file_path").sortWithinPartitions("file_path", "pos")
        reports = mapped_rows(ordered, self.how.written, _REPORTS).toArrow().column(0).to_pylist()
        made = [file for report in reports for file in self._files(json.loads(report))]
        count("files_written", len(reports))
        if not self.how.vectors:
            return made, []
        touched = {path for file in made for path in file.touched}
        live = self.table.position_deletes(self.snapshot) or ()
        return made, [file for file in live if file.blob and file.blob.data_file in touched]

    def _files(self, report: Mapping[str, Any]) -> Iterator[DeleteFile]:
        java_files, path, size = self.table.java_files(), report["path"], report["size"]
        if self.how.vectors:
            blobs: Sequence[Blob] = [Blob(*blob) for blob in report["blobs"]]
            for blob, slot in zip(blobs, report["slots"], strict=True):
                java = java_files.vector(path, size, blob, FilePartition(*slot))
                yield DeleteFile(java, path, (blob.data_file,), blob)
            return
        slot, touched = FilePartition(*report["slot"]), tuple(report["touched"])
        file = DataFile(None, path, slot.partition, report["rows"], size, slot.spec, slot.values)
        yield DeleteFile(java_files.position_deletes(file, touched), path, touched)
