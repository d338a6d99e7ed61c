"""A group of data files to rewrite, as a value that any process can execute: driver or Spark task.

A job needs neither Spark nor the table. Every process writes the same rows in the same order.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.files import FilePartition
from polynya.lake.iceberg.partitions import Parting
from polynya.lake.iceberg.writing import no_rows
from polynya.lake.maintenance.rewrite_writer import (
    Column,
    FileWriter,
    Input,
    NewFile,
    RowOrder,
    places_in_order,
    rows_in_order,
)
from polynya.store.data_files import DataFiles


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """Data files that become new ones.

    Attributes:
        reads: has the files, `writes` gets the new ones.
        columns: of the table.
        inputs: the files.
        order: that the rows get.
        outputs: about how many files to make.
        slot: the partition of Iceberg of the new files, where there is no `parting`.
        parting: by what the rows go to partitions of Iceberg, None where they all go to `slot`.
        stem: what the location of each new file begins with.
        sort_order: id of the table's sort order that the rows are in then, None for none.
    """

    reads: DataFiles
    writes: DataFiles
    columns: Sequence[Column]
    inputs: Sequence[Input]
    order: RowOrder
    outputs: int
    slot: FilePartition
    parting: Parting | None
    stem: str
    sort_order: int | None = None

    def path(self, number: int, attempt: int = 0) -> str:
        """Location of a new file, by its number from 0. No two attempts write to the same one."""
        return f"{self.stem}-{attempt}-{number:05}.parquet"

    def left(self, attempts: int = 1) -> Iterator[str]:
        """Locations of the files that are there of attempts, whole or not."""
        for attempt in range(attempts):
            # They are written one after the other.
            for number in count():
                path = self.path(number, attempt)
                if not self._is_there(path):
                    break
                yield path

    def _is_there(self, path: str) -> bool:
        try:
            with self.writes.open(path):
                return True
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A new file, and the place that each of its rows had before, in their order.

    The places are packed: they are needed only if a row was deleted meanwhile.
    """

    file: NewFile
    packed: bytes

    def places(self) -> pa.Array:
        """The place of each row in the files that were read; see `rewrite_writer.Input`."""
        return pq.read_table(io.BytesIO(self.packed), use_threads=False).column(0).combine_chunks()


def write(job: RewriteJob, between: Callable[[], None], attempt: int = 0) -> list[RewrittenFile]:
    """Write the new files of a job.

    `between` is called between pieces of work, and may raise. What was written by then is left, and
    so it is when an OSError is raised: see `RewriteJob.left`.
    """
    places, cuts = places_in_order(job.reads, job.inputs, job.order, job.parting)
    out = FileWriter(
        job.writes,
        partial(job.path, attempt=attempt),
        job.columns,
        no_rows([source.stored(job.reads) for source in job.inputs], job.columns),
        most_rows=-(-len(places) // max(1, job.outputs)),
        cuts=[(job.slot, len(places))] if job.parting is None else cuts,
    )
    try:
        for rows in rows_in_order(job.reads, job.inputs, job.columns, places, between):
            out.write(rows)
        files = out.close()
    except BaseException:
        out.abandon()
        raise
    return list(_with_places(files, places))


def _with_places(files: Sequence[NewFile], places: pa.Array) -> Iterator[RewrittenFile]:
    at = 0
    for file in files:
        yield RewrittenFile(file, _packed(places[at : at + file.rows]))
        at += file.rows


def _packed(places: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        pa.table([places], ["place"]), sink, compression="zstd", compression_level=1,
        use_dictionary=False, column_encoding="DELTA_BINARY_PACKED", write_statistics=False,
    )  # fmt: skip
    return sink.getvalue()
