"""Groups of machines that a cluster's nodes are: what is known of one, and what it can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

RefreshIs: TypeAlias = Literal["running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many nodes a group may have and wants."""

    minimum: int
    maximum: int
    desired: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """A replacement of all nodes, one after the other; `since` None: it waits for its begin."""

    name: str
    state: RefreshIs
    reason: str
    percent: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class FailedLaunch:
    """The newest launch of a node, which failed; `capacity`: for want of machines."""

    at: datetime
    reason: str
    capacity: bool


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group as it is now.

    Attributes:
        bounds: how many nodes it may have and wants.
        in_service, starting, ending: nodes that it has.
        stopped: the bounds that were remembered when somebody stopped it.
        held: schedules do not change its bounds.
        refresh: the newest one.
        failed_launch: None when the newest launch succeeded, or there was none.
        deleting: the group itself is being deleted.
    """

    bounds: Bounds
    in_service: int = 0
    starting: int = 0
    ending: int = 0
    stopped: Bounds | None = None
    held: bool = False
    refresh: Refresh | None = None
    failed_launch: FailedLaunch | None = None
    deleting: bool = False

    @property
    def is_stopped(self) -> bool:
        """Whether somebody stopped it, and it was not given other bounds since."""
        return self.stopped is not None and self.bounds.maximum == 0


class NodeGroups(Protocol):
    """The groups, by name.

    All methods raise DependencyError when the service does not answer, so that nobody knows whether
    it was done, and those that ask for something OperationError when it refuses.
    """

    def facts(self, group: str) -> GroupFacts | None:
        """What is known of a group, None when there is no such one."""
        ...

    def remember(self, group: str, bounds: Bounds) -> None:
        """Keep these bounds at the group, for when it is started again."""
        ...

    def forget(self, group: str) -> None:
        """Keep no bounds any more."""
        ...

    def hold(self, group: str) -> None:
        """Let no schedule change the bounds."""
        ...

    def release(self, group: str) -> None:
        """Let schedules change the bounds again."""
        ...

    def bound(self, group: str, bounds: Bounds) -> None:
        """Give the group these bounds."""
        ...

    def want(self, group: str, desired: int) -> None:
        """Let the group have so many nodes, within its bounds."""
        ...

    def roll(self, group: str) -> None:
        """Replace all nodes. When a replacement is under way, that one goes on."""
        ...
