"""Clusters as resources: their nodes, and the units of work with the reason for their places.

A cluster is shown from its coordination place (`POLYNYA_COORDINATION`). Without one, the agent that
works in the project folder is shown as the only node of its cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.cluster.control.status import ShownUnitState
from polynya.cluster.coordination.store import STORE_ERRORS, error_line
from polynya.cluster.network.prices import NodePrice
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.clusters import ClusterLook
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState

router = api_router("clusters")

#: `unclear`: whether the node is alive is not known yet; it is known within 12 seconds.
NodeWord: TypeAlias = Literal["ready", "draining", "gone", "silent", "unclear"]
_UNCLEAR = "its lease is old by its own clock; within 12 s it is known whether it is renewed"
_NO_PLACE = "no coordination place is named, and no agent works in the project folder"

_ALONE = "it works alone: no network agent asks AWS for prices"


class GroupShown(BaseModel):
    """The group of machines of a cluster, as the network agent saw it at `seen_at`."""

    minimum: int
    maximum: int
    desired: int
    in_service: int
    starting: int
    ending: int
    phase: str
    reason: str
    since: str | None
    seen_at: str


class PriceShown(BaseModel):
    """What a node costs, as of `as_of`; or why that is unknown, and since when."""

    dollars_per_hour: float | None = Field(description="US dollars, of the machine alone")
    as_of: str | None
    unknown: str | None
    since: str | None


class CostShown(BaseModel):
    """What the nodes of a cluster cost that are there now; `unknown` nodes have no known price."""

    dollars_per_hour: float = Field(description="the sum of the known prices, in US dollars")
    nodes: int
    unknown: int


class InterruptionsShown(BaseModel):
    """How many nodes AWS took back, by the notices that they got."""

    last_24_hours: int
    last_30_days: int


class ClusterShown(BaseModel):
    """A cluster: one status, why, and since when; numbers of nodes and units by their state."""

    name: str
    status: str = Field(description="as `polynya cluster status` says it; `Unknown` without a view")
    reason: str
    since: str | None
    leader: str | None
    frozen: str | None = Field(description="who keeps all units where they are, and why")
    tasks: list[str] = Field(description="tasks of the project that belong to the cluster")
    nodes: dict[str, int]
    units: dict[str, int]
    troubles: list[str]
    requests: list[str] = Field(description="pending requests of operators, in words")
    group: GroupShown | None = None
    cost: CostShown | None = Field(default=None, description="null without a coordination place")
    spot_interruptions: InterruptionsShown | None = None
    seen_by: Literal["coordination", "agent", "nothing"]
    as_of: str | None


class NodeShown(BaseModel):
    """A process of a node; `reason` is empty for one that just works."""

    node: str
    incarnation: str
    state: NodeWord
    reason: str
    since: str
    market: Literal["spot", "on-demand", "unknown"]
    leads: bool
    units: int
    capacity: float | None = Field(description="its processors")
    machine: str | None = Field(description="type of its instance on EC2, such as `m7g.large`")
    zone: str | None = Field(description="of its instance")
    price: PriceShown
    leaving: str | None = Field(
        description="why it drains or has left, such as the notice of a Spot interruption"
    )
    version: str
    renewed_at: str | None


class UnitShown(BaseModel):
    """A unit of work: where it is, since when and why; `moves_to` where it is wanted elsewhere."""

    task: str
    name: str
    state: ShownUnitState
    node: str | None
    moves_to: str | None
    epoch: int
    reason: str
    since: str | None
    asked: str | None = Field(description="the pending request, and what it waits for")
    outcome: str | None = Field(description="how the last request ended")
    place: str | None = Field(description="the node that an operator wants it on")
    work: str | None = Field(description="what its work waits as; null where it just runs")
    why: str | None


@router.get("/clusters", dependencies=[allowed(Action.VIEW_CLUSTER)])
def clusters(request: Request, limit: Limit = 50, cursor: Cursor = None) -> ListPage[ClusterShown]:
    """The clusters that the project names, and those that ever had a node, by name."""
    state = ServerState.of(request)
    project = state.known_project()
    part = page(state.clusters.names(project), lambda one: (one, one), limit, cursor)
    found = [_cluster(state, project, name) for name in part.items]
    return ListPage(items=found, total=part.total, next=part.next)


@router.get("/clusters/{name}", dependencies=[allowed(Action.VIEW_CLUSTER)])
def cluster(request: Request, name: str) -> ClusterShown:
    """One cluster."""
    state, project = _known(request, name)
    return _cluster(state, project, name)


@router.get("/clusters/{name}/nodes", dependencies=[allowed(Action.VIEW_CLUSTER)])
def nodes(
    request: Request,
    name: str,
    *,
    gone: Annotated[bool, Query(description="also processes that have left")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListPage[NodeShown]:
    """The nodes of a cluster by name."""
    state, project = _known(request, name)
    look = state.clusters.look(project, name)
    agent = _agent_of(state, name) if look is None else None
    found = _nodes(look) if look is not None else [_of_agent(agent)] if agent is not None else []
    found = [one for one in found if gone or one.state != "gone"]
    return page(found, lambda one: (one.node, one.incarnation), limit, cursor)


@router.get("/clusters/{name}/units", dependencies=[allowed(Action.VIEW_CLUSTER)])
def units(
    request: Request,
    name: str,
    *,
    node: Annotated[str | None, Query(max_length=300)] = None,
    task: Annotated[str | None, Query(max_length=300)] = None,
    unit_state: Annotated[ShownUnitState | None, Query(alias="state")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListPage[UnitShown]:
    """The units of work of a cluster by task and name."""
    state, project = _known(request, name)
    look = state.clusters.look(project, name)
    agent = _agent_of(state, name) if look is None else None
    found = _units(look) if look is not None else [] if agent is None else _units_of_agent(agent)
    found = [
        one
        for one in found
        if node in (None, one.node) and task in (None, one.task) and unit_state in (None, one.state)
    ]
    return page(found, lambda one: (one.task, one.name), limit, cursor)


def _known(request: Request, name: str) -> tuple[ServerState, LoadedProject]:
    state = ServerState.of(request)
    project = state.known_project()
    if name not in state.clusters.names(project):
        raise NO_SUCH_RESOURCE(what=f"cluster {shown(name)}")
    return state, project


def _agent_of(state: ServerState, name: str) -> Mapping[str, Any] | None:
    """The report of the agent in the project folder, if it works for this cluster."""
    report = state.clusters.agent()
    return report if report is not None and report.get("cluster") == name else None


def _cluster(state: ServerState, project: LoadedProject, name: str) -> ClusterShown:
    default = project.cluster_name
    tasks = [task.name for task in project.works if (project.cluster_of(task) or default) == name]
    try:
        look = state.clusters.look(project, name)
    except STORE_ERRORS as error:
        since = state.clusters.failing_since(name)
        reason = f"the coordination place does not answer: {error_line(error)}"
        return _unknown(name, tasks, reason, since)
    if look is not None:
        return _of_look(name, tasks, look)
    report = _agent_of(state, name)
    if report is None:
        reason = f"{_NO_PLACE}: start the server with POLYNYA_COORDINATION as the agents have it"
        return _unknown(name, tasks, reason, None)
    errors = [str(error.get("message", "")) for error in report["configuration"]["errors"]]
    return ClusterShown(
        name=name,
        status="Running" if report["state"] == "running" else str(report["state"]).capitalize(),
        reason=f"the agent of {report['node']} works alone",
        since=report["started_at"],
        leader=report["node"],
        frozen=None,
        tasks=sorted(tasks),
        nodes={"draining" if report["state"] == "draining" else "ready": 1},
        units=dict(Counter(one.state for one in _units_of_agent(report))),
        troubles=errors,
        requests=[],
        seen_by="agent",
        as_of=report["at"],
    )


def _unknown(name: str, tasks: list[str], reason: str, since: datetime | None) -> ClusterShown:
    return ClusterShown(
        name=name,
        status="Unknown",
        reason=reason,
        since=_iso(since),
        leader=None,
        frozen=None,
        tasks=sorted(tasks),
        nodes={},
        units={},
        troubles=[],
        requests=[],
        seen_by="nothing",
        as_of=None,
    )


def _of_look(name: str, tasks: list[str], look: ClusterLook) -> ClusterShown:
    status, nodes = look.status, _nodes(look)
    return ClusterShown(
        name=name,
        status=status.status.value,
        reason=status.reason,
        since=_iso(status.since),
        leader=status.leader,
        frozen=status.frozen,
        tasks=sorted(tasks),
        nodes=dict(Counter[str](one.state for one in nodes)),
        units=dict(Counter[str](one.state for one in status.units)),
        troubles=list(status.troubles),
        requests=list(status.asked),
        group=_group(look),
        cost=_cost(nodes),
        spot_interruptions=InterruptionsShown(
            last_24_hours=look.interruptions.day, last_30_days=look.interruptions.month
        ),
        seen_by="coordination",
        as_of=look.at.isoformat(),
    )


def _cost(nodes: list[NodeShown]) -> CostShown:
    there = [one.price.dollars_per_hour for one in nodes if one.state not in ("gone", "silent")]
    known = [price for price in there if price is not None]
    return CostShown(
        dollars_per_hour=round(sum(known), 6), nodes=len(there), unknown=len(there) - len(known)
    )


def _price(price: NodePrice) -> PriceShown:
    return PriceShown(
        dollars_per_hour=price.hourly,
        as_of=_iso(price.at),
        unknown=price.unknown,
        since=_iso(price.since),
    )


def _group(look: ClusterLook) -> GroupShown | None:
    network = look.reading.network
    group = network.group if network is not None else None
    if group is None:
        return None
    return GroupShown(
        minimum=group.minimum,
        maximum=group.maximum,
        desired=group.desired,
        in_service=group.in_service,
        starting=group.starting,
        ending=group.ending,
        phase=group.phase,
        reason=group.reason,
        since=_iso(group.since),
        seen_at=group.seen_at.isoformat(),
    )


def _nodes(look: ClusterLook) -> list[NodeShown]:
    found = []
    for one in look.status.nodes:
        lease, unclear = look.reading.leases[one.incarnation], one.incarnation in look.unclear
        found.append(
            NodeShown(
                node=one.node,
                incarnation=one.incarnation,
                state="unclear" if unclear else one.state,
                reason=_UNCLEAR if unclear else one.reason,
                since=one.since.isoformat(),
                market="on-demand" if one.on_demand else "spot",
                leads=one.leads,
                units=one.units,
                capacity=lease.capacity,
                machine=lease.machine or None,
                zone=lease.zone or None,
                price=_price(look.price(one.incarnation)),
                leaving=lease.leaving or None,
                version=one.version,
                renewed_at=_iso(lease.renewed_at),
            )
        )
    return sorted(found, key=lambda one: (one.node, one.incarnation))


def _units(look: ClusterLook) -> list[UnitShown]:
    targets = {
        (unit.task, unit.name): look.reading.leases[incarnation].node
        for incarnation, plan in look.reading.plans.items()
        if incarnation in look.reading.leases
        for unit in plan.reasons()
    }
    return [
        UnitShown(
            task=one.task,
            name=one.name,
            state=one.state,
            node=one.node,
            moves_to=targets.get((one.task, one.name)) if one.state == "moving" else None,
            epoch=one.epoch,
            reason=one.reason,
            since=_iso(one.since),
            asked=one.asked,
            outcome=one.outcome,
            place=one.place,
            work=one.work,
            why=one.why,
        )
        for one in look.status.units
    ]


def _of_agent(report: Mapping[str, Any]) -> NodeShown:
    return NodeShown(
        node=report["node"],
        incarnation=report["node"],
        state="draining" if report["state"] == "draining" else "ready",
        reason="",
        since=report["started_at"],
        market="unknown",
        leads=True,
        units=len(_units_of_agent(report)),
        capacity=None,
        machine=None,
        zone=None,
        price=_price(NodePrice(unknown=_ALONE)),
        leaving=None,
        version="",
        renewed_at=report["at"],
    )


def _units_of_agent(report: Mapping[str, Any]) -> list[UnitShown]:
    found = []
    for task, facts in sorted(report["tasks"].items()):
        for name, job in sorted(facts["jobs"].items()):
            runs = job["state"] == "running"
            found.append(
                UnitShown(
                    task=task,
                    name=name,
                    state="stopped" if job["state"] == "stopped" else "owned",
                    node=report["node"],
                    moves_to=None,
                    epoch=job["epoch"] or 0,
                    reason="the only node",
                    since=None,
                    asked=None,
                    outcome=None,
                    place=None,
                    work=("held" if job["held"] else None) if runs else job["state"],
                    why=None if runs and not job["held"] else job["reason"],
                )
            )
    return found


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
