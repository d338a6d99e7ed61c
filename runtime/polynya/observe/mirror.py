"""Events of mirrors: what changed in their targets, and how far these are behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polynya.observe.events import Event, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorChanged(Event):
    """A mirror made, replaced or dropped an object of its target."""

    type: ClassVar[str] = "mirror.changed"
    verb: ClassVar[str] = "mirror"
    template: ClassVar[str] = "{action} {object}: {reason}"

    action: str
    object: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRefreshed(Event):
    """A table of a target shows a newer commit; `behind_seconds` is what it still lacks."""

    type: ClassVar[str] = "mirror.refreshed"
    verb: ClassVar[str] = "mirror"
    template: ClassVar[str] = "shows snapshot {snapshot}"

    snapshot: int
    behind_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorBehind(Event):
    """A table of a target has not shown the newest commit for longer than `stale_after`."""

    type: ClassVar[str] = "mirror.behind"
    template: ClassVar[str] = "the mirror {task} is {behind_seconds:,.0f} s behind: {error}"
    default_level: ClassVar[Level] = Level.WARNING

    behind_seconds: float
    error: str
