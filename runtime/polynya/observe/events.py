"""What happens, as data: the engine emits events, others decide how to show or keep them.

Each kind of event is a dataclass in `data.py` or `node.py`. Its `type` and the names of its fields
are a contract with programs that read `--json`: fields may be added, never changed or removed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import Any, ClassVar, Final, TypeAlias

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
    """Something fails for now, and somebody has to act. `what` is said before the error."""

    what: ClassVar[str]
    error: PolynyaError

    @property
    def level(self) -> Level:
        """A warning."""
        return Level.WARNING

    def figures(self) -> Mapping[str, Any]:
        """The error with all its parts."""
        return self.error.as_dict()

    def text(self) -> str:
        """See `Event`."""
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
