"""Events of captures: what of a database is loaded, landed, behind, or left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from polynya.model.errors import PolynyaError
from polynya.observe.events import ErrorEvent, Event, Level, counted, line, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureTable(Event):
    """A table of a capture is in another state; the subject is `task/table`.

    `state` is `queued`, `loading`, `running` or `error`, which waits for a person; `rows` are
    loaded so far.
    """

    type: ClassVar[str] = "capture.table"
    state: str
    rows: int

    @property
    def level(self) -> Level:
        """What it means for people has events of its own."""
        return Level.DETAIL

    @override
    def text(self) -> str:
        return line("table", self.subject, f"{self.state}, {counted(self.rows, 'row')} loaded")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLoaded(Event):
    """All rows of a table have landed; from now on only its changes do."""

    type: ClassVar[str] = "capture.loaded"
    rows: int
    bytes: int
    seconds: float

    @override
    def text(self) -> str:
        rate = self.rows / self.seconds if self.seconds else 0
        return line(
            "loaded",
            self.subject,
            f"{counted(self.rows, 'row')}, {_size(self.bytes)} in {self.seconds:.1f} s "
            f"({rate:,.0f}/s)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureStreaming(Event):
    """The stream of the database is connected: changes land from now on."""

    type: ClassVar[str] = "capture.streaming"

    @override
    def text(self) -> str:
        return line("stream", self.subject, "connected, changes land from now on")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLanded(Event):
    """A landed batch of rows or changes was put.

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
    def level(self) -> Level:
        """A batch without events is only a position."""
        return Level.NOTE if self.events else Level.DETAIL

    @override
    def text(self) -> str:
        size = f"{_size(self.object_bytes)} compressed"
        if self.bytes:
            size = f"{_size(self.bytes)} ({size})"
        return line("landed", self.subject, f"{counted(self.events, 'event')}, {size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLag(Event):
    """How far the landing zone is behind the database; None is not known.

    `notes` are for people, such as the danger to the database's disk.
    """

    type: ClassVar[str] = "capture.lag"
    bytes: int | None
    seconds: float | None
    notes: tuple[str, ...] = ()

    @property
    def level(self) -> Level:
        """Somebody should look when there is a note."""
        return Level.CAUTION if self.notes else Level.DETAIL

    def figures(self) -> Mapping[str, Any]:
        """Notes as a list."""
        return {"bytes": self.bytes, "seconds": self.seconds, "notes": list(self.notes)}

    @override
    def text(self) -> str:
        return line("behind", self.subject, "; ".join([lag_in_words(self), *self.notes]))


def lag_in_words(lag: CaptureLag) -> str:
    """`12.0 MiB, 3 s`."""
    known = [
        None if lag.bytes is None else _size(lag.bytes),
        None if lag.seconds is None else f"{lag.seconds:,.0f} s",
    ]
    return ", ".join(part for part in known if part is not None) or "not known"


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
    what: ClassVar[str] = "cannot be read"
    suspended: bool = False
    refused: bool = False

    def figures(self) -> Mapping[str, Any]:
        """The error, and what becomes of the table."""
        own = {"suspended": self.suspended, "refused": self.refused}
        return {**self.error.as_dict(), **own}

    @override
    def text(self) -> str:
        goes_on = "goes on as it is" if self.refused else "is tried again"
        then = "is left out from now on" if self.suspended else goes_on
        return f"{self.subject}: {then}: {one_line(self.error)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRetry(ErrorEvent):
    """The capture ended by something that may pass, the `number`-th time in a row."""

    type: ClassVar[str] = "capture.retry"
    what: ClassVar[str] = "the capture is interrupted"
    error: PolynyaError
    number: int
    pause_seconds: float

    def figures(self) -> Mapping[str, Any]:
        """The error, and when it is tried again."""
        own = {"number": self.number, "pause_seconds": self.pause_seconds}
        return {**self.error.as_dict(), **own}

    @override
    def text(self) -> str:
        return (
            f"{self.subject}: {self.what}, it begins again in {self.pause_seconds:,.0f} s: "
            f"{one_line(self.error)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureExpired(Event):
    """Landed batches were removed because they are older than the task keeps them."""

    type: ClassVar[str] = "capture.expired"
    files: int

    @property
    def level(self) -> Level:
        """It is what was asked for."""
        return Level.DETAIL

    @override
    def text(self) -> str:
        return line("expired", self.subject, f"{self.files:,} landed batches")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureHeld(Event):
    """An operator has stopped or resumed the capture: `polynya landing stop` and `resume`."""

    type: ClassVar[str] = "capture.held"
    held: bool

    @property
    def level(self) -> Level:
        """What is not captured may be lost in the end."""
        return Level.CAUTION if self.held else Level.NOTE

    @override
    def text(self) -> str:
        if self.held:
            return line("stopped", self.subject, f"on request; `polynya landing resume "
                        f"{self.subject}` lets it go on")  # fmt: skip
        return line("resumed", self.subject, "the capture goes on")
