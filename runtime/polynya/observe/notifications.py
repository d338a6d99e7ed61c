"""Events of notifications: what was sent, and what could not be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polynya.observe.events import ErrorEvent, Event, Level, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationSent(Event):
    """A channel took a message; its subject is `FILE.RULE.CHANNEL`."""

    type: ClassVar[str] = "notification.sent"
    verb: ClassVar[str] = "notified"
    template: ClassVar[str] = "{notice_count}"
    default_level: ClassVar[Level] = Level.DETAIL
    opened: int
    reminders: int
    resolved: int

    @property
    def notice_count(self) -> str:
        """`2 new, 1 still, 3 resolved`."""
        parts = [(self.opened, "new"), (self.reminders, "still"), (self.resolved, "resolved")]
        return ", ".join(f"{number} {word}" for number, word in parts if number)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFailed(ErrorEvent):
    """A channel did not take a message; reported once while it fails for the same reason."""

    type: ClassVar[str] = "notification.failed"
    template: ClassVar[str] = "{cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationGivenUp(Event):
    """A message was tried as often as it may be, and is not sent any more."""

    type: ClassVar[str] = "notification.given_up"
    template: ClassVar[str] = "{lost} not told after {attempts} attempts"
    default_level: ClassVar[Level] = Level.WARNING
    notices: int
    attempts: int

    @property
    def lost(self) -> str:
        """`3 conditions`."""
        return counted(self.notices, "condition")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationMemoryFailed(ErrorEvent):
    """What was told cannot be kept, so another process might tell it again; reported once."""

    type: ClassVar[str] = "notification.memory"
    template: ClassVar[str] = "what was told cannot be kept: {cause}"
