"""Events of nodes and clusters: agents, shared work, submitted work, network agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from typing_extensions import override

from polynya.model.errors import FencedError, PolynyaError
from polynya.observe.events import ErrorEvent, Event, Level, line, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDecided(Event):
    """Something was decided about a unit of work, and why."""

    reason: str
    epoch: int | None = None
    node: str | None = None

    def figures(self) -> Mapping[str, Any]:
        """The reason, and the epoch and the node where there is one."""
        named = {"epoch": self.epoch, "node": self.node}
        return {
            "reason": self.reason,
            **{key: one for key, one in named.items() if one is not None},
        }

    @override
    def text(self) -> str:
        epoch = f" (epoch {self.epoch})" if self.epoch is not None else ""
        return line(self.type.rpartition(".")[2], self.subject, f"{self.reason}{epoch}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitClaimed(UnitDecided):
    """This node has a unit from now on."""

    type: ClassVar[str] = "unit.claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRevoked(UnitDecided):
    """This node stops a unit, to hand it over."""

    type: ClassVar[str] = "unit.revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReleased(UnitDecided):
    """This node no longer has a unit; another one may take it at once."""

    type: ClassVar[str] = "unit.released"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLost(UnitDecided):
    """Another node has a unit that this node had."""

    type: ClassVar[str] = "unit.lost"

    @property
    def level(self) -> Level:
        """It was not handed over: this node was too slow, or taken for dead."""
        return Level.CAUTION


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRaised(UnitDecided):
    """This node still has a unit, in a higher epoch."""

    type: ClassVar[str] = "unit.raised"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlanned(UnitDecided):
    """The leader, which is this node, wants a unit on a node."""

    type: ClassVar[str] = "unit.planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAlarm(UnitDecided):
    """The records of a unit contradict each other."""

    type: ClassVar[str] = "unit.alarm"

    @property
    def level(self) -> Level:
        """Somebody has to look."""
        return Level.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitWishEnded(Event):
    """What a person asked of a unit was done on this node, or cannot be done."""

    type: ClassVar[str] = "unit.wish"
    kind: str
    by: str
    done: bool
    outcome: str

    @property
    def level(self) -> Level:
        """Who asked waits for it."""
        return Level.NOTE if self.done else Level.WARNING

    @override
    def text(self) -> str:
        how = "" if self.done else " not done"
        return line(self.kind, self.subject, f"asked by {self.by},{how} {self.outcome}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingTrouble(Event):
    """Something of the cluster does not work; reported once while it lasts."""

    type: ClassVar[str] = "sharing.trouble"
    message: str

    @property
    def level(self) -> Level:
        """Work continues, but may not move."""
        return Level.WARNING

    @override
    def text(self) -> str:
        return f"{self.subject}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingRecovered(Event):
    """Everything of the cluster works again."""

    type: ClassVar[str] = "sharing.recovered"

    @override
    def text(self) -> str:
        return line("sharing", self.subject, "everything works again")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(Event):
    """Another process leads the cluster."""

    type: ClassVar[str] = "cluster.leader"
    leader: str | None

    @override
    def text(self) -> str:
        return line("leader", self.subject, self.leader or "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFrozen(Event):
    """Nothing moves from now on, or things move again."""

    type: ClassVar[str] = "cluster.frozen"
    frozen: bool
    reason: str

    @override
    def text(self) -> str:
        return line("frozen" if self.frozen else "thawed", self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotAdvised(Event):
    """A notice of AWS about the end of this instance, and what the node does."""

    type: ClassVar[str] = "spot.advised"
    wish: str
    reason: str

    @property
    def level(self) -> Level:
        """The node will be gone."""
        return Level.CAUTION

    @override
    def text(self) -> str:
        return line(self.wish, self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotUnheard(ErrorEvent):
    """The instance metadata service does not answer, so a notice would be missed; reported once."""

    type: ClassVar[str] = "spot.unheard"
    what: ClassVar[str] = "a Spot notice would not be seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunStarted(Event):
    """A run was submitted, and the service has it. `label` is its name there."""

    type: ClassVar[str] = "job_run.started"
    service: str
    run: str
    label: str

    @override
    def text(self) -> str:
        return line("submit", self.subject, f"run {self.run} of {self.service}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunEnded(Event):
    """A run has ended: `succeeded`, `failed` or `cancelled`, so long after it was submitted."""

    type: ClassVar[str] = "job_run.ended"
    service: str
    run: str
    state: str
    why: str
    seconds: float

    @override
    def text(self) -> str:
        why = f": {self.why}" if self.why else ""
        return line("submit", self.subject, f"run {self.run} {self.state}{why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunCancelled(Event):
    """The service was asked to end a run."""

    type: ClassVar[str] = "job_run.cancelled"
    service: str
    run: str
    reason: str

    @override
    def text(self) -> str:
        return line("submit", self.subject, f"run {self.run} is cancelled: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunTrouble(Event):
    """The service refuses, or does not answer; reported once."""

    type: ClassVar[str] = "job_run.trouble"
    service: str
    error: PolynyaError

    @property
    @override
    def level(self) -> Level:
        return Level.WARNING

    def figures(self) -> Mapping[str, Any]:
        """The service, and code and message of the error."""
        return {"service": self.service, "code": self.error.code, "message": str(self.error)}

    @override
    def text(self) -> str:
        return line("submit", self.subject, one_line(self.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted(Event):
    """The agent of a node started."""

    type: ClassVar[str] = "agent.started"

    @override
    def text(self) -> str:
        return line("agent", self.subject, "started")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReady(Event):
    """The first good configuration is in force, and the driver runs."""

    type: ClassVar[str] = "agent.ready"
    tasks: tuple[str, ...]

    @override
    def text(self) -> str:
        return line("agent", self.subject, f"ready, {_counted(self.tasks, 'task')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDraining(Event):
    """The agent lets its jobs end their running steps."""

    type: ClassVar[str] = "agent.draining"
    reason: str
    within_seconds: float

    @override
    def text(self) -> str:
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

    @override
    def text(self) -> str:
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

    @override
    def text(self) -> str:
        return f"{self.subject}: its report was lost: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JarsMissing(ErrorEvent):
    """A landing needs jars that are missing and cannot be fetched; reported once while it lasts."""

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

    @override
    def text(self) -> str:
        kept = f", {_counted(self.kept, 'file')} as last good" if self.kept else ""
        name = self.revision or self.identity
        others = f", {len(self.elsewhere)} of other clusters" if self.elsewhere else ""
        tasks = f"{_counted(self.tasks, 'task')}{others}"
        return line("config", self.subject, f"{name}, {tasks}{kept}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationUnread(ErrorEvent):
    """The configuration could not be read; reported once while it lasts."""

    type: ClassVar[str] = "configuration.unread"
    what: ClassVar[str] = "the configuration could not be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationUnused(ErrorEvent):
    """The configuration holds something that is not a file of a project; reported once."""

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

    @override
    def text(self) -> str:
        return line("config", self.subject, f"{self.file} is right again")


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobDecided(Event):
    """A decision about a job, and why."""

    reason: str

    @property
    def _verb(self) -> str:
        return self.type.rpartition(".")[2]

    @override
    def text(self) -> str:
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
    """A job that failed is retried after a number of seconds."""

    type: ClassVar[str] = "job.wait"
    in_seconds: float

    @override
    def text(self) -> str:
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
    """A job was removed from the configuration."""

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
        """Nothing is lost; often, it means that nodes disagree about ownership."""
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

    @override
    def text(self) -> str:
        return line("fenced", self.subject, one_line(self.error))


def _counted(names: tuple[str, ...], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"


#: `tried`: it was started beside the one that serves; `serves`: in its place from now on; `failed`:
#: it did not show that it works; `given up`: another one is wanted by now; `went back`: it failed
#: while it served, and the former serves again; `refused`: its package cannot be used.
UpdateIs: TypeAlias = Literal["tried", "serves", "failed", "given up", "went back", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConnected(Event):
    """The network agent reaches the store and the group of a cluster."""

    type: ClassVar[str] = "network.connected"
    after_seconds: float | None = None

    @override
    def text(self) -> str:
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

    @override
    def text(self) -> str:
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

    @override
    def text(self) -> str:
        return line(self.state, self.subject, f"{self.command}: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandUnread(Event):
    """A command, or the agent's own sign of life, cannot be understood; reported once."""

    type: ClassVar[str] = "command.unread"
    reason: str

    @property
    def level(self) -> Level:
        """Somebody waits for it."""
        return Level.WARNING

    @override
    def text(self) -> str:
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

    @override
    def text(self) -> str:
        return line(self.state, self.subject, f"version {self.version}: {self.reason}")
