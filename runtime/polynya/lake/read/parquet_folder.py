"""A folder of Parquet files that others write, as one table with versions. Needs no JVM.

A version is the list of the files with their sizes and the store's own version of each (on S3 the
ETag and the time). Its number is a digest of that list, so the same files have the same number in
each process. Rows are read from the files of one version: a file that was replaced since its
listing ends the read.

The list is in the order of the files' times. So an older version to which files were only added is
the beginning of the list, and its number tells where it ends.

As Spark does, files and folders whose names begin with `_` or `.` are left out, and a folder
`day=2026-01-31` gives the rows below it a column, as text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.columnar import column_types, exact_batches, opened_parquet
from polynya.formats.values.arrow_types import arrow_type
from polynya.model.config.registered import RegisteredDataset
from polynya.model.error_catalogue.registered import (
    REGISTERED_CHANGED,
    REGISTERED_MISSING,
    REGISTERED_UNREADABLE,
)
from polynya.model.errors import OperationError
from polynya.model.names import folded, shown
from polynya.model.promotion import storage_type, widen
from polynya.model.types import STRING, DataType
from polynya.store.object_store import ObjectInfo, ObjectStore

#: Rows that are read at a time.
_BATCH_ROWS: Final = 65_536
#: What Hive writes for NULL in the name of a folder.
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
#: Footers that are read at the same time.
_READERS: Final = 8
#: What a file raises that is not read.
UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, UnreadableFileError)


@dataclass(frozen=True, slots=True)
class FolderVersion:
    """The files of a table at one moment, and the columns of their rows.

    `number` is from 0 to 2^63 - 1. `form` is what holds the rows, for people.
    """

    number: int
    files: tuple[ObjectInfo, ...]
    columns: Mapping[str, DataType]
    #: Values of columns by the path of the file whose rows have them. None: those of its folders.
    values: Mapping[str, Mapping[str, object]] | None = None
    form: str = "Parquet"

    @property
    def schema(self) -> pa.Schema:
        """The columns in Arrow."""
        return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in self.columns.items()])

    def rows_of(self, store: ObjectStore, file: ObjectInfo) -> Iterator[pa.RecordBatch]:
        """The rows of one of the files in the columns of the table; what it lacks is NULL.

        Raises FileReplacedError for another file than that of this version, at its end at the
        latest, and one of UNREADABLE.
        """
        given = _folders(file.path) if self.values is None else self.values[file.path]
        schema = self.schema
        try:
            with store.open(file.path) as opened:
                for batch in exact_batches(opened, _BATCH_ROWS, columns=list(self.columns)):
                    batch.validate(full=True)
                    yield pa.RecordBatch.from_arrays(
                        [self._column(batch, field, given) for field in schema], schema=schema
                    )
        except UNREADABLE as error:
            # A file that is written in place may be torn.
            if not _is_there(store, file):
                raise FileReplacedError(file.path) from error
            raise
        if not _is_there(store, file):
            raise FileReplacedError(file.path)

    def _column(
        self, batch: pa.RecordBatch, wanted: pa.Field, given: Mapping[str, object]
    ) -> pa.Array:
        place = batch.schema.get_field_index(wanted.name)
        # What a log says of a file counts more than a column in it, the name of a folder less.
        if place < 0 or (self.values is not None and wanted.name in given):
            value = given.get(wanted.name)
            kind = pa.string() if isinstance(value, str) else wanted.type
            return pa.repeat(pa.scalar(value, kind), batch.num_rows).cast(wanted.type)
        column = batch.column(place)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.cast(wanted.type)


class FileReplacedError(Exception):
    """A file is not the listed one any more."""


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """The files that make the difference between two versions of a table, each as a version.

    A row that is in one version only is in one of them. `share` is theirs of all bytes.
    """

    removed: FolderVersion
    added: FolderVersion
    share: float

    @classmethod
    def between(
        cls, before: FolderVersion, now: FolderVersion, only: frozenset[str] | None = None
    ) -> FolderChanges:
        """Those of two versions with the same columns; `only` these paths, where that is known."""
        removed, added = (
            replace(
                one,
                files=tuple(
                    file
                    for file in one.files
                    if file not in others and (only is None or file.path in only)
                ),
            )
            for one, others in ((before, frozenset(now.files)), (now, frozenset(before.files)))
        )
        sizes = [
            sum(file.size for file in files)
            for files in (removed.files + added.files, before.files + now.files)
        ]
        return cls(removed, added, sizes[0] / max(1, sizes[1]))

    def keys(self, store: ObjectStore, columns: Sequence[str], most: int) -> pa.Table | str:
        """The values of some columns in all rows of these files; more than `most` are not read.

        The reason, as a sentence, where they are not known.
        """
        if lacking := [name for name in columns if name not in self.added.columns]:
            return f"it has no column {shown(lacking[0])}"
        types = {name: self.added.columns[name] for name in columns}
        tasks = [
            (replace(version, columns=types), file)
            for version in (self.removed, self.added)
            for file in version.files
        ]
        parts: list[pa.Table] = []
        with ThreadPoolExecutor(_READERS) as pool:
            for first in range(0, len(tasks), _READERS):
                some = tasks[first : first + _READERS]
                for part in pool.map(lambda task: _keys_of(store, task[0], task[1], most), some):
                    if isinstance(part, str):
                        return part
                    parts.append(part)
                if sum(part.num_rows for part in parts) > most:
                    return f"more than {most:,} of its rows were written since"
        none = replace(self.added, columns=types).schema.empty_table()
        return pa.concat_tables([none, *parts])


def _keys_of(
    store: ObjectStore, version: FolderVersion, file: ObjectInfo, most: int
) -> pa.Table | str:
    """The rows of a file, of a version with some columns; a few more than `most` at the most."""
    batches: list[pa.RecordBatch] = []
    rows = 0
    try:
        for batch in version.rows_of(store, file):
            batches.append(batch)
            rows += batch.num_rows
            if rows > most:
                break
    except FileReplacedError:
        return f"its file {shown(file.path)} was replaced or removed"
    except UNREADABLE as error:
        return f"its file {shown(file.path)} was not read: {error}"
    return pa.Table.from_batches(batches, version.schema)


@dataclass(slots=True)
class ParquetFolder:
    """The files below the root of a store. Footers of files that stay are read once."""

    store: ObjectStore
    dataset: RegisteredDataset
    _footers: dict[tuple[str, str], dict[str, DataType]] = field(default_factory=dict)
    _newest: FolderVersion | None = None

    def newest(self) -> FolderVersion:
        """The files as they are now.

        Raises OperationError: there is none, the folder is a table of another format, a file is not
        Parquet, or files disagree about a column. Raises what the store raises.
        """
        files = tuple(self._listed())
        if not files:
            reason = f"{shown(self._place)} holds no Parquet file"
            raise REGISTERED_MISSING(where=self._name, table=self._name, reason=reason)
        *_, number = _numbers(files)
        if self._newest is None or self._newest.number != number:
            self._read_footers(files)
            self._newest = FolderVersion(number, files, self._columns(files))
        return self._newest

    def at(self, number: int) -> FolderVersion | None:
        """A version that can be read: the newest, or one to which files were only added."""
        newest = self._newest
        if newest is None or newest.number == number:
            return newest
        for count, found in enumerate(_numbers(newest.files), 1):
            if found == number:
                own = frozenset(_by_time(newest.files)[:count])
                files = tuple(file for file in newest.files if file in own)
                return FolderVersion(number, files, self._columns(files))
        return None

    def shows_same_rows(self, before: int, now: int) -> bool:
        """Whether two versions surely have the same rows and columns."""
        return before == now

    def changes(self, before: int, now: int) -> FolderChanges | str:
        """The files that make the difference between two versions; or why they are not known."""
        old, new = self.at(before), self.at(now)
        if old is None or new is None:
            return (
                "a file of it was replaced or removed, or its new files are not newer than others"
            )
        return FolderChanges.between(old, new)

    def batches(self, version: FolderVersion) -> Iterator[pa.RecordBatch]:
        """The rows of a version. Raises OperationError."""
        for file in version.files:
            try:
                yield from version.rows_of(self.store, file)
            except FileReplacedError as error:
                raise REGISTERED_CHANGED(where=self._name, table=self._name) from error
            except UNREADABLE as error:
                raise self._unreadable(f"{shown(file.path)}: {error}") from error

    @property
    def _name(self) -> str:
        return self.dataset.relations.current

    @property
    def _place(self) -> str:
        return self.dataset.table.source

    def _unreadable(self, reason: str) -> OperationError:
        return REGISTERED_UNREADABLE(where=self._name, table=self._name, reason=reason)

    def _listed(self) -> Iterator[ObjectInfo]:
        for file in self.store.list():
            parts = file.path.split("/")
            if "_delta_log" in parts:
                raise self._unreadable("the folder holds a Delta table: name it by `delta`")
            if parts[-1].endswith(".metadata.json"):
                raise self._unreadable("the folder holds an Iceberg table")
            if all(part and part[0] not in "_." for part in parts):
                yield file

    def _read_footers(self, files: Sequence[ObjectInfo]) -> None:
        """Know those of these files, and no others."""
        new = [file for file in files if (file.path, file.version) not in self._footers]
        with ThreadPoolExecutor(_READERS) as pool:
            read = zip(new, pool.map(self._footer, new), strict=True)
            known = self._footers | {(file.path, file.version): types for file, types in read}
        listed = {(file.path, file.version) for file in files}
        self._footers = {place: types for place, types in known.items() if place in listed}

    def _columns(self, files: Sequence[ObjectInfo]) -> dict[str, DataType]:
        """The columns of all files, in the order in which they occur first."""
        columns: dict[str, DataType] = {}
        for file in files:
            for name, kind in self._footers[file.path, file.version].items():
                before = columns.setdefault(name, kind)
                common = widen(before, kind)
                if common is None:
                    raise self._unreadable(
                        f"column {shown(name)} is {kind} in {shown(file.path)} and {before} in "
                        "files before it"
                    )
                columns[name] = common
        seen: dict[str, str] = {}
        for name in columns:
            if (other := seen.setdefault(folded(name), name)) != name:
                raise self._unreadable(f"{shown(other)} and {shown(name)} are one name to engines")
        return {name: storage_type(kind) for name, kind in columns.items()}

    def _footer(self, file: ObjectInfo) -> dict[str, DataType]:
        """The columns of a file, and those of its folders."""
        try:
            with self.store.open(file.path) as opened:
                own = column_types(opened_parquet(opened).schema_arrow)
        except FileNotFoundError as error:
            raise REGISTERED_CHANGED(where=self._name, table=self._name) from error
        except UNREADABLE as error:
            raise self._unreadable(f"{shown(file.path)}: {error}") from error
        return dict.fromkeys(_folders(file.path), STRING) | own


def _is_there(store: ObjectStore, file: ObjectInfo) -> bool:
    """Whether a file is still the listed one. One without a version was named and not listed."""
    now = next(iter(store.beginning(file.path)), None)
    if now is None or now.path != file.path:
        return False
    return not file.version or now.version == file.version


def _folders(path: str) -> dict[str, str | None]:
    """The columns that the folders of a file give: `day=2026-01-31`."""
    pairs = (part.partition("=") for part in path.split("/")[:-1] if "=" in part[1:])
    return {
        unquote(name): None if value == _NO_VALUE else unquote(value) for name, _, value in pairs
    }


def _by_time(files: Sequence[ObjectInfo]) -> list[ObjectInfo]:
    return sorted(files, key=lambda file: (file.written or 0.0, file.path))


def _numbers(files: Sequence[ObjectInfo]) -> Iterator[int]:
    """The numbers of the versions of the first one, two … files by time, the last of all files."""
    digest = hashlib.sha256()
    for file in _by_time(files):
        digest.update(json.dumps([file.path, file.size, file.version]).encode())
        yield int.from_bytes(digest.digest()[:8]) >> 1
