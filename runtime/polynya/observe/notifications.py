"""Events of notifications: what was sent, and what could not be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from polynya.observe.events import ErrorEvent, Event, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationSent(Event):
    """A channel took a message; its subject is `FILE.RULE.CHANNEL`.

    `notices` counts what it told: `opened`, `reminder`, `resolved`.
    """

    type: ClassVar[str] = "notification.sent"
    verb: ClassVar[str] = "notified"
    template: ClassVar[str] = "{notice_count}"
    default_level: ClassVar[Level] = Level.DETAIL
    notices: Mapping[str, int]

    @property
    def notice_count(self) -> str:
        """`2 opened, 1 reminder, 3 resolved`."""
        return ", ".join(f"{number} {word}" for word, number in self.notices.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFailed(ErrorEvent):
    """A channel did not take a message; reported once while it fails for the same reason."""

    type: ClassVar[str] = "notification.failed"
    template: ClassVar[str] = "{cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationGivenUp(Event):
    """A message was tried as often as it may be, and is not sent any more.

    `names` are the first objects that it was about.
    """

    type: ClassVar[str] = "notification.given_up"
    template: ClassVar[str] = "a message is given up: {first}"
    default_level: ClassVar[Level] = Level.WARNING
    names: tuple[str, ...]

    @property
    def first(self) -> str:
        """The objects in one text."""
        return ", ".join(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationMemoryFailed(ErrorEvent):
    """What was told cannot be kept, so another process might tell it again; reported once."""

    type: ClassVar[str] = "notification.memory"
    template: ClassVar[str] = "what was told cannot be kept: {cause}"
