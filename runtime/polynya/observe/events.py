"""Events as data: the engine emits them, and each command decides how to show them.

Each type of event is a dataclass in a module of `observe`: its fields, a `type`, and a `template`
for its line. Its `type` and the names of its fields are a contract with programs that read
`--json`: fields may be added, never changed or removed.
"""

from __future__ import annotations

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
    """Shown with `--verbose`."""
    PROGRESS = auto()
    """Shown while it lasts, then gone."""
    NOTE = auto()
    """Shown unless `--quiet` is set."""
    CAUTION = auto()
    """Always shown, in yellow: somebody should look at it."""
    WARNING = auto()
    """Always shown, in yellow, as a warning."""
    FAILURE = auto()
    """Always shown, in red."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    Attributes:
        type: stable dotted name, such as `batch.copied`.
        verb: first word of its line, in a column of its own; none for a warning.
        template: what its line says after the subject. In both, `{name}` is a field or a property.
        default_level: how much it matters to people, unless its fields say otherwise.
        subject: what it happened to: `schema.dataset`, a task, or a node.
        task: the task of the subject, where a node runs several of them.
    """

    type: ClassVar[str]
    verb: ClassVar[str] = ""
    template: ClassVar[str] = ""
    default_level: ClassVar[Level] = Level.NOTE

    subject: str
    task: str | None = None

    @property
    def level(self) -> Level:
        """How much it matters to people."""
        return self.default_level

    def text(self) -> str:
        """One line for people."""
        values = _Attributes(self)
        text = self.template.format_map(values)
        if not self.verb:
            return f"{self.subject}: {text}"
        return line(self.verb.format_map(values), self.subject, text)

    def figures(self) -> Mapping[str, Any]:
        """Its own fields as JSON values; figures have their unit in the name."""
        own = (field.name for field in fields(self) if field.name not in _COMMON)
        return {name: getattr(self, name) for name in own}

    def as_json(self) -> dict[str, Any]:
        """Subject, task if it has one, and its own fields."""
        task = {} if self.task is None else {"task": self.task}
        return {"subject": self.subject, **task, **self.figures()}


class _Attributes:
    """Fields and properties of an event by name, for its templates."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def __getitem__(self, name: str) -> Any:
        return getattr(self._event, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(Event):
    """Something fails for now, and somebody has to act."""

    default_level: ClassVar[Level] = Level.WARNING
    error: PolynyaError

    @property
    def cause(self) -> str:
        """The error in one line."""
        return one_line(self.error)

    @override
    def figures(self) -> Mapping[str, Any]:
        return self.error.as_dict()


_COMMON: Final = frozenset({"subject", "task"})

EventSink: TypeAlias = Callable[[Event], None]


def discard(event: Event) -> None:
    """A sink that ignores events."""
    del event


def line(verb: str, subject: str, text: str) -> str:
    """The line of an event, with its verb in a column of its own."""
    return f"{verb:8} {subject}: {text}"


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(error: PolynyaError) -> str:
    """An error in one line: where, what, why, its code, and what to do."""
    if isinstance(error, ConfigErrors):
        return "; ".join(one_line(part) for part in error.errors)
    where = f"{error.where}: " if error.where else ""
    text = error.message if error.why is None else f"{error.message}: {error.why}"
    fix = f"; {error.fix}" if error.fix else ""
    return f"{where}{' '.join(text.split())} ({error.code}){fix}"


#: A step that takes a while.
Step: TypeAlias = Literal["starting", "copying", "applying", "loading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began; its subject is the project."""

    type: ClassVar[str] = "run.started"
    verb: ClassVar[str] = "start"
    template: ClassVar[str] = "target {target}, {task_count}"
    target: str
    tasks: tuple[str, ...]

    @property
    def task_count(self) -> str:
        """`2 tasks`."""
        return counted(len(self.tasks), "task")


_BAR_CHARACTERS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress(Event):
    """How far a step that takes a while has come; `StepEnded` follows.

    Attributes:
        step: what it does.
        seconds: time since the step began, or since the larger step that it belongs to.
        rows: rows done so far, None if they are not counted while it runs.
        rows_before: rows of these that were done before the step began.
        rows_left, files_left, left_bytes: the remaining work, None if it is unknown.
        left_seconds: time that the rest takes at the speed so far, None before it was measured.
        detail: the part of the step that is running.
    """

    type: ClassVar[str] = "step.progress"
    default_level: ClassVar[Level] = Level.PROGRESS
    step: Step
    seconds: float = 0.0
    rows: int | None = None
    rows_before: int = 0
    rows_left: int | None = None
    files_left: int | None = None
    left_bytes: int | None = None
    left_seconds: float | None = None
    detail: str | None = None

    @override
    def figures(self) -> Mapping[str, Any]:
        figures = {
            "step": self.step,
            "seconds": round(self.seconds, 3),
            "rows": self.rows,
            "rows_left": self.rows_left,
            "files_left": self.files_left,
            "left_bytes": self.left_bytes,
            "left_seconds": None if self.left_seconds is None else round(self.left_seconds),
            "detail": self.detail,
        }
        return {name: value for name, value in figures.items() if value is not None}

    @override
    def text(self) -> str:
        if self.rows is not None and self.rows_left is not None:
            return line(self.step, self.subject, self._bar(self.rows, self.rows_left))
        left = [
            None if self.rows_left is None else counted(self.rows_left, "row"),
            None if self.files_left is None else counted(self.files_left, "file"),
            None if self.left_bytes is None else f"{self.left_bytes / 2**20:,.1f} MiB",
        ]
        remaining = ", ".join(part for part in left if part is not None)
        rate = self._rate()
        parts = [
            self.detail,
            f"{remaining} left" if remaining else None,
            None if rate is None else f"{rate:,.0f} records/s",
            None if self.left_seconds is None else f"about {self.left_seconds:,.0f} s",
        ]
        text = ", ".join(part for part in parts if part is not None)
        return line(self.step, self.subject, text or "…")

    def _rate(self) -> float | None:
        rows = (self.rows or 0) - self.rows_before
        return rows / self.seconds if rows and self.seconds else None

    def _bar(self, rows: int, left: int) -> str:
        """`[####......] 40%, about 6 s, 4,000 rows, …`: the important parts first, if it is cut."""
        share = rows / max(1, rows + left)
        done = round(share * _BAR_CHARACTERS)
        rate = self._rate()
        parts = [
            f"[{'#' * done}{'.' * (_BAR_CHARACTERS - done)}] {share:.0%}",
            None if self.left_seconds is None else f"about {self.left_seconds:,.0f} s",
            counted(rows, "row"),
            self.detail,
            None if rate is None else f"{rate:,.0f}/s",
        ]
        return ", ".join(part for part in parts if part is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(Event):
    """A step that was reported as running has ended; its result has an event of its own."""

    type: ClassVar[str] = "step.ended"
    verb: ClassVar[str] = "ended"
    template: ClassVar[str] = "the step is over"
    default_level: ClassVar[Level] = Level.PROGRESS


@contextmanager
def under_way(sink: EventSink, progress: StepProgress) -> Iterator[None]:
    """Report a step as running until the block ends."""
    sink(progress)
    try:
        yield
    finally:
        sink(StepEnded(subject=progress.subject))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyWaiting(Event):
    """Copies of a dataset wait for its apply, which cannot keep up; reported once each time."""

    type: ClassVar[str] = "copy.waiting"
    verb: ClassVar[str] = "waiting"
    template: ClassVar[str] = "copies wait for the apply: {reason}"
    reason: str
