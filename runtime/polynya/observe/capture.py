"""Events of captures: what of a database is loaded, landed, late, or left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from polynya.observe.events import ErrorEvent, Event, Level, counted, line


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureTable(Event):
    """A table of a capture changed its state; the subject is `task/table`.

    `state` is `queued`, `loading`, `running` or `error`, which waits for an operator; `rows` are
    loaded so far.
    """

    type: ClassVar[str] = "capture.table"
    verb: ClassVar[str] = "table"
    template: ClassVar[str] = "{state}, {row_count} loaded"
    default_level: ClassVar[Level] = Level.DETAIL
    state: str
    rows: int

    @property
    def row_count(self) -> str:
        """`1,200 rows`."""
        return counted(self.rows, "row")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLoaded(Event):
    """All rows of a table have landed; from now on only its changes do."""

    type: ClassVar[str] = "capture.loaded"
    verb: ClassVar[str] = "loaded"
    template: ClassVar[str] = "{row_count}, {size} in {seconds:.1f} s ({rate:,.0f}/s)"
    rows: int
    bytes: int
    seconds: float

    @property
    def row_count(self) -> str:
        """`1,200 rows`."""
        return counted(self.rows, "row")

    @property
    def size(self) -> str:
        """`3.0 MiB`."""
        return _size(self.bytes)

    @property
    def rate(self) -> float:
        """Rows in a second."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureStreaming(Event):
    """The stream of the database is connected."""

    type: ClassVar[str] = "capture.streaming"
    verb: ClassVar[str] = "stream"
    template: ClassVar[str] = "connected, changes land from now on"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLanded(Event):
    """A landed batch of rows or changes was written.

    `bytes` are those of its events, 0 where they were not counted; `object_bytes` those of the
    object.
    """

    type: ClassVar[str] = "capture.landed"
    number: int
    events: int
    bytes: int
    object_bytes: int
    seconds: float

    @property
    @override
    def level(self) -> Level:
        # A batch without events is only a position.
        return Level.NOTE if self.events else Level.DETAIL

    @override
    def text(self) -> str:
        size = f"{_size(self.object_bytes)} compressed"
        if self.bytes:
            size = f"{_size(self.bytes)} ({size})"
        return line("landed", self.subject, f"{counted(self.events, 'event')}, {size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLag(Event):
    """How far the landing zone is behind the database; None if it is unknown.

    `notes` are for people, such as a warning that the database's disk may fill up; they are
    reported once. `warned`: such a warning is in force.
    """

    type: ClassVar[str] = "capture.lag"
    bytes: int | None
    seconds: float | None
    notes: tuple[str, ...] = ()
    warned: bool = False

    @property
    @override
    def level(self) -> Level:
        return Level.CAUTION if self.notes else Level.DETAIL

    @override
    def text(self) -> str:
        return line("behind", self.subject, "; ".join([lag_in_words(self), *self.notes]))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureNote(Event):
    """What an operator should know of an extraction, such as a table without an index for it.

    The subject is `task/table`. Reported once.
    """

    type: ClassVar[str] = "capture.note"
    verb: ClassVar[str] = "note"
    template: ClassVar[str] = "{note}"
    default_level: ClassVar[Level] = Level.CAUTION
    note: str


def lag_in_words(lag: CaptureLag) -> str:
    """`12.0 MiB, 3 s`."""
    parts = [
        None if lag.bytes is None else _size(lag.bytes),
        None if lag.seconds is None else f"{lag.seconds:,.0f} s",
    ]
    return ", ".join(part for part in parts if part is not None) or "unknown"


def _size(size: int) -> str:
    return f"{size / 2**10:,.0f} KiB" if size < 2**20 else f"{size / 2**20:,.1f} MiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureTableFailed(ErrorEvent):
    """A table cannot be read while others can.

    Attributes:
        suspended: it is left out until it is resumed.
        refused: it continues; only the request is not carried out.
    """

    type: ClassVar[str] = "capture.table_failed"
    template: ClassVar[str] = "{consequence}: {cause}"
    suspended: bool = False
    refused: bool = False

    @property
    def consequence(self) -> str:
        """What happens to the table."""
        if self.suspended:
            return "suspended until it is resumed"
        return "request refused, the capture continues" if self.refused else "will be retried"

    @override
    def figures(self) -> Mapping[str, Any]:
        own = {"suspended": self.suspended, "refused": self.refused}
        return {**self.error.as_dict(), **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRetry(ErrorEvent):
    """The capture ended with an error that may pass, the `number`-th time in a row."""

    type: ClassVar[str] = "capture.retry"
    template: ClassVar[str] = (
        "the capture is interrupted, it restarts in {pause_seconds:,.0f} s: {cause}"
    )
    number: int
    pause_seconds: float

    @override
    def figures(self) -> Mapping[str, Any]:
        own = {"number": self.number, "pause_seconds": self.pause_seconds}
        return {**self.error.as_dict(), **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureExpired(Event):
    """Landed batches were removed because they are older than the task keeps them."""

    type: ClassVar[str] = "capture.expired"
    verb: ClassVar[str] = "expired"
    template: ClassVar[str] = "{files:,} landed batches"
    default_level: ClassVar[Level] = Level.DETAIL
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureWindow(Event):
    """A time in which the task may not read has begun or ended; see `active` and `maintenance`.

    `until` is when it may read again, ISO 8601 in UTC; None while `open`, and when no window opens
    any more.
    """

    type: ClassVar[str] = "capture.window"
    verb: ClassVar[str] = "window"
    template: ClassVar[str] = "{what}"
    open: bool
    until: str | None = None

    @property
    def what(self) -> str:
        """What begins."""
        if self.open:
            return "the task may read again"
        until = "no later window opens" if self.until is None else f"until {self.until}"
        return f"the task may not read, {until}; the database keeps its log meanwhile"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureHeld(Event):
    """An operator has stopped or resumed the capture: `polynya landing stop` and `resume`."""

    type: ClassVar[str] = "capture.held"
    held: bool

    @property
    @override
    def level(self) -> Level:
        # The source may delete changes that are not captured for long.
        return Level.CAUTION if self.held else Level.NOTE

    @override
    def text(self) -> str:
        if self.held:
            resume = f"polynya landing resume {self.subject}"
            return line("stopped", self.subject, f"on request; `{resume}` resumes it")
        return line("resumed", self.subject, "the capture continues")
