"""The documents of a cluster, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from polynya.cluster.control.interruptions import moment_of
from polynya.cluster.control.leader_report import HEARD, LeaderReport
from polynya.cluster.coordination import store as paths
from polynya.cluster.coordination.documents import (
    MAX_DOCUMENT_BYTES,
    Document,
    DrainRequest,
    Freeze,
    LeaderLease,
    MoveRequest,
    NodeLease,
    NodePlan,
    TaskRequest,
    UnitOutcome,
    UnitOwnership,
    UnitRequest,
    parse,
)
from polynya.cluster.network.documents import NETWORK_AGENT, AgentReport
from polynya.cluster.unit import JobKey
from polynya.model.errors import PolynyaError
from polynya.store.object_store import ObjectStore

#: The report of an agent, in its working folder.
AGENT_STATE_FILE: Final = "state.json"

D = TypeVar("D", bound=Document)
T = TypeVar("T")

#: Objects that are read at a time.
_READ_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """The documents of a cluster, and what could not be read.

    Attributes:
        leases, versions, plans: by incarnation; a version changes with each renewal.
        units, moves: by unit.
        drains: by node.
        tasks: by task.
        wishes, outcomes: the requests for units, and the outcome of the last one; by unit.
        leader_report: what the leader received from all nodes, None when none ever wrote it.
        network: the sign of life of the network agent, None if there never was one.
        interruptions: when AWS took nodes back.
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
    leader_report: LeaderReport | None = None
    network: AgentReport | None = None
    interruptions: Sequence[datetime] = ()
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
    network, report = found.get(NETWORK_AGENT), found.get(HEARD)
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
        leader_report=report if isinstance(report, LeaderReport) else None,
        network=network if isinstance(network, AgentReport) else None,
        interruptions=[at for name in versions if (at := moment_of(name)) is not None],
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


_DOCUMENT_TYPES: Final[Mapping[str, type[Document]]] = {
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
        kind = _DOCUMENT_TYPES.get(name.partition("/")[0])
        if kind is None:
            return None
        try:
            return parse(kind, store.read(f"{root}/{name}", MAX_DOCUMENT_BYTES).data, name)
        except FileNotFoundError:
            return None
        except (PolynyaError, OSError) as error:
            return str(error)

    with ThreadPoolExecutor(max_workers=_READ_THREADS) as pool:
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
