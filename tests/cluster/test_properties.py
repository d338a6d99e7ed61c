"""What holds of every proposal, and that the checker of it sees each planted fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.cluster.placement import (
    Move,
    PlacementNode,
    PlacementProposal,
    PlacementRules,
    PlacementUnit,
    propose,
)
from polynya.cluster.unit import JobKey

RULES = PlacementRules()
NAMES = [f"n{number}" for number in range(6)]
NOBODY, SOME = frozenset[str](), frozenset({"n0.1", "n1.1", "n2.1"})
EVERYBODY = frozenset(f"{name}.1" for name in NAMES)


@dataclass(frozen=True)
class Case:
    """What a proposal is asked of."""

    nodes: Sequence[PlacementNode]
    units: Sequence[PlacementUnit]
    current: Mapping[JobKey, str]

    def proposal(self, rules: PlacementRules = RULES) -> PlacementProposal:
        return propose(self.nodes, self.units, self.current, rules)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Some nodes, units on some of them, on dead ones and on none."""
    nodes = [
        PlacementNode(
            f"{name}.1",
            name,
            draw(st.sampled_from(["ready", "ready", "ready", "draining"])),
            draw(st.booleans()),
            draw(st.sampled_from([1.0, 4.0])),
            draw(st.sampled_from([0.0, 60.0, 3600.0])),
        )
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]
    units = [
        PlacementUnit(
            JobKey("t", f"{number:02}"),
            draw(st.floats(0, 100)),
            draw(st.booleans()),
            draw(st.sampled_from([None, None, 10.0, 100.0, 400.0])),
            draw(st.sampled_from([None, None, None, *NAMES])),
            unknown_to=draw(st.sampled_from([NOBODY, NOBODY, SOME, EVERYBODY])),
        )
        for number in range(draw(st.integers(0, 24)))
    ]
    had = st.sampled_from([None, *(f"{name}.1" for name in NAMES)])
    placed = {unit.unit: draw(had) for unit in units}
    return Case(nodes, units, {unit: node for unit, node in placed.items() if node is not None})


def faults(case: Case, proposal: PlacementProposal, rules: PlacementRules = RULES) -> Iterator[str]:
    """What is wrong with a proposal."""
    ready = {node.incarnation: node for node in case.nodes if node.state == "ready"}
    facts = {unit.unit: unit for unit in case.units}
    placed = {unit for unit, one in facts.items() if ready.keys() - one.unknown_to}
    if set(proposal.assignment) != placed:
        yield "not every unit has a node"
    if any(node in facts[unit].unknown_to for unit, node in proposal.assignment.items()):
        yield "a unit is on a node that does not know it"
    if not set(proposal.assignment.values()) <= set(ready):
        yield "a unit is on a node that is not ready"
    after = {unit: case.current.get(unit) for unit in facts}
    for move in proposal.moves:
        if move.source != after[move.unit] or move.source == move.target:
            yield "a move from where the unit is not"
        if not move.reason:
            yield "a move without a reason"
        after[move.unit] = move.target
    if {unit: node for unit, node in after.items() if unit in placed} != proposal.assignment:
        yield "the moves do not lead to the assignment"
    for unit, node in proposal.assignment.items():
        request = facts[unit].pinned_to
        there = {one.node for name, one in ready.items() if name not in facts[unit].unknown_to}
        if request in there and ready.get(node, case.nodes[0]).node != request:
            yield "a wish is not followed"
    free = [
        move
        for move in proposal.moves
        if move.source in ready
        and move.source not in facts[move.unit].unknown_to
        and "operator" not in move.reason
    ]
    for move in free:
        moved = facts[move.unit].moved_seconds_ago
        if moved is not None and moved < rules.rest_seconds:
            yield "a unit that rests was moved"
        leaves = ready[str(move.source)].on_demand and not ready[move.target].on_demand
        if leaves and facts[move.unit].heavy:
            yield "a heavy unit left On-Demand for Spot"
    if len(free) > max(rules.most_moves, rules.most_share * len(facts)):
        yield "too many moves"


@given(cases())
def test_every_proposal_is_sound(case: Case) -> None:
    assert list(faults(case, case.proposal())) == []


@given(cases())
def test_only_what_must_move_moves_when_nothing_else_may(case: Case) -> None:
    ready = {node.incarnation for node in case.nodes if node.state == "ready"}

    moves = case.proposal(PlacementRules(most_moves=0, most_share=0.0)).moves

    assert all(
        move.source not in ready or "operator" in move.reason or "not know" in move.reason
        for move in moves
    )


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_matter(case: Case, random: object) -> None:
    nodes, units = [*case.nodes], [*case.units]
    random.shuffle(nodes)  # type: ignore[attr-defined]
    random.shuffle(units)  # type: ignore[attr-defined]

    assert propose(nodes, units, case.current, RULES) == case.proposal()


@given(cases())
@settings(max_examples=200)
def test_moves_come_to_an_end_when_nothing_changes(case: Case) -> None:
    """No unit is passed around: rounds later, with every unit rested, nothing moves."""
    rested = [replace(unit, moved_seconds_ago=None) for unit in case.units]
    now = replace(case, units=rested)
    for _ in range(12):
        proposal = now.proposal()
        now = replace(now, current=proposal.assignment)
        if not proposal.moves:
            break

    assert now.proposal().moves == ()


SOUND = Case(
    [PlacementNode("a.1", "a"), PlacementNode("b.1", "b", "draining"), PlacementNode("c.1", "c")],
    [
        PlacementUnit(JobKey("t", "0"), 1.0, moved_seconds_ago=10.0),
        PlacementUnit(JobKey("t", "1"), 1.0, pinned_to="c"),
    ],
    {JobKey("t", "0"): "a.1", JobKey("t", "1"): "c.1"},
)
FIRST, SECOND = SOUND.current


def planted(moves: Sequence[Move], assignment: Mapping[JobKey, str]) -> PlacementProposal:
    return PlacementProposal({**SOUND.current, **assignment}, tuple(moves))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (PlacementProposal({FIRST: "a.1"}, ()), "not every unit has a node"),
        (
            planted([Move(SECOND, "c.1", "b.1", "why not")], {SECOND: "b.1"}),
            "a unit is on a node that is not ready",
        ),
        (planted([Move(SECOND, "c.1", "a.1", "")], {SECOND: "a.1"}), "a move without a reason"),
        (planted([], {SECOND: "a.1"}), "the moves do not lead to the assignment"),
        (planted([Move(FIRST, "a.1", "c.1", "x")], {FIRST: "c.1"}), "a unit that rests was moved"),
        (planted([Move(SECOND, "c.1", "a.1", "x")], {SECOND: "a.1"}), "a wish is not followed"),
        (planted([Move(FIRST, "c.1", "a.1", "x")], {}), "a move from where the unit is not"),
    ],
)
def test_a_planted_fault_is_seen(wrong: PlacementProposal, said: str) -> None:
    assert list(faults(SOUND, SOUND.proposal())) == []
    assert said in list(faults(SOUND, wrong))


def test_a_unit_where_it_is_not_known_is_seen() -> None:
    units = [replace(SOUND.units[0], unknown_to=frozenset({"a.1"})), SOUND.units[1]]

    wrong = list(faults(replace(SOUND, units=units), planted([], {})))

    assert wrong == ["a unit is on a node that does not know it"]


def test_too_many_moves_are_seen() -> None:
    units = [PlacementUnit(JobKey("t", str(number))) for number in range(9)]
    case = Case(SOUND.nodes, units, {unit.unit: "a.1" for unit in units})
    moves = [Move(unit.unit, "a.1", "c.1", "x") for unit in units]

    wrong = PlacementProposal({unit.unit: "c.1" for unit in units}, tuple(moves))

    assert list(faults(case, wrong)) == ["too many moves"]
