"""The status of a cluster: pure functions put what was read of it in words.

The status shows only what the objects contain. The wanted number of nodes is known only with a
network agent; without one, the status knows which nodes live.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from polynya.cluster.control.leader_report import LeaderReport, WaitingUnit
from polynya.cluster.control.reading import ClusterReading
from polynya.cluster.coordination.documents import (
    DrainRequest,
    Freeze,
    MoveRequest,
    NodeLease,
    TaskRequest,
)
from polynya.cluster.unit import JobKey

ShownNodeState: TypeAlias = Literal["ready", "draining", "gone", "silent"]
ShownUnitState: TypeAlias = Literal["owned", "moving", "unowned", "stopped"]

#: Units of a list in a reason; the rest is counted.
_MAX_NAMED: Final = 3


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
    """A cluster as its objects show it. `asked` lists the pending requests for units."""

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
_STATES_OF_GROUP: Final[Mapping[str, ClusterState]] = {
    "deleting": ClusterState.DELETING,
    "stopping": ClusterState.STOPPING,
    "stopped": ClusterState.STOPPED,
    "deploying": ClusterState.DEPLOYING,
    "deploy-failed": ClusterState.DEPLOY_FAILED,
    "pending": ClusterState.PENDING_RESOURCES,
    "short": ClusterState.UNDER_PROVISIONED,
}


def cluster_status(
    reading: ClusterReading, silent: Collection[str], *, agent_trouble: str | None = None
) -> ClusterStatus:
    """The status of a cluster.

    Args:
        reading: its objects.
        silent: incarnations whose leases were not renewed in time.
        agent_trouble: why the report of the network agent does not count; None if it does, or if
            there is no network agent.
    """
    update = reading.network.update if reading.network is not None and not agent_trouble else ""
    agent_troubles = (
        [agent_trouble] if agent_trouble else [f"network agent: {update}"] if update else []
    )
    nodes = _nodes(reading, silent)
    alive = {node.incarnation for node in nodes if node.state in ("ready", "draining")}
    units = _units(reading, alive)
    group_state = None if agent_trouble else _group_state(reading)
    status, reason, since = group_state or _node_state(reading, nodes, units)
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
            *agent_troubles,
            *_stream_troubles(reading, alive),
            *_waiting_units(units, _leader_report(reading, alive)),
        ),
        asked=pending_requests(reading, alive),
    )


def _group_state(reading: ClusterReading) -> tuple[ClusterState, str, datetime | None] | None:
    """The state that the group decides; None when the nodes decide it."""
    group = reading.network.group if reading.network is not None else None
    if group is None:
        return None
    if group.phase == "empty" and group.in_service + group.starting + group.ending == 0:
        return ClusterState.STOPPED, group.reason, group.since
    if group.phase not in _STATES_OF_GROUP:
        return None
    return _STATES_OF_GROUP[group.phase], group.reason, group.since


def _node_state(
    reading: ClusterReading, nodes: Sequence[NodeStatus], units: Sequence[UnitStatus]
) -> tuple[ClusterState, str, datetime | None]:
    by_state: Mapping[str, list[NodeStatus]] = {
        state: [node for node in nodes if node.state == state]
        for state in ("ready", "draining", "gone", "silent")
    }
    ready = [node for node in by_state["ready"] if node.node not in reading.drains]
    newest = max((node.since for node in nodes), default=None)
    if not by_state["ready"] and not by_state["draining"]:
        if by_state["silent"]:
            names = ", ".join(sorted({node.node for node in by_state["silent"]}))
            return ClusterState.DISCONNECTED, f"no lease is renewed; last had one: {names}", newest
        return ClusterState.STOPPED, "all nodes have left" if nodes else "no node ever came", newest
    if not ready:
        return ClusterState.UNDER_PROVISIONED, "no node is ready: all of them drain", newest
    unowned = [unit for unit in units if unit.state == "unowned"]
    if unowned:
        named = ", ".join(unit.name for unit in unowned[:_MAX_NAMED])
        more = f" and {len(unowned) - _MAX_NAMED} more" if len(unowned) > _MAX_NAMED else ""
        since = min((unit.since for unit in unowned if unit.since is not None), default=newest)
        return ClusterState.UNDER_PROVISIONED, f"no node has {named}{more}", since
    counted = f"{len(ready)} node{'' if len(ready) == 1 else 's'}, {len(units)} units"
    return ClusterState.RUNNING, counted, min(node.since for node in ready)


def _nodes(reading: ClusterReading, silent: Collection[str]) -> list[NodeStatus]:
    owners = [ownership.owner for ownership in reading.units.values()]
    nodes = []
    for incarnation, lease in reading.leases.items():
        state: ShownNodeState = "silent" if incarnation in silent else lease.state
        nodes.append(
            NodeStatus(
                node=lease.node,
                incarnation=incarnation,
                state=state,
                reason=_node_reason(reading, lease, state),
                since=lease.since,
                on_demand=lease.on_demand,
                leads=reading.leader is not None and reading.leader.incarnation == incarnation,
                units=owners.count(incarnation),
                version=lease.version,
            )
        )
    return sorted(nodes, key=lambda node: (node.node, node.since))


def _node_reason(reading: ClusterReading, lease: NodeLease, state: ShownNodeState) -> str:
    request = reading.drains.get(lease.node)
    if state == "silent":
        return "its lease is not renewed: other nodes take its units"
    why = f": {lease.leaving}" if lease.leaving else ""
    if state == "draining":
        return f"it hands over its units before it stops{why}"
    if state == "ready" and request is not None:
        return f"drained by {by_whom(request)}"
    return f"it has left{why}" if state == "gone" else ""


def _units(reading: ClusterReading, alive: Collection[str]) -> list[UnitStatus]:
    planned = {
        unit: (incarnation, reason)
        for incarnation, plan in reading.plans.items()
        if incarnation in alive
        for unit, reason in plan.reasons().items()
    }
    owned = {unit for unit, ownership in reading.units.items() if ownership.owner}
    known = sorted(planned.keys() | owned | reading.requests.keys())
    report = _leader_report(reading, alive)
    waiting = {JobKey(unit.task, unit.name): unit for unit in report.units} if report else {}
    return [
        _with_work(_unit(reading, unit, planned.get(unit), alive), waiting.get(unit))
        for unit in known
    ]


def _with_work(unit: UnitStatus, waiting: WaitingUnit | None) -> UnitStatus:
    """The unit with the state of its work, if its node reported one in this epoch."""
    if waiting is None or waiting.epoch != unit.epoch:
        return unit
    if unit.node is None or unit.state == "stopped":
        return unit
    # One that runs has a reason when one of its datasets waits for a decision.
    work = waiting.state if waiting.state != "running" else "held"
    return replace(unit, work=work, why=waiting.reason)


def _unit(
    reading: ClusterReading, unit: JobKey, planned: tuple[str, str] | None, alive: Collection[str]
) -> UnitStatus:
    record = reading.units.get(unit)
    owner = record.owner if record is not None and record.owner in alive else None
    stopped = reading.tasks.get(unit.task)
    state: ShownUnitState = "owned"
    reason = record.reason if record is not None else ""
    since = record.since if record is not None else None
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
        epoch=record.epoch if record is not None else 0,
        reason=reason,
        since=since,
        asked=describe_request(reading, unit, alive) if unit in reading.requests else None,
        outcome=outcome_of(reading, unit),
        place=place_of(reading, unit),
    )


def _name(reading: ClusterReading, incarnation: str) -> str:
    lease = reading.leases.get(incarnation)
    return lease.node if lease is not None else incarnation


def pending_requests(reading: ClusterReading, alive: Collection[str]) -> tuple[str, ...]:
    """All pending requests, with what each waits for; `alive` are the living incarnations."""
    return tuple(
        f"{unit.task}/{unit.name}: {describe_request(reading, unit, alive)}"
        for unit in sorted(reading.requests)
    )


def describe_request(reading: ClusterReading, unit: JobKey, alive: Collection[str]) -> str:
    """The request for a unit that has one, and what it waits for."""
    request = reading.requests[unit]
    of = f" of {request.dataset}" if request.dataset is not None else ""
    why = f" ({request.reason})" if request.reason else ""
    return (
        f"{request.kind}{of} asked by {request.by}{why}, {request.since:%Y-%m-%d %H:%M:%S} UTC, "
        f"{_waits(reading, unit, alive)}"
    )


def outcome_of(reading: ClusterReading, unit: JobKey) -> str | None:
    """The outcome of the last request for a unit, None when there never was one."""
    outcome = reading.outcomes.get(unit)
    if outcome is None:
        return None
    how = "done" if outcome.done else "not done"
    return (
        f"last {outcome.kind}, asked by {outcome.by}: {how} on {outcome.node}, "
        f"{outcome.ended:%Y-%m-%d %H:%M:%S} UTC: {outcome.text}"
    )


def place_of(reading: ClusterReading, unit: JobKey) -> str | None:
    """The node that an operator wants a unit on, None when the leader decides."""
    request = reading.moves.get(unit)
    return None if request is None else f"to be on {request.to}, asked by {by_whom(request)}"


def by_whom(request: DrainRequest | Freeze | MoveRequest | TaskRequest) -> str:
    """The author of a request, since when and why."""
    why = f": {request.reason}" if request.reason else ""
    return f"{request.by} since {request.since:%Y-%m-%d %H:%M:%S} UTC{why}"


def _waits(reading: ClusterReading, unit: JobKey, alive: Collection[str]) -> str:
    stopped = reading.tasks.get(unit.task)
    record = reading.units.get(unit)
    if not alive:
        return "waits: no node is alive"
    if stopped is not None and stopped.state == "stopped":
        return f"waits: {unit.task} was stopped by {stopped.by}"
    if reading.freeze is not None:
        return f"waits: the cluster was frozen by {reading.freeze.by}"
    if record is None or record.owner not in alive:
        return "waits: no node has the unit"
    return f"{record.node} does it, or does so after its step"


def _stream_troubles(reading: ClusterReading, alive: Collection[str]) -> list[str]:
    """Why nodes receive no heartbeats, as the leader reports it."""
    report = _leader_report(reading, alive)
    if report is None or not report.stream:
        return []
    return [f"workload stream: {report.stream}; work continues, hand-offs and balance are slower"]


def _leader_report(reading: ClusterReading, alive: Collection[str]) -> LeaderReport | None:
    """What the present leader has received."""
    report, leader = reading.leader_report, reading.leader
    if report is None or leader is None or leader.incarnation != report.incarnation:
        return None
    return report if report.incarnation in alive else None


def _waiting_units(units: Sequence[UnitStatus], report: LeaderReport | None) -> list[str]:
    """Units whose work waits for something, the first of them by name."""
    waiting = [unit for unit in units if unit.work is not None]
    lines = [
        f"{unit.task}/{unit.name} is {unit.work} on {unit.node}: {unit.why}"
        for unit in waiting[:_MAX_NAMED]
    ]
    more = len(waiting) - _MAX_NAMED + (report.more if report is not None else 0)
    return [*lines, f"{more} more units wait: `polynya cluster tasks`"] if more > 0 else lines
