"""What was taken of landed batches so far, and the batch that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from polynya.formats.base import KnownTable
from polynya.formats.batch import (
    OLD_KEY_FIELD,
    SERVICE_FIELDS,
    BatchLimits,
    DatasetBatch,
    ReadLimits,
    Rejected,
)
from polynya.formats.columnar import numbered
from polynya.formats.contents.decoded import Decoded, Decoder, Item
from polynya.formats.contents.decoders import decoder_of
from polynya.formats.errors import RecordError
from polynya.formats.landed import Messages
from polynya.formats.records.csv import text_builder
from polynya.formats.stream.columns import MessageRows
from polynya.formats.stream.order import own_place, placed_records
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.batches import Extras, Placement, SettledRecords, batch_of, settled
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Faults, TypedColumn, build
from polynya.formats.values.rows import ColumnTypes, ObservedTypes
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.stream_content import Content, LandedContent
from polynya.model.headers import STREAM_HEADER_NAMES, TIME_HEADERS
from polynya.model.types import DataType

#: Rows of a piece, or records of the buffer from one index to another.
Part: TypeAlias = "pa.Table | tuple[int, int]"

_RAW = "__raw"


@dataclass(slots=True)
class HeaderColumns:
    """The header columns of records, taken from those of their messages."""

    _groups: list[tuple[Messages, list[int]]] = field(default_factory=list)

    def note(self, messages: Messages, index: int) -> None:
        """The next record came from the message at an index."""
        if not self._groups or self._groups[-1][0] is not messages:
            self._groups.append((messages, []))
        self._groups[-1][1].append(index)

    def columns(self) -> dict[str, TypedColumn]:
        """A column for each header of a source that was met."""
        types: dict[str, DataType] = {}
        for messages, _ in self._groups:
            types |= messages.types
        return {
            name: TypedColumn(kind, self._column(name, kind), {}) for name, kind in types.items()
        }

    def taken(self) -> list[int | None]:
        """When the source took each message, in microseconds; None where it does not say."""
        times: list[int | None] = []
        for messages, indexes in self._groups:
            name = TIME_HEADERS.get(messages.source)
            if name is None:
                times += [None] * len(indexes)
            else:
                column = messages.headers[name].view(pa.int64())
                times += column.take(pa.array(indexes, pa.int64())).to_pylist()
        return times

    def _column(self, name: str, kind: DataType) -> pa.Array:
        parts = [
            messages.headers[name].take(pa.array(indexes, pa.int64()))
            if name in messages.headers
            else pa.nulls(len(indexes), arrow_type(kind))
            for messages, indexes in self._groups
        ]
        return pa.concat_arrays(parts)


def with_headers(
    rows: pa.Table,
    headers: Mapping[str, TypedColumn],
    schema: Mapping[str, DataType],
    faults: Faults,
) -> pa.Table:
    """The good rows with their header columns, in the order of a schema; raw bytes are left out.

    `rows` are without the records of `faults`, `headers` with them.
    """
    count = rows.num_rows
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {
        name: rows.column(name) for name in rows.column_names
    }
    arrays[_RAW] = pa.nulls(count, pa.binary())
    for name, column in headers.items():
        good = [index not in faults for index in range(len(column.array))]
        arrays[name] = column.array.filter(pa.array(good, pa.bool_())) if faults else column.array
    names = [*(field.name for field in SERVICE_FIELDS), OLD_KEY_FIELD, *schema]
    columns = [
        arrays[name] if name in arrays else pa.nulls(count, arrow_type(schema[name]))
        for name in names
    ]
    return pa.table(columns, names=names)


def in_order(rows: pa.Table, parts: Sequence[Part], faults: Faults) -> pa.Table:
    """All rows in the order of the messages; `rows` are those of the records in the buffer.

    Pieces have no column that `rows` lack; what they lack is NULL.
    """
    if len(parts) == 1 and isinstance(parts[0], tuple):
        return rows
    found = [rows.schema.empty_table()]
    begin = 0
    for part in parts:
        if isinstance(part, tuple):
            first, after = part
            count = after - first
            if faults:
                count = sum(index not in faults for index in range(first, after))
            found.append(rows.slice(begin, count))
            begin += count
        else:
            found.append(_conformed(part, rows.schema))
    return pa.concat_tables(found)


def _conformed(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        _cast(piece.column(one.name), one.type)
        if one.name in piece.column_names
        else pa.nulls(piece.num_rows, one.type)
        for one in schema
    ]
    return pa.table(columns, schema=schema)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column in the type that the rest of the batch gave it."""
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:
        # Where only NULLs and empty arrays were met, text stands for the type that was not known.
        return pa.chunked_array([pa.array(column.to_pylist(), kind)])


#: (file, offset) → what the record can be read again by
RawOf = Callable[[str, int], bytes]


@dataclass(slots=True)
class TableRecords:
    """Records and pieces of one table.

    Attributes:
        known: what is known of the table.
        raw_of: tells what a record can be read again by.
        limits: where the batch ends.
        load: the records are read for a reload.
        spelled: texts are of the types that the table has.
        is_text: types are inferred from texts, None as long as nobody knows.
        buffer: the records that were read one by one.
    """

    known: KnownTable
    raw_of: RawOf
    limits: ReadLimits = field(default_factory=BatchLimits)
    load: bool = False
    spelled: bool = False
    is_text: bool | None = None
    buffer: RecordBuffer = field(init=False)
    _observed: ObservedTypes = field(default_factory=ObservedTypes)
    _decoders: dict[str, Decoder] = field(default_factory=dict)
    _records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _headers: HeaderColumns = field(default_factory=HeaderColumns)
    _header_types: dict[str, DataType] = field(default_factory=dict)
    _met: frozenset[str] = frozenset()
    _parts: list[Part] = field(default_factory=list)
    _refused: list[Rejected] = field(default_factory=list)
    _pieces_rows: int = 0
    _pieces_bytes: int = 0
    _types: Mapping[str, DataType] | None = None

    def __post_init__(self) -> None:
        self.buffer = RecordBuffer(self.limits)

    @property
    def dataset(self) -> ResolvedDataset:
        """The settings of the table."""
        return self.known.dataset

    @property
    def schema(self) -> dict[str, DataType]:
        """The columns so far, without those of headers."""
        every = self.known.schema.items()
        return {name: kind for name, kind in every if name not in STREAM_HEADER_NAMES}

    @property
    def room(self) -> int:
        """How many records still go in; none when it is full of bytes."""
        if self._bytes >= self.limits.max_bytes:
            return 0
        return max(0, self.limits.max_rows - self._rows)

    def has_room_for(self, records: int, size_bytes: int) -> bool:
        """Whether so many messages of so many bytes go in, if each is one record."""
        return records <= self.room and self._bytes + size_bytes <= self.limits.max_bytes

    @property
    def is_empty(self) -> bool:
        """Whether nothing was taken."""
        return not self._rows

    @property
    def _rows(self) -> int:
        return len(self.buffer.records) + len(self.buffer.rejected) + self._pieces_rows

    @property
    def _bytes(self) -> int:
        return self.buffer.size_bytes + self._pieces_bytes

    def decoder(self, content: Content | LandedContent) -> Decoder:
        """The decoder of a content, one for all messages of the batch."""
        key = _key(content)
        if key not in self._decoders:
            access = self.dataset.landing.delivery.schema_registry
            self._decoders[key] = decoder_of(content, access)
        return self._decoders[key]

    def meet(self, messages: Messages) -> None:
        """Learn which header columns there are."""
        self._header_types |= messages.types
        self._met |= messages.types.keys()

    def learn(self, decoded: Decoded, size: int) -> None:
        """Take the size of a decoded message, and the types that it declares."""
        self.buffer.size_bytes += size
        if decoded.types and decoded.types is not self._types:
            self._observed.learn(decoded.types)
            self._types = decoded.types

    def add(self, messages: Messages, index: int, offset: int, item: Item) -> None:
        """Take one record of the message at an index."""
        file = messages.file
        if isinstance(item, RecordError):
            refused = Rejected(file, offset, item.rule, item.error, self.raw_of(file, offset))
            self.buffer.rejected.append(refused)
            return
        self.buffer.add(file, offset, b"", item)
        self._headers.note(messages, index)
        self._records.setdefault(_key(messages.content), []).append(item)
        at, last = len(self.buffer.records), self._parts[-1] if self._parts else None
        if isinstance(last, tuple):
            self._parts[-1] = (last[0], at)
        else:
            self._parts.append((at - 1, at))

    def add_piece(self, piece: MessageRows, size: int) -> None:
        """Take the rows of a piece, whose messages have so many bytes."""
        self._parts.append(piece.rows)
        self._refused += [
            Rejected(file, offset, rule, error, self.raw_of(file, offset))
            for file, offset, rule, error in piece.refused
        ]
        self._met |= piece.met
        self._pieces_rows += piece.rows.num_rows + len(piece.refused)
        self._pieces_bytes += size

    def batch(self) -> DatasetBatch:
        """All of it, typed and placed."""
        for key, records in self._records.items():
            self._decoders[key].settle(records, self.schema)
        keys, headers = self.dataset.events.keys, self._headers.columns()
        done = self._settled(headers)
        operation = "L" if self.load else None
        exact = batch_of(self.buffer, done, keys, Extras([operation] * len(self.buffer.records)))
        known = self.known.schema.items()
        known_headers = {name: kind for name, kind in known if name in STREAM_HEADER_NAMES}
        schema = {**exact.schema, **known_headers, **self._header_types}
        rows = with_headers(exact.rows, headers, schema, done.faults)
        return replace(
            exact,
            rows=in_order(rows, self._parts, done.faults),
            schema=schema,
            rejected=self._all_rejected(exact),
            rows_in=exact.rows_in + self._pieces_rows,
            met=(exact.met or frozenset()) | self._met,
            # Messages have schemas, a stream has none: what one of them lacks was not dropped.
            declared=None,
            of_load=self.load,
            raw_of=self.raw_of,
        )

    def _settled(self, headers: Mapping[str, TypedColumn]) -> SettledRecords:
        buffer, dataset, keys = self.buffer, self.dataset, self.dataset.events.keys
        places = zip(buffer.files, buffer.offsets, strict=True)
        own = [own_place(file, offset) for file, offset in places]
        taken = self._headers.taken()

        def place(columns: Mapping[str, TypedColumn]) -> Placement:
            everything = {**columns, **headers}
            return placed_records(everything, dataset, own, taken, load=self.load)

        builder = text_builder if self.is_text and not self.spelled else build
        return settled(buffer.records, self._column_types(), builder, place, needed=keys)

    def _column_types(self) -> ColumnTypes:
        dataset, schema = self.dataset, self.schema
        self._observed.columns = None
        types = self._observed.column_types(
            schema,
            dataset.events.columns,
            dataset.policies.schema_evolution,
            excluded=dataset.events.except_columns,
        )
        if self.spelled:
            types = replace(types, declared={**schema, **dataset.events.columns})
        typed = any(decoder.is_typed for decoder in self._decoders.values())
        return types if typed else numbered(types, dataset)

    def _all_rejected(self, exact: DatasetBatch) -> tuple[Rejected, ...]:
        """All that was refused, in the order of the files, with what it can be read again by."""
        order = {path: index for index, path in enumerate(self.buffer.progress)}
        told = [
            replace(one, raw=self.raw_of(one.file, one.offset))
            if one.offset >= 0 and not one.raw
            else one
            for one in exact.rejected
        ]
        found = [*told, *self._refused]
        return tuple(sorted(found, key=lambda record: (order.get(record.file, -1), record.offset)))


def _key(content: Content | LandedContent) -> str:
    return content.model_dump_json(by_alias=True)
