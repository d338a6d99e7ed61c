"""All objects of a cluster, read once: what a person looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from polynya.cluster.control.heard import HEARD, Heard
from polynya.cluster.coordination import paths
from polynya.cluster.coordination.documents import (
    MAX_DOCUMENT_BYTES,
    Document,
    DrainWish,
    Freeze,
    LeaderLease,
    MoveWish,
    NodeLease,
    Ownership,
    Plan,
    TaskWish,
    UnitOutcome,
    UnitWish,
    parse,
)
from polynya.cluster.network.documents import NETWORK_AGENT, AgentReport
from polynya.cluster.unit import JobKey
from polynya.model.errors import PolynyaError
from polynya.store.object_store import ObjectStore

D = TypeVar("D", bound=Document)
T = TypeVar("T")

#: So many objects are read at a time.
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Reading:
    """The documents of a cluster, and what could not be read.

    Attributes:
        leases, versions, plans: by incarnation; a version changes with each renewal.
        units, moves: by unit.
        drains: by node.
        tasks: by task.
        wishes, outcomes: what is asked of units, and what became of what was asked last; by unit.
        heard: what the leader heard of all nodes, None when none ever wrote it.
        network: the sign of life of the network agent, None when there never was one.
        troubles: objects that could not be read, and why.
    """

    leader: LeaderLease | None = None
    freeze: Freeze | None = None
    leases: Mapping[str, NodeLease] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    units: Mapping[JobKey, Ownership] = field(default_factory=dict)
    moves: Mapping[JobKey, MoveWish] = field(default_factory=dict)
    drains: Mapping[str, DrainWish] = field(default_factory=dict)
    tasks: Mapping[str, TaskWish] = field(default_factory=dict)
    wishes: Mapping[JobKey, UnitWish] = field(default_factory=dict)
    outcomes: Mapping[JobKey, UnitOutcome] = field(default_factory=dict)
    heard: Heard | None = None
    network: AgentReport | None = None
    troubles: Sequence[str] = ()


def clusters_at(store: ObjectStore) -> list[str]:
    """Names of the clusters that ever had a node here."""
    roots = {info.path.partition("/")[0] for info in store.list() if "/" in info.path}
    return sorted(paths.name_of(root) for root in roots)


def read_cluster(store: ObjectStore, cluster: str) -> Reading:
    """Read the objects of a cluster. Raises what listing them raises."""
    root = paths.element(cluster)
    versions = {info.path.removeprefix(f"{root}/"): info.version for info in store.list(root)}
    found, troubles = _documents(store, root, list(versions))
    leader, freeze = found.get(paths.LEADER), found.get(paths.FREEZE)
    network, heard = found.get(NETWORK_AGENT), found.get(HEARD)
    return Reading(
        leader=leader if isinstance(leader, LeaderLease) else None,
        freeze=freeze if isinstance(freeze, Freeze) else None,
        leases=_named(found, paths.NODES, NodeLease),
        versions=_inside(versions, paths.NODES),
        plans=_named(found, paths.PLANS, Plan),
        units=_of_units(found, paths.UNITS, Ownership),
        moves=_of_units(found, paths.MOVES, MoveWish),
        drains=_named(found, paths.DRAINS, DrainWish),
        tasks=_named(found, paths.TASKS, TaskWish),
        wishes=_of_units(found, paths.WISHES, UnitWish),
        outcomes=_of_units(found, paths.OUTCOMES, UnitOutcome),
        heard=heard if isinstance(heard, Heard) else None,
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


def known_units(reading: Reading) -> list[JobKey]:
    """All units that a plan or an ownership names, sorted."""
    planned = {unit for plan in reading.plans.values() for unit in plan.reasons()}
    return sorted(planned | set(reading.units))


_KINDS: Final[Mapping[str, type[Document]]] = {
    paths.LEADER: LeaderLease,
    paths.FREEZE: Freeze,
    paths.NODES: NodeLease,
    paths.PLANS: Plan,
    paths.UNITS: Ownership,
    paths.MOVES: MoveWish,
    paths.DRAINS: DrainWish,
    paths.TASKS: TaskWish,
    paths.WISHES: UnitWish,
    paths.OUTCOMES: UnitOutcome,
    HEARD: Heard,
    NETWORK_AGENT: AgentReport,
}


def _documents(
    store: ObjectStore, root: str, names: Sequence[str]
) -> tuple[dict[str, Document], list[str]]:
    """The documents by path, and what could not be read; who deletes one meanwhile is right."""

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
