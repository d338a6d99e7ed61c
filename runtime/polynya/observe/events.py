"""Events as data: the engine emits what happens, and others decide how to show it.

Each kind of event is a dataclass in a module of `observe`. Its `type` and the names of its fields
are a contract with programs that read `--json`: fields may be added, never changed or removed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import Any, ClassVar, Final, Literal, TypeAlias

from typing_extensions import override

from polynya.model.errors import ConfigErrors, PolynyaError


class Level(Enum):
    """How much an event matters to people."""

    DETAIL = auto()
    """Shown when somebody asks for more."""
    PROGRESS = auto()
    """Shown while it lasts, then gone."""
    NOTE = auto()
    """Shown unless somebody asks for silence."""
    CAUTION = auto()
    """Always shown, in yellow: somebody should look at it."""
    WARNING = auto()
    """Always shown, in yellow, as a warning."""
    FAILURE = auto()
    """Always shown, in red."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(ABC):
    """One thing that happened.

    Attributes:
        type: stable dotted name, such as `batch.copied`.
        subject: what it happened to: `schema.dataset`, a task, or a node.
        task: the task of the subject, where a node runs several of them.
    """

    type: ClassVar[str]

    subject: str
    task: str | None = None

    @property
    def level(self) -> Level:
        """How much it matters to people."""
        return Level.NOTE

    @abstractmethod
    def text(self) -> str:
        """One line for people."""

    def figures(self) -> Mapping[str, Any]:
        """Its own fields as JSON values; figures have their unit in the name."""
        own = (field.name for field in fields(self) if field.name not in _COMMON)
        return {name: getattr(self, name) for name in own}

    def as_json(self) -> dict[str, Any]:
        """Subject, task if it has one, and its own fields."""
        task = {} if self.task is None else {"task": self.task}
        return {"subject": self.subject, **task, **self.figures()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(Event):
    """Something fails for now, and somebody has to act. `what` stands before the error."""

    what: ClassVar[str]
    error: PolynyaError

    @property
    def level(self) -> Level:
        """A warning."""
        return Level.WARNING

    def figures(self) -> Mapping[str, Any]:
        """The error with all its parts."""
        return self.error.as_dict()

    @override
    def text(self) -> str:
        return f"{self.subject}: {self.what}: {one_line(self.error)}"


_COMMON: Final = frozenset({"subject", "task"})

EventSink: TypeAlias = Callable[[Event], None]


def discard(event: Event) -> None:
    """A sink for nobody."""
    del event


def line(verb: str, subject: str, text: str) -> str:
    """The line of an event, with its verb in a column of its own."""
    return f"{verb:8} {subject}: {text}"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(error: PolynyaError) -> str:
    """An error in one line: where, what, its code, and what to do."""
    if isinstance(error, ConfigErrors):
        return "; ".join(one_line(one) for one in error.errors)
    place = f"{error.where}: " if error.where else ""
    fix = f"; {error.fix}" if error.fix else ""
    return f"{place}{' '.join(error.message.split())} ({error.code}){fix}"


#: What takes a while.
Step: TypeAlias = Literal["starting", "copying", "applying", "loading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began; its subject is the project."""

    type: ClassVar[str] = "run.started"
    target: str
    tasks: tuple[str, ...]

    @override
    def text(self) -> str:
        tasks = counted(len(self.tasks), "task")
        return line("start", self.subject, f"target {self.target}, {tasks}")


#: Characters of a bar.
_BAR: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress(Event):
    """How far a step that takes a while has come; `StepEnded` follows.

    Attributes:
        step: what is done.
        seconds: time since the step began, or since what it is a part of did.
        rows: rows done so far, None when they are not counted meanwhile.
        rows_before: those of them that were done before the step began.
        rows_left, files_left, left_bytes: what is left of it, None when that is not known.
        left_seconds: time that the rest takes at the speed so far, None before it was measured.
        detail: what of the step is under way.
    """

    type: ClassVar[str] = "step.progress"
    step: Step
    seconds: float = 0.0
    rows: int | None = None
    rows_before: int = 0
    rows_left: int | None = None
    files_left: int | None = None
    left_bytes: int | None = None
    left_seconds: float | None = None
    detail: str | None = None

    @property
    def level(self) -> Level:
        """It is over soon."""
        return Level.PROGRESS

    def figures(self) -> Mapping[str, Any]:
        """Only what is known."""
        known = {
            "step": self.step,
            "seconds": round(self.seconds, 3),
            "rows": self.rows,
            "rows_left": self.rows_left,
            "files_left": self.files_left,
            "left_bytes": self.left_bytes,
            "left_seconds": None if self.left_seconds is None else round(self.left_seconds),
            "detail": self.detail,
        }
        return {name: value for name, value in known.items() if value is not None}

    @override
    def text(self) -> str:
        if self.rows is not None and self.rows_left is not None:
            return line(self.step, self.subject, self._bar(self.rows, self.rows_left))
        left = [
            None if self.rows_left is None else counted(self.rows_left, "row"),
            None if self.files_left is None else counted(self.files_left, "file"),
            None if self.left_bytes is None else f"{self.left_bytes / 2**20:,.1f} MiB",
        ]
        known = ", ".join(part for part in left if part is not None)
        rate = self._rate()
        parts = [
            self.detail,
            f"{known} left" if known else None,
            None if rate is None else f"{rate:,.0f} records/s",
            None if self.left_seconds is None else f"about {self.left_seconds:,.0f} s",
        ]
        text = ", ".join(part for part in parts if part is not None)
        return line(self.step, self.subject, text or "…")

    def _rate(self) -> float | None:
        rows = (self.rows or 0) - self.rows_before
        return rows / self.seconds if rows and self.seconds else None

    def _bar(self, rows: int, left: int) -> str:
        """`[####......] 40 %, about 6 s, 4,000 rows, …`: what matters first, for narrow windows."""
        share = rows / max(1, rows + left)
        done = round(share * _BAR)
        rate = self._rate()
        parts = [
            f"[{'#' * done}{'.' * (_BAR - done)}] {share:.0%}",
            None if self.left_seconds is None else f"about {self.left_seconds:,.0f} s",
            counted(rows, "row"),
            self.detail,
            None if rate is None else f"{rate:,.0f}/s",
        ]
        return ", ".join(part for part in parts if part is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(Event):
    """A step that was reported as running is over, however it ended."""

    type: ClassVar[str] = "step.ended"

    @property
    def level(self) -> Level:
        """What came of it has an event of its own."""
        return Level.PROGRESS

    @override
    def text(self) -> str:
        return line("ended", self.subject, "the step is over")


@contextmanager
def under_way(sink: EventSink, progress: StepProgress) -> Iterator[None]:
    """Report a step as running until the end of the block, however that ends."""
    sink(progress)
    try:
        yield
    finally:
        sink(StepEnded(subject=progress.subject))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWaiting(Event):
    """Copies of a dataset wait for its apply, which cannot keep up; reported once each time."""

    type: ClassVar[str] = "copy.waiting"
    reason: str

    @override
    def text(self) -> str:
        return line("waiting", self.subject, f"copies wait for the apply: {self.reason}")
