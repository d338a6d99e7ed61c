"""The protocol of large loads and copies: landed files are cut into splits, read by tasks.

A format reads a small batch record by record in one process (`polynya.formats.base`). The tasks of
a load, or of a large copy of change files, read columns instead: each yields Arrow batches and a
report. The reports together give the row accounting and progress that one batch of the same files
would have given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from polynya.formats.base import ReadRequest
from polynya.formats.batch import TIMESTAMP_UTC, FileProgress, Rejected
from polynya.formats.values.arrow_types import arrow_type
from polynya.model.errors import PolynyaError
from polynya.model.types import DataType

#: Columns of what tasks yield, before those of the source. Only a rejected record, and one whose
#: key is NULL, has a file, an offset and raw bytes.
RECORD_FIELDS: tuple[pa.Field, ...] = (
    pa.field("__file", pa.string()),
    pa.field("__offset", pa.int64()),
    pa.field("__raw", pa.binary()),
    pa.field("__rule", pa.string()),
    pa.field("__error", pa.string()),
)
#: After them, where the dataset has `sequence_by`.
PLACE_FIELDS: tuple[pa.Field, ...] = (
    pa.field("__ci", pa.string()),
    pa.field("__tail", pa.string()),
)
#: After them, of records that are changes: those of a load have the time of the load.
TIME_FIELDS: tuple[pa.Field, ...] = (pa.field("__ts", TIMESTAMP_UTC),)


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a landed file.

    Attributes:
        number: its place in the order of reading, from 0.
        file: path in the object store.
        first: index in the file of its first record.
        skip: how many of its records were read before.
        before: landed bytes of the file before it.
        size: landed bytes of it.
        begin: where it begins: a byte of a text, a row group or a stripe.
        end: where the next one begins; None at the end of the file.
    """

    number: int
    file: str
    first: int
    skip: int
    before: int
    size: int
    begin: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class SplitBoundary:
    """A place in a file, between two splits.

    Attributes:
        records: index in the file of the next record.
        before: landed bytes of the file before it.
        begin: where it begins, as in a `Split`.
    """

    records: int = 0
    before: int = 0
    begin: int = 0


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys of a split that are all different: each is greater than the one before."""

    low: int | str
    high: int | str


@dataclass(frozen=True, slots=True)
class SplitReport:
    """What a task says of a split that it has read.

    Attributes:
        records: read after those that were skipped, rejected ones too.
        types: columns whose type would have been another one, had only this split been read.
        refused: why the split must be read as a batch, None when it need not be.
        damaged: why the file cannot be read, None when it can.
        failed: why the store did not give it.
        newest: time of the newest record, in microseconds.
        copied_to: highest change identifier.
        keys: None when they may not all be different.
        unparsed: rejected records that could not be parsed.
    """

    records: int
    types: Mapping[str, DataType]
    refused: str | None = None
    damaged: str | None = None
    failed: PolynyaError | None = None
    newest: int | None = None
    copied_to: str | None = None
    keys: KeyRange | None = None
    unparsed: int = 0


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """How much is worth a load of its own, goes into one commit, and into one split; in bytes.

    `least_change_bytes`: change files of so many bytes are read by tasks, None: by one process.
    """

    least_bytes: int = 8 * 1024 * 1024
    commit_bytes: int = 1024 * 1024 * 1024
    split_bytes: int = 32 * 1024 * 1024
    least_change_bytes: int | None = None


#: Two full batches of change files, as `batch.max_bytes` is by default.
_LEAST_CHANGE_BYTES: Final = 128 * 1024 * 1024
#: Bytes of one commit for each core: four tasks of the largest size.
_COMMIT_BYTES_A_CORE: Final = 256 * 1024 * 1024


def limits_of(cores: int, *, on_cluster: bool) -> LoadLimits:
    """The limits of a session whose tasks have so many cores.

    Beside a cluster, one process that reads change files in batches would leave the cores of all
    executors idle. Within one process it holds a batch at a time, and reads it as columns.
    """
    if not on_cluster:
        return LoadLimits()
    return LoadLimits(
        commit_bytes=max(LoadLimits().commit_bytes, cores * _COMMIT_BYTES_A_CORE),
        least_change_bytes=_LEAST_CHANGE_BYTES,
    )


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """What tasks shall read, and what is assumed of it.

    Attributes:
        splits: in the order of reading.
        schema: every column, in the order of first sight.
        declared: columns of the newest schema of the files, None when they declare none.
        met: columns that the files, or the first records of them, really have.
        progress: of every file that is touched; `records` is where the plan begins in it.
        rejected: files that cannot be read.
        reader: reads splits; it is sent to the tasks.
        load: the records are those of a full load, else they are changes.
    """

    splits: tuple[Split, ...]
    schema: Mapping[str, DataType]
    declared: tuple[str, ...] | None
    progress: Mapping[str, FileProgress]
    rejected: tuple[Rejected, ...]
    reader: SplitReader
    met: frozenset[str] = frozenset()
    load: bool = True

    def progress_after(self, reports: Mapping[int, SplitReport]) -> dict[str, FileProgress]:
        """How far each file was read once every split has its report."""
        found = dict(self.progress)
        for split in self.splits:
            read = split.first + split.skip + reports[split.number].records
            found[split.file] = replace(found[split.file], records=read)
        return found

    def places_after(self, reports: Mapping[int, SplitReport]) -> dict[str, SplitBoundary]:
        """Where files go on that were not read to their ends, once every split has its report."""
        last = {split.file: split for split in self.splits}
        done = self.progress_after(reports)
        return {
            file: SplitBoundary(done[file].records, split.before + split.size, split.end)
            for file, split in last.items()
            if split.end is not None and not done[file].complete
        }

    def until(self, number: int) -> SplitPlan:
        """The plan of the splits before one of them."""
        kept = tuple(split for split in self.splits if split.number < number)
        files = {split.file for split in kept} | {record.file for record in self.rejected}
        (cut,) = (split.file for split in self.splits if split.number == number)
        progress = {path: done for path, done in self.progress.items() if path in files}
        if cut in progress:
            progress[cut] = replace(progress[cut], complete=False)
        return replace(self, splits=kept, progress=progress)


def task_schema(schema: Mapping[str, DataType], *, placed: bool, timed: bool = False) -> pa.Schema:
    """The fields of what tasks yield; `placed`, `timed`: records have own places, own times."""
    columns = (pa.field(name, arrow_type(kind)) for name, kind in schema.items())
    own = [*(PLACE_FIELDS if placed else ()), *(TIME_FIELDS if timed else ())]
    return pa.schema([*RECORD_FIELDS, *own, *columns])


def rejected_rows(rejected: Sequence[Rejected], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of records, or of whole files, that are rejected."""
    columns = {
        "__file": pa.array([record.file for record in rejected], pa.string()),
        "__offset": pa.array([record.offset for record in rejected], pa.int64()),
        "__raw": pa.array([record.raw for record in rejected], pa.binary()),
        "__rule": pa.array([record.rule for record in rejected], pa.string()),
        "__error": pa.array([record.error for record in rejected], pa.string()),
    }
    return in_fields(columns, len(rejected), schema)


def in_fields(columns: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Columns as rows in the fields of a schema; those that are missing are NULL."""
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


#: Takes the report of a split when it was read.
Tell: TypeAlias = Callable[[int, SplitReport], None]


class SplitReader(Protocol):
    """Reads splits in a task. It can be pickled."""

    def read(self, split: Split, tell: Tell) -> Iterator[pa.RecordBatch]:
        """The rows of a split, in the fields of `task_schema`; its report when they were taken."""
        ...


class LoadFormat(Protocol):
    """How files of a format are cut into splits."""

    def plan(
        self,
        request: ReadRequest,
        limits: LoadLimits,
        damaged: Mapping[str, str],
        places: Mapping[str, SplitBoundary],
    ) -> SplitPlan | str:
        """Cut files, as many as one commit shall take; else why they must be read as batches.

        `damaged` are files that cannot be read, as tasks found out, with the reason. `places` are
        where files go on, as far as it is known; others are read from their start to find it.
        """
        ...

    def settled(self, plan: SplitPlan, reports: Mapping[int, SplitReport]) -> SplitPlan:
        """The plan with the columns that were met, and only up to where they cannot be settled.

        The same plan when all is as it was assumed.
        """
        ...
