"""Nodes with other configurations than the leader: each unit is where it is known, before long."""

from __future__ import annotations

import json

import pytest

from polynya.cluster.coordination.member_state import CoordinationPace
from polynya.cluster.coordination.store import difference_path, move_path
from polynya.cluster.unit import JobKey
from tests.cluster.coordination.lab import CLUSTER, Lab, Node

NEW = JobKey("t9", "shop.new")
#: Until a difference is told, and then until it is planned and claimed.
SOON = CoordinationPace().learn + 30.0


def led(count: int, wanted: int) -> tuple[Lab, Node, list[Node]]:
    """A cluster at work, its leader, the others."""
    lab = Lab(count, wanted)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.name in lab.leaders())
    return lab, leader, [node for node in lab.nodes if node is not leader]


def told(lab: Lab) -> list[str]:
    return [info.path for info in lab.store.list(f"{CLUSTER}/differences")]


def place_of(node: Node) -> str:
    assert node.member_state is not None
    return f"{CLUSTER}/{difference_path(node.member_state.incarnation)}"


def everywhere(lab: Lab) -> None:
    """All nodes know all units."""
    for node in lab.nodes:
        node.wanted = lab.wanted


def test_units_that_a_node_never_gets_to_know_go_to_one_that_knows_them() -> None:
    lab = Lab(3, wanted=6)
    for node in lab.nodes:
        node.turn()
    ignorant = next(node for node in lab.nodes if node.name not in lab.leaders())
    ignorant.wanted = frozenset()

    lab.passes(SOON)

    assert lab.settled()
    assert ignorant.granted == frozenset()
    reasons = [one.reason for node in lab.nodes for one in node.did("planned")]
    assert f"{ignorant.name} does not know it" in reasons


def test_a_unit_that_the_leader_does_not_know_is_planned_on_a_node_that_does() -> None:
    lab, leader, others = led(3, wanted=4)
    lab.wanted |= {NEW}
    others[0].wanted = lab.wanted

    lab.passes(SOON)

    assert lab.settled()
    assert NEW in others[0].granted
    # It is the leader who plans it, and it says who differs.
    assert lab.leaders() == [leader.name]
    assert leader.member_state is not None
    said = f"POLYNYA-AGT-055: {others[0].name} has another configuration than the leader"
    assert leader.member_state.troubles[0].startswith(said)


def test_a_stale_node_that_comes_to_lead_takes_no_unit_away() -> None:
    lab, leader, (stale, fresh) = led(3, wanted=4)
    lab.wanted |= {NEW}
    leader.wanted = fresh.wanted = lab.wanted
    lab.passes(SOON)
    assert NEW in leader.granted | fresh.granted

    lab.kill(leader)
    lab.nodes.sort(key=lambda node: node is not stale)
    lab.passes(35 + SOON)

    assert lab.leaders() == [stale.name]
    assert NEW in fresh.granted


def test_what_all_nodes_learn_within_a_minute_is_told_by_nobody() -> None:
    lab, leader, others = led(3, wanted=4)
    lab.wanted |= {NEW}

    for node in (leader, *others):
        node.wanted = lab.wanted
        lab.passes(15)

    assert lab.settled()
    assert told(lab) == []


def test_a_difference_is_taken_back_when_there_is_none_any_more() -> None:
    lab, _, others = led(2, wanted=4)
    lab.wanted |= {NEW}
    others[0].wanted = lab.wanted
    lab.passes(SOON)
    assert told(lab) == [place_of(others[0])]
    late = lab.store.get(place_of(others[0]))

    everywhere(lab)
    lab.passes(20)
    assert told(lab) == []

    # A write whose answer was lost is made seconds later.
    lab.store.put(place_of(others[0]), late)
    lab.passes(20)
    assert told(lab) == []


def test_what_changes_while_a_node_differs_is_told_at_once() -> None:
    lab, _, (other,) = led(2, wanted=4)
    other.wanted = lab.wanted | {NEW}
    lab.passes(SOON)

    another = JobKey("t9", "shop.another")
    other.wanted = (lab.wanted - {min(lab.wanted)}) | {another}
    lab.passes(15)

    difference = json.loads(lab.store.get(place_of(other)))
    assert difference["more"] == [list(another)]
    assert difference["less"] == [list(min(lab.wanted))]


@pytest.mark.parametrize("what", ["difference", "wanted"])
@pytest.mark.parametrize("damage", [b"", b"{", b'{"v": 1}'])
def test_what_somebody_destroyed_is_written_again(what: str, damage: bytes) -> None:
    lab, leader, (other,) = led(2, wanted=4)
    other.wanted = lab.wanted | {NEW}
    if what == "difference":
        lab.passes(SOON)
    lab.store.put(place_of(other) if what == "difference" else f"{CLUSTER}/wanted/units", damage)

    lab.passes(SOON)

    assert json.loads(lab.store.get(place_of(other)))["more"] == [list(NEW)]
    assert leader.member_state is not None
    assert len(leader.member_state.troubles) == 1


def test_a_request_for_a_node_that_does_not_know_the_unit_waits() -> None:
    lab, leader, (other,) = led(2, wanted=4)
    unit = min(leader.granted)
    other.wanted = lab.wanted - {unit}
    lab.passes(SOON)
    request = {"to": other.name, "by": "ann", "since": lab.clock.now().isoformat()}
    lab.store.put(f"{CLUSTER}/{move_path(unit)}", json.dumps(request).encode())

    lab.passes(30)
    assert unit in leader.granted

    everywhere(lab)
    lab.passes(60)
    assert unit in other.granted


def test_what_a_process_told_is_deleted_with_its_lease() -> None:
    lab, _, (other,) = led(2, wanted=4)
    other.wanted = lab.wanted | {NEW}
    lab.passes(SOON)
    lab.kill(other)

    lab.passes(4000, turn=10.0)

    assert told(lab) == []


def test_a_leader_of_a_version_that_says_nothing_is_asked_nothing() -> None:
    lab, leader, (other,) = led(2, wanted=4)
    other.wanted = lab.wanted | {NEW}

    def older(kind: str, path: str) -> None:
        if path == f"{CLUSTER}/leader":
            lease = json.loads(lab.store.get(path))
            lab.store.put(path, json.dumps(lease | {"configuration": ""}).encode())

    leader.store.before = other.store.before = older
    lab.passes(SOON)

    assert told(lab) == []
    assert lab.settled()
