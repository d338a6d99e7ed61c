"""Ports for runs of a job service and for groups of machines.

The label of a run names its work and its submitter. By the label a process finds a submission whose
answer was lost, and runs that an earlier process left behind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, Protocol, TypeAlias

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
        machines: the types of its instances, each with a zone in which there are some.
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
    machines: frozenset[tuple[str, str]] = frozenset()

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
        """What is known of a group, None when it does not exist."""
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
        """Set the number of nodes of the group, within its bounds."""
        ...

    def roll(self, group: str) -> None:
        """Replace all nodes. A replacement that is under way continues instead."""
        ...


class MachinePrices(Protocol):
    """The prices of Linux machines in US dollars an hour, by type; without those that have none.

    Methods raise DependencyError when the service refuses or does not answer.
    """

    def spot(self, types: Collection[str]) -> Mapping[tuple[str, str], float]:
        """The present Spot prices, by type and zone."""
        ...

    def on_demand(self, types: Collection[str]) -> Mapping[str, float]:
        """The On-Demand prices, which all zones share."""
        ...


#: No run lives longer: a label is not looked for further back, in hours.
MAX_RUN_HOURS: Final = 12
_LABEL: Final = re.compile(r"polynya-([0-9a-f]{12})-(\d{1,18})-([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Label:
    """What identifies a submission.

    Attributes:
        scope: 12 hex digits of what it works on.
        epoch: in which; 0 where nodes share nothing.
        token: 16 hex digits, another one for each submission.
    """

    scope: str
    epoch: int
    token: str

    def __str__(self) -> str:
        """At most 64 characters of `[a-z0-9-]`."""
        return f"polynya-{self.scope}-{self.epoch}-{self.token}"


def label_in(text: str) -> Label | None:
    """The label at the start of a text, None when it has none."""
    found = _LABEL.match(text)
    return Label(found[1], int(found[2]), found[3]) if found else None


class RunState(StrEnum):
    """How a run is."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RunSeen:
    """A run as its service shows it. `why` says more of a failure; `exit_code` if it is known."""

    id: str
    label: Label | None
    state: RunState
    why: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class JobOrder:
    """What to run: `arguments` of `polynya`, and a title for people."""

    label: Label
    title: str
    arguments: Sequence[str]


class JobRuns(Protocol):
    """Runs of one service. All methods raise DependencyError when it refuses or does not answer."""

    def submit(self, order: JobOrder) -> str:
        """Begin a run and return its id. After an error it may have begun all the same."""
        ...

    def look(self, run: str) -> RunSeen:
        """How a run is now."""
        ...

    def recent(self, scope: str) -> Sequence[RunSeen]:
        """The runs with a label of this scope, finished or not, of the last MOST_HOURS."""
        ...

    def cancel(self, run: str) -> None:
        """Ask it to end. No error when it has ended already."""
        ...


_EXIT_CODE: Final = re.compile(r"(?:exit ?code|SystemExit)\W{1,3}(\d{1,3})\b", re.IGNORECASE)


def exit_code_in(text: str) -> int | None:
    """The exit code of the process that a message of a service names."""
    found = _EXIT_CODE.search(text)
    return int(found[1]) if found else None
