"""The position of a table in landed batches or in its stream, as its state holds it.

The numbers of landed batches have no gaps. So a missing batch after the newest copied one was
removed before anybody copied it: by the retention of the folder, or by hand. Each footer has the
number of messages that landed before its own batch, which tells how many were lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polynya.model.headers import StreamSource


@dataclass(frozen=True, slots=True)
class LandedUntil:
    """The newest landed batch when the reload began: all that had landed is read, and no more.

    Attributes:
        path: of its object in the landing zone.
        size_bytes: of the object.
        end: position after it. Only the source understands it.
        records: messages that had landed up to there, since the table of batches began.
    """

    path: str
    size_bytes: int
    end: Mapping[str, Any]
    records: int


@dataclass(frozen=True, slots=True)
class DirectPosition:
    """The position after the newest batch, and what the footers of landed batches would say.

    Attributes:
        task: the landing that says what is read.
        table: the landed table that the streams would have.
        source: the kind of source. Only it understands positions.
        number: of the batch, from 1.
        began: position before the first record.
        end: position after the newest one.
        read_at: when the batch was read, ISO 8601 in UTC.
        before: when the batch before it was read, None for the first.
        records: messages in the batch.
        totals: `records`, `bytes` and `lost` since the beginning.
        bytes: of the messages in the batch.
        lost: what was lost before or in the batch: `at`, `from`, `to` and `why` of each.
    """

    task: str
    table: str
    source: StreamSource
    number: int
    began: Mapping[str, Any]
    end: Mapping[str, Any]
    read_at: str
    before: str | None = None
    records: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    lost: Sequence[Mapping[str, str]] = ()
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a table has copied a folder of landed batches, as its state holds it.

    Attributes:
        folder: their folder in the landing zone.
        number: of the newest batch.
        whole: that was read to its end.
        messages: number of messages that had landed up to there, None if it is unknown.
        lost_batches: batches that were gone before they were copied, ever.
        lost_messages: messages in them, as far as that is known.
    """

    folder: str
    number: int
    whole: bool
    messages: int | None = None
    lost_batches: int = 0
    lost_messages: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """A landed batch that was read, or a part of one.

    `begin` and `end` are how many messages had landed before it, and up to where it was read; None
    where it could not be read at all.
    """

    number: int
    whole: bool
    begin: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """Landed batches that were gone; `messages` is None if their number is unknown.

    A part of the first one may have been copied.
    """

    first: int
    last: int
    messages: int | None

    @property
    def batches(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Span:
    """What a copy has read of a folder of landed batches, in their order; at least one."""

    folder: str
    read: tuple[Read, ...]


def gone(before: Reached | None, span: Span) -> tuple[Gone, ...]:
    """The batches that were missing before and between those that were read.

    None are missing before the first batches of a table: it begins with what is there. Neither are
    any where the numbers begin again, because the folder was emptied.
    """
    gaps = []
    for batch in span.read:
        if before is not None and batch.number > before.number:
            first = before.number + 1 if before.whole else before.number
            if first < batch.number:
                gaps.append(Gone(first, batch.number - 1, _between(before.messages, batch.begin)))
        before = Reached(span.folder, batch.number, batch.whole, batch.end)
    return tuple(gaps)


def after_copy(before: Reached | None, lost: Reached | None, span: Span) -> Reached:
    """How far a table has copied the folder then; `lost` is what its state had counted so far."""
    missing = gone(before, span)
    last = span.read[-1]
    return Reached(
        span.folder,
        last.number,
        last.whole,
        last.end,
        _batches(lost) + sum(gap.batches for gap in missing),
        _messages(lost) + sum(gap.messages or 0 for gap in missing),
    )


def spanned(folder: str, read: Iterable[Read]) -> Span | None:
    """What was read of a folder, None when that is nothing."""
    batches = tuple(read)
    return Span(folder, batches) if batches else None


def _between(begin: int | None, end: int | None) -> int | None:
    return None if begin is None or end is None else max(0, end - begin)


def _batches(lost: Reached | None) -> int:
    return 0 if lost is None else lost.lost_batches


def _messages(lost: Reached | None) -> int:
    return 0 if lost is None else lost.lost_messages
