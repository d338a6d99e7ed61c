"""Events of streams: what was landed, and what the source had lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from polynya.model.positions import Gone
from polynya.observe.events import Event, Level, counted

_LOSSES: Final[Mapping[str, str]] = {
    "retention": "were deleted by the retention of the source before they were read",
    "recreated": "was deleted and created again: it is read from its beginning, and unread records "
    "of the old one are lost",
    "truncated": "no longer exist: the source now ends before them and is read from its end on",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLanded(Event):
    """A landed batch was written.

    `bytes` are those of the records as received, `object_bytes` those of the object. `lost_records`
    were already gone at the source. `behind` is what the source has beyond the batch, at most, in
    the `unit` that it counts: `records`, `shards` or `files`. `seconds` is the time from listing
    the source to the write.
    """

    type: ClassVar[str] = "stream.landed"
    verb: ClassVar[str] = "landed"
    template: ClassVar[str] = "{record_count} in {seconds:.1f} s ({rate:,.0f}/s){lag}"
    number: int
    records: int
    bytes: int
    object_bytes: int
    lost_records: int
    behind: int
    unit: str
    seconds: float

    @property
    @override
    def level(self) -> Level:
        # A batch without records is only a position.
        return Level.NOTE if self.records else Level.DETAIL

    @property
    def record_count(self) -> str:
        """`3,000 records`."""
        return counted(self.records, "record")

    @property
    def rate(self) -> float:
        """Records in a second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def lag(self) -> str:
        """`, 1,200 records behind`, or nothing."""
        return f", {counted(self.behind, self.unit[:-1])} behind" if self.behind else ""

    @override
    def figures(self) -> Mapping[str, Any]:
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
    """The source no longer has records that were not read.

    `at` says where, `begin` and `end` the lost positions, as the source writes them. `end` is "" if
    the source does not tell it. `reason` is `retention`, `recreated` or `truncated`, or for a file
    what is wrong with it. With `landing` a table reports it: landed batches are gone that it had
    not copied. Then `begin` and `end` are numbers of batches, and `records` the messages in them,
    None if they cannot be counted.
    """

    type: ClassVar[str] = "stream.lost"
    verb: ClassVar[str] = "lost"
    template: ClassVar[str] = "{at}{loss}"
    default_level: ClassVar[Level] = Level.CAUTION
    at: str
    begin: str
    end: str
    reason: str
    records: int | None = None

    @classmethod
    def of_landing(cls, subject: str, folder: str, lost: Gone) -> StreamLost:
        """Landed batches of a folder were gone before they were copied."""
        return cls(
            subject=subject,
            at=folder,
            begin=str(lost.first),
            end=str(lost.last),
            reason="landing",
            records=lost.messages,
        )

    @property
    def loss(self) -> str:
        """What is lost, and why."""
        if self.reason == "recreated":
            # Its ids mean nothing to people.
            return f" {_LOSSES['recreated']}"
        if self.reason == "landing":
            return f": {self._lost_batches()}"
        span = f"{self.begin} to {self.end}" if self.end else f"from {self.begin or 'the start'} on"
        return f": {span} {_LOSSES.get(self.reason, f'not landed: {self.reason}')}"

    def _lost_batches(self) -> str:
        messages = "" if self.records is None else f" with {counted(self.records, 'message')}"
        if self.begin == self.end:
            return f"landed batch {self.begin}{messages} was removed before the table copied it"
        batches = f"landed batches {self.begin} to {self.end}{messages}"
        return f"{batches} were removed before the table copied them"

    @override
    def figures(self) -> Mapping[str, Any]:
        # `from` and `to`, as in the footer of the landed batch.
        figures = {"at": self.at, "from": self.begin, "to": self.end, "reason": self.reason}
        return figures if self.reason != "landing" else {**figures, "records": self.records}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamIgnored(Event):
    """A topic matches a wildcard and is not landed, by the policy `ignore`."""

    type: ClassVar[str] = "stream.left_out"
    verb: ClassVar[str] = "ignored"
    template: ClassVar[str] = "the new topic {stream}"
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamExpired(Event):
    """Landed batches were removed because they are older than the task keeps them.

    `unread_files` of them some table of the project had not copied.
    """

    type: ClassVar[str] = "stream.expired"
    verb: ClassVar[str] = "expired"
    template: ClassVar[str] = "{files:,} landed batches{unread}"
    files: int
    unread_files: int = 0

    @property
    @override
    def level(self) -> Level:
        return Level.CAUTION if self.unread_files else Level.DETAIL

    @property
    def unread(self) -> str:
        """The batches that tables still needed, or nothing."""
        if not self.unread_files:
            return ""
        return f", {self.unread_files:,} of them not copied by every table"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWaiting(Event):
    """Landing waits until tables have copied what has landed; reported once each time.

    `uncopied_bytes` have landed that none of `tables` has copied. Meanwhile the source may delete
    records.
    """

    type: ClassVar[str] = "stream.waiting"
    verb: ClassVar[str] = "waiting"
    template: ClassVar[str] = "landing waits for the copies of {table_names}: {reason}"
    default_level: ClassVar[Level] = Level.CAUTION
    uncopied_bytes: int
    reason: str
    tables: tuple[str, ...]

    @property
    def table_names(self) -> str:
        """The tables in one text."""
        return ", ".join(self.tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamKept(Event):
    """Landed batches stay for longer than the task keeps them, because a table lacks them.

    `number` is that of the first batch, `tables` are those that have not copied it; empty if this
    process does not know which tables read the stream.
    """

    type: ClassVar[str] = "stream.kept"
    verb: ClassVar[str] = "kept"
    template: ClassVar[str] = (
        "landed batches from number {number:,} on are older than `keep`: {missing_in}"
    )
    default_level: ClassVar[Level] = Level.CAUTION
    number: int
    tables: tuple[str, ...]

    @property
    def missing_in(self) -> str:
        """The tables that lack the batches."""
        if not self.tables:
            return "it is unknown which tables lack them"
        has = "has" if len(self.tables) == 1 else "have"
        return f"{', '.join(self.tables)} {has} not copied them"
