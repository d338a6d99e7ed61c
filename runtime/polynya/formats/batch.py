"""A batch: typed rows, rejected records, and how far each file was read.

Row accounting is part of the type: `rows_in == rows.num_rows + len(rejected) + rows_filtered`,
checked on construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.eras import Era
from polynya.model.config.dataset import ReloadMode
from polynya.model.config.evolution import SchemaChange
from polynya.model.positions import DirectPosition, Span
from polynya.model.types import DataType
from polynya.store.object_store import ObjectInfo

WHOLE_FILE = -1
"""`Rejected.offset` of a file that cannot be read at all."""

OF_QUERY = -2
"""`Rejected.offset` of a row that a query returned; `Rejected.file` is `QUERY_FILE` then."""

QUERY_FILE = "its query"

NO_ORDER = "0" * 35
"""Change identifier of a row of the first load without a sequence: before every event."""


#: Rules of records whose bytes are not what they should be, so that nobody knows what they say.
#: What breaks another rule was understood, and does not fit the table.
UNPARSED: Final = frozenset(
    {
        "bad_archive", "bad_avro", "bad_csv", "bad_json", "bad_number", "bad_orc", "bad_parquet",
        "bad_record", "bad_utf8", "bad_xml", "duplicate_key", "no_match", "not_an_object",
        "too_deep", "too_large", "undecodable", "unknown_schema", "unreadable_file",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that goes to quarantine.

    `offset` is its 0-based index in the file, `WHOLE_FILE` for the file itself.
    """

    file: str
    offset: int
    rule: str
    error: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far a file of `size` bytes was read.

    `records` counts from its start, rejected and filtered ones too; `stamp`: see `ObjectInfo`.
    """

    size: int
    records: int
    complete: bool
    stamp: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file to read from record `start` on. `path` is relative to the object store."""

    path: str
    size: int
    start: int = 0
    stamp: int = field(default=0, compare=False)

    @classmethod
    def of(cls, info: ObjectInfo, start: int = 0) -> FilePart:
        """A file of a listing."""
        return cls(info.path, info.size, start, info.stamp)

    def read(self, records: int, *, complete: bool) -> FileProgress:
        """How far the file was read."""
        return FileProgress(self.size, records, complete, self.stamp)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Where a batch ends: at the first record with which one of the limits is reached.

    Of columns, bytes are counted by the mean size of their records.
    """

    max_rows: int = 200_000
    max_bytes: int = 64 * 1024 * 1024


class ReadLimits(Protocol):
    """`BatchLimits`, or the task's own settings."""

    @property
    def max_rows(self) -> int:
        """Most records in a batch."""
        ...

    @property
    def max_bytes(self) -> int:
        """Most bytes of raw records in a batch."""
        ...


TIMESTAMP_UTC = pa.timestamp("us", "UTC")

SERVICE_FIELDS: tuple[pa.Field, ...] = (
    pa.field("__file", pa.string()),
    pa.field("__offset", pa.int64()),
    pa.field("__raw", pa.binary()),
    pa.field("__op", pa.string()),
    pa.field("__ci", pa.string()),
    pa.field("__tail", pa.string()),
    pa.field("__position", pa.string()),
    pa.field("__ts", TIMESTAMP_UTC),
    pa.field("__unsent", pa.list_(pa.string())),
)
"""Service columns of `DatasetBatch.rows`; `__old` follows, its type is a struct of the keys."""

_PLACE: Final = ("__file", "__offset")
OLD_KEY_FIELD = "__old"
SERVICE_NAMES = frozenset([*(item.name for item in SERVICE_FIELDS), OLD_KEY_FIELD])


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What the state of a table takes from the rows of a batch.

    Attributes:
        newest: time of the newest row.
        copied_to: highest change identifier.
        unsent: columns that some row did not carry.
        has_old_keys: some row changed its key and carries values over.
        loads: some row is one of a full load.
        loaded_from: time of the earliest of them.
    """

    newest: datetime | None = None
    copied_to: str | None = None
    unsent: frozenset[str] = frozenset()
    has_old_keys: bool = False
    loads: bool = False
    loaded_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class OfSource:
    """What is known of a source once a batch is copied; see `KnownTable`."""

    key_names: tuple[tuple[str, ...], ...] = ()
    eras: tuple[Era, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadPart:
    """Which part of a load that is compared with the table the rows of a batch are.

    Attributes:
        load: number of the load.
        first: number of the chunk that they begin in, from 1.
        complete: number of the last chunk that was read to its end, 0 for none.
        is_complete: the load has no more chunks, and all of the last one was read.
        mode: what becomes of the rows that differ.
    """

    load: int
    first: int
    complete: int
    is_complete: bool
    mode: ReloadMode


@dataclass(frozen=True, slots=True)
class LoadedBatch:
    """A batch whose rows were read by tasks; see `DatasetBatch` and `BatchFacts`."""

    schema: Mapping[str, DataType]
    keys: tuple[str, ...]
    rows_in: int
    files: Mapping[str, FileProgress]
    facts: BatchFacts
    declared: tuple[str, ...] | None = None
    rows_filtered: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    called: str | None = None
    met: frozenset[str] | None = None
    of_load: bool = True
    source: Mapping[str, DataType] | None = None
    stream: DirectPosition | None = None
    landed: Span | None = None
    of_source: OfSource | None = None
    unparsed: int = 0
    changes: tuple[SchemaChange, ...] = ()


@dataclass(frozen=True, slots=True)
class DatasetBatch:
    """Rows of one dataset out of one read.

    Attributes:
        rows: service columns, then one column for every entry of `schema`.
        schema: every source column known so far, in the order of first sight; `Void` while only
            NULLs were seen.
        keys: key columns, from the configuration, else from the data.
        files: path to progress, for every file that was touched.
        counters: what was filtered, and why.
        changes: what the batch changes in the columns that were known.
        declared: the columns of the newest schema of the source, None when it declares none.
        called: what the source table is called at the end of the batch, None when it is no news.
        dropped: places, file and offset, of the truncates that stand for a dropped source table.
            Their policy is that of the drop.
        met: the columns that its records, or the schemas of its files, really have; None where the
            format does not say.
        of_load: it was read as a part of a full load, which may lack what only events have.
        raw_of: the raw bytes of a record, by its file and offset, where `__raw` is left NULL; None
            where every row has them.
        source: where the columns were mapped, the columns of the source as `schema` had them, which
            now are those of the table; None where nothing is mapped.
        stream: how far the stream was read with it, where no file says that. The table remembers it
            then, and no file.
        landed: where it lies among the landed batches of a stream, None where it was not read from
            these.
        of_source: what is known of the source with it; None where the format remembers nothing.
        place_of: gives file and offset of a record as people find them in the source, where those
            of the rows mean nothing to them.
        part: of a load that is compared with the table; None: the rows are events.
    """

    rows: pa.Table
    schema: Mapping[str, DataType]
    keys: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    rows_in: int
    rows_filtered: int
    files: Mapping[str, FileProgress]
    counters: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[SchemaChange, ...] = ()
    declared: tuple[str, ...] | None = None
    called: str | None = None
    dropped: frozenset[tuple[str, int]] = frozenset()
    met: frozenset[str] | None = None
    of_load: bool = False
    raw_of: Callable[[str, int], bytes] | None = None
    source: Mapping[str, DataType] | None = None
    stream: DirectPosition | None = None
    landed: Span | None = None
    of_source: OfSource | None = None
    place_of: Callable[[str, int], tuple[str, int]] | None = None
    part: LoadPart | None = None

    def __post_init__(self) -> None:
        out = self.rows.num_rows + len(self.rejected) + self.rows_filtered
        if self.rows_in != out:
            raise AssertionError(f"accounting: {self.rows_in} records in, {out} out")

    @property
    def rows_held(self) -> int:
        """Typed rows and rejected records."""
        return int(self.rows.num_rows) + len(self.rejected)

    @property
    def unparsed(self) -> int:
        """Rejected records that could not be parsed."""
        return sum(record.rule in UNPARSED for record in self.rejected)

    def with_raw(self, wanted: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Its rows, of which those where the boolean `wanted` is true have their raw bytes.

        These have the place that `place_of` says, too.
        """
        if self.raw_of is None or not pc.any(wanted, min_count=0).as_py():
            return self.rows
        raws: list[bytes | None] = [None] * self.rows.num_rows
        moved: dict[int, tuple[str, int]] = {}
        for index in pc.indices_nonzero(wanted).to_pylist():
            file, offset = (self.rows.column(name)[index].as_py() for name in _PLACE)
            raws[index] = self.raw_of(file, offset)
            if self.place_of is not None:
                moved[index] = self.place_of(file, offset)
        rows = self._with("__raw", raws, self.rows)
        for at, name in enumerate(_PLACE if moved else ()):
            values = rows.column(name).to_pylist()
            for index, place in moved.items():
                values[index] = place[at]
            rows = self._with(name, values, rows)
        return rows

    def found_in_source(self) -> DatasetBatch:
        """The same, whose rejected records stand where `place_of` says."""
        if self.place_of is None:
            return self
        places = [self.place_of(record.file, record.offset) for record in self.rejected]
        moved = (
            replace(one, file=file, offset=offset)
            for one, (file, offset) in zip(self.rejected, places, strict=True)
        )
        return replace(self, rejected=tuple(moved))

    def _with(self, name: str, values: Sequence[object], rows: pa.Table) -> pa.Table:
        column = pa.array(values, rows.schema.field(name).type)
        return rows.set_column(rows.column_names.index(name), name, column)

    @property
    def size_bytes(self) -> int:
        """Size of what it holds, in memory."""
        return int(self.rows.nbytes) + sum(len(record.raw) for record in self.rejected)

    @property
    def facts(self) -> BatchFacts:
        """What its rows say."""
        times = self.rows.column("__ts")
        loaded = times.filter(pc.equal(self.rows.column("__op"), "L"))
        return BatchFacts(
            newest=pc.max(times).as_py(),
            copied_to=pc.max(self.rows.column("__ci")).as_py(),
            unsent=frozenset(self._unsent()),
            has_old_keys=self._has_old_keys(),
            loads=len(loaded) > 0,
            loaded_from=pc.min(loaded).as_py(),
        )

    def _unsent(self) -> set[str]:
        column = self.rows.column("__unsent")
        if column.null_count == len(column):
            return set()
        return set(pc.unique(pc.list_flatten(column)).to_pylist())

    def _has_old_keys(self) -> bool:
        old, unsent = self.rows.column(OLD_KEY_FIELD), self.rows.column("__unsent")
        return bool(pc.any(pc.and_(pc.is_valid(old), pc.is_valid(unsent))).as_py() or False)


#: What a copy commits: rows that are here, or those that tasks have read and written.
AnyBatch: TypeAlias = DatasetBatch | LoadedBatch
