"""How a cluster is, in words a person can act on: pure functions of what was read.

Only what the objects say. How many nodes somebody wants the network agent tells; without one, no
more is known than which nodes live.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from polynya.cluster.control.asked import asked, by_whom, in_words, outcome_of, place_of
from polynya.cluster.control.heard import Heard, IllUnit
from polynya.cluster.control.reading import Reading
from polynya.cluster.coordination.documents import NodeLease
from polynya.cluster.unit import JobKey

NodeIs: TypeAlias = Literal["ready", "draining", "gone", "silent"]
UnitIs: TypeAlias = Literal["owned", "moving", "unowned", "stopped"]

#: Units of a list in a reason; the rest is counted.
_NAMED: Final = 3


class ClusterIs(StrEnum):
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
    state: NodeIs
    reason: str
    since: datetime
    on_demand: bool
    leads: bool
    units: int
    version: str


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """A unit of work: who has it, since when and why; of one that was stopped since when that is.

    `asked` is what is to be done with it and what that waits for, `outcome` what became of what was
    asked last, `place` where somebody wants it to be; all in words. `work` is what its node says of
    its work when that does not just run, and `why`; None when it runs, or when nobody knows.
    """

    task: str
    name: str
    state: UnitIs
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

    status: ClusterIs
    reason: str
    since: datetime | None
    leader: str | None
    frozen: str | None
    nodes: Sequence[NodeStatus]
    units: Sequence[UnitStatus]
    troubles: Sequence[str]
    asked: Sequence[str] = ()


#: What a phase of the group makes of the cluster, whatever its nodes say.
_OF_GROUP: Final[Mapping[str, ClusterIs]] = {
    "deleting": ClusterIs.DELETING,
    "stopping": ClusterIs.STOPPING,
    "stopped": ClusterIs.STOPPED,
    "deploying": ClusterIs.DEPLOYING,
    "deploy-failed": ClusterIs.DEPLOY_FAILED,
    "pending": ClusterIs.PENDING_RESOURCES,
    "short": ClusterIs.UNDER_PROVISIONED,
}


def cluster_status(
    reading: Reading, silent: Collection[str], *, unheard: str | None = None
) -> ClusterStatus:
    """The status of a cluster.

    Args:
        reading: its objects.
        silent: incarnations whose leases nobody renewed in time.
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


def _of_stream(reading: Reading, alive: Collection[str]) -> list[str]:
    """Why nodes do not hear each other, as the one that leads says."""
    heard = _heard(reading, alive)
    if heard is None or not heard.stream:
        return []
    return [f"workload stream: {heard.stream}; work goes on, hand-offs and balance are slower"]


def _heard(reading: Reading, alive: Collection[str]) -> Heard | None:
    """What the process that leads now has heard."""
    heard, leader = reading.heard, reading.leader
    leads = heard is not None and leader is not None and leader.incarnation == heard.incarnation
    return heard if heard is not None and leads and heard.incarnation in alive else None


def _ill(units: Sequence[UnitStatus], heard: Heard | None) -> list[str]:
    """Units whose work waits for something, the first of them by name."""
    ill = [one for one in units if one.work is not None]
    said = [f"{one.task}/{one.name} is {one.work} on {one.node}: {one.why}" for one in ill[:_NAMED]]
    more = len(ill) - _NAMED + (heard.more if heard is not None else 0)
    return [*said, f"{more} more units wait: `polynya cluster tasks`"] if more > 0 else said


def _nodes(reading: Reading, silent: Collection[str]) -> list[NodeStatus]:
    owners = [one.owner for one in reading.units.values()]
    found = []
    for incarnation, lease in reading.leases.items():
        state: NodeIs = "silent" if incarnation in silent else lease.state
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


def _of_node(reading: Reading, lease: NodeLease, state: NodeIs) -> str:
    wish = reading.drains.get(lease.node)
    if state == "silent":
        return "its lease is not renewed: others take its units"
    if state == "draining":
        return "it hands its units over, to end"
    if state == "ready" and wish is not None:
        return f"drained by {by_whom(wish)}"
    return "it has left" if state == "gone" else ""


def _units(reading: Reading, alive: Collection[str]) -> list[UnitStatus]:
    planned = {
        unit: (incarnation, reason)
        for incarnation, plan in reading.plans.items()
        if incarnation in alive
        for unit, reason in plan.reasons().items()
    }
    owned = {unit for unit, one in reading.units.items() if one.owner}
    known = sorted(planned.keys() | owned | reading.wishes.keys())
    heard = _heard(reading, alive)
    ill = {JobKey(one.task, one.name): one for one in heard.units} if heard is not None else {}
    found = (_unit(reading, unit, planned.get(unit), alive) for unit in known)
    return [_with_work(one, ill.get(JobKey(one.task, one.name))) for one in found]


def _with_work(unit: UnitStatus, ill: IllUnit | None) -> UnitStatus:
    """The unit with what was told of its work, if that was told by the node that has it."""
    if ill is None or unit.node is None or unit.state == "stopped" or ill.epoch != unit.epoch:
        return unit
    # One that runs has a reason when one of its datasets waits for a decision.
    work = ill.state if ill.state != "running" else "held"
    return replace(unit, work=work, why=ill.reason)


def _unit(
    reading: Reading, unit: JobKey, planned: tuple[str, str] | None, alive: Collection[str]
) -> UnitStatus:
    one = reading.units.get(unit)
    owner = one.owner if one is not None and one.owner in alive else None
    stopped = reading.tasks.get(unit.task)
    state: UnitIs = "owned"
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
        asked=in_words(reading, unit, alive) if unit in reading.wishes else None,
        outcome=outcome_of(reading, unit),
        place=place_of(reading, unit),
    )


def _of_group(reading: Reading) -> tuple[ClusterIs, str, datetime | None] | None:
    """What the group of the cluster says, None when it says no more than the nodes."""
    group = reading.network.group if reading.network is not None else None
    if group is None:
        return None
    if group.phase == "empty" and group.in_service + group.starting + group.ending == 0:
        return ClusterIs.STOPPED, group.reason, group.since
    if group.phase not in _OF_GROUP:
        return None
    return _OF_GROUP[group.phase], group.reason, group.since


def _judged(
    reading: Reading, nodes: Sequence[NodeStatus], units: Sequence[UnitStatus]
) -> tuple[ClusterIs, str, datetime | None]:
    by_state: Mapping[str, list[NodeStatus]] = {
        state: [one for one in nodes if one.state == state]
        for state in ("ready", "draining", "gone", "silent")
    }
    ready = [one for one in by_state["ready"] if one.node not in reading.drains]
    newest = max((one.since for one in nodes), default=None)
    if not by_state["ready"] and not by_state["draining"]:
        if by_state["silent"]:
            names = ", ".join(sorted({one.node for one in by_state["silent"]}))
            return ClusterIs.DISCONNECTED, f"no lease is renewed; last had one: {names}", newest
        return ClusterIs.STOPPED, "all nodes have left" if nodes else "no node ever came", newest
    if not ready:
        return ClusterIs.UNDER_PROVISIONED, "no node is ready: all of them drain", newest
    unowned = [one for one in units if one.state == "unowned"]
    if unowned:
        named = ", ".join(one.name for one in unowned[:_NAMED])
        more = f" and {len(unowned) - _NAMED} more" if len(unowned) > _NAMED else ""
        since = min((one.since for one in unowned if one.since is not None), default=newest)
        return ClusterIs.UNDER_PROVISIONED, f"no node has {named}{more}", since
    counted = f"{len(ready)} node{'' if len(ready) == 1 else 's'}, {len(units)} units"
    return ClusterIs.RUNNING, counted, min(one.since for one in ready)


def _name(reading: Reading, incarnation: str) -> str:
    lease = reading.leases.get(incarnation)
    return lease.node if lease is not None else incarnation
