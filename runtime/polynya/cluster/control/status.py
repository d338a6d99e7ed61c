"""The status of a cluster: its objects are read once, and pure functions put them in words.

The status shows only what the objects contain. The wanted number of nodes is known only with a
network agent; without one, the status knows which nodes live.

The leader writes the work of all nodes to the object `heard` when it changes. Nodes report it on
the workload stream, and a command would have to listen there for as long as a heartbeat takes.
`heard` is advisory: only the status depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from polynya.cluster.coordination import store as paths
from polynya.cluster.coordination.documents import (
    MAX_DOCUMENT_BYTES,
    Count,
    Document,
    DrainRequest,
    Freeze,
    LeaderLease,
    MoveRequest,
    Name,
    NodeLease,
    NodePlan,
    TaskRequest,
    Text,
    UnitOutcome,
    UnitOwnership,
    UnitRequest,
    parse,
)
from polynya.cluster.coordination.member_state import MemberState, ObservedNode
from polynya.cluster.coordination.store import STORE_ERRORS, DocumentStore
from polynya.cluster.gossip.messages import NodeReport, Picture, UnitReport, shortened
from polynya.cluster.gossip.stream import beat_wait
from polynya.cluster.network.documents import NETWORK_AGENT, AgentReport
from polynya.cluster.unit import JobKey
from polynya.model.errors import PolynyaError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

HEARD: Final = "heard"

#: Most units that are listed; the rest is counted.
MOST_UNITS: Final = 500
#: Least time between two writes of changes, in seconds.
_EVERY: Final = 10.0
#: A node is silent after this many heartbeats without one, and after this many seconds.
_BEATS: Final = 3.0
_LEAST: Final = 60.0
#: Usual size of a heartbeat, in bytes.
_BEAT_BYTES: Final = 2560


class WaitingUnit(BaseModel):
    """A unit whose work waits for something, as its node told in `epoch`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    task: Name
    name: Name
    epoch: Count
    state: Text
    reason: Text = ""


class LeaderReport(Document):
    """`heard`: what a process received while it led.

    Attributes:
        incarnation: the process; another one leads when it says nothing any more.
        at: when it was written.
        stream: why nodes do not hear each other, empty when they do.
        units: those whose work waits; `more` others do, too.
    """

    incarnation: Name
    at: datetime
    stream: Text = ""
    units: tuple[WaitingUnit, ...] = ()
    more: Count = 0


def ill_units(
    own: NodeReport | None, picture: Picture, nodes: Mapping[str, ObservedNode]
) -> list[UnitReport]:
    """The units whose work waits on a node that lives, sorted; of two words the higher epoch."""
    told: dict[JobKey, UnitReport] = {}
    living = {name for name, one in nodes.items() if not one.dead and one.state != "gone"}
    heard = (one.heartbeat for name, one in picture.nodes.items() if name in living)
    for units in (*(one.units for one in heard), own.units if own is not None else ()):
        for one in units:
            if one.unit not in told or told[one.unit].epoch <= one.epoch:
                told[one.unit] = one
    return [told[unit] for unit in sorted(told) if told[unit].is_ill]


class SilentNodes:
    """Finds nodes that live and send no heartbeats; times in monotonic seconds."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def nodes(self, member_state: MemberState, picture: Picture, now: float) -> list[str]:
        """Their names, each once, sorted."""
        living = {
            name: one.node
            for name, one in member_state.nodes.items()
            if not one.dead
            and one.state in ("ready", "draining")
            and name != member_state.incarnation
        }
        self._since = {name: self._since.get(name, now) for name in living}
        longest = _BEATS * beat_wait(len(living) + 1, 1, _BEAT_BYTES, 0, 1.0).seconds
        longest = max(longest, _LEAST)
        silent = {
            node
            for name, node in living.items()
            if now - self._since[name] > longest and _age(picture, name) > longest
        }
        return sorted(silent)


def _age(picture: Picture, incarnation: str) -> float:
    heard = picture.nodes.get(incarnation)
    return heard.age_seconds if heard is not None else float("inf")


class LeaderReportWriter:
    """Writes it while this node leads. `stream`: whether nodes have one at all."""

    def __init__(self, document_store: DocumentStore, clock: Clock, *, stream: bool) -> None:
        self._document_store, self._clock, self._stream = document_store, clock, stream
        self._unheard = SilentNodes()
        self._tried_at = float("-inf")
        self._said: LeaderReport | None = None

    def __call__(self, member_state: MemberState, own: NodeReport | None, picture: Picture) -> None:
        """Write what changed, if it is time; a store that does not answer is asked again."""
        now = self._clock.monotonic()
        silent = self._unheard.nodes(member_state, picture, now) if self._stream else []
        if not member_state.leading or now - self._tried_at < _EVERY:
            return
        units = ill_units(own, picture, member_state.nodes)
        heard = LeaderReport(
            incarnation=member_state.incarnation,
            at=self._clock.now(),
            stream=_trouble(picture.trouble, silent),
            units=tuple(_document(one) for one in units[:MOST_UNITS]),
            more=max(len(units) - MOST_UNITS, 0),
        )
        if self._said is not None and heard == self._said.model_copy(update={"at": heard.at}):
            return
        self._tried_at = now
        try:
            if self._write(heard):
                self._said = heard
        except STORE_ERRORS:
            # Only the status waits for it.
            return

    def _write(self, heard: LeaderReport) -> bool:
        found = self._document_store.read(LeaderReport, HEARD)
        unknown = found.document.model_extra if found is not None else None
        heard = heard.model_copy(update=unknown or {})
        return self._document_store.write(
            HEARD, heard, found.version if found is not None else None
        )


def _trouble(trouble: str | None, silent: Iterable[str]) -> str:
    if trouble is not None:
        return trouble
    names = list(silent)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"nothing is heard of {', '.join(names[:3])}{more}" if names else ""


def _document(one: UnitReport) -> WaitingUnit:
    return WaitingUnit(
        task=one.unit.task,
        name=one.unit.name,
        epoch=one.epoch,
        state=one.state,
        reason=shortened(one.reason),
    )


D = TypeVar("D", bound=Document)
T = TypeVar("T")

#: Objects that are read at a time.
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """The documents of a cluster, and what could not be read.

    Attributes:
        leases, versions, plans: by incarnation; a version changes with each renewal.
        units, moves: by unit.
        drains: by node.
        tasks: by task.
        wishes, outcomes: the requests for units, and the outcome of the last one; by unit.
        heard: what the leader received from all nodes, None when none ever wrote it.
        network: the sign of life of the network agent, None if there never was one.
        troubles: objects that could not be read, and why.
    """

    leader: LeaderLease | None = None
    freeze: Freeze | None = None
    leases: Mapping[str, NodeLease] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[str, NodePlan] = field(default_factory=dict)
    units: Mapping[JobKey, UnitOwnership] = field(default_factory=dict)
    moves: Mapping[JobKey, MoveRequest] = field(default_factory=dict)
    drains: Mapping[str, DrainRequest] = field(default_factory=dict)
    tasks: Mapping[str, TaskRequest] = field(default_factory=dict)
    requests: Mapping[JobKey, UnitRequest] = field(default_factory=dict)
    outcomes: Mapping[JobKey, UnitOutcome] = field(default_factory=dict)
    heard: LeaderReport | None = None
    network: AgentReport | None = None
    troubles: Sequence[str] = ()


def clusters_at(store: ObjectStore) -> list[str]:
    """Names of the clusters that ever had a node here."""
    roots = {info.path.partition("/")[0] for info in store.list() if "/" in info.path}
    return sorted(paths.name_of(root) for root in roots)


def read_cluster(store: ObjectStore, cluster: str) -> ClusterReading:
    """Read the objects of a cluster. Raises what listing them raises."""
    root = paths.element(cluster)
    versions = {info.path.removeprefix(f"{root}/"): info.version for info in store.list(root)}
    found, troubles = _documents(store, root, list(versions))
    leader, freeze = found.get(paths.LEADER), found.get(paths.FREEZE)
    network, heard = found.get(NETWORK_AGENT), found.get(HEARD)
    return ClusterReading(
        leader=leader if isinstance(leader, LeaderLease) else None,
        freeze=freeze if isinstance(freeze, Freeze) else None,
        leases=_named(found, paths.NODES, NodeLease),
        versions=_inside(versions, paths.NODES),
        plans=_named(found, paths.PLANS, NodePlan),
        units=_of_units(found, paths.UNITS, UnitOwnership),
        moves=_of_units(found, paths.MOVES, MoveRequest),
        drains=_named(found, paths.DRAINS, DrainRequest),
        tasks=_named(found, paths.TASKS, TaskRequest),
        requests=_of_units(found, paths.REQUESTS, UnitRequest),
        outcomes=_of_units(found, paths.OUTCOMES, UnitOutcome),
        heard=heard if isinstance(heard, LeaderReport) else None,
        network=network if isinstance(network, AgentReport) else None,
        troubles=troubles,
    )


def lease_versions(store: ObjectStore, cluster: str) -> dict[str, str]:
    """The version of each lease by incarnation, as it is now."""
    root = paths.element(cluster)
    listed = store.list(f"{root}/{paths.NODES}")
    return _inside(
        {info.path.removeprefix(f"{root}/"): info.version for info in listed}, paths.NODES
    )


def known_units(reading: ClusterReading) -> list[JobKey]:
    """All units that a plan or an ownership names, sorted."""
    planned = {unit for plan in reading.plans.values() for unit in plan.reasons()}
    return sorted(planned | set(reading.units))


_KINDS: Final[Mapping[str, type[Document]]] = {
    paths.LEADER: LeaderLease,
    paths.FREEZE: Freeze,
    paths.NODES: NodeLease,
    paths.PLANS: NodePlan,
    paths.UNITS: UnitOwnership,
    paths.MOVES: MoveRequest,
    paths.DRAINS: DrainRequest,
    paths.TASKS: TaskRequest,
    paths.REQUESTS: UnitRequest,
    paths.OUTCOMES: UnitOutcome,
    HEARD: LeaderReport,
    NETWORK_AGENT: AgentReport,
}


def _documents(
    store: ObjectStore, root: str, names: Sequence[str]
) -> tuple[dict[str, Document], list[str]]:
    """The documents by path, and errors. A document that is deleted meanwhile is no error."""

    def read(name: str) -> Document | str | None:
        kind = _KINDS.get(name.partition("/")[0])
        if kind is None:
            return None
        try:
            return parse(kind, store.read(f"{root}/{name}", MAX_DOCUMENT_BYTES).data, name)
        except FileNotFoundError:
            return None
        except (PolynyaError, OSError) as error:
            return str(error)

    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        answers = dict(zip(names, pool.map(read, names), strict=True))
    found = {name: one for name, one in answers.items() if isinstance(one, Document)}
    return found, [one for one in answers.values() if isinstance(one, str)]


def _named(found: Mapping[str, Document], folder: str, kind: type[D]) -> dict[str, D]:
    """The documents of a folder, by the name that each stands for."""
    named = _inside(found, folder)
    return {name: one for name, one in named.items() if isinstance(one, kind)}


def _of_units(found: Mapping[str, Document], folder: str, kind: type[D]) -> dict[JobKey, D]:
    """The documents of a folder, by the unit that each is about."""
    units = ((paths.unit_at(path), path) for path in found if path.startswith(f"{folder}/"))
    named = {unit: found[path] for unit, path in units if unit is not None}
    return {unit: one for unit, one in named.items() if isinstance(one, kind)}


def _inside(by_path: Mapping[str, T], folder: str) -> dict[str, T]:
    return {
        paths.name_of(path.removeprefix(f"{folder}/")): one
        for path, one in by_path.items()
        if path.startswith(f"{folder}/") and path.count("/") == 1
    }


def asked(reading: ClusterReading, alive: Collection[str]) -> tuple[str, ...]:
    """All pending requests, with what each waits for; `alive` are the living incarnations."""
    return tuple(
        f"{unit.task}/{unit.name}: {in_words(reading, unit, alive)}"
        for unit in sorted(reading.requests)
    )


def in_words(reading: ClusterReading, unit: JobKey, alive: Collection[str]) -> str:
    """The request for a unit that has one, and what it waits for."""
    request = reading.requests[unit]
    of = f" of {request.dataset}" if request.dataset is not None else ""
    why = f" ({request.reason})" if request.reason else ""
    return (
        f"{request.kind}{of} asked by {request.by}{why}, {request.since:%Y-%m-%d %H:%M:%S} UTC, "
        f"{_waits(reading, unit, alive)}"
    )


def outcome_of(reading: ClusterReading, unit: JobKey) -> str | None:
    """What became of what was asked of a unit last, None when nothing ever was."""
    one = reading.outcomes.get(unit)
    if one is None:
        return None
    how = "done" if one.done else "not done"
    return (
        f"last {one.kind}, asked by {one.by}: {how} on {one.node}, "
        f"{one.ended:%Y-%m-%d %H:%M:%S} UTC: {one.text}"
    )


def place_of(reading: ClusterReading, unit: JobKey) -> str | None:
    """Where somebody wants a unit to be, None when that is left to the leader."""
    request = reading.moves.get(unit)
    return None if request is None else f"to be on {request.to}, asked by {by_whom(request)}"


def by_whom(request: DrainRequest | Freeze | MoveRequest | TaskRequest) -> str:
    """Who wished something, since when and why."""
    why = f": {request.reason}" if request.reason else ""
    return f"{request.by} since {request.since:%Y-%m-%d %H:%M:%S} UTC{why}"


def _waits(reading: ClusterReading, unit: JobKey, alive: Collection[str]) -> str:
    stopped = reading.tasks.get(unit.task)
    record = reading.units.get(unit)
    if not alive:
        return "waits: no node lives"
    if stopped is not None and stopped.state == "stopped":
        return f"waits: {unit.task} was stopped by {stopped.by}"
    if reading.freeze is not None:
        return f"waits: the cluster was frozen by {reading.freeze.by}"
    if record is None or record.owner not in alive:
        return "waits: no node has the unit"
    return f"{record.node} does it, or does so after its step"


ShownNodeState: TypeAlias = Literal["ready", "draining", "gone", "silent"]
ShownUnitState: TypeAlias = Literal["owned", "moving", "unowned", "stopped"]

#: Units of a list in a reason; the rest is counted.
_NAMED: Final = 3


class ClusterState(StrEnum):
    """The statuses of a cluster."""

    DEPLOYING = "Deploying"
    DEPLOY_FAILED = "Deploy failed"
    RUNNING = "Running"
    UNDER_PROVISIONED = "Running (under-provisioned)"
    PENDING_RESOURCES = "Running (pending resources)"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    DELETING = "Deleting"
    DISCONNECTED = "Disconnected"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A process of a node since it began. `reason` is empty for one that just works."""

    node: str
    incarnation: str
    state: ShownNodeState
    reason: str
    since: datetime
    on_demand: bool
    leads: bool
    units: int
    version: str


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """A unit of work: its owner, since when and why; for a stopped one, since when it is stopped.

    `asked` is the pending request and what it waits for, `outcome` that of the last one, `place`
    the node that an operator wants it on; all in words. `work` is the state that its node reports
    if the work does not simply run, and `why`; None when it runs, or when that is unknown.
    """

    task: str
    name: str
    state: ShownUnitState
    node: str | None
    epoch: int
    reason: str
    since: datetime | None
    asked: str | None = None
    outcome: str | None = None
    place: str | None = None
    work: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster as its objects show it. `asked` is what is to be done with units, see there."""

    status: ClusterState
    reason: str
    since: datetime | None
    leader: str | None
    frozen: str | None
    nodes: Sequence[NodeStatus]
    units: Sequence[UnitStatus]
    troubles: Sequence[str]
    asked: Sequence[str] = ()


#: What a phase of the group makes of the cluster, whatever its nodes say.
_OF_GROUP: Final[Mapping[str, ClusterState]] = {
    "deleting": ClusterState.DELETING,
    "stopping": ClusterState.STOPPING,
    "stopped": ClusterState.STOPPED,
    "deploying": ClusterState.DEPLOYING,
    "deploy-failed": ClusterState.DEPLOY_FAILED,
    "pending": ClusterState.PENDING_RESOURCES,
    "short": ClusterState.UNDER_PROVISIONED,
}


def cluster_status(
    reading: ClusterReading, silent: Collection[str], *, unheard: str | None = None
) -> ClusterStatus:
    """The status of a cluster.

    Args:
        reading: its objects.
        silent: incarnations whose leases were not renewed in time.
        unheard: why the network agent is not to be believed, None when it is, or there is none.
    """
    update = reading.network.update if reading.network is not None and not unheard else ""
    said = [*([unheard] if unheard else []), *([f"network agent: {update}"] if update else [])]
    nodes = _nodes(reading, silent)
    alive = {one.incarnation for one in nodes if one.state in ("ready", "draining")}
    units = _units(reading, alive)
    status, reason, since = (None if unheard else _of_group(reading)) or _judged(
        reading, nodes, units
    )
    freeze, leader = reading.freeze, reading.leader
    leads = leader is not None and leader.incarnation in alive
    return ClusterStatus(
        status=status,
        reason=reason,
        since=since,
        leader=leader.node if leader is not None and leads else None,
        frozen=None if freeze is None else by_whom(freeze),
        nodes=nodes,
        units=units,
        troubles=(
            *reading.troubles,
            *said,
            *_of_stream(reading, alive),
            *_ill(units, _heard(reading, alive)),
        ),
        asked=asked(reading, alive),
    )


def _of_stream(reading: ClusterReading, alive: Collection[str]) -> list[str]:
    """Why nodes do not hear each other, as the one that leads says."""
    heard = _heard(reading, alive)
    if heard is None or not heard.stream:
        return []
    return [f"workload stream: {heard.stream}; work goes on, hand-offs and balance are slower"]


def _heard(reading: ClusterReading, alive: Collection[str]) -> LeaderReport | None:
    """What the present leader has received."""
    heard, leader = reading.heard, reading.leader
    leads = heard is not None and leader is not None and leader.incarnation == heard.incarnation
    return heard if heard is not None and leads and heard.incarnation in alive else None


def _ill(units: Sequence[UnitStatus], heard: LeaderReport | None) -> list[str]:
    """Units whose work waits for something, the first of them by name."""
    ill = [one for one in units if one.work is not None]
    said = [f"{one.task}/{one.name} is {one.work} on {one.node}: {one.why}" for one in ill[:_NAMED]]
    more = len(ill) - _NAMED + (heard.more if heard is not None else 0)
    return [*said, f"{more} more units wait: `polynya cluster tasks`"] if more > 0 else said


def _nodes(reading: ClusterReading, silent: Collection[str]) -> list[NodeStatus]:
    owners = [one.owner for one in reading.units.values()]
    found = []
    for incarnation, lease in reading.leases.items():
        state: ShownNodeState = "silent" if incarnation in silent else lease.state
        found.append(
            NodeStatus(
                node=lease.node,
                incarnation=incarnation,
                state=state,
                reason=_of_node(reading, lease, state),
                since=lease.since,
                on_demand=lease.on_demand,
                leads=reading.leader is not None and reading.leader.incarnation == incarnation,
                units=owners.count(incarnation),
                version=lease.version,
            )
        )
    return sorted(found, key=lambda one: (one.node, one.since))


def _of_node(reading: ClusterReading, lease: NodeLease, state: ShownNodeState) -> str:
    request = reading.drains.get(lease.node)
    if state == "silent":
        return "its lease is not renewed: others take its units"
    if state == "draining":
        return "it hands its units over, to end"
    if state == "ready" and request is not None:
        return f"drained by {by_whom(request)}"
    return "it has left" if state == "gone" else ""


def _units(reading: ClusterReading, alive: Collection[str]) -> list[UnitStatus]:
    planned = {
        unit: (incarnation, reason)
        for incarnation, plan in reading.plans.items()
        if incarnation in alive
        for unit, reason in plan.reasons().items()
    }
    owned = {unit for unit, one in reading.units.items() if one.owner}
    known = sorted(planned.keys() | owned | reading.requests.keys())
    heard = _heard(reading, alive)
    ill = {JobKey(one.task, one.name): one for one in heard.units} if heard is not None else {}
    found = (_unit(reading, unit, planned.get(unit), alive) for unit in known)
    return [_with_work(one, ill.get(JobKey(one.task, one.name))) for one in found]


def _with_work(unit: UnitStatus, ill: WaitingUnit | None) -> UnitStatus:
    """The unit with what was told of its work, if that was told by the node that has it."""
    if ill is None or unit.node is None or unit.state == "stopped" or ill.epoch != unit.epoch:
        return unit
    # One that runs has a reason when one of its datasets waits for a decision.
    work = ill.state if ill.state != "running" else "held"
    return replace(unit, work=work, why=ill.reason)


def _unit(
    reading: ClusterReading, unit: JobKey, planned: tuple[str, str] | None, alive: Collection[str]
) -> UnitStatus:
    one = reading.units.get(unit)
    owner = one.owner if one is not None and one.owner in alive else None
    stopped = reading.tasks.get(unit.task)
    state: ShownUnitState = "owned"
    reason = one.reason if one is not None else ""
    since = one.since if one is not None else None
    if stopped is not None and stopped.state == "stopped":
        state, reason, since = "stopped", f"stopped by {by_whom(stopped)}", stopped.since
    elif owner is None:
        state = "unowned"
        reason = "no node has it" if planned is None else f"goes to {_name(reading, planned[0])}"
    elif planned is not None and planned[0] != owner:
        state, reason = "moving", f"to {_name(reading, planned[0])}: {planned[1]}"
    return UnitStatus(
        task=unit.task,
        name=unit.name,
        state=state,
        node=_name(reading, owner) if owner is not None else None,
        epoch=one.epoch if one is not None else 0,
        reason=reason,
        since=since,
        asked=in_words(reading, unit, alive) if unit in reading.requests else None,
        outcome=outcome_of(reading, unit),
        place=place_of(reading, unit),
    )


def _of_group(reading: ClusterReading) -> tuple[ClusterState, str, datetime | None] | None:
    """What the group of the cluster says, None when it says no more than the nodes."""
    group = reading.network.group if reading.network is not None else None
    if group is None:
        return None
    if group.phase == "empty" and group.in_service + group.starting + group.ending == 0:
        return ClusterState.STOPPED, group.reason, group.since
    if group.phase not in _OF_GROUP:
        return None
    return _OF_GROUP[group.phase], group.reason, group.since


def _judged(
    reading: ClusterReading, nodes: Sequence[NodeStatus], units: Sequence[UnitStatus]
) -> tuple[ClusterState, str, datetime | None]:
    by_state: Mapping[str, list[NodeStatus]] = {
        state: [one for one in nodes if one.state == state]
        for state in ("ready", "draining", "gone", "silent")
    }
    ready = [one for one in by_state["ready"] if one.node not in reading.drains]
    newest = max((one.since for one in nodes), default=None)
    if not by_state["ready"] and not by_state["draining"]:
        if by_state["silent"]:
            names = ", ".join(sorted({one.node for one in by_state["silent"]}))
            return ClusterState.DISCONNECTED, f"no lease is renewed; last had one: {names}", newest
        return ClusterState.STOPPED, "all nodes have left" if nodes else "no node ever came", newest
    if not ready:
        return ClusterState.UNDER_PROVISIONED, "no node is ready: all of them drain", newest
    unowned = [one for one in units if one.state == "unowned"]
    if unowned:
        named = ", ".join(one.name for one in unowned[:_NAMED])
        more = f" and {len(unowned) - _NAMED} more" if len(unowned) > _NAMED else ""
        since = min((one.since for one in unowned if one.since is not None), default=newest)
        return ClusterState.UNDER_PROVISIONED, f"no node has {named}{more}", since
    counted = f"{len(ready)} node{'' if len(ready) == 1 else 's'}, {len(units)} units"
    return ClusterState.RUNNING, counted, min(one.since for one in ready)


def _name(reading: ClusterReading, incarnation: str) -> str:
    lease = reading.leases.get(incarnation)
    return lease.node if lease is not None else incarnation
