"""How many offsets are read at a time, and how large a record may be: pure, from what was read.

Nobody says how large records are before they are read. So what is read next is planned by the
sizes of those before, and a record that is much larger than they were is left for the next read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from polynya.streaming.source import Limits

#: What an offset is taken to have before any was read, in bytes.
FIRST_GUESS: Final = 1024
#: Fewer offsets are planned than the bytes seem to allow, so that few reads are cut.
_ROOM: Final = 0.8
#: A read may hold so many times its limit in memory...
_SPREAD: Final = 4
#: ...but not more than so many bytes, if that is more than the limit: Spark refuses results of
#: a gigabyte.
_MOST: Final = 512 * 2**20
#: A batch that has this part of the records that would fit is worth the faster way.
_WORTH: Final = 4
#: Records are taken to be a little smaller with each read in which none was so large.
_FORGET: Final = 0.9


@dataclass(frozen=True, slots=True)
class Amounts:
    """What is known of the records of a landed table.

    Attributes:
        offset_bytes: bytes of an offset in the last read.
        largest: bytes of the largest record lately.
    """

    offset_bytes: float = FIRST_GUESS
    largest: float = 0.0

    def offsets(self, limits: Limits) -> int:
        """How many offsets a read may have: about as many as the bytes allow."""
        fit = _ROOM * limits.max_bytes / max(1.0, self.offset_bytes)
        safe = _memory(limits) / (2 * self.largest) if self.largest else fit
        most = safe if fit / _WORTH <= safe < fit else fit
        return min(limits.max_records, max(1, int(most)))

    def record_bytes(self, limits: Limits, offsets: int) -> int | None:
        """The most bytes of a record in a read of so many offsets, so that memory is bounded.

        None: there are larger ones, so bytes have to be counted while they are read. Mostly a power
        of two, and the same for records of like sizes: Spark compiles a query for each number.
        """
        most = _memory(limits) // max(1, offsets)
        if self.largest > most:
            return None
        roomy = 1 << int(2 * self.largest).bit_length()
        if self.largest and roomy <= most:
            return roomy
        close = 1 << max(0, most.bit_length() - 1)
        return close if self.largest <= close else most

    def after(self, *, offsets: int, size_bytes: int, largest: int) -> Amounts:
        """What is known after a read."""
        found = replace(self, largest=max(float(largest), _FORGET * self.largest))
        return replace(found, offset_bytes=size_bytes / offsets) if offsets > 0 else found


def _memory(limits: Limits) -> int:
    return max(limits.max_bytes, min(_SPREAD * limits.max_bytes, _MOST))
