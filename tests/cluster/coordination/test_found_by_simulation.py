"""What the simulator (tests/cluster/simulation) found, each as the shortest way to see it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from polynya.cluster.coordination.store import move_path, plan_path, unit_path
from tests.cluster.coordination.lab import CLUSTER, Lab, Node, outage


def plan_of(node: Node) -> str:
    """Where the plan of a node is."""
    assert node.member_state is not None
    return f"{CLUSTER}/{plan_path(node.member_state.incarnation)}"


def test_a_leader_that_joined_after_the_nodes_were_listed_is_not_taken_for_gone() -> None:
    lab = Lab(2, wanted=2)
    first, second = lab.nodes
    second.turn()

    def join_meanwhile(kind: str, path: str) -> None:
        if kind == "read" and path.endswith("/leader"):
            second.store.before = lambda kind, path: None
            lab.store.delete(f"{CLUSTER}/leader")
            first.turn()

    # The second one lists the nodes, the first one joins and leads, the second one looks who leads.
    second.store.before = join_meanwhile
    second.turn()

    assert lab.leaders() == [first.name]


def test_a_process_of_the_same_node_that_could_not_be_marked_gone_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab(1, wanted=2)
    first = lab.nodes[0]
    lab.passes(20)
    twin = lab.add(first.name)
    lease = f"{CLUSTER}/nodes/"
    real = twin.store.put_if_unchanged

    def refused(path: str, data: bytes, version: str) -> bool:
        return not path.startswith(lease) and real(path, data, version)

    monkeypatch.setattr(twin.store, "put_if_unchanged", refused)
    twin.turn()

    assert twin.member_state is not None
    assert not twin.member_state.leading
    assert not twin.granted


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"v": 1}', b"\xff\x00"])
def test_a_plan_that_somebody_destroyed_is_written_again(damage: bytes) -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    lab.kill(lab.nodes[0])
    lab.store.put(plan_of(lab.nodes[0]), damage)

    lab.passes(90)

    assert lab.settled()
    assert json.loads(lab.store.get(plan_of(lab.nodes[0])))["units"]


def test_a_node_whose_plan_is_of_a_newer_version_gets_nothing() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.member_state and node.member_state.leading)
    other = next(node for node in lab.nodes if node is not leader)
    lab.store.put(plan_of(other), b'{"v": 2}')
    lab.kill(other)

    lab.passes(60)

    assert lab.settled()
    assert lab.store.get(plan_of(other)) == b'{"v": 2}'


def test_a_unit_between_two_tries_is_released_after_the_agent_was_told_to_stop_it() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.member_state and node.member_state.leading)
    other = next(node for node in lab.nodes if node is not leader)
    unit = min(leader.granted)
    leader.jobs.discard(unit)
    request = {"to": other.name, "by": "ann", "since": lab.clock.now().isoformat()}
    lab.store.put(f"{CLUSTER}/{move_path(unit)}", json.dumps(request).encode())

    told = leader.turn()
    released_at_once = leader.did("released")
    leader.turn()

    assert told.revoked == {unit}
    assert released_at_once == []
    assert [one.unit for one in leader.did("released")] == [unit]


def test_nothing_moves_while_nobody_knows_whether_the_cluster_is_frozen() -> None:
    lab = Lab(1, wanted=2)
    node = lab.nodes[0]

    def lost(kind: str, path: str) -> None:
        if path.endswith("/freeze"):
            raise outage(path)

    node.store.before = lost
    lab.passes(30)
    moved = list(node.history)
    assert node.member_state is not None
    assert node.member_state.held
    node.store.before = lambda kind, path: None
    lab.passes(10)
    assert not node.member_state.held

    assert moved == []
    assert lab.settled()


def test_a_leader_that_has_not_heard_of_its_successor_leaves_its_plans_alone() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.member_state and node.member_state.leading)
    other = next(node for node in lab.nodes if node is not leader)
    plan = json.loads(lab.store.get(plan_of(other)))
    later = json.dumps({**plan, "term": plan["term"] + 1, "units": []}).encode()
    lab.store.put(plan_of(other), later)

    leader.turn()

    assert lab.store.get(plan_of(other)) == later


@pytest.mark.parametrize("again", [False, True])
def test_a_claim_that_is_made_after_the_unit_was_planned_elsewhere_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
    again: bool,
) -> None:
    lab = Lab(2, wanted=2)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.member_state and node.member_state.leading)
    other = next(node for node in lab.nodes if node is not leader)
    unit = min(leader.granted)
    request = {"to": other.name, "by": "ann", "since": lab.clock.now().isoformat()}
    lab.store.put(f"{CLUSTER}/{move_path(unit)}", json.dumps(request).encode())
    leader.turn()
    leader.turn()
    assert [one.unit for one in leader.did("released")] == [unit]
    unheard: list[tuple[str, bytes, str]] = []
    real = other.store.put_if_unchanged

    def lost(path: str, data: bytes, version: str) -> bool:
        if not path.endswith(unit_path(unit)):
            return real(path, data, version)
        unheard.append((path, data, version))
        raise outage(path)

    # The other node claims it, the answer is lost, and a person wants it where it was.
    monkeypatch.setattr(other.store, "put_if_unchanged", lost)
    other.turn()
    if again:
        # It is made, and the other node claims once more what is its own already.
        assert lab.store.put_if_unchanged(*unheard[0])
        other.turn()
    request["to"] = leader.name
    lab.store.put(f"{CLUSTER}/{move_path(unit)}", json.dumps(request).encode())
    if not again:
        assert lab.store.put_if_unchanged(*unheard[0])
    monkeypatch.undo()
    leader.turn()

    lab.passes(30)

    assert unit in leader.granted
    assert other.did("claimed")[-1].reason == "a claim that got no answer was made"


def test_a_node_that_has_just_begun_need_not_watch_a_dead_one_itself() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.member_state and node.member_state.leading)
    lab.kill(next(node for node in lab.nodes if node is not leader))
    lab.passes(15)
    new = lab.add("n9")

    lab.passes(20)

    assert lab.settled()
    assert new.granted


def test_a_dead_node_that_renews_its_lease_after_the_plan_was_written_is_alive() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.member_state and node.member_state.leading)
    other = next(node for node in lab.nodes if node is not leader)
    lab.kill(other)
    lab.passes(15)
    new = lab.add("n9")
    joined = new.turn()
    while not any(one.node == joined.incarnation for one in leader.did("planned")):
        leader.turn()
        lab.clock.advance(timedelta(seconds=5))

    other.turn()
    new.turn()

    assert new.did("claimed") == []
    assert new.member_state is not None
    assert set(new.member_state.waiting.values()) == {f"{other.name} still has it"}


def test_a_lease_that_is_made_late_is_marked_gone_by_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab(1, wanted=2)
    (node,) = lab.nodes
    unheard: list[tuple[str, bytes]] = []
    real = node.store.put_if_absent

    def lost(path: str, data: bytes) -> bool:
        if "/nodes/" not in path:
            return real(path, data)
        unheard.append((path, data))
        raise outage(path)

    monkeypatch.setattr(node.store, "put_if_absent", lost)
    node.turn()
    monkeypatch.undo()
    lab.passes(20)
    ((late, lease),) = unheard
    assert lab.store.put_if_absent(late, lease)

    lab.passes(20)

    assert json.loads(lab.store.get(late))["state"] == "gone"
    assert node.member_state is not None
    assert node.member_state.troubles == ()
    assert len(node.granted) == 2


def test_a_leader_that_was_restarted_leaves_the_lead_to_one_that_knows_who_is_dead() -> None:
    lab = Lab(3, wanted=6)
    lab.passes(60)
    leader = next(node for node in lab.nodes if node.name in lab.leaders())
    dead, watching = (node for node in lab.nodes if node is not leader)
    lab.kill(dead)
    lab.kill(leader)
    lab.passes(15)
    assert lab.leaders() == []

    lab.add(leader.name)
    lab.passes(10)
    leaders = lab.leaders()
    lab.passes(15)

    assert leaders == [watching.name]
    assert lab.settled()


@pytest.mark.parametrize("others", [0, 1])
def test_a_node_that_has_just_begun_leads_when_nobody_else_does(others: int) -> None:
    lab = Lab(1 + others, wanted=4)
    lab.passes(60)
    for node in list(lab.nodes):
        lab.kill(node)

    again = lab.add("n0")
    first = again.turn()
    lab.passes(20)

    assert first.leading == (others == 0)
    assert lab.leaders() == ["n0"]
