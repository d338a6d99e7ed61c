"""Messages from the other threads to the agent's own, and the ports that it works through."""

from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue
from typing import NamedTuple, Protocol, TypeAlias

from polynya.engine.work.backlog import Backlog
from polynya.model.config.task import StorageTask
from polynya.model.errors import PolynyaError
from polynya.observe.events import Event
from polynya.store.bucket.configuration import Snapshot


class JobKey(NamedTuple):
    """A piece of work that fails for itself: a dataset, or a task that finds its datasets."""

    task: str
    name: str


@dataclass(frozen=True, slots=True)
class Observed:
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
    """A run is over: it was told to stop, or failed with `error`."""

    job: JobKey
    run: int
    error: PolynyaError | None = None


@dataclass(frozen=True, slots=True)
class ConfigurationRead:
    """The configuration was read, or could not be."""

    result: Snapshot | PolynyaError


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Somebody wants the agent to end, and why."""

    reason: str


Message: TypeAlias = Observed | RoundEnded | RunEnded | ConfigurationRead | DrainAsked
#: A signal handler may put into it, too: `put` of a SimpleQueue is reentrant.
Inbox: TypeAlias = SimpleQueue[Message]


class Run(Protocol):
    """A job that works."""

    def stop(self) -> None:
        """Ask it to end after the step that is running; returns at once."""
        ...


class Workers(Protocol):
    """What does the work."""

    def jobs(self, task: StorageTask) -> list[str]:
        """Names of the pieces of work of a task."""
        ...

    def start(self, job: JobKey, task: StorageTask, run: int, backlog: Backlog) -> Run:
        """Start a job, which tells `backlog` what waits.

        Its messages bear the number `run`, the last of them is RunEnded.
        """
        ...

    def alive(self) -> bool:
        """Whether anything can be done at all."""
        ...
