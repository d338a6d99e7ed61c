"""Events of automations in the agent of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polynya.observe.events import ErrorEvent, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationEnded(Event):
    """A run of an automation ended, or a moment of it was left out; `seconds` is its length."""

    type: ClassVar[str] = "automation.ended"
    verb: ClassVar[str] = "automation"
    template: ClassVar[str] = "{words} in {seconds:.1f} s, {why}"
    run: str
    state: str
    why: str
    seconds: float
    code: str | None = None

    @property
    def words(self) -> str:
        """How it ended."""
        return self.state.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomationFailed(ErrorEvent):
    """An automation is broken, or cannot be looked at; reported once while it is."""

    type: ClassVar[str] = "automation.failed"
    template: ClassVar[str] = "{cause}"
