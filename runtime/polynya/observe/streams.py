"""Events of streams: what was landed, and what the source had lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from polynya.model.positions import Gone
from polynya.observe.events import Event, Level, counted, line

_WHY: Final[Mapping[str, str]] = {
    "retention": "were deleted by the retention of the source before they were read",
    "recreated": "was deleted and made again: it is read from its begin on, and what was "
    "not read of the old one is gone",
    "truncated": "are no longer there: the source ends before them, and is read from its end on",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLanded(Event):
    """A landed batch was put.

    `bytes` are those of the records as they came, `object_bytes` those of the object.
    `lost_records` the source had no more. `behind` it has beyond the batch, at most, in the `unit`
    that it counts: `records`, `shards` or `files`. `seconds` is the time from the look at the
    source to the put.
    """

    type: ClassVar[str] = "stream.landed"
    number: int
    records: int
    bytes: int
    object_bytes: int
    lost_records: int
    behind: int
    unit: str
    seconds: float

    @property
    def level(self) -> Level:
        """A batch without records is only a position."""
        return Level.NOTE if self.records else Level.DETAIL

    @override
    def text(self) -> str:
        rate = self.records / self.seconds if self.seconds else 0
        behind = f", {counted(self.behind, self.unit[:-1])} behind" if self.behind else ""
        return line(
            "landed",
            self.subject,
            f"{counted(self.records, 'record')} in {self.seconds:.1f} s ({rate:,.0f}/s){behind}",
        )

    def figures(self) -> Mapping[str, Any]:
        """With the unit in the name of what is behind."""
        return {
            "number": self.number,
            "records": self.records,
            "bytes": self.bytes,
            "object_bytes": self.object_bytes,
            "lost_records": self.lost_records,
            f"behind_{self.unit}": self.behind,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLost(Event):
    """The source has no more what was to be read.

    `at` says where, `begin` and `end` from which position to which one, as the source writes them.
    `end` is "" where the source does not tell it. `reason` is `retention`, `recreated` or
    `truncated`, or for a file what is wrong with it. With `landing` a table tells it, which finds
    landed batches gone that it had not copied: then these are numbers of batches, and `records`
    the messages in them, None where nobody can count these.
    """

    type: ClassVar[str] = "stream.lost"
    at: str
    begin: str
    end: str
    reason: str
    records: int | None = None

    @classmethod
    def of_landing(cls, subject: str, folder: str, lost: Gone) -> StreamLost:
        """Landed batches of a folder were gone before they were copied."""
        first, last = str(lost.first), str(lost.last)
        return cls(
            subject=subject,
            at=folder,
            begin=first,
            end=last,
            reason="landing",
            records=lost.messages,
        )

    @property
    def level(self) -> Level:
        """Nobody can bring it back, and somebody should know."""
        return Level.CAUTION

    @override
    def text(self) -> str:
        if self.reason == "recreated":
            # Its ids say nothing to people.
            return line("lost", self.subject, f"{self.at} {_WHY['recreated']}")
        if self.reason == "landing":
            return line("lost", self.subject, self._of_landed())
        span = f"{self.begin} to {self.end}" if self.end else f"from {self.begin or 'its begin'} on"
        why = _WHY.get(self.reason, f"not landed: {self.reason}")
        return line("lost", self.subject, f"{self.at}: {span} {why}")

    def _of_landed(self) -> str:
        which, them = f"batches {self.begin} to {self.end} were", "them"
        if self.begin == self.end:
            which, them = f"batch {self.begin} was", "it"
        held = "" if self.records is None else f", with {counted(self.records, 'message')}"
        return f"{self.at}: landed {which} removed before the table copied {them}{held}"

    def figures(self) -> Mapping[str, Any]:
        """`from` and `to`, as the footer of the landed batch says it."""
        said = {"at": self.at, "from": self.begin, "to": self.end, "reason": self.reason}
        return said if self.reason != "landing" else {**said, "records": self.records}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLeftOut(Event):
    """A stream that a wildcard meets is not landed, by the policy `ignore`."""

    type: ClassVar[str] = "stream.left_out"
    stream: str

    @override
    def text(self) -> str:
        return line("ignored", self.subject, f"the new topic {self.stream}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamExpired(Event):
    """Landed batches were removed because they are older than the task keeps them.

    `unread_files` of them some table of the project had not copied.
    """

    type: ClassVar[str] = "stream.expired"
    files: int
    unread_files: int = 0

    @property
    def level(self) -> Level:
        """It is what was asked for, unless somebody still wanted them."""
        return Level.CAUTION if self.unread_files else Level.DETAIL

    @override
    def text(self) -> str:
        unread = (
            f", {self.unread_files:,} of them not copied by every table"
            if self.unread_files
            else ""
        )
        return line("expired", self.subject, f"{self.files:,} landed batches{unread}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWaiting(Event):
    """Landing waits until tables have copied what has landed; reported once each time.

    `uncopied_bytes` have landed and were not copied, by each of `tables`.
    """

    type: ClassVar[str] = "stream.waiting"
    uncopied_bytes: int
    reason: str
    tables: tuple[str, ...]

    @property
    def level(self) -> Level:
        """The source may delete what waits there."""
        return Level.CAUTION

    @override
    def text(self) -> str:
        who = ", ".join(self.tables)
        return line(
            "waiting", self.subject, f"landing waits for the copies of {who}: {self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamKept(Event):
    """Landed batches stay for longer than the task keeps them, because a table lacks them.

    `number` is that of the first, `tables` are those that have not copied it; empty where this
    process does not know which tables read the stream.
    """

    type: ClassVar[str] = "stream.kept"
    number: int
    tables: tuple[str, ...]

    @property
    def level(self) -> Level:
        """Somebody should resume the table."""
        return Level.CAUTION

    @override
    def text(self) -> str:
        who = ", ".join(self.tables)
        why = f"{who} has not copied them" if who else "which tables lack them is not known"
        return line(
            "kept",
            self.subject,
            f"landed batches from number {self.number:,} on are older than `keep`: {why}",
        )
