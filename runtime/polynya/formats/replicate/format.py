"""Qlik Replicate: the format of the protocol, with reading and rereading of its files.

To reread quarantined records, the `.dfm` file is read again if it still exists: it may have been
repaired. Without it, the raw bytes and the column types of the table are enough.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from typing_extensions import override

from polynya.formats.base import LandingFormat, ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, FileProgress, Rejected
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files import Discovery, Folders, by_kind, full_load_of, sorted_out, unread
from polynya.formats.opening import landed_file
from polynya.formats.records.csv import CsvDialect, fields, pieces
from polynya.formats.records.openers import opener_of
from polynya.formats.replicate import order
from polynya.formats.replicate.batches import DescribedBatch, to_batch
from polynya.formats.replicate.metadata import HEADER_COLUMNS, Metadata, read_metadata
from polynya.formats.replicate.rows import (
    BEFORE_IMAGE,
    HEADER,
    MASK,
    DescribedFile,
    change_of,
    open_replicate,
)
from polynya.formats.replicate.tables import is_load, kind_of, metadata_path, table_of_replicate
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.names import NameSpace, column_problem, reserved_problem
from polynya.formats.values.rows import ObservedTypes
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import included
from polynya.model.config.task import StorageTask
from polynya.model.types import DataType
from polynya.store.object_store import ObjectInfo, ObjectStore


def read_replicate(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`. The `.dfm` files are in the same store.

    The batch does not end between a before image and its update, and it ends before a file of
    another format. Operations are L, I, U, D and T. A file that is not what its `.dfm` file says is
    one rejected record too.
    """
    reading = _Reading(request)
    for part in request.files:
        if reading.is_full:
            break
        try:
            own = kind_of(part.path)
            if reading.kind not in {None, own}:
                break
            reading.take_file(part)
            reading.kind = own
        except UnreadableFileError as error:
            reading.buffer.refuse_file(part, str(error))
    return to_batch(
        reading.buffer,
        request.table.dataset,
        request.table.schema,
        reading.keys,
        DescribedBatch(
            reading.kind or "csv",
            reading.types.types,
            reading.observed.types,
            reading.types.conflicts,
            reading.types.columns,
        ),
    )


class _Reading:
    """The state of one read: what the files and their metadata gave so far."""

    def __init__(self, request: ReadRequest) -> None:
        table = request.table
        self.buffer = RecordBuffer(request.limits)
        self.keys = table.dataset.events.keys or table.keys
        self.kind: str | None = None
        self.types = ObservedTypes()
        self.observed = ObservedTypes()
        self._store = request.store
        self._dataset = table.dataset
        self._known = table.schema

    @property
    def is_full(self) -> bool:
        """Whether the batch ends here: one more record may follow a before image."""
        if not self.buffer.is_full:
            return False
        last = [record[HEADER].operation for record in self.buffer.records[-2:]]
        # Two in a row are no pair; a file of nothing else must not fill the memory.
        return last[-1:] != [BEFORE_IMAGE] or last == [BEFORE_IMAGE, BEFORE_IMAGE]

    def take_file(self, part: FilePart) -> None:
        """Read one file, as far as the limits allow. Raises UnreadableFileError."""
        metadata = read_metadata(self._store, part.path, self._dataset.landing.delivery)
        self._check_names(metadata)
        # Also of a file that is refused: a table that begins with one still gets its keys.
        self.keys = self._agreed_keys(metadata)
        described = DescribedFile(
            kind_of(part.path), is_load(part.path, self._dataset.landing.folder), metadata
        )
        has_header = self._dataset.landing.delivery.has_header
        with landed_file(self._store, part.path, described.kind) as file:
            opened = open_replicate(file, part.start, described, has_header=has_header)
            offset, complete = part.start, False
            for raw, parsed in opened.records:
                if self.is_full:
                    break
                self.buffer.add(part.path, offset, raw, parsed)
                offset += 1
            else:
                complete = True
        self.buffer.progress[part.path] = part.read(offset, complete=complete)
        # Not before: a file that turns out to be damaged has no say in the types.
        self.types.learn(metadata.types)
        self.observed.learn(opened.types)

    def _check_names(self, metadata: Metadata) -> None:
        """Whether the table can have the columns. They come before any record could be refused."""
        space = NameSpace([*self._known, *self._dataset.events.columns, *self.types.types])
        for name in metadata.columns:
            if name in HEADER_COLUMNS:
                continue
            problem = column_problem(name) or space.clash(name)
            if name not in self._dataset.events.except_columns:
                problem = problem or reserved_problem(name)
            if problem is not None:
                raise UnreadableFileError(f"its .dfm file names {problem}")

    def _agreed_keys(self, metadata: Metadata) -> tuple[str, ...]:
        own = metadata.keys
        if self._dataset.events.keys or not own or not self.keys:
            return self.keys or own
        if set(own) != set(self.keys):
            raise UnreadableFileError(
                f"its .dfm file names the keys {list(own)}, the table has {list(self.keys)}"
            )
        return self.keys


def groups_of(files: Collection[str]) -> list[set[str]]:
    """Files of one kind make one batch."""
    return by_kind(files, kind_of)


def reread_replicate(request: RereadRequest) -> DatasetBatch:
    """Read records of one group again, as one batch."""
    dataset, known = request.table.dataset, request.table.schema
    again = _Again(request.store, dataset, known)
    buffer = RecordBuffer(BatchLimits())
    before: dict[int, Mapping[str, Any]] = {}
    kind = "csv"
    for record in request.records:
        kind = kind_of(record.file)
        try:
            *images, change = again.changes(record)
        except RecordError as error:
            buffer.add(record.file, record.offset, record.raw, error)
            continue
        if images:
            before[len(buffer.records)] = images[0]
        buffer.add(record.file, record.offset, record.raw, change)
    # JSON spells decimals and times as text: the types of the table say what they are.
    types = {**known, **again.types} if kind == "parquet" else again.types
    keys = dataset.events.keys or request.table.keys
    return to_batch(buffer, dataset, known, keys, DescribedBatch(kind, types), before=before)


class _Again:
    """Files whose records are read again; their `.dfm` files are read once."""

    def __init__(
        self, source: ObjectStore, dataset: ResolvedDataset, known: Mapping[str, DataType]
    ) -> None:
        self._source = source
        self._dataset = dataset
        self._known = known
        self._metadata: dict[str, Metadata | None] = {}

    @property
    def types(self) -> dict[str, DataType]:
        """Types of all `.dfm` files that could be read."""
        read = [metadata for metadata in self._metadata.values() if metadata is not None]
        return {name: kind for metadata in read for name, kind in metadata.types.items()}

    def changes(self, record: Rejected) -> list[dict[str, Any]]:
        """The change, after the before image if its raw bytes hold one. Raises RecordError."""
        kind = kind_of(record.file)
        metadata = self._of(record.file)
        found = _csv_records(record.raw, metadata) if kind == "csv" else _objects(record.raw)
        if not found:
            raise RecordError("bad_csv" if kind == "csv" else "bad_json", "there is no record")
        load = is_load(record.file, self._dataset.landing.folder)
        spelled = kind != "parquet"
        if not spelled:
            found = [_with_mask(values) for values in found]
        return [
            change_of(values, _described(metadata, values), is_load=load, spelled=spelled)
            for values in found
        ]

    def _of(self, file: str) -> Metadata:
        if file not in self._metadata:
            try:
                self._metadata[file] = read_metadata(
                    self._source, file, self._dataset.landing.delivery
                )
            except UnreadableFileError:
                self._metadata[file] = None
        found = self._metadata[file]
        if found is not None:
            return found
        return Metadata(
            (), self._known, (), {}, CsvDialect.of(self._dataset.landing.delivery), None
        )


def _csv_records(raw: bytes, metadata: Metadata) -> list[dict[str, Any]]:
    """The records after the line of names that raw CSV bytes begin with."""
    names, *rows = [fields(piece, metadata.dialect) for piece in pieces(io.BytesIO(raw))]
    if any(len(row) != len(names) for row in rows):
        raise RecordError("bad_csv", f"not {len(names)} fields, as there are columns")
    return [{str(n): value for n, value in zip(names, row, strict=True)} for row in rows]


def _objects(raw: bytes) -> list[dict[str, Any]]:
    found = []
    for _, parsed in opener_of("json")(io.BytesIO(raw), 0).records:
        if isinstance(parsed, RecordError):
            raise parsed
        found.append(parsed)
    return found


def _described(metadata: Metadata, values: Mapping[str, Any]) -> Metadata:
    """The metadata with bits for the columns of a record that it may not know."""
    if metadata.bits:
        return metadata
    return replace(metadata, bits={name: bit for bit, name in enumerate(values)})


def _with_mask(values: dict[str, Any]) -> dict[str, Any]:
    """A Parquet record with the bytes of its mask, out of JSON text. Raises RecordError."""
    text = values.get(MASK)
    if text is None:
        return values
    try:
        return {**values, MASK: base64.b64decode(str(text), validate=True)}
    except binascii.Error as error:
        raise RecordError("bad_header", f"{MASK}: {error}") from None


class ReplicateFormat(LandingFormat):
    """Files of Qlik Replicate on S3, each with its `.dfm` file."""

    def __init__(self, task: StorageTask) -> None:
        self._root = task.landing.path
        self._included = partial(included, task)

    @override
    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        """Landed files by the table whose folder they are in; each waits for its `.dfm` file."""
        return sorted_out(landed, self._root, table_of_replicate, self._included, metadata_path)

    @override
    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        """The full load, then changes, by name."""
        del dataset
        found = unread(landed, done)
        files = sorted(found.files, key=lambda part: not is_load(part.path, self._root))
        return replace(found, files=tuple(files))

    @override
    def read(self, request: ReadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: read_replicate(request)})

    @override
    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        """CSV, JSON and Parquet apart."""
        del dataset
        return groups_of(files)

    @override
    def reread(self, request: RereadRequest) -> ReadBatch:
        return ReadBatch({request.table.source: reread_replicate(request)})

    @override
    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        """The files that are in no folder of changes."""
        return full_load_of(
            landed,
            dataset,
            glob,
            table_of=table_of_replicate,
            is_load=lambda path: is_load(path, self._root),
        )

    @override
    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        """Change sequences begin with their time."""
        del dataset
        return order.place_of_load(began)
