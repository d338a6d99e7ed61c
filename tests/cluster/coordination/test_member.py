"""Members of a cluster that share units: who has what after nodes come, go, drain and die."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.cluster.control.reading import read_cluster
from polynya.cluster.coordination.documents import DrainRequest, Freeze, MoveRequest
from polynya.cluster.coordination.store import drain_path, move_path
from polynya.model.errors import ConflictError
from tests.cluster.coordination.lab import CLUSTER, Lab


def drain(lab: Lab, node: str) -> None:
    """A person wants a node to have nothing."""
    request = DrainRequest(by="ann", reason="disk", since=lab.clock.now())
    lab.store.put(f"{CLUSTER}/{drain_path(node)}", request.encoded())


def test_units_are_shared_and_each_is_granted_once() -> None:
    lab = Lab(3, wanted=9)

    lab.passes(60)

    assert lab.settled()
    assert sorted(len(node.granted) for node in lab.nodes) == [3, 3, 3]
    assert len(lab.leaders()) == 1


def test_one_node_has_everything_after_its_second_turn() -> None:
    lab = Lab(1, wanted=5)

    lab.passes(10)

    assert lab.settled()
    assert {lab.record(unit)["epoch"] for unit in lab.wanted} == {1}


def test_a_leader_lists_the_store_twice_in_a_turn_whatever_the_number_of_units() -> None:
    lab = Lab(2, wanted=3000)
    lab.passes(60)
    (leader,) = (node for node in lab.nodes if node.name in lab.leaders())
    leader.store.requests.clear()

    leader.turn()

    assert leader.store.requests["list"] == 2
    assert leader.member_state is not None
    assert len(leader.member_state.nodes) == 2


def test_busy_units_are_spread_by_what_was_measured_of_them() -> None:
    lab = Lab(2, wanted=12)
    lab.passes(60)
    busy = lab.nodes[0].granted
    for node in lab.nodes:
        node.loads = dict.fromkeys(busy, 0.5)

    lab.passes(600)

    # What nobody measured is taken for as busy as the rest, so there is no cause to move anything.
    assert lab.nodes[0].granted == busy
    for node in lab.nodes:
        node.loads = {unit: 0.5 if unit in busy else 0.001 for unit in lab.wanted}
    lab.passes(900)
    assert len(lab.nodes[0].granted & busy) == 3
    assert lab.settled()


def test_a_node_is_no_member_before_its_first_configuration() -> None:
    lab = Lab(1)
    lab.nodes[0].wanted = None

    member_state = lab.nodes[0].turn()

    assert member_state.state is None
    assert not lab.nodes[0].store.requests


def test_the_units_of_a_node_that_was_killed_are_taken_within_two_leases() -> None:
    lab = Lab(3, wanted=9)
    lab.passes(60)
    victim = lab.nodes[0]
    had = victim.granted

    lab.kill(victim)
    lab.passes(60)

    assert had
    assert lab.settled()
    assert all(lab.record(unit)["epoch"] == 2 for unit in had)
    assert all(lab.record(unit)["epoch"] == 1 for unit in lab.wanted - had)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_when_a_leader_dies_another_node_follows(victim: int) -> None:
    lab = Lab(3, wanted=6)
    lab.passes(60)

    lab.kill(lab.nodes[victim])
    lab.passes(60)

    assert lab.settled()
    assert len(lab.leaders()) == 1


def test_a_node_that_drains_leaves_at_once_and_nobody_waits_for_its_lease() -> None:
    lab = Lab(3, wanted=9)
    lab.passes(60)
    leaver = next(node for node in lab.nodes if node.name in lab.leaders())

    leaver.draining = True
    lab.passes(15, turn=1.0)

    assert leaver.member_state is not None
    assert leaver.member_state.left
    assert not leaver.jobs
    leases = read_cluster(lab.store, CLUSTER).leases.values()
    left = {one.node: one.leaving for one in leases if one.state == "gone"}
    assert left == {leaver.name: "Spot interruption notice"}
    lab.kill(leaver)
    assert lab.settled()


def test_a_unit_is_claimed_only_after_its_owner_stopped_its_job() -> None:
    lab = Lab(1, wanted=4)
    lab.passes(30)
    first = lab.nodes[0]
    first.stubborn = True
    lab.add("n1")
    drain(lab, "n0")

    lab.passes(60)
    waiting = lab.nodes[1].member_state
    assert waiting is not None
    assert not lab.nodes[1].granted
    assert set(waiting.waiting.values()) == {"n0 still has it"}

    first.stubborn = False
    lab.passes(15)
    assert lab.settled()
    assert lab.nodes[1].granted == lab.wanted


def test_an_owner_that_never_releases_is_passed_over_after_the_hand_off_deadline() -> None:
    lab = Lab(1, wanted=4)
    lab.passes(30)
    lab.nodes[0].stubborn = True
    lab.add("n1")
    drain(lab, "n0")

    lab.passes(130)

    assert lab.nodes[1].granted == lab.wanted
    taken = lab.nodes[1].did("claimed")
    assert {one.reason for one in taken} == {"n0 did not release it within 90 s"}
    assert lab.settled()
    assert {one.reason for one in lab.nodes[0].did("lost")} == {"n1 has it in epoch 2"}


def test_a_node_that_stood_still_trusts_nothing_until_it_has_looked_again() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    sleeper, other = lab.nodes
    had = sleeper.granted
    lab.nodes = [other]
    lab.passes(80)
    assert other.granted == lab.wanted

    assert not sleeper.granted
    lab.nodes = [sleeper, other]
    member_state = sleeper.turn()

    assert not member_state.grants
    assert {one.unit for one in sleeper.did("lost")} == had
    lab.passes(400)
    assert lab.settled()
    assert len(sleeper.granted) == 2


def test_a_node_that_stood_still_for_less_keeps_its_units_and_epochs() -> None:
    lab = Lab(1, wanted=4)
    lab.passes(30)

    lab.clock.advance(timedelta(hours=2))
    member_state = lab.nodes[0].turn()

    assert member_state.grants == dict.fromkeys(lab.wanted, 1)


def test_a_restarted_node_marks_its_earlier_process_gone_and_has_its_units_at_once() -> None:
    lab = Lab(1, wanted=4)
    lab.passes(30)
    lab.kill(lab.nodes[0])

    lab.add("n0")
    lab.passes(10)

    assert lab.settled()
    assert {lab.record(unit)["epoch"] for unit in lab.wanted} == {2}
    assert {one.reason for one in lab.nodes[0].did("claimed")} == {"n0 left"}


def test_of_two_agents_with_one_node_id_the_first_ends_with_an_error() -> None:
    lab = Lab(1, wanted=4)
    lab.passes(30)
    first = lab.nodes[0]
    lab.add("n0").turn()
    lab.clock.advance(timedelta(seconds=10))

    with pytest.raises(ConflictError) as caught:
        first.turn()

    assert caught.value.code == "POLYNYA-AGT-011"


def test_while_it_is_frozen_nothing_moves_and_work_continues() -> None:
    lab = Lab(3, wanted=9)
    lab.passes(60)
    before = lab.owners()
    freeze = Freeze(by="ann", reason="incident", since=lab.clock.now())
    lab.store.put(f"{CLUSTER}/freeze", freeze.encoded())

    lab.passes(10)
    lab.add("n3")
    victim = lab.nodes[0]
    lab.kill(victim)
    lab.passes(120)

    left = {unit: names for unit, names in before.items() if names != [victim.name]}
    assert {unit: names for unit, names in lab.owners().items() if names} == left
    assert lab.nodes[0].member_state is not None
    assert lab.nodes[0].member_state.frozen is not None
    assert lab.nodes[0].member_state.frozen.by == "ann"

    lab.store.delete(f"{CLUSTER}/freeze")
    lab.passes(60)
    assert lab.settled()


def test_a_frozen_node_can_still_leave() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    freeze = Freeze(by="ann", since=lab.clock.now())
    lab.store.put(f"{CLUSTER}/freeze", freeze.encoded())
    leaver = lab.nodes[0]

    leaver.draining = True
    lab.passes(20)
    assert leaver.member_state is not None
    assert leaver.member_state.left
    lab.kill(leaver)
    lab.store.delete(f"{CLUSTER}/freeze")
    lab.passes(20)

    assert lab.settled()


def test_an_operator_drains_a_node_and_gives_it_back() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    drain(lab, "n0")

    lab.passes(30)
    assert lab.nodes[1].granted == lab.wanted
    leader = next(node for node in lab.nodes if node.name in lab.leaders())
    assert leader.member_state is not None
    assert [one.drained_by for one in leader.member_state.nodes.values()].count("ann") == 1

    lab.store.delete(f"{CLUSTER}/{drain_path('n0')}")
    lab.passes(600)
    assert lab.settled()
    assert len(lab.nodes[0].granted) == 2


def test_an_operator_moves_a_unit() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    unit = min(lab.nodes[0].granted)
    request = MoveRequest(to="n1", by="ann", since=lab.clock.now())
    lab.store.put(f"{CLUSTER}/{move_path(unit)}", request.encoded())

    lab.passes(30)

    assert unit in lab.nodes[1].granted
    assert lab.record(unit)["epoch"] == 2
