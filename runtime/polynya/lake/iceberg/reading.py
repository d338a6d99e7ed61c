"""Read Parquet data files as Arrow without Spark: columns by field id, kept in memory.

A data file never changes, so its footer and its columns can be kept. That pays for a small table,
which every apply reads again: opening and decoding its files costs more than the rest of the apply.

`reach_of` decides which files of a table Arrow reads and writes, with the reason. The settings for
S3 that Iceberg's Java side got must hold for Arrow too, so an option without a counterpart in Arrow
leaves the files to Java. A secret among the catalog's options is such an option; `FileAccess` holds
none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.arrow_columns import arrow_type, field_id, holds, typed
from polynya.store.aws.data_objects import S3Files
from polynya.store.data_files import DataFiles, LocalFiles, ReadableFiles

#: Bytes of decoded columns in this process.
CACHE_BYTES: Final = 128 * 2**20
#: What a column takes beside its values, measured over 120,000 columns of three values. Thousands
#: of small files are kept, and their values are the smallest part.
COLUMN_BYTES: Final = 1_200

Columns: TypeAlias = dict[str, pa.ChunkedArray]


class ColumnCache:
    """Columns by place (a file, or a part of one), up to `limit` bytes: the last used stay.

    Each counts with its values and `COLUMN_BYTES`. Threads share it.
    """

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._places: OrderedDict[Hashable, Columns] = OrderedDict()
        self.size_bytes = 0

    def of(self, place: Hashable, names: Iterable[str]) -> Columns:
        """Those of the columns that are known."""
        with self._lock:
            cached = self._places.get(place)
            if cached is None:
                return {}
            self._places.move_to_end(place)
            return {name: cached[name] for name in names if name in cached}

    def add(self, place: Hashable, columns: Mapping[str, pa.ChunkedArray]) -> None:
        """Keep columns; places that were not used for the longest time are forgotten."""
        with self._lock:
            cached = self._places.setdefault(place, {})
            self._places.move_to_end(place)
            for name, column in columns.items():
                if name not in cached:
                    cached[name] = column
                    self.size_bytes += _size_of(column)
            while self.size_bytes > self._limit:
                _, forgotten = self._places.popitem(last=False)
                self.size_bytes -= sum(map(_size_of, forgotten.values()))


def _size_of(column: pa.ChunkedArray) -> int:
    return int(column.nbytes) + COLUMN_BYTES


#: What this process keeps.
COLUMN_CACHE: Final = ColumnCache()


T = TypeVar("T")
R = TypeVar("R")

#: Footers that stay in memory, the last used. One of 32 columns takes 85 kB there (2026-12-01,
#: 6.8 kB in its file), so all of them 170 MB.
KNOWN_FOOTERS = 2000


def is_read_by(files: ReadableFiles, location: str) -> bool:
    """Whether a location is one of these files, and of Parquet."""
    return location.endswith(".parquet") and files.holds(location)


def each_read(files: ReadableFiles, read: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """`read` of each, as many at the same time as these files are best read. Raises its errors."""
    things = list(things)
    if len(things) < 2 or files.readers < 2:
        return [read(thing) for thing in things]
    with ThreadPoolExecutor(files.readers) as pool:
        return list(pool.map(read, things))


class TableFile:
    """One Parquet file of a table. Columns are given as Iceberg writes a schema in JSON."""

    def __init__(self, files: DataFiles, location: str) -> None:
        self._files, self._location = files, location
        with files.open(location) as source:
            self.footer = pq.read_metadata(source)
        fields = self.footer.schema.to_arrow_schema()
        self._fields = {
            number: field for field in fields if (number := field_id(field)) is not None
        }
        leaves = range(self.footer.num_columns)
        self._leaves = {self.footer.schema.column(index).path: index for index in leaves}
        rows = [self.footer.row_group(group).num_rows for group in self.groups]
        self.starts = [sum(rows[:group]) for group in self.groups]

    @property
    def groups(self) -> range:
        """Numbers of the row groups."""
        return range(self.footer.num_row_groups)

    def reads(self, columns: Sequence[Mapping[str, Any]]) -> bool:
        """Whether `read` can give these columns as the table has them now."""
        fields = [(self._fields.get(column["id"]), column["type"]) for column in columns]
        return bool(self._fields) and all(
            arrow_type(kind) is not None if field is None else holds(field, kind)
            for field, kind in fields
        )

    def own(self, columns: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those of the columns that the file has; the others are NULL in each of its rows."""
        return [column for column in columns if column["id"] in self._fields]

    def reads_all(self, columns: Sequence[Mapping[str, Any]]) -> bool:
        """Whether its rows are known from `own` of these columns, all that the table has."""
        defaults = any(
            "initial-default" in column and column["id"] not in self._fields for column in columns
        )
        return not defaults and self.reads(self.own(columns))

    def empty(self, columns: Sequence[Mapping[str, Any]]) -> pa.Table:
        """No row of `own` of these columns."""
        own = [(column, self._fields[column["id"]].type) for column in self.own(columns)]
        return pa.schema(
            [pa.field(column["name"], typed(kind, column["type"])) for column, kind in own]
        ).empty_table()

    def read(
        self, group: int, columns: Sequence[Mapping[str, Any]], *, keep: bool = False
    ) -> pa.Table:
        """Columns of a row group under their names in the table; one that it lacks is NULL.

        `keep`: they are likely to be read again.
        """
        return self._read(group, columns, None, keep=keep)

    def read_at(
        self,
        group: int,
        columns: Sequence[Mapping[str, Any]],
        rows: pa.Array,
        *,
        keep: bool = False,
    ) -> pa.Table:
        """The same of some rows, by their places in the row group."""
        return self._read(group, columns, rows, keep=keep)

    def _read(
        self,
        group: int,
        columns: Sequence[Mapping[str, Any]],
        places: pa.Array | None,
        *,
        keep: bool,
    ) -> pa.Table:
        there = {
            column["id"]: self._fields[column["id"]]
            for column in columns
            if column["id"] in self._fields
        }
        names = [field.name for field in there.values()]
        coded = (
            []
            if keep or places is None
            else [name for name in names if self._is_coded(group, name)]
        )
        rows = self._columns(group, names, keep=keep, coded=coded)
        count = self.footer.row_group(group).num_rows if places is None else len(places)
        arrays: dict[str, Any] = {}
        for one in columns:
            field = there.get(one["id"])
            if field is None:
                column = pa.nulls(count, arrow_type(one["type"]))
            elif places is None:
                column = rows[field.name]
            else:
                column = rows[field.name].take(places)
                column = column.cast(field.type) if field.name in coded else column
            arrays[one["name"]] = column.cast(typed(column.type, one["type"]))
        return pa.table(arrays)

    def _is_coded(self, group: int, name: str) -> bool:
        """Whether all texts of a column are codes of a dictionary: then few of them are decoded."""
        leaf = self._leaves.get(name)
        if leaf is None:
            return False
        chunk = self.footer.row_group(group).column(leaf)
        encodings = set(chunk.encodings)
        return (
            chunk.physical_type == "BYTE_ARRAY"
            and "PLAIN" not in encodings
            and bool(encodings & {"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
        )

    def _columns(
        self, group: int, names: Sequence[str], *, keep: bool, coded: Sequence[str] = ()
    ) -> Columns:
        place = (self._files, self._location, group)
        cached = COLUMN_CACHE.of(place, names) if keep else {}
        missing = [name for name in names if name not in cached]
        if not missing:
            return cached
        # Not `pq.read_table`: threads that it leaves may abort a process that exits right after.
        # Ranges of columns that are side by side are asked for at once.
        with (
            self._files.open(self._location) as source,
            pq.ParquetFile(
                source, metadata=self.footer, pre_buffer=True, read_dictionary=list(coded)
            ) as file,
        ):
            rows = file.read_row_group(group, columns=missing, use_threads=False)
        read = {name: rows.column(name) for name in missing}
        if keep:
            COLUMN_CACHE.add(place, read)
        return cached | read

    def bounds(self, group: int, column: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Values that no value of a row group is below and above; None when it tells none."""
        statistics = self._statistics(group, column)
        return (
            None
            if statistics is None or not statistics.has_min_max
            else (statistics.min, statistics.max)
        )

    def nulls(self, group: int, column: Mapping[str, Any]) -> int | None:
        """Number of NULLs of a column in a row group; None when it tells none."""
        statistics = self._statistics(group, column)
        return (
            None
            if statistics is None or not statistics.has_null_count
            else int(statistics.null_count)
        )

    def size_bytes(self, group: int, column: Mapping[str, Any]) -> int:
        """Bytes that a column of a row group takes in the file; of one that it lacks, none."""
        field = self._fields.get(column["id"])
        leaf = None if field is None else self._leaves.get(field.name)
        chunk = None if leaf is None else self.footer.row_group(group).column(leaf)
        return 0 if chunk is None else int(chunk.total_compressed_size)

    def _statistics(self, group: int, column: Mapping[str, Any]) -> Any:
        field = self._fields.get(column["id"])
        leaf = None if field is None else self._leaves.get(field.name)
        return None if leaf is None else self.footer.row_group(group).column(leaf).statistics


@lru_cache(maxsize=KNOWN_FOOTERS)
def stored_file(files: DataFiles, location: str) -> TableFile:
    """The file at a location, with its footer. Raises OSError."""
    return TableFile(files, location)


#: The FileIO whose options matter.
S3_FILE_IO: Final = "org.apache.iceberg.aws.s3.S3FileIO"
_REGION, _ENDPOINT, _PATH_STYLE = "client.region", "s3.endpoint", "s3.path-style-access"
_ENCRYPTION: Final = "s3.sse."
#: Names of the options that reach S3 begin like this.
_OPTIONS: Final = ("client.", "http-client.", "s3.")
#: Options that decide how fast Java is, not what S3 is asked for.
_OF_JAVA: Final = ("s3.delete.", "s3.multipart.", "s3.retry.", "s3.staging-dir")


@dataclass(frozen=True, slots=True)
class FileAccess:
    """What reads and what writes the files of a table without the JVM; else the reason."""

    reads: DataFiles | str
    writes: DataFiles | str


def reach_of(location: str, file_io: str, options: Mapping[str, str]) -> FileAccess:
    """How files below a location are reached, whose table has a FileIO of this Java class.

    `options` are those of the FileIO; a local location needs none.
    """
    local = LocalFiles()
    if local.holds(location):
        return FileAccess(local, local)
    why = _refusal(location, file_io, options)
    if why is not None:
        return FileAccess(why, why)
    endpoint = options.get(_ENDPOINT)
    path_style = options.get(_PATH_STYLE, "false").lower() == "true"
    files = S3Files(options[_REGION], endpoint, endpoint is not None and not path_style)
    encrypted = options.get(f"{_ENCRYPTION}type", "none")
    if encrypted != "none":
        return FileAccess(files, f"Arrow cannot ask S3 for encryption of the type {encrypted}")
    return FileAccess(files, files)


def _refusal(location: str, file_io: str, options: Mapping[str, str]) -> str | None:
    """Why only Java reads the files, None when Arrow does too."""
    if file_io != S3_FILE_IO:
        return f"files of {file_io.rpartition('.')[2]} are not local"
    if not options.get(_REGION):
        return "the catalog names no region"
    if options.get(f"{_ENCRYPTION}type") == "custom":
        return "files are encrypted with a key that the catalog was given"
    if not S3Files(options[_REGION]).holds(location):
        return f"{location} is not a location in S3 that Arrow can name"
    other = _unknown(options)
    return None if other is None else f"the catalog sets {other}, which Arrow does not know"


def _unknown(options: Iterable[str]) -> str | None:
    options_known = (_REGION, _ENDPOINT, _PATH_STYLE)
    of_s3 = (name for name in sorted(options) if name.startswith(_OPTIONS))
    return next(
        (
            name
            for name in of_s3
            if name not in options_known and not name.startswith((*_OF_JAVA, _ENCRYPTION))
        ),
        None,
    )
