"""Events of nodes and clusters: agents, shared work, submitted work, network agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from typing_extensions import override

from polynya.model.errors import FencedError
from polynya.observe.events import ErrorEvent, Event, Level, counted

# Agents of nodes and their configuration.


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted(Event):
    """The agent of a node started."""

    type: ClassVar[str] = "agent.started"
    verb: ClassVar[str] = "agent"
    template: ClassVar[str] = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReady(Event):
    """The first valid configuration is in force, and the driver runs."""

    type: ClassVar[str] = "agent.ready"
    verb: ClassVar[str] = "agent"
    template: ClassVar[str] = "ready, {task_count}"
    tasks: tuple[str, ...]

    @property
    def task_count(self) -> str:
        """`2 tasks`."""
        return counted(len(self.tasks), "task")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDraining(Event):
    """The agent lets its jobs finish their running steps."""

    type: ClassVar[str] = "agent.draining"
    verb: ClassVar[str] = "agent"
    template: ClassVar[str] = "drains within {within_seconds:.0f} s: {reason}"
    reason: str
    within_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStopped(Event):
    """The agent ended. `cut_off` are jobs whose step the deadline interrupted."""

    type: ClassVar[str] = "agent.stopped"
    verb: ClassVar[str] = "agent"
    template: ClassVar[str] = "stopped after {seconds:.1f} s{interrupted}"
    reason: str
    seconds: float
    cut_off: tuple[str, ...]

    @property
    @override
    def level(self) -> Level:
        # Interrupted work is repeated.
        return Level.WARNING if self.cut_off else Level.NOTE

    @property
    def interrupted(self) -> str:
        """The jobs that were interrupted, or nothing."""
        return f", interrupted: {', '.join(self.cut_off)}" if self.cut_off else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFailed(Event):
    """A report could not be written or sent; nothing else depends on it."""

    type: ClassVar[str] = "report.failed"
    template: ClassVar[str] = "its report was lost: {message}"
    default_level: ClassVar[Level] = Level.WARNING
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JarsMissing(ErrorEvent):
    """A landing needs jars that are missing and cannot be fetched; reported once while it lasts."""

    type: ClassVar[str] = "jars.missing"
    template: ClassVar[str] = "a landing waits for its jars: {cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationAccepted(Event):
    """A configuration is in force.

    `identity` is that of the files that were read, `revision` the pushed one. Files `edited` were
    changed by hand; files `kept` are in force in their last valid version. Tasks `elsewhere` belong
    to other clusters.
    """

    type: ClassVar[str] = "configuration.accepted"
    verb: ClassVar[str] = "config"
    template: ClassVar[str] = "{name}, {counts}"
    identity: str
    revision: str | None
    edited: tuple[str, ...]
    kept: tuple[str, ...]
    tasks: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The revision, or the identity of files that nobody pushed."""
        return self.revision or self.identity

    @property
    def counts(self) -> str:
        """`2 tasks, 1 of other clusters, 1 file in its last valid version`."""
        counts = counted(len(self.tasks), "task")
        if self.elsewhere:
            counts += f", {len(self.elsewhere)} of other clusters"
        if self.kept:
            counts += f", {counted(len(self.kept), 'file')} in the last valid version"
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationUnreadable(ErrorEvent):
    """The configuration could not be read; reported once while it lasts."""

    type: ClassVar[str] = "configuration.unread"
    template: ClassVar[str] = "the configuration could not be read: {cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationUnused(ErrorEvent):
    """The configuration holds a file that does not belong to a project; reported once."""

    type: ClassVar[str] = "configuration.unused"
    template: ClassVar[str] = "not used: {cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationBroken(ErrorEvent):
    """A file of the configuration is invalid; its last valid version stays in force."""

    type: ClassVar[str] = "configuration.broken"
    template: ClassVar[str] = "invalid, the last valid version stays in force: {cause}"
    file: str

    @override
    def figures(self) -> Mapping[str, Any]:
        return {"file": self.file, **self.error.as_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationFixed(Event):
    """A file that was invalid is valid again."""

    type: ClassVar[str] = "configuration.mended"
    verb: ClassVar[str] = "config"
    template: ClassVar[str] = "{file} is valid again"
    file: str


# Jobs of an agent.


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobDecided(Event):
    """A decision about a job, and why."""

    template: ClassVar[str] = "{reason}"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(_JobDecided):
    """A job begins to work."""

    type: ClassVar[str] = "job.start"
    verb: ClassVar[str] = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStopped(_JobDecided):
    """A job was told to end after its running step."""

    type: ClassVar[str] = "job.stop"
    verb: ClassVar[str] = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWaits(_JobDecided):
    """A job that failed is retried after a number of seconds."""

    type: ClassVar[str] = "job.wait"
    verb: ClassVar[str] = "wait"
    template: ClassVar[str] = "{in_seconds:.0f} s: {reason}"
    in_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSuspended(_JobDecided):
    """A job is not retried before its file changes."""

    type: ClassVar[str] = "job.suspend"
    verb: ClassVar[str] = "suspend"
    default_level: ClassVar[Level] = Level.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class JobForgotten(_JobDecided):
    """A job was removed from the configuration."""

    type: ClassVar[str] = "job.forget"
    verb: ClassVar[str] = "forget"


# Units of a cluster and their owners.


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDecided(Event):
    """A decision about a unit of work, and why."""

    template: ClassVar[str] = "{reason}{in_epoch}"
    reason: str
    epoch: int | None = None
    node: str | None = None

    @property
    def in_epoch(self) -> str:
        """` (epoch 3)`, or nothing."""
        return f" (epoch {self.epoch})" if self.epoch is not None else ""

    @override
    def figures(self) -> Mapping[str, Any]:
        owner = {"epoch": self.epoch, "node": self.node}
        return {
            "reason": self.reason,
            **{key: value for key, value in owner.items() if value is not None},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitClaimed(UnitDecided):
    """This node owns a unit from now on."""

    type: ClassVar[str] = "unit.claimed"
    verb: ClassVar[str] = "claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRevoked(UnitDecided):
    """This node stops a unit, to hand it over."""

    type: ClassVar[str] = "unit.revoked"
    verb: ClassVar[str] = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReleased(UnitDecided):
    """This node no longer owns a unit; another one may take it immediately."""

    type: ClassVar[str] = "unit.released"
    verb: ClassVar[str] = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLost(UnitDecided):
    """Another node took a unit without a handover: this node was too slow, or taken for dead."""

    type: ClassVar[str] = "unit.lost"
    verb: ClassVar[str] = "lost"
    default_level: ClassVar[Level] = Level.CAUTION


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRaised(UnitDecided):
    """This node still owns a unit, in a higher epoch."""

    type: ClassVar[str] = "unit.raised"
    verb: ClassVar[str] = "raised"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlanned(UnitDecided):
    """The leader, which is this node, assigned a unit to a node."""

    type: ClassVar[str] = "unit.planned"
    verb: ClassVar[str] = "planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAlarm(UnitDecided):
    """The records of a unit contradict each other."""

    type: ClassVar[str] = "unit.alarm"
    verb: ClassVar[str] = "alarm"
    default_level: ClassVar[Level] = Level.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFenced(ErrorEvent):
    """A newer owner has a table of a unit of work: its run ends, and its state is dropped.

    Nothing is lost; often, it means that nodes disagree about ownership. `epoch` is the one that
    the unit was granted.
    """

    type: ClassVar[str] = "unit.fenced"
    verb: ClassVar[str] = "fenced"
    template: ClassVar[str] = "{cause}"
    default_level: ClassVar[Level] = Level.CAUTION
    epoch: int
    error: FencedError

    @override
    def figures(self) -> Mapping[str, Any]:
        return {
            "epoch": self.epoch,
            "newer_epoch": self.error.epoch,
            "newer_owner": self.error.owner,
            "code": self.error.code,
            "message": str(self.error),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRequestEnded(Event):
    """This node carried out what an operator requested of a unit, or could not."""

    type: ClassVar[str] = "unit.wish"
    verb: ClassVar[str] = "{kind}"
    template: ClassVar[str] = "requested by {by}: {result}"
    kind: str
    by: str
    done: bool
    outcome: str

    @property
    @override
    def level(self) -> Level:
        # The operator waits for it.
        return Level.NOTE if self.done else Level.WARNING

    @property
    def result(self) -> str:
        """The outcome, and whether it was done."""
        return self.outcome if self.done else f"not done: {self.outcome}"


# The cluster as a whole.


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTrouble(Event):
    """Coordination of the cluster fails, so work may not move; reported once while it lasts."""

    type: ClassVar[str] = "sharing.trouble"
    template: ClassVar[str] = "{message}"
    default_level: ClassVar[Level] = Level.WARNING
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecovered(Event):
    """Coordination of the cluster works again."""

    type: ClassVar[str] = "sharing.recovered"
    verb: ClassVar[str] = "recovered"
    template: ClassVar[str] = "coordination of the cluster works again"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(Event):
    """Another process leads the cluster."""

    type: ClassVar[str] = "cluster.leader"
    verb: ClassVar[str] = "leader"
    template: ClassVar[str] = "{name}"
    leader: str | None

    @property
    def name(self) -> str:
        """The leader, or `nobody`."""
        return self.leader or "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFrozen(Event):
    """Units stay where they are from now on, or may move again."""

    type: ClassVar[str] = "cluster.frozen"
    verb: ClassVar[str] = "{change}"
    template: ClassVar[str] = "{reason}"
    frozen: bool
    reason: str

    @property
    def change(self) -> str:
        """`frozen` or `unfrozen`."""
        return "frozen" if self.frozen else "unfrozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotAdvised(Event):
    """AWS gave notice that this instance will end; `wish` is what the node does."""

    type: ClassVar[str] = "spot.advised"
    verb: ClassVar[str] = "{wish}"
    template: ClassVar[str] = "{reason}"
    default_level: ClassVar[Level] = Level.CAUTION
    wish: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotNoticesUnreadable(ErrorEvent):
    """The instance metadata service does not answer, so a notice would be missed; reported once."""

    type: ClassVar[str] = "spot.unheard"
    template: ClassVar[str] = "a Spot notice would be missed: {cause}"


# Work that a service of AWS or another process does.


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunStarted(Event):
    """A run was submitted, and the service accepted it. `label` is its name there."""

    type: ClassVar[str] = "job_run.started"
    verb: ClassVar[str] = "submit"
    template: ClassVar[str] = "run {run} of {service}"
    service: str
    run: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunEnded(Event):
    """A run `succeeded`, `failed` or was `cancelled`, `seconds` after it was submitted."""

    type: ClassVar[str] = "job_run.ended"
    verb: ClassVar[str] = "submit"
    template: ClassVar[str] = "run {run} {state}{because}"
    service: str
    run: str
    state: str
    why: str
    seconds: float

    @property
    def because(self) -> str:
        """`: ` and the reason, or nothing."""
        return f": {self.why}" if self.why else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunCancelled(Event):
    """The service was asked to cancel a run."""

    type: ClassVar[str] = "job_run.cancelled"
    verb: ClassVar[str] = "submit"
    template: ClassVar[str] = "run {run} is cancelled: {reason}"
    service: str
    run: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunTrouble(ErrorEvent):
    """The service refuses, or does not answer; reported once."""

    type: ClassVar[str] = "job_run.trouble"
    verb: ClassVar[str] = "submit"
    template: ClassVar[str] = "{cause}"
    service: str

    @override
    def figures(self) -> Mapping[str, Any]:
        return {"service": self.service, "code": self.error.code, "message": str(self.error)}


# The network agent.

#: `tried`: it runs next to the version that serves; `serves`: it replaced that version; `failed`:
#: it did not prove that it works; `given up`: another version is wanted by now; `went back`: it
#: failed while it served, and the former version serves again; `refused`: its package cannot be
#: used.
UpdateIs: TypeAlias = Literal["tried", "serves", "failed", "given up", "went back", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConnected(Event):
    """The network agent reaches the store and the group of a cluster."""

    type: ClassVar[str] = "network.connected"
    verb: ClassVar[str] = "connected"
    template: ClassVar[str] = "the network agent reaches the cluster{after}"
    after_seconds: float | None = None

    @property
    def after(self) -> str:
        """How long it did not reach it, or nothing."""
        return f" after {self.after_seconds:.0f} s" if self.after_seconds is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkDisconnected(Event):
    """The network agent does not reach a cluster, so nobody can stop or start it."""

    type: ClassVar[str] = "network.disconnected"
    verb: ClassVar[str] = "disconnected"
    template: ClassVar[str] = "{reason}"
    default_level: ClassVar[Level] = Level.WARNING
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandChanged(Event):
    """A command changed its state, or its group was `asked` for something."""

    type: ClassVar[str] = "command.changed"
    verb: ClassVar[str] = "{state}"
    template: ClassVar[str] = "{command}: {reason}"
    id: str
    command: str
    state: str
    reason: str
    asked: str | None = None

    @property
    @override
    def level(self) -> Level:
        return Level.WARNING if self.state in ("failed", "refused") else Level.NOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandUnreadable(Event):
    """A command, or the agent's own status, cannot be read; reported once."""

    type: ClassVar[str] = "command.unread"
    verb: ClassVar[str] = "unread"
    template: ClassVar[str] = "{reason}"
    default_level: ClassVar[Level] = Level.WARNING
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUpdate(Event):
    """A version of the network agent changed its state, and why."""

    type: ClassVar[str] = "network.update"
    verb: ClassVar[str] = "{state}"
    template: ClassVar[str] = "version {version}: {reason}"
    state: UpdateIs
    version: str
    reason: str

    @property
    @override
    def level(self) -> Level:
        # The pinned version does not run.
        return Level.WARNING if self.state in ("failed", "went back", "refused") else Level.NOTE
