"""The leader's turn: learn of nodes and requests, place units, write the plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from polynya.cluster.coordination.documents import (
    DrainRequest,
    LeaderUnits,
    MoveRequest,
    NodePlan,
    UnitDifference,
    keys_of,
)
from polynya.cluster.coordination.leases import LeaseTable
from polynya.cluster.coordination.member_state import MemberAction, NodeFacts, Together
from polynya.cluster.coordination.store import (
    BATCH,
    DIFFERENCES,
    DRAINS,
    MOVES,
    PLANS,
    WANTED,
    WANTED_UNITS,
    DocumentCache,
    DocumentStore,
    GoOn,
    attempted,
    difference_path,
    error_line,
    name_of,
    node_of,
    node_path,
    plan_path,
    unit_at,
)
from polynya.cluster.placement import Loads, PlacementNode, PlacementProposal, PlacementUnit
from polynya.cluster.unit import JobKey
from polynya.model.error_catalogue.cluster import CONFIGURATION_DIFFERS
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo


@dataclass(frozen=True, slots=True)
class KnownUnits:
    """The units that some living node knows, and for each the nodes that do not know it."""

    units: frozenset[JobKey]
    unknown_to: Mapping[JobKey, frozenset[str]] = field(default_factory=dict)


def known_units(
    units: frozenset[JobKey], living: Collection[str], differences: Mapping[str, UnitDifference]
) -> KnownUnits:
    """Which nodes know which units.

    Args:
        units: those that the leader knows.
        living: all living incarnations.
        differences: by incarnation; a node without a difference knows what the leader knows.
    """
    having: dict[JobKey, set[str]] = {}
    lacking: dict[JobKey, set[str]] = {}
    for incarnation in sorted(differences.keys() & set(living)):
        for unit in keys_of(differences[incarnation].more) - units:
            having.setdefault(unit, set()).add(incarnation)
        for unit in keys_of(differences[incarnation].less) & units:
            lacking.setdefault(unit, set()).add(incarnation)
    # Many units share few different sets of nodes.
    complements: dict[frozenset[str], frozenset[str]] = {}
    everybody = frozenset(living)
    unknown_to = {unit: frozenset(nodes) for unit, nodes in lacking.items()}
    for unit, nodes in having.items():
        knowing = frozenset(nodes)
        unknown_to[unit] = complements.setdefault(knowing, everybody - knowing)
    # The same set as long as no node knows more, so that comparing it is cheap.
    return KnownUnits(units | having.keys() if having else units, unknown_to)


class UnitKnowledge:
    """The units that nodes report to know; publishes those that the leader knows."""

    def __init__(self, document_store: DocumentStore, together: Together) -> None:
        self._document_store = document_store
        self._wanted = DocumentCache(document_store, LeaderUnits, WANTED, together)
        self._differences = DocumentCache(document_store, UnitDifference, DIFFERENCES, together)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Unreadable documents, and nodes with a difference."""
        differ = [
            CONFIGURATION_DIFFERS(
                node=node_of(incarnation), more=len(difference.more), fewer=len(difference.less)
            )
            for incarnation, difference in sorted(self._reported().items())
        ]
        return (*self._wanted.troubles, *self._differences.troubles, *map(error_line, differ))

    def refresh(self, listed: Mapping[str, ObjectInfo], go_on: GoOn) -> bool:
        """Read what changed. True when everything is read. Raises what the store raises."""
        return all([self._wanted.refresh(listed, go_on), self._differences.refresh(listed, go_on)])

    def publish(self, units: frozenset[JobKey], configuration: str) -> None:
        """Publish the units that the leader knows. Raises what the store raises."""
        if self._wanted.newer(WANTED_UNITS):
            return
        found = self._wanted.documents.get(WANTED_UNITS)
        if found is not None and found.document.configuration == configuration:
            return
        before = found.document if found is not None else LeaderUnits(configuration="")
        update = {"configuration": configuration, "units": tuple(sorted(units))}
        wanted = before.model_copy(update=update)
        # A damaged object is overwritten: it is the leader's own.
        version = found.version if found is not None else self._wanted.damaged(WANTED_UNITS)
        if self._document_store.write(WANTED_UNITS, wanted, version):
            self._wanted.wrote(WANTED_UNITS, wanted)

    def known(self, units: frozenset[JobKey], living: Collection[str]) -> KnownUnits:
        """The units that living nodes know."""
        return known_units(units, living, self._reported())

    def tidy(self, listed: Set[str]) -> list[tuple[str, str]]:
        """Differences of processes without a lease: each object with its version."""
        here = {difference_path(incarnation) for incarnation in listed}
        documents = self._differences.documents.items()
        return [(path, found.version) for path, found in documents if path not in here]

    def _reported(self) -> dict[str, UnitDifference]:
        return {
            name_of(path.removeprefix(f"{DIFFERENCES}/")): found.document
            for path, found in self._differences.documents.items()
        }


#: The units of each incarnation, each unit with its reason.
Plans = Mapping[str, Mapping[JobKey, str]]


@dataclass(frozen=True, slots=True)
class PlanChange:
    """The plan of one incarnation should have these units. `loses`: it loses some present ones."""

    incarnation: str
    units: Mapping[JobKey, str]
    loses: bool


def changes(stored: Plans, desired: Plans) -> list[PlanChange]:
    """The plans to write now; first those that lose units.

    A plan gets a unit only when no other plan has it: a moving unit leaves its old plan first, and
    enters the new one once that write is known. Changed reasons alone cause no write.
    """
    holders: dict[JobKey, set[str]] = {}
    for incarnation, units in stored.items():
        for unit in units:
            holders.setdefault(unit, set()).add(incarnation)
    found = []
    for incarnation in sorted(stored.keys() | desired.keys()):
        now, then = stored.get(incarnation, {}), desired.get(incarnation, {})
        if now.keys() == then.keys():
            continue
        units = {
            unit: reason
            for unit, reason in then.items()
            if holders.get(unit, set()) <= {incarnation}
        }
        if units.keys() != now.keys():
            found.append(PlanChange(incarnation, units, loses=not now.keys() <= units.keys()))
    return sorted(found, key=lambda change: not change.loses)


def assignment(plans: Iterable[tuple[str, NodePlan]], living: frozenset[str]) -> dict[JobKey, str]:
    """Which incarnation has each unit by the plans that were found.

    Two plans name one unit when a leader wrote once more after losing its term. Then the plan of a
    living node counts, and of those the newest.
    """
    ranked = sorted(
        plans, key=lambda plan: (plan[0] in living, plan[1].term, plan[1].number, plan[0])
    )
    return {unit: incarnation for incarnation, plan in ranked for unit in plan.reasons()}


def by_incarnation(
    placed: Mapping[JobKey, str], reasons: Mapping[JobKey, str]
) -> dict[str, dict[JobKey, str]]:
    """The same turned around, each unit with its reason."""
    plans: dict[str, dict[JobKey, str]] = {}
    for unit, incarnation in placed.items():
        plans.setdefault(incarnation, {})[unit] = reasons.get(unit, "")
    return plans


#: `placement.propose` with its rules.
Propose: TypeAlias = Callable[
    [Sequence[PlacementNode], Sequence[PlacementUnit], Mapping[JobKey, str]], PlacementProposal
]

#: Most objects that are deleted in one turn.
_MAX_DELETED: Final = 20
_NOBODY: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PlanningResult:
    """What a leader did in a turn. `unfinished`: there is more to write or to read."""

    actions: tuple[MemberAction, ...] = ()
    troubles: tuple[str, ...] = ()
    unfinished: bool = False


class Planner:
    """The plans of a cluster, while this member leads."""

    def __init__(
        self,
        document_store: DocumentStore,
        lease_table: LeaseTable,
        propose: Propose,
        *,
        clock: Clock,
        together: Together,
    ) -> None:
        self._document_store, self._lease_table, self._propose = (
            document_store,
            lease_table,
            propose,
        )
        self._clock, self._pace, self._together = clock, lease_table.pace, together
        self._plans = DocumentCache(document_store, NodePlan, PLANS, together)
        self._drains = DocumentCache(document_store, DrainRequest, DRAINS, together)
        self._moves = DocumentCache(document_store, MoveRequest, MOVES, together)
        self._knowledge = UnitKnowledge(document_store, together)
        self._placed: dict[JobKey, str] | None = None
        self._reasons: dict[JobKey, str] = {}
        self._moved_at: dict[JobKey, float] = {}
        self._loads, self._loads_at = Loads(), clock.monotonic()
        #: Nodes, known units and pins of the last proposal.
        self._basis: object = None
        self._proposed_at = -math.inf
        #: Edition of the plans in which they were as they should be.
        self._settled: int | None = None
        self._parsed: dict[str, tuple[NodePlan, Mapping[JobKey, str]]] = {}

    def resign(self) -> None:
        """Another member leads: forget what this one planned."""
        self._placed, self._basis, self._settled, self._moved_at = None, None, None, {}
        self._loads = Loads()

    @property
    def drained(self) -> Mapping[str, str]:
        """The nodes that are drained by request, and its author."""
        documents = self._drains.documents.items()
        return {name_of(path.rpartition("/")[2]): found.document.by for path, found in documents}

    def planned(self) -> dict[str, int]:
        """How many units each plan has."""
        return {incarnation: len(plan.units) for incarnation, plan in self._stored().items()}

    def turn(
        self,
        term: int,
        facts: NodeFacts,
        configuration: str,
        listed: Mapping[str, ObjectInfo],
        go_on: GoOn,
    ) -> PlanningResult:
        """Plan once. Raises what the store raises.

        Args:
            term: of this leader.
            facts: the input of the turn.
            configuration: fingerprint of the units that it knows.
            listed: the objects of the cluster, as they were listed in this turn.
            go_on: whether there is time for more.
        """
        complete = [
            self._lease_table.study(go_on),
            self._plans.refresh(listed, go_on),
            self._drains.refresh(listed, go_on),
            self._moves.refresh(listed, go_on),
            self._knowledge.refresh(listed, go_on),
        ]
        troubles = (
            *self._lease_table.troubles,
            *self._plans.troubles,
            *self._drains.troubles,
            *self._moves.troubles,
            *self._knowledge.troubles,
        )
        if not all(complete) or facts.wanted is None:
            return PlanningResult(troubles=troubles, unfinished=facts.wanted is not None)
        self._knowledge.publish(facts.wanted, configuration)
        nodes = self._nodes()
        known = self._knowledge.known(facts.wanted, [node.incarnation for node in nodes])
        actions = self._place(nodes, facts, known)
        failures, unfinished = self._write(term, go_on)
        self._tidy()
        return PlanningResult(tuple(actions), (*troubles, *failures), unfinished)

    def _nodes(self) -> list[PlacementNode]:
        drained, nodes = self.drained, []
        for incarnation in sorted(self._lease_table.listed):
            lease = self._lease_table.lease(incarnation)
            if lease is None or lease.state == "gone" or self._lease_table.dead(incarnation):
                continue
            # Without a plan that can be written it would never learn what is planned for it.
            learns = self._understood(incarnation)
            ready = lease.state == "ready" and lease.node not in drained and learns
            nodes.append(
                PlacementNode(
                    incarnation=incarnation,
                    node=lease.node,
                    state="ready" if ready else "draining",
                    on_demand=lease.on_demand,
                    capacity=lease.capacity,
                    age_seconds=self._lease_table.age(incarnation),
                )
            )
        return nodes

    def _place(
        self, nodes: list[PlacementNode], facts: NodeFacts, known: KnownUnits
    ) -> list[MemberAction]:
        """Place units: at once if nodes, units or requests changed, else now and then."""
        wanted = known.units
        pins = {
            unit: found.document.to
            for path, found in self._moves.documents.items()
            if (unit := unit_at(path)) is not None
        }
        now = self._clock.monotonic()
        traits = [(node.incarnation, node.state, node.on_demand, node.capacity) for node in nodes]
        basis = (traits, known, pins)
        due = now >= self._proposed_at + self._pace.balance
        if self._placed is not None and basis == self._basis and not due:
            return []
        if self._placed is None:
            living = frozenset(node.incarnation for node in nodes)
            self._placed = assignment(self._stored().items(), living)
            self._reasons = {
                unit: reason for plan in self._units().values() for unit, reason in plan.items()
            }
        self._loads = self._loads.after(now - self._loads_at, facts.loads, wanted)
        self._loads_at = now
        typical = self._loads.typical
        units = [
            PlacementUnit(
                unit=unit,
                load=self._loads.values.get(unit, typical),
                heavy=unit in facts.heavy,
                moved_seconds_ago=self._moved_seconds_ago(unit, now),
                pinned_to=pins.get(unit),
                unknown_to=known.unknown_to.get(unit, _NOBODY),
            )
            for unit in wanted
        ]
        proposal = self._propose(nodes, units, self._placed)
        self._basis, self._proposed_at = basis, now
        self._settled = None
        self._placed = dict(proposal.assignment)
        for move in proposal.moves:
            self._reasons[move.unit] = move.reason
            if move.source is not None:
                self._moved_at[move.unit] = now
        return [
            MemberAction("planned", move.unit, move.reason, node=move.target)
            for move in proposal.moves
        ]

    def _moved_seconds_ago(self, unit: JobKey, now: float) -> float | None:
        moved = self._moved_at.get(unit)
        return None if moved is None else now - moved

    def _stored(self) -> dict[str, NodePlan]:
        return {
            name_of(path.removeprefix(f"{PLANS}/")): found.document
            for path, found in self._plans.documents.items()
        }

    def _units(self) -> dict[str, Mapping[JobKey, str]]:
        """The units of each stored plan; those of an unchanged plan are reused."""
        parsed = {}
        for incarnation, plan in self._stored().items():
            before = self._parsed.get(incarnation)
            units = plan.reasons() if before is None or before[0] is not plan else before[1]
            parsed[incarnation] = (plan, units)
        self._parsed = parsed
        return {incarnation: units for incarnation, (_, units) in parsed.items()}

    def _write(self, term: int, go_on: GoOn) -> tuple[list[str], bool]:
        """Write changed plans, losing ones first. Returns failures, and whether there is more."""
        if self._settled == self._plans.edition:
            return [], False
        desired = by_incarnation(self._placed or {}, self._reasons)
        failures: list[str] = []
        for loses in (True, False):
            due = [change for change in changes(self._units(), desired) if change.loses == loses]
            for start in range(0, len(due), BATCH):
                if not go_on():
                    return failures, True
                failures += self._write_batch(due[start : start + BATCH], term)
        left = any(
            self._understood(change.incarnation) for change in changes(self._units(), desired)
        )
        self._settled = None if left else self._plans.edition
        return failures, left

    def _write_batch(self, batch: Sequence[PlanChange], term: int) -> list[str]:
        known, dead = self._plans.documents, tuple(sorted(self._lease_table.dead_leases().items()))
        batch = [change for change in batch if self._writable(change.incarnation, term)]
        plans, calls = [], []
        for change in batch:
            path = plan_path(change.incarnation)
            before = known[path].document if path in known else NodePlan(term=term, number=0)
            update = {"term": term, "number": before.number + 1, "dead": dead}
            plan = before.with_units(change.units).model_copy(update=update)
            # A damaged plan is overwritten: it is the leader's own.
            version = known[path].version if path in known else self._plans.damaged(path)
            plans.append((path, plan))
            calls.append(attempted(partial(self._document_store.write, path, plan, version)))
        failures = []
        for (path, plan), result in zip(plans, self._together(calls), strict=True):
            if result is True:
                self._plans.wrote(path, plan)
                continue
            # Read again in the next turn: until then its units count as those of this node.
            self._plans.doubt(path)
            if isinstance(result, Exception):
                failures.append(error_line(result))
        return failures

    def _understood(self, incarnation: str) -> bool:
        """Whether its plan is not of a newer version, which must not be overwritten."""
        return not self._plans.newer(plan_path(incarnation))

    def _writable(self, incarnation: str, term: int) -> bool:
        """Whether a plan may be written: its version is known, it does not exist, or it is damaged.

        Not one of a later term: then another member leads, and this one has not learned it yet.
        """
        found = self._plans.documents.get(plan_path(incarnation))
        if found is None:
            return self._understood(incarnation)
        return bool(found.version) and found.document.term <= term

    def _tidy(self) -> None:
        """Delete long dead objects: leases that nothing renews, and plans without a lease."""
        old = [
            (node_path(incarnation), info.version)
            for incarnation, info in self._lease_table.listed.items()
            if self._lease_table.silent(incarnation) >= self._pace.forget
        ]
        old += self._knowledge.tidy(self._lease_table.listed.keys())
        old += [
            (path, found.version)
            for path, found in self._plans.documents.items()
            if not found.document.units
            and found.version
            and name_of(path.removeprefix(f"{PLANS}/")) not in self._lease_table.listed
        ]
        for path, version in old[:_MAX_DELETED]:
            if self._document_store.delete(path, version):
                self._plans.deleted(path)
