"""One landed batch on its way: what is ordinary as columns, the rest record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats import limits
from polynya.formats.batch import FilePart
from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoded import Decoded, Item
from polynya.formats.errors import RecordError
from polynya.formats.records.sizes import refuse_wide
from polynya.formats.stream.ahead import Ahead, Place
from polynya.formats.stream.columns import Piece, may_be_columns, piece_of
from polynya.formats.stream.origins import Origins
from polynya.formats.stream.taken import Taken
from polynya.model.config.streaming.content import Content, LandedContent
from polynya.model.datatypes import DataType
from polynya.observe.trace import span

#: Most messages that are read as columns together, and so few that it is hardly worth it.
_MOST: Final = 16_384
_FEW: Final = 64
#: Messages that were compressed are decoded together until they have so many bytes: many small ones
#: may stand for any number of large ones.
_EXPANDED_BYTES: Final = 32 * 1024 * 1024
#: After so many tries that gave few on average, it is not tried any more.
_TRIES: Final = 32


class Reading:
    """Takes the messages of one landed batch.

    Args:
        taken: what they are added to.
        origins: of the landed batch.
        part: which of its records are wanted.
    """

    def __init__(self, taken: Taken, origins: Origins, part: FilePart) -> None:
        self._taken, self._origins, self._part = taken, origins, part
        self._messages = origins.messages
        self._schema: Mapping[str, DataType] = taken.schema
        self._quick = may_be_columns(self._messages.content, self._schema, taken.dataset)
        self._step, self._odd_at = _MOST, -1
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
                self._take_exactly(min(_MOST, most))
            elif self._index == self._odd_at:
                self._take_exactly(1)
            else:
                self._try(min(self._step, most), self._index + most)
        self._pieces.forget()

    def _try(self, count: int, end: int) -> None:
        """Take messages as columns, or find out which of them are to be taken in another way.

        `end` is the index up to which there may be others.
        """
        place = Place(self._index, count, self._offset)
        piece, odd = self._pieces.get(place, place.following(end) if count == _MOST else ())
        self._judge(0 if piece is None else count)
        if piece is None:
            self._pieces.forget()
        if piece is not None:
            self._take_piece(piece, count)
            self._step = min(_MOST, 2 * count)
        elif odd:
            self._odd_at = self._index + min(odd)
            self._step = max(min(odd), 1)
        elif count > _FEW:
            self._step = max(_FEW, count // 8)
        else:
            self._take_exactly(count)

    def _judge(self, won: int) -> None:
        self._tries += 1
        self._won += won
        if self._tries == _TRIES:
            self._quick = self._won >= _TRIES * _FEW
            self._tries = self._won = 0

    def _piece(self, place: Place) -> tuple[Piece | None, list[int]]:
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

    def _take_piece(self, piece: Piece, count: int) -> None:
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
