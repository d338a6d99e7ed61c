"""Which message each record of a batch came from, for the day that one is rejected."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoded import Decoded, Decoder
from polynya.formats.errors import RecordError
from polynya.formats.landed import Messages
from polynya.formats.stream.order import own_place


@dataclass(slots=True)
class Origins:
    """The messages of one file by the offsets of their records.

    `begins` and `indexes` go together: the record at an offset, and the message that it came from.
    Where `runs` is true, so the records after it came from the messages after that one.
    """

    messages: Messages
    decoder: Decoder
    begins: list[int] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    runs: list[bool] = field(default_factory=list)

    def note(self, offset: int, index: int, *, run: bool = False) -> None:
        """Take down that the record at an offset is the first one of a message."""
        self.begins.append(offset)
        self.indexes.append(index)
        self.runs.append(run)

    def raw(self, offset: int) -> bytes:
        """What the record at an offset can be read again by."""
        index, within = self._origin(offset)
        place = own_place(self.messages.file, offset) if self.messages.direct else None
        value = self.messages.values[index].as_py()
        decoded = None if value is None or self._is_run(offset) else self._again(value)
        if decoded is None or decoded.part is None or len(decoded.items) == 1:
            return self.messages.raw(index, place=place)
        part, spelled = decoded.part(within), decoded.is_spelled
        return self.messages.raw(index, part, spelled=spelled, place=place)

    def place(self, offset: int) -> tuple[str, int]:
        """Where the source has the record at an offset: its message, and which record of it."""
        index, within = self._origin(offset)
        return self.messages.place(index), within

    def _origin(self, offset: int) -> tuple[int, int]:
        """The message of the record at an offset, and which record of it that is."""
        at = bisect_right(self.begins, offset) - 1
        within = offset - self.begins[at]
        return (self.indexes[at] + within, 0) if self.runs[at] else (self.indexes[at], within)

    def _is_run(self, offset: int) -> bool:
        return self.runs[bisect_right(self.begins, offset) - 1]

    def _again(self, value: bytes) -> Decoded | None:
        compressed = self.messages.content.may_be_compressed
        try:
            message = expanded(value) if compressed else value
        except RecordError:
            return None
        (decoded,) = self.decoder.decode([message])
        return decoded if isinstance(decoded, Decoded) else None
