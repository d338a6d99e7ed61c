"""Reading quarantined records of Replicate files again.

The `.dfm` file is read again if it is still there: it may have been repaired. Without it the raw
bytes and the types of the table are enough.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from polynya.formats.base import RereadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, Rejected
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files.folders import by_kind
from polynya.formats.records.openers import opener_of
from polynya.formats.records.separated import Dialect, fields, pieces
from polynya.formats.replicate.batches import FileFacts, to_batch
from polynya.formats.replicate.header import MASK
from polynya.formats.replicate.metadata import Metadata, read_metadata
from polynya.formats.replicate.rows import change_of
from polynya.formats.replicate.tables import is_load, kind_of
from polynya.formats.values.buffer import RecordBuffer
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import DataType
from polynya.store.object_store import ObjectStore


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
    return to_batch(buffer, dataset, known, keys, FileFacts(kind, types), before=before)


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
        return Metadata((), self._known, (), {}, Dialect.of(self._dataset.landing.delivery), None)


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
