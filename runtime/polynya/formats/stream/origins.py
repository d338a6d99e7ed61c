"""Which message each record of a batch came from, for the day that one is rejected."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoded import Decoded, Decoder
from polynya.formats.errors import RecordError
from polynya.formats.stream.messages import Messages


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
        at = bisect_right(self.begins, offset) - 1
        index, within = self.indexes[at], offset - self.begins[at]
        if self.runs[at]:
            return self.messages.raw(index + within)
        value = self.messages.values[index].as_py()
        decoded = None if value is None else self._again(value)
        if decoded is None or decoded.part is None or len(decoded.items) == 1:
            return self.messages.raw(index)
        return self.messages.raw(index, decoded.part(within), spelled=decoded.is_spelled)

    def _again(self, value: bytes) -> Decoded | None:
        compressed = self.messages.content.may_be_compressed
        try:
            message = expanded(value) if compressed else value
        except RecordError:
            return None
        (decoded,) = self.decoder.decode([message])
        return decoded if isinstance(decoded, Decoded) else None
