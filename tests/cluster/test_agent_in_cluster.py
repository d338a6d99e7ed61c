"""The agent of a node that shares, turn by turn: what it starts, and how it leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from polynya.cluster.agent import AgentEnd
from polynya.cluster.control.requests import PendingRequests
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.gossip.messages import Picture
from polynya.cluster.membership import ClusterMembership
from polynya.cluster.messages import DrainRequested, MembershipEnded, TurnTaken
from polynya.cluster.report import is_healthy, summary
from polynya.cluster.unit import JobKey
from polynya.model.errors import ConflictError
from tests.cluster.fakes import GOOD, PROJECT, snapshot, task
from tests.cluster.test_agent import Node
from tests.cluster.test_membership import FakePeers

A, B = JobKey("a", "shop.a"), JobKey("b", "shop.b")
READY = MemberState("n1.aa", state="ready", grants={A: 7}, grants_until=1e9)


class SharingNode(Node):
    """A node of a cluster, whose member a test plays."""

    def start(self) -> None:
        super().start()
        self.peers = FakePeers()
        self.membership = ClusterMembership(
            "n1", self.peers, self.told.append, self.clock.monotonic
        )
        self.agent._ports = replace(self.agent._ports, join=lambda _project: self.membership)

    def hears(self, member_state: MemberState) -> AgentEnd | None:
        self.inbox.put(TurnTaken(member_state, PendingRequests(), Picture()))
        return self.turns()


@pytest.fixture
def node(tmp_path: Path) -> SharingNode:
    node = SharingNode(tmp_path)
    node.turns()
    node.turns()
    return node


def test_a_node_joins_when_it_can_work_and_starts_what_it_is_granted(node: SharingNode) -> None:
    assert node.signs == ["ready"]
    assert node.running() == []
    assert node.peers.seen.wanted == {A, B}

    node.hears(READY)

    assert node.running() == ["shop.a"]
    assert [run.epoch for run in node.workers.runs] == [7]
    assert node.peers.seen.working == {A}
    assert summary(node.report) == "1 running, 1 elsewhere"
    assert is_healthy(node.report)
    assert node.report["sharing"]["incarnation"] == "n1.aa"


def test_a_drain_ends_when_the_units_are_handed_over(node: SharingNode) -> None:
    node.hears(READY)
    node.inbox.put(DrainRequested("SIGTERM"))
    node.turns()
    assert (node.peers.seen.draining, node.peers.seen.leaving) == (True, "SIGTERM")
    node.end_all()

    assert node.turns() is None
    assert node.peers.seen.working == frozenset()
    assert node.hears(replace(READY, grants={}, left=True)) is AgentEnd.DRAINED


def test_who_cannot_hand_over_in_time_ends_all_the_same(node: SharingNode) -> None:
    node.hears(READY)
    node.inbox.put(DrainRequested("SIGTERM"))
    node.end_all()
    assert node.turns() is None

    assert node.turns(90.0) is AgentEnd.DRAINED


def test_a_spot_notice_shortens_the_deadline_and_nothing_lengthens_it(node: SharingNode) -> None:
    node.hears(READY)
    node.inbox.put(DrainRequested("Spot interruption notice", 50.0))
    node.turns()
    node.inbox.put(DrainRequested("SIGTERM"))
    assert node.turns(49.0) is None

    assert node.turns(1.0) is AgentEnd.CUT_OFF
    assert node.told[-1].as_json()["reason"] == "Spot interruption notice"


def test_a_member_that_cannot_go_on_ends_the_agent_with_its_error(node: SharingNode) -> None:
    node.hears(READY)
    node.inbox.put(MembershipEnded(ConflictError("POLYNYA-AGT-011", "another agent")))
    node.inbox.put(DrainRequested("so that run() ends"))
    node.turns()
    node.end_all()

    with pytest.raises(ConflictError) as caught:
        node.agent.run()

    assert caught.value.code == "POLYNYA-AGT-011"
    assert node.running() == []


def test_a_node_knows_which_objects_are_for_the_tasks_of_its_cluster(tmp_path: Path) -> None:
    node = SharingNode(tmp_path)
    on_s3 = {"polynya.yml": PROJECT.replace("landing: landing", "landing: 's3://land/raw'")}
    others = task("c").replace("kind: storage", "kind: storage\ncluster: theirs")
    node.source = snapshot(GOOD | on_s3 | {"tasks/c.yml": others})
    node.turns()
    node.turns()
    found = node.peers.landing

    assert found is not None
    assert (found.bucket, found.prefixes) == ("land", ("raw/a/", "raw/b/"))

    node.edits(on_s3 | {"tasks/d.yml": task("d")})

    assert node.peers.landing is not None
    assert node.peers.landing.prefixes == ("raw/a/", "raw/b/", "raw/d/")
