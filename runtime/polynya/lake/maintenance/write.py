"""Write groups of data files as Arrow; nothing is committed, and no lock is held.

`stage_here` writes one group at a time in this process. `rewrite_data_files.stage_by_tasks` writes
many at once in Spark tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa

from polynya.lake.iceberg.deletes import positions
from polynya.lake.iceberg.files import DataFile, FilePartition
from polynya.lake.iceberg.partitions import LAID_OUT
from polynya.lake.iceberg.reading import is_read_by, stored_file
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.wanted import TargetLayout
from polynya.lake.iceberg.writing import data_folder, written_file
from polynya.lake.maintenance.job import RewriteJob, RewrittenFile, write
from polynya.lake.maintenance.rewrite_plan import RewriteGroup, SnapshotFiles
from polynya.lake.maintenance.rewrite_writer import Input, Kind, RowOrder
from polynya.observe.trace import count, span


class GaveWayError(Exception):
    """Other work wants the machine or the table; the unfinished files were removed."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A staged file, and what is known of where its rows were."""

    file: DataFile
    written: RewrittenFile

    def places(self) -> pa.Array:
        """The place that each of its rows had before, in their order."""
        return self.written.places()


@dataclass(frozen=True, slots=True)
class StagedGroup:
    """A group, and the files that will take its place."""

    group: RewriteGroup
    files: tuple[Rewritten, ...]

    @property
    def paths(self) -> list[str]:
        """Of the files that nobody needs if they are not committed."""
        return [file.file.path for file in self.files]

    @property
    def written_bytes(self) -> int:
        """What was written."""
        return sum(file.file.size_bytes for file in self.files)


def job_of(
    table: IcebergTable, seen: SnapshotFiles, group: RewriteGroup, by: Sequence[tuple[str, Kind]]
) -> RewriteJob | str:
    """How a group is written, its rows ordered by columns of these names; or why Arrow does not.

    Raises OSError.
    """
    reach = table.reach()
    reads, writes = reach.reads, reach.writes
    if isinstance(reads, str):
        return reads
    if isinstance(writes, str):
        return writes
    columns, java_files = table.columns(), table.java_files()
    inputs: list[Input] = []
    for file in group.files:
        if not is_read_by(reads, file.file.path):
            return "a file is in another place than the table"
        if not stored_file(reads, file.file.path).reads_all(columns):
            return "a file has columns that Arrow does not read as the table is now"
        inputs.append(Input(file.number, file.file, positions(seen.deleted.places, file.number)))
    parting = java_files.parting if group.moves and java_files.parts_of(group.partition) else None
    sources = () if parting is None else [name for name, _ in parting.sources]
    order = RowOrder.of(columns, () if group.keeps_order else by, sources)
    return RewriteJob(
        reads,
        writes,
        columns,
        inputs,
        order,
        group.outputs,
        FilePartition(group.partition) if group.moves else group.files[0].file.slot,
        parting,
        stem=f"{data_folder(table)}{uuid4()}",
        sort_order=_sort_order(group, order, seen.wanted),
    )


def _sort_order(group: RewriteGroup, order: RowOrder, wanted: TargetLayout) -> int | None:
    """Id of the table's sort order that the new files of a group are in."""
    if group.keeps_order:
        return group.files[0].file.sort_order
    # What sorts Current and Prior then is `sort_by`, which this is the order of.
    return wanted.order if order.by and group.partition in LAID_OUT else None


@span("write rows again", by="Arrow")
def stage_here(
    table: IcebergTable, group: RewriteGroup, job: RewriteJob, give_way: Callable[[], bool]
) -> StagedGroup:
    """Write a group in this process.

    Raises GaveWayError when it has to give way, and OSError; its files are removed then.
    """

    def between() -> None:
        if give_way():
            raise GaveWayError

    try:
        written = write(job, between)
    except BaseException:
        table.drop_files(job.left())
        raise
    return staged(table, group, job, written)


def staged(
    table: IcebergTable, group: RewriteGroup, job: RewriteJob, written: Sequence[RewrittenFile]
) -> StagedGroup:
    """A group whose files were written, as files of the table."""
    count("files_rewritten", len(group.files))
    count("files_written", len(written))
    made = []
    for one in written:
        new = one.file
        file = written_file(
            table, new.path, new.slot, new.footer,
            rows=new.rows, size_bytes=new.size_bytes, sort_order=job.sort_order,
        )  # fmt: skip
        made.append(Rewritten(file, one))
    return StagedGroup(group, tuple(made))
