"""Who gets which unit, and why: what must move, what may, what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

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


def unit(name: str, load: float = 1.0, **facts: object) -> PlacementUnit:
    return PlacementUnit(JobKey("orders", name), load, **facts)  # type: ignore[arg-type]


def units(count: int, load: float = 1.0) -> list[PlacementUnit]:
    return [unit(f"{number:03}", load) for number in range(count)]


def nodes(*names: str) -> list[PlacementNode]:
    """Ready nodes whose process is called as the node with `.1`."""
    return [PlacementNode(f"{name}.1", name) for name in names]


def on(node: str, some: Sequence[PlacementUnit]) -> dict[JobKey, str]:
    return {each.unit: f"{node}.1" for each in some}


def counts(proposal: PlacementProposal) -> dict[str, int]:
    held = list(proposal.assignment.values())
    return {node: held.count(node) for node in sorted(set(held))}


def test_the_first_placement_levels_the_load() -> None:
    large, small = unit("large", 6.0), units(6)

    proposal = propose(nodes("a", "b"), [large, *small], {}, RULES)

    assert counts(proposal) == {"a.1": 1, "b.1": 6}
    assert {move.reason for move in proposal.moves} == {"no node had it"}


def test_units_of_dead_and_draining_nodes_move_at_once_and_no_others() -> None:
    had = units(30)
    current = on("a", had[:10]) | on("b", had[10:20]) | on("c", had[20:])
    draining = PlacementNode("b.1", "b", "draining")

    proposal = propose([*nodes("a", "d"), draining], had, current, PlacementRules(most_moves=0))

    reasons = {(move.source, move.reason) for move in proposal.moves}
    assert reasons == {("b.1", "b drains"), ("c.1", "c.1 is gone")}
    assert len(proposal.moves) == 20
    assert counts(proposal) == {"a.1": 15, "d.1": 15}


def test_a_unit_that_just_moved_is_placed_again_when_its_node_dies() -> None:
    tired = unit("x", moved_seconds_ago=1.0)

    proposal = propose(nodes("a"), [tired], {tired.unit: "b.1"}, RULES)

    assert proposal.moves == (Move(tired.unit, "b.1", "a.1", "b.1 is gone"),)


def test_without_a_ready_node_nobody_has_anything() -> None:
    some = units(3)

    assert propose([], some, on("a", some), RULES) == PlacementProposal({}, ())
    draining = PlacementNode("a.1", "a", "draining")
    assert propose([draining], some, on("a", some), RULES) == PlacementProposal({}, ())


def test_what_is_no_longer_wanted_leaves_without_a_move() -> None:
    kept, gone = unit("kept"), unit("gone")

    proposal = propose(nodes("a"), [kept], on("a", [kept, gone]), RULES)

    assert proposal == PlacementProposal({kept.unit: "a.1"}, ())


def test_moves_begin_late_and_then_go_on_until_the_band() -> None:
    some = units(60)
    current = on("a", some[:23]) | on("b", some[23:46]) | on("c", some[46:61])

    eager = propose(nodes("a", "b", "c"), some, current, PlacementRules(start=0.14, gap=0.5))
    assert {move.source for move in eager.moves} == {"a.1", "b.1"}
    assert propose(nodes("a", "b", "c"), some, current, PlacementRules(gap=0.5)).moves == ()


def test_an_overloaded_node_gives_most_of_its_excess_and_says_why() -> None:
    some = units(40)
    current = on("a", some[:30]) | on("b", some[30:])

    proposal = propose(nodes("a", "b"), some, current, PlacementRules(most_moves=100))

    assert counts(proposal) == {"a.1": 22, "b.1": 18}
    assert proposal.moves[0].reason == "a has 1.50 of the mean load, b 0.50"


@pytest.mark.parametrize(
    "rules",
    [PlacementRules(most_moves=3, most_share=0.0), PlacementRules(most_moves=0, most_share=0.075)],
)
def test_a_round_has_so_many_moves_or_such_a_share(rules: PlacementRules) -> None:
    some = units(40)
    current = on("a", some[:30]) | on("b", some[30:])

    assert len(propose(nodes("a", "b"), some, current, rules).moves) == 3


def test_moves_of_this_minute_count_as_those_of_the_round() -> None:
    rested = units(40)
    moved = [unit(f"moved-{number}", moved_seconds_ago=20.0) for number in range(4)]
    current = on("a", rested[:30]) | on("b", [*rested[30:], *moved])

    proposal = propose(nodes("a", "b"), [*rested, *moved], current, RULES)

    assert len(proposal.moves) == RULES.most_moves - 4


def test_a_unit_rests_after_a_move() -> None:
    tired = [unit(str(number), moved_seconds_ago=299.0) for number in range(20)]
    fresh = [unit(str(number), moved_seconds_ago=300.0) for number in range(20)]

    assert propose(nodes("a", "b"), tired, on("a", tired), RULES).moves == ()
    assert len(propose(nodes("a", "b"), fresh, on("a", fresh), RULES).moves) == 6


def test_a_unit_larger_than_the_mean_is_not_passed_around() -> None:
    large, small = unit("large", 50.0), units(4)
    current = on("a", [large, *small])

    proposal = propose(nodes("a", "b"), [large, *small], current, RULES)

    assert large.unit not in {move.unit for move in proposal.moves}
    settled = propose(nodes("a", "b"), [large, *small], proposal.assignment, RULES)
    assert settled.moves == ()


def test_two_large_units_of_one_node_are_parted() -> None:
    first, second = unit("1", 50.0), unit("2", 50.0)

    proposal = propose(nodes("a", "b"), [first, second], on("a", [first, second]), RULES)

    assert counts(proposal) == {"a.1": 1, "b.1": 1}


def test_a_node_that_has_just_come_is_filled_gradually() -> None:
    some = units(40)
    current = on("a", some)

    def filled(age: float) -> int:
        fleet = [*nodes("a"), PlacementNode("b.1", "b", age_seconds=age)]
        return len(propose(fleet, some, current, PlacementRules(most_moves=100)).moves)

    assert [filled(age) for age in (0.0, 60.0, 120.0)] == [0, 8, 16]


def test_an_empty_node_gets_something_though_nobody_is_far_above_the_mean() -> None:
    some = units(190)
    names = [f"n{number:02}" for number in range(20)]
    current = {each.unit: f"n{at % 19:02}.1" for at, each in enumerate(some)}

    proposal = propose(nodes(*names), some, current, RULES)

    assert {move.target for move in proposal.moves} == {"n19.1"}
    assert len(proposal.moves) == 8


def test_a_larger_node_gets_more() -> None:
    fleet = [PlacementNode("a.1", "a", capacity=4.0), PlacementNode("b.1", "b", capacity=12.0)]

    assert counts(propose(fleet, units(40), {}, RULES)) == {"a.1": 10, "b.1": 30}


def test_heavy_units_go_to_on_demand_nodes_while_those_have_room() -> None:
    fleet = [*nodes("a"), PlacementNode("b.1", "b", on_demand=True)]
    light = units(8)
    heavy = [unit(f"heavy-{number}", heavy=True) for number in range(6)]

    proposal = propose(fleet, [*light, *heavy], {}, RULES)

    assert {proposal.assignment[each.unit] for each in heavy} == {"b.1"}
    assert counts(proposal) == {"a.1": 7, "b.1": 7}


def test_heavy_units_leave_a_node_last_and_not_for_a_spot_node() -> None:
    heavy = [unit(f"heavy-{number}", heavy=True) for number in range(20)]
    light = units(20)
    lasting = PlacementNode("b.1", "b", on_demand=True)

    from_spot = propose([*nodes("a"), lasting], [*heavy, *light], on("a", [*heavy, *light]), RULES)
    from_lasting = propose([*nodes("a"), lasting], heavy, on("b", heavy), RULES)

    assert not {move.unit for move in from_spot.moves} & {each.unit for each in heavy}
    assert from_lasting.moves == ()


def test_the_request_of_an_operator_is_followed_at_once_and_not_undone() -> None:
    some = units(20)
    request = unit("wish", 30.0, pinned_to="b", moved_seconds_ago=1.0)
    current = on("a", [*some, request])

    proposal = propose(nodes("a", "b"), [*some, request], current, RULES)

    assert proposal.moves[0] == Move(request.unit, "a.1", "b.1", "an operator wants it on b")
    after = propose(nodes("a", "b"), [*some, request], proposal.assignment, RULES)
    assert after.assignment[request.unit] == "b.1"


def test_a_request_for_a_node_that_is_not_ready_holds_nothing_up() -> None:
    request = unit("wish", pinned_to="c")

    assert propose(nodes("a"), [request], {}, RULES).assignment == {request.unit: "a.1"}


def test_a_request_names_the_node_and_follows_its_newest_process() -> None:
    request = unit("wish", pinned_to="a")
    twice = [PlacementNode("a.2", "a", age_seconds=5.0), PlacementNode("a.1", "a")]

    for fleet in (twice, twice[::-1]):
        assert propose(fleet, [request], {request.unit: "a.1"}, RULES).assignment == {
            request.unit: "a.2"
        }


@pytest.mark.parametrize("load", [float("nan"), float("inf"), -1.0, 1e308])
def test_a_nonsense_figure_stops_nothing(load: float) -> None:
    some = [*units(6), unit("nonsense", load)]

    proposal = propose(nodes("a", "b"), some, {}, RULES)

    assert len(proposal.assignment) == 7


def test_where_all_idle_differences_are_not_worth_a_move() -> None:
    some = [*units(10, 0.0001), *(unit(f"some-{number}", 0.0004) for number in range(10))]

    assert (
        propose(nodes("a", "b"), some, on("a", some[:10]) | on("b", some[10:]), RULES).moves == ()
    )


def test_idle_units_are_spread_by_number() -> None:
    assert counts(propose(nodes("a", "b"), units(10, 0.0), {}, RULES)) == {"a.1": 5, "b.1": 5}


def test_loads_are_those_of_the_units_and_moves_are_the_difference() -> None:
    some = units(7)
    current = on("a", some[:5])

    proposal = propose(nodes("a", "b"), some, current, RULES)

    after: Mapping[JobKey, str] = current | {move.unit: move.target for move in proposal.moves}
    assert proposal.assignment == after
