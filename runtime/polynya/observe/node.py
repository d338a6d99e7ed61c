"""Events of a node: its agent, its configuration, its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from polynya.model.errors import FencedError
from polynya.observe.events import ErrorEvent, Event, Level, line, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted(Event):
    """The agent of a node started."""

    type: ClassVar[str] = "agent.started"

    def text(self) -> str:
        """See `Event`."""
        return line("agent", self.subject, "started")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReady(Event):
    """The first good configuration is in force, and the driver runs."""

    type: ClassVar[str] = "agent.ready"
    tasks: tuple[str, ...]

    def text(self) -> str:
        """See `Event`."""
        return line("agent", self.subject, f"ready, {_counted(self.tasks, 'task')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDraining(Event):
    """The agent lets its jobs end their running steps."""

    type: ClassVar[str] = "agent.draining"
    reason: str
    within_seconds: float

    def text(self) -> str:
        """See `Event`."""
        return line(
            "agent", self.subject, f"drains within {self.within_seconds:.0f} s: {self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStopped(Event):
    """The agent ended. `cut_off` are jobs that its deadline ended in a step."""

    type: ClassVar[str] = "agent.stopped"
    reason: str
    seconds: float
    cut_off: tuple[str, ...]

    @property
    def level(self) -> Level:
        """Work that was cut off is done again."""
        return Level.WARNING if self.cut_off else Level.NOTE

    def text(self) -> str:
        """See `Event`."""
        cut_off = f", cut off: {', '.join(self.cut_off)}" if self.cut_off else ""
        return line("agent", self.subject, f"stopped after {self.seconds:.1f} s{cut_off}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFailed(Event):
    """A report could not be written or sent; nothing else depends on it."""

    type: ClassVar[str] = "report.failed"
    message: str

    @property
    def level(self) -> Level:
        """Others do not know the status of this node."""
        return Level.WARNING

    def text(self) -> str:
        """See `Event`."""
        return f"{self.subject}: its report was lost: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarsMissing(ErrorEvent):
    """A landing needs jars that are not there and cannot be fetched; said once while it lasts."""

    type: ClassVar[str] = "jars.missing"
    what: ClassVar[str] = "a landing waits for its jars"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationAccepted(Event):
    """A configuration is in force.

    `identity` is that of what was read, `revision` what was pushed. Files `edited` were changed by
    hand; files `kept` are in force as they were last good. Tasks `elsewhere` are those of other
    clusters.
    """

    type: ClassVar[str] = "configuration.accepted"
    identity: str
    revision: str | None
    edited: tuple[str, ...]
    kept: tuple[str, ...]
    tasks: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()

    def text(self) -> str:
        """See `Event`."""
        kept = f", {_counted(self.kept, 'file')} as last good" if self.kept else ""
        name = self.revision or self.identity
        others = f", {len(self.elsewhere)} of other clusters" if self.elsewhere else ""
        tasks = f"{_counted(self.tasks, 'task')}{others}"
        return line("config", self.subject, f"{name}, {tasks}{kept}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationUnread(ErrorEvent):
    """The configuration could not be read; said once while it lasts."""

    type: ClassVar[str] = "configuration.unread"
    what: ClassVar[str] = "the configuration could not be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationUnused(ErrorEvent):
    """Something lies in the configuration that is no file of a project; said once."""

    type: ClassVar[str] = "configuration.unused"
    what: ClassVar[str] = "not used"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationBroken(ErrorEvent):
    """A file of the configuration is wrong; it is in force as it was last good."""

    type: ClassVar[str] = "configuration.broken"
    what: ClassVar[str] = "broken"
    file: str

    def figures(self) -> Mapping[str, Any]:
        """The file and its error."""
        return {"file": self.file, **self.error.as_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationMended(Event):
    """A file that was broken is right again."""

    type: ClassVar[str] = "configuration.mended"
    file: str

    def text(self) -> str:
        """See `Event`."""
        return line("config", self.subject, f"{self.file} is right again")


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobDecided(Event):
    """A decision about a job, and why."""

    reason: str

    @property
    def _verb(self) -> str:
        return self.type.rpartition(".")[2]

    def text(self) -> str:
        """See `Event`."""
        return line(self._verb, self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(_JobDecided):
    """A job begins to work."""

    type: ClassVar[str] = "job.start"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStopped(_JobDecided):
    """A job was asked to end after the step that is running."""

    type: ClassVar[str] = "job.stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWaits(_JobDecided):
    """A job that failed is tried again in so many seconds."""

    type: ClassVar[str] = "job.wait"
    in_seconds: float

    def text(self) -> str:
        """See `Event`."""
        return line(self._verb, self.subject, f"{self.in_seconds:.0f} s: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSuspended(_JobDecided):
    """A job is not tried again before its file changes."""

    type: ClassVar[str] = "job.suspend"

    @property
    def level(self) -> Level:
        """Somebody has to act."""
        return Level.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class JobForgotten(_JobDecided):
    """A job is no longer in the configuration."""

    type: ClassVar[str] = "job.forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFenced(Event):
    """A newer owner has a table of a unit of work: its run ends, and its state is dropped.

    `epoch` is the one that the unit was granted.
    """

    type: ClassVar[str] = "unit.fenced"
    epoch: int
    error: FencedError

    @property
    def level(self) -> Level:
        """Nothing is lost; often, it means that nodes disagree about who has what."""
        return Level.CAUTION

    def figures(self) -> Mapping[str, Any]:
        """Both epochs, the newer owner, and the error as its code and one text."""
        return {
            "epoch": self.epoch,
            "newer_epoch": self.error.epoch,
            "newer_owner": self.error.owner,
            "code": self.error.code,
            "message": str(self.error),
        }

    def text(self) -> str:
        """See `Event`."""
        return line("fenced", self.subject, one_line(self.error))


def _counted(names: tuple[str, ...], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"
