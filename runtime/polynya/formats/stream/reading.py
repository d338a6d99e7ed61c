"""Reading landed batches of a stream: plain messages as columns, the others one by one.

Reading messages one by one takes several times as long and needs no known columns. So for the first
batch of a table a few messages give the columns. If a later message has other columns or types, the
whole batch is read one by one: the result is the same either way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats import limits
from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, ReadLimits
from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoded import Decoded, Item
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.files import folder_of
from polynya.formats.landed import Messages, batch_number, opened_batch
from polynya.formats.opening import landed_file
from polynya.formats.records.sizes import refuse_wide
from polynya.formats.stream.columns import MessageRows, may_be_columns, piece_of
from polynya.formats.stream.origins import Origins
from polynya.formats.stream.taken import TableRecords
from polynya.model.config.stream_content import AutoContent, Content, JsonContent, LandedContent
from polynya.model.headers import STREAM_HEADER_NAMES
from polynya.model.positions import Read as ReadPosition
from polynya.model.positions import spanned
from polynya.model.types import DataType, Void
from polynya.observe.trace import span

#: So many messages say what the columns are...
TYPE_SAMPLE_MESSAGES: Final = 1_000
#: ...where there are at least so many.
TYPE_SAMPLE_FROM_MESSAGES: Final = 4 * TYPE_SAMPLE_MESSAGES

Read = Callable[[ReadRequest], DatasetBatch]


def read_first(request: ReadRequest, read: Read) -> DatasetBatch:
    """Read the first batch of a table by `read`, with the columns of its first messages.

    Raises as `read`.
    """
    if not _holds_many(request):
        return read(request)
    limits = BatchLimits(TYPE_SAMPLE_MESSAGES, request.limits.max_bytes)
    guess = read(replace(request, limits=limits))
    if not guess.schema or guess.rejected or any(kind == Void() for kind in guess.schema.values()):
        return read(request)
    known = replace(request.table, schema=guess.schema)
    batch = read(replace(request, tables={request.table.source: known}))
    agrees = batch.schema == guess.schema and not batch.rejected
    return batch if agrees else read(request)


def is_first(request: ReadRequest) -> bool:
    """Whether nothing is known of the columns of the table."""
    return not request.table.schema.keys() - STREAM_HEADER_NAMES


def _holds_many(request: ReadRequest) -> bool:
    """Whether it is worth to look: the first landed batch has many messages of JSON."""
    part = request.files[0]
    try:
        with landed_file(request.store, part.path, "parquet") as file:
            footer, _ = opened_batch(file, part.path)
    except UnreadableFileError:
        return False
    is_json = isinstance(footer.content, JsonContent | AutoContent)
    return (
        is_json and min(footer.counts.records, request.limits.max_rows) >= TYPE_SAMPLE_FROM_MESSAGES
    )


T = TypeVar("T")

#: Pieces that are read at a time at most; more take memory and find no processor.
AT_ONCE: Final = max(1, min(4, os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class MessageRange:
    """Messages that follow each other.

    Attributes:
        index: the first of them.
        count: how many they are.
        offset: of the first record of the first, in the file.
    """

    index: int
    count: int
    offset: int

    def following(self, end: int) -> list[MessageRange]:
        """As many messages each, up to the index `end`, if each of these is one record."""
        index, count, offset = self.index, self.count, self.offset
        many = min(AT_ONCE - 1, (end - index) // count - 1)
        return [
            MessageRange(index + n * count, count, offset + n * count) for n in range(1, many + 1)
        ]


class Ahead(Generic[T]):
    """Reads pieces by `read`, which several threads call."""

    def __init__(self, read: Callable[[MessageRange], T]) -> None:
        self._read = read
        self._begun: dict[MessageRange, Future[T]] = {}

    def get(self, place: MessageRange, following: Iterable[MessageRange]) -> T:
        """Read a piece; `following` are probably the next. Raises what `read` raises."""
        begun = self._begun.pop(place, None)
        for one in following:
            if one not in self._begun:
                self._begun[one] = _pool().submit(self._read, one)
        # One that still waits for a thread is read here.
        return self._read(place) if begun is None or begun.cancel() else begun.result()

    def forget(self) -> None:
        """What was begun is not wanted."""
        for future in self._begun.values():
            future.cancel()
        self._begun.clear()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, AT_ONCE - 1), thread_name_prefix="pieces")


#: Most messages that are read as columns together, and so few that it is hardly worth it.
_MAX_COLUMN_MESSAGES: Final = 16_384
_MIN_COLUMN_MESSAGES: Final = 64
#: Messages that were compressed are decoded together until they have so many bytes: many small ones
#: may stand for any number of large ones.
_EXPANDED_BYTES: Final = 32 * 1024 * 1024
#: After so many tries that gave few on average, it is not tried any more.
_MAX_COLUMN_TRIES: Final = 32


class MessageReader:
    """Takes the messages of one landed batch.

    Args:
        taken: what they are added to.
        origins: of the landed batch.
        part: which of its records are wanted.
    """

    def __init__(self, taken: TableRecords, origins: Origins, part: FilePart) -> None:
        self._taken, self._origins, self._part = taken, origins, part
        self._messages = origins.messages
        self._schema: Mapping[str, DataType] = taken.schema
        self._quick = may_be_columns(self._messages.content, self._schema, taken.dataset)
        self._step, self._odd_at = _MAX_COLUMN_MESSAGES, -1
        self._pieces = Ahead(self._piece)
        self._tries = self._won = 0
        #: the next message, and the offset of its first record
        self._index = self._offset = 0

    @property
    def messages(self) -> int:
        """How many messages were taken."""
        return self._index

    @span("read messages")
    def take(self) -> None:
        """Take messages until the batch is full, and note how far the file was read."""
        count = len(self._messages)
        self._taken.meet(self._messages)
        # Noted before a record is refused: the order of files comes from it.
        self._note_progress(complete=False)
        self._take_to(count)
        self._note_progress(complete=self._index >= count)

    def _note_progress(self, *, complete: bool) -> None:
        done = max(self._offset, self._part.start)
        progress = self._part.read(done, complete=complete)
        self._taken.buffer.progress[self._part.path] = progress

    def _take_to(self, end: int) -> None:
        """Take the messages before one.

        An odd message among ordinary ones is taken by itself, and those before it as columns.
        """
        while self._index < end and self._taken.room:
            # Records that were read before count for nothing, and take no room.
            room = self._taken.room + max(0, self._part.start - self._offset)
            most = min(room, end - self._index)
            if not self._quick:
                self._take_exactly(min(_MAX_COLUMN_MESSAGES, most))
            elif self._index == self._odd_at:
                self._take_exactly(1)
            else:
                self._try(min(self._step, most), self._index + most)
        self._pieces.forget()

    def _try(self, count: int, end: int) -> None:
        """Take messages as columns, or find out which of them are to be taken in another way.

        `end` is the index up to which there may be others.
        """
        place = MessageRange(self._index, count, self._offset)
        piece, odd = self._pieces.get(
            place, place.following(end) if count == _MAX_COLUMN_MESSAGES else ()
        )
        self._judge(0 if piece is None else count)
        if piece is None:
            self._pieces.forget()
        if piece is not None:
            self._take_piece(piece, count)
            self._step = min(_MAX_COLUMN_MESSAGES, 2 * count)
        elif odd:
            self._odd_at = self._index + min(odd)
            self._step = max(min(odd), 1)
        elif count > _MIN_COLUMN_MESSAGES:
            self._step = max(_MIN_COLUMN_MESSAGES, count // 8)
        else:
            self._take_exactly(count)

    def _judge(self, won: int) -> None:
        self._tries += 1
        self._won += won
        if self._tries == _MAX_COLUMN_TRIES:
            self._quick = self._won >= _MAX_COLUMN_TRIES * _MIN_COLUMN_MESSAGES
            self._tries = self._won = 0

    def _piece(self, place: MessageRange) -> tuple[MessageRows | None, list[int]]:
        """Rows of messages, or indexes of those among them that are to blame; in any thread."""
        odd: list[int] = []
        try:
            piece = piece_of(
                self._messages,
                place.index,
                place.count,
                place.offset,
                schema=self._schema,
                dataset=self._taken.dataset,
                load=self._taken.load,
                odd=odd,
            )
        except (pa.ArrowException, ValueError):
            # Which record is to blame is for the exact reader to say.
            piece = None
        return piece, odd

    def _take_piece(self, piece: MessageRows, count: int) -> None:
        self._origins.note(self._offset, self._index, run=True)
        values = self._messages.values.slice(self._index, count)
        if self._offset < self._part.start:
            piece = piece.since(self._part.start)
        self._taken.add_piece(piece, int(pc.sum(pc.binary_length(values)).as_py() or 0))
        self._index += count
        self._offset += count

    def _take_exactly(self, count: int) -> None:
        for found, size in self._decoded(self._index, count):
            self._origins.note(self._offset, self._index)
            items: Iterable[Item] = found.items if isinstance(found, Decoded) else (found,)
            if size > limits.FEW_BYTES:
                items = refuse_wide(items)
            for item in items:
                if self._offset >= self._part.start:
                    self._taken.add(self._messages, self._index, self._offset, item)
                self._offset += 1
            if isinstance(found, Decoded):
                self._taken.learn(found, size)
            self._index += 1
            if not self._taken.room:
                break

    def _decoded(self, begin: int, count: int) -> Iterator[tuple[Decoded | RecordError, int]]:
        """What each message holds, and its size as it is decoded."""
        for ready in self._ready(begin, count):
            decoded = iter(self._origins.decoder.decode([x for x in ready if isinstance(x, bytes)]))
            for one in ready:
                if isinstance(one, bytes):
                    yield next(decoded), len(one)
                else:
                    # A message without a value has its header columns.
                    yield Decoded(({},)) if one is None else one, 0

    def _ready(self, begin: int, count: int) -> Iterator[list[bytes | RecordError | None]]:
        """Messages as their decoder takes them, so many at a time as fit in memory."""
        group: list[bytes | RecordError | None] = []
        size = 0
        for value in self._messages.values.slice(begin, count).to_pylist():
            one = ready_message(value, self._messages.content)
            group.append(one)
            size += len(one) if isinstance(one, bytes) else 0
            if size >= _EXPANDED_BYTES:
                yield group
                group, size = [], 0
        yield group


def ready_message(
    value: bytes | None, content: Content | LandedContent
) -> bytes | RecordError | None:
    """A message as its decoder takes it, or why it cannot be decompressed."""
    if value is None or not content.may_be_compressed:
        return value
    try:
        return expanded(value)
    except RecordError as error:
        return error


def read_stream(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`.

    The batch also ends before a landed batch whose content is text with types to be inferred where
    those before it are none, or the other way round: both settle in different ways.

    Raises:
        OperationError: a landed batch cannot be read by this version (POLYNYA-STR-020), or its
            content cannot be used (POLYNYA-STR-021).
        DependencyError: the schema registry did not answer (POLYNYA-STR-022, -023).
    """
    return read_first(request, _read) if is_first(request) else _read(request)


def _read(request: ReadRequest) -> DatasetBatch:
    known: dict[str, Origins] = {}
    read: list[ReadPosition] = []
    taken = TableRecords(
        request.table,
        lambda file, offset: known[file].raw(offset),
        request.limits,
        load=request.load,
    )
    for part in request.files:
        if not taken.room:
            break
        try:
            messages = _messages(request, part, taken)
        except UnreadableFileError as error:
            taken.buffer.refuse_file(part, str(error))
            read.append(ReadPosition(_number(part.path), whole=True))
            continue
        if messages is None:
            break
        decoder = taken.decoder(messages.content)
        if taken.is_text not in {None, decoder.is_text}:
            break
        taken.is_text = decoder.is_text
        known[part.path] = Origins(messages, decoder)
        reading = MessageReader(taken, known[part.path], part)
        reading.take()
        read.append(_read_of(messages, reading))
    folder = folder_of(request.files[0].path) if request.files else ""
    return replace(taken.batch(), landed=spanned(folder, read))


def _read_of(messages: Messages, reading: MessageReader) -> ReadPosition:
    begin, whole = messages.before, reading.messages >= len(messages)
    return ReadPosition(_number(messages.file), whole, begin, begin + reading.messages)


def _number(path: str) -> int:
    number = batch_number(path)
    assert number is not None, "landed batches are named by their numbers"
    return number


def read_direct(
    known: KnownTable, messages: Messages, limits: ReadLimits, *, load: bool
) -> tuple[DatasetBatch, int]:
    """Read messages that never landed: their batch, and how many went into it.

    `limits` may end it before the last. Its records stand where the source has their messages.
    Raises as `read_stream`.
    """
    origins: list[Origins] = []
    taken = TableRecords(known, lambda _, offset: origins[0].raw(offset), limits, load=load)
    decoder = taken.decoder(messages.content)
    taken.is_text = decoder.is_text
    origins.append(Origins(messages, decoder))
    reading = MessageReader(taken, origins[0], FilePart(messages.file, messages.values.nbytes))
    reading.take()
    batch = replace(taken.batch(), place_of=lambda _, offset: origins[0].place(offset))
    return batch.found_in_source(), reading.messages


def _messages(request: ReadRequest, part: FilePart, taken: TableRecords) -> Messages | None:
    """The messages of a landed batch, None when it is for the next batch.

    What is left of one that is read in part is decoded from its beginning then.
    """
    with landed_file(request.store, part.path, "parquet") as file:
        footer, reader = opened_batch(file, part.path)
        counts = footer.counts
        if not taken.is_empty and not taken.has_room_for(counts.records, counts.bytes):
            return None
        return Messages.of(part.path, footer, reader).with_time(footer.written_at)
