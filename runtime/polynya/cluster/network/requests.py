"""What can be asked of a group, as values, and how each is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from polynya.store.node_groups import Bounds, NodeGroups


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep the bounds for a later start."""

    name: ClassVar[str] = "remember"
    bounds: Bounds

    def ask(self, groups: NodeGroups, group: str) -> None:
        """See `NodeGroups`."""
        groups.remember(group, self.bounds)


@dataclass(frozen=True, slots=True)
class Forget:
    """Keep no bounds any more."""

    name: ClassVar[str] = "forget"

    def ask(self, groups: NodeGroups, group: str) -> None:
        """See `NodeGroups`."""
        groups.forget(group)


@dataclass(frozen=True, slots=True)
class Hold:
    """Let no schedule change the bounds."""

    name: ClassVar[str] = "hold"

    def ask(self, groups: NodeGroups, group: str) -> None:
        """See `NodeGroups`."""
        groups.hold(group)


@dataclass(frozen=True, slots=True)
class Release:
    """Let schedules change the bounds again."""

    name: ClassVar[str] = "release"

    def ask(self, groups: NodeGroups, group: str) -> None:
        """See `NodeGroups`."""
        groups.release(group)


@dataclass(frozen=True, slots=True)
class Bound:
    """Give it these bounds."""

    name: ClassVar[str] = "bound"
    bounds: Bounds

    def ask(self, groups: NodeGroups, group: str) -> None:
        """See `NodeGroups`."""
        groups.bound(group, self.bounds)


@dataclass(frozen=True, slots=True)
class Want:
    """Let it have so many nodes."""

    name: ClassVar[str] = "want"
    desired: int

    def ask(self, groups: NodeGroups, group: str) -> None:
        """See `NodeGroups`."""
        groups.want(group, self.desired)


@dataclass(frozen=True, slots=True)
class Roll:
    """Replace all nodes."""

    name: ClassVar[str] = "roll"

    def ask(self, groups: NodeGroups, group: str) -> None:
        """See `NodeGroups`."""
        groups.roll(group)


Request: TypeAlias = Remember | Forget | Hold | Release | Bound | Want | Roll
