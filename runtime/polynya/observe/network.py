"""Events of the network agent: its connection, and what becomes of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from polynya.observe.events import Event, Level, line

#: `tried`: it was started beside the one that serves; `serves`: in its place from now on; `failed`:
#: it did not show that it works; `given up`: another one is wanted by now; `went back`: it failed
#: while it served, and the former serves again; `refused`: its package cannot be used.
UpdateIs: TypeAlias = Literal["tried", "serves", "failed", "given up", "went back", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConnected(Event):
    """The network agent reaches the store and the group of a cluster."""

    type: ClassVar[str] = "network.connected"
    after_seconds: float | None = None

    def text(self) -> str:
        """See `Event`."""
        after = f" after {self.after_seconds:.0f} s" if self.after_seconds is not None else ""
        return line("connected", self.subject, f"the network agent reaches it{after}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkDisconnected(Event):
    """It does not, and why."""

    type: ClassVar[str] = "network.disconnected"
    reason: str

    @property
    def level(self) -> Level:
        """Nobody can stop or start the cluster."""
        return Level.WARNING

    def text(self) -> str:
        """See `Event`."""
        return line("disconnected", self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandChanged(Event):
    """A command came into a state, or something was asked of the group for it."""

    type: ClassVar[str] = "command.changed"
    id: str
    command: str
    state: str
    reason: str
    asked: str | None = None

    @property
    def level(self) -> Level:
        """What was not done somebody has to know."""
        return Level.WARNING if self.state in ("failed", "refused") else Level.NOTE

    def text(self) -> str:
        """See `Event`."""
        return line(self.state, self.subject, f"{self.command}: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandUnread(Event):
    """A command, or the agent's own sign of life, cannot be understood; told once."""

    type: ClassVar[str] = "command.unread"
    reason: str

    @property
    def level(self) -> Level:
        """Somebody waits for it."""
        return Level.WARNING

    def text(self) -> str:
        """See `Event`."""
        return line("unread", self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUpdate(Event):
    """A version of the network agent came into a state, and why."""

    type: ClassVar[str] = "network.update"
    state: UpdateIs
    version: str
    reason: str

    @property
    def level(self) -> Level:
        """What somebody pinned does not run."""
        return Level.WARNING if self.state in ("failed", "went back", "refused") else Level.NOTE

    def text(self) -> str:
        """See `Event`."""
        return line(self.state, self.subject, f"version {self.version}: {self.reason}")
