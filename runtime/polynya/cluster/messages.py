"""Messages from other threads to the agent's thread, and the ports of the agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Protocol, TypeAlias

from polynya.cluster.control.requests import PendingRequests
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.gossip.messages import Picture
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog
from polynya.engine.commands.unit_command import UnitCommand
from polynya.model.config.task_kinds import Task
from polynya.model.errors import PolynyaError
from polynya.observe.events import Event
from polynya.store.configuration import ConfigurationSnapshot


@dataclass(frozen=True, slots=True)
class JobObserved:
    """Something happened in a job."""

    job: JobKey
    event: Event


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round of a run went well; `held` says what of it waits for a decision of its owner."""

    job: JobKey
    run: int
    held: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over: it was stopped, or failed with `error`."""

    job: JobKey
    run: int
    error: PolynyaError | None = None


@dataclass(frozen=True, slots=True)
class UnitCommandEnded:
    """A command of a unit was executed, or cannot be (`done` False); `text` says what or why."""

    job: JobKey
    run: int
    done: bool
    text: str


@dataclass(frozen=True, slots=True)
class ConfigurationRead:
    """The configuration was read, or could not be."""

    result: ConfigurationSnapshot | PolynyaError


@dataclass(frozen=True, slots=True)
class DrainRequested:
    """The agent should end, for this reason, within these seconds (None: as configured)."""

    reason: str
    within_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LeaveAdvised:
    """Other nodes should have the work of this one, if there are any, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something happened that concerns the node and no job."""

    event: Event


@dataclass(frozen=True, slots=True)
class JarsFetched:
    """Jars that the configuration needs, and Spark was started without, are on this machine."""


@dataclass(frozen=True, slots=True)
class TurnTaken:
    """The member of this node took a turn.

    Attributes:
        member_state: what it knows now.
        requests: the requests of operators for tasks.
        picture: the other nodes, as they reported themselves.
    """

    member_state: MemberState
    requests: PendingRequests
    picture: Picture


@dataclass(frozen=True, slots=True)
class HintReceived:
    """Objects landed whose keys begin so, as a hint says that may be late, doubled or wrong."""

    starts: frozenset[str]


@dataclass(frozen=True, slots=True)
class MembershipEnded:
    """The member of this node cannot continue."""

    error: PolynyaError


Message: TypeAlias = (
    JobObserved
    | RoundEnded
    | RunEnded
    | UnitCommandEnded
    | ConfigurationRead
    | DrainRequested
    | LeaveAdvised
    | Noticed
    | JarsFetched
    | TurnTaken
    | HintReceived
    | MembershipEnded
)
#: A signal handler may put into it, too: `put` of a SimpleQueue is reentrant.
Inbox: TypeAlias = SimpleQueue[Message]


class RunHandle(Protocol):
    """A job that works."""

    def stop(self) -> None:
        """Ask it to end after the step that is running; returns at once."""
        ...


class Workers(Protocol):
    """What does the work."""

    def know(self, tasks: Sequence[Task] | None) -> None:
        """These are all tasks of the project now; None when some of them are unknown."""
        ...

    def landed(self, starts: Iterable[str]) -> None:
        """Objects landed whose keys begin so: look at their folders soon."""
        ...

    def jobs(self, task: Task) -> list[str]:
        """Names of the pieces of work of a task."""
        ...

    def start(
        self, job: JobKey, task: Task, run: int, backlog: Backlog, epoch: int | None
    ) -> RunHandle:
        """Start a job, which reports its waiting work to `backlog`.

        It takes its tables over with the `epoch` that it was granted; None: nodes share nothing.
        Its messages bear the number `run`, the last of them is RunEnded. Once a table has a newer
        owner, a job with a grant ends, and the error of its RunEnded is a FencedError.
        """
        ...

    def send(
        self, job: JobKey, task: Task, run: int, command: UnitCommand, epoch: int | None
    ) -> RunHandle:
        """Execute a command of a unit once, under a grant; nothing else of the job runs meanwhile.

        An ErrandEnded says how that went, then RunEnded comes in any case. Only this comes when it
        was told to stop, and after a failure that may pass: then it is retried.
        """
        ...

    def busy_seconds(self) -> float:
        """How long its threads have worked in total, all together."""
        ...

    def alive(self) -> bool:
        """Whether anything can be done at all."""
        ...
