"""What was taken of landed batches so far, and the batch that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from polynya.formats.base import KnownTable
from polynya.formats.batch import BatchLimits, DatasetBatch, Limits, Rejected
from polynya.formats.columnar.numbers import numbered
from polynya.formats.contents.decoded import Decoded, Decoder, Item
from polynya.formats.contents.decoders import decoder_of
from polynya.formats.errors import RecordError
from polynya.formats.landed.messages import Messages
from polynya.formats.records.delimited import text_builder
from polynya.formats.stream.columns import Piece
from polynya.formats.stream.order import own_place, placed_records
from polynya.formats.stream.rows import HeaderColumns, Part, in_order, with_headers
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Column, build
from polynya.formats.values.observed import Observed
from polynya.formats.values.rows import ColumnTypes
from polynya.formats.values.settle import Extras, Placement, Settled, batch_of, settled
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.streaming.content import Content, LandedContent
from polynya.model.contract.stream_headers import STREAM_HEADER_NAMES
from polynya.model.datatypes import DataType

#: (file, offset) → what the record can be read again by
RawOf = Callable[[str, int], bytes]


@dataclass(slots=True)
class Taken:
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
    limits: Limits = field(default_factory=BatchLimits)
    load: bool = False
    spelled: bool = False
    is_text: bool | None = None
    buffer: RecordBuffer = field(init=False)
    _observed: Observed = field(default_factory=Observed)
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

    def add_piece(self, piece: Piece, size: int) -> None:
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

    def _settled(self, headers: Mapping[str, Column]) -> Settled:
        buffer, dataset, keys = self.buffer, self.dataset, self.dataset.events.keys
        places = zip(buffer.files, buffer.offsets, strict=True)
        own = [own_place(file, offset) for file, offset in places]
        taken = self._headers.taken()

        def place(columns: Mapping[str, Column]) -> Placement:
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
        return tuple(sorted(found, key=lambda one: (order.get(one.file, -1), one.offset)))


def _key(content: Content | LandedContent) -> str:
    return content.model_dump_json(by_alias=True)
