"""What a person asks of a cluster, and how a person sees it, on objects as the nodes write them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from polynya.cluster.control.reading import clusters_at, known_units, read_cluster
from polynya.cluster.control.requests import Leaving, PendingRequests, Requests, TaskRequests
from polynya.cluster.control.status import ClusterState, ClusterStatus, cluster_status
from polynya.cluster.coordination import store
from polynya.cluster.coordination.documents import (
    LeaderLease,
    NodeLease,
    NodePlan,
    NodeState,
    UnitOwnership,
)
from polynya.cluster.coordination.member_state import MemberState, ObservedNode
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.unit import JobKey
from polynya.model.errors import DependencyError, OperationError
from polynya.testing.fakes import FakeClock, MemoryObjectStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
X, Y = JobKey("a", "shop.x"), JobKey("a/b", "shop.y")
#: When people ask for something here.
ASKED = FakeClock().now()
SINCE = f" since {ASKED:%Y-%m-%d %H:%M:%S} UTC"


class Cluster:
    """The objects of a cluster in memory, and a person."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryObjectStore(), FakeClock()
        self.document_store = DocumentStore(self.store, "shop eu", Random(1))
        self.kim = Requests(self.document_store, "kim", self.clock.now)

    def node(self, name: str, state: NodeState = "ready") -> str:
        lease = NodeLease(node=name, incarnation=f"{name}.aa", state=state, since=NOW)
        assert self.document_store.write(store.node_path(f"{name}.aa"), lease, None)
        return f"{name}.aa"

    def owns(self, unit: JobKey, owner: str | None, epoch: int = 1) -> None:
        node = owner.partition(".")[0] if owner is not None else None
        one = UnitOwnership(owner=owner, node=node, epoch=epoch, since=NOW, reason="nobody had it")
        assert self.document_store.write(store.unit_path(unit), one, None)

    def plans(self, incarnation: str, *units: JobKey) -> None:
        named = tuple((unit.task, unit.name, "balance") for unit in units)
        plan = NodePlan(term=1, number=1, units=named)
        assert self.document_store.write(store.plan_path(incarnation), plan, None)

    def looks(self, *silent: str) -> ClusterStatus:
        return cluster_status(read_cluster(self.store, "shop eu"), silent)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    """Two nodes with a unit each; the first leads."""
    first, second = cluster.node("n1"), cluster.node("n2")
    cluster.owns(X, first, 3)
    cluster.owns(Y, second)
    cluster.plans(first, X)
    cluster.plans(second, Y)
    leader = LeaderLease(node="n1", incarnation=first, term=1)
    assert cluster.document_store.write(store.LEADER, leader, None)
    return cluster


def test_requests_are_objects_that_go_when_they_are_withdrawn(cluster: Cluster) -> None:
    kim = cluster.kim
    kim.drain("n/1", "kernel")
    kim.move(Y, "n2", "")
    kim.freeze("audit")
    kim.stop("a", "month end")

    found = read_cluster(cluster.store, "shop eu")
    assert (found.drains["n/1"].by, found.drains["n/1"].reason) == ("kim", "kernel")
    assert found.moves[Y].to == "n2"
    assert found.freeze is not None
    assert found.tasks["a"].state == "stopped"
    assert [kim.undrain("n/1"), kim.unmove(Y), kim.unfreeze(), kim.start("a")] == [True] * 4
    assert cluster.store.objects == {}
    assert [kim.undrain("n/1"), kim.unmove(Y), kim.unfreeze(), kim.start("a")] == [False] * 4


def test_a_request_again_replaces_it_and_keeps_what_a_newer_version_put_there(
    cluster: Cluster,
) -> None:
    cluster.kim.drain("n1", "kernel")
    (path,) = cluster.store.objects
    document = json.loads(cluster.store.get(path)) | {"hurry": True}
    cluster.store.put(path, json.dumps(document).encode())

    cluster.kim.drain("n1", "disk")

    written = json.loads(cluster.store.get(path))
    assert (written["reason"], written["hurry"]) == ("disk", True)
    assert written["nonce"] != document["nonce"]


def test_a_request_of_a_newer_major_version_is_left_alone(cluster: Cluster) -> None:
    path = "shop%20eu/freeze"
    cluster.store.put(path, b'{"v": 2, "until": "tomorrow"}')

    with pytest.raises(OperationError) as caught:
        cluster.kim.freeze("audit")

    assert caught.value.code == "POLYNYA-AGT-012"
    assert cluster.store.get(path) == b'{"v": 2, "until": "tomorrow"}'
    assert len(cluster.looks().troubles) == 1


def test_stopped_tasks_are_looked_up_every_ten_seconds_and_read_once(cluster: Cluster) -> None:
    stopped = TaskRequests(cluster.document_store, cluster.clock)
    assert stopped() == PendingRequests()
    cluster.kim.stop("a/b", "month end")
    cluster.kim.stop("c", "")
    assert stopped() == PendingRequests()
    cluster.clock.advance(timedelta(seconds=10))

    assert stopped().stopped == {"a/b": "stopped by kim: month end", "c": "stopped by kim"}
    cluster.kim.start("c")
    cluster.kim.resume("d", "fixed")
    cluster.clock.advance(timedelta(seconds=10))
    assert stopped().stopped == {"a/b": "stopped by kim: month end"}
    assert stopped().resumed.keys() == {"d"}


def test_what_was_stopped_stays_so_while_the_store_does_not_answer(cluster: Cluster) -> None:
    stopped = TaskRequests(cluster.document_store, cluster.clock)
    cluster.kim.stop("a", "month end")
    assert stopped().stopped == {"a": "stopped by kim: month end"}

    def fails(_prefix: str = "") -> object:
        raise DependencyError("POLYNYA-AWS-003", "no answer")

    cluster.store.list = fails  # type: ignore[assignment,method-assign]
    cluster.clock.advance(timedelta(seconds=60))

    assert stopped().stopped == {"a": "stopped by kim: month end"}


def test_a_node_that_should_be_left_asks_for_its_drain_when_there_is_an_heir(
    cluster: Cluster,
) -> None:
    aws = Requests(cluster.document_store, "AWS", cluster.clock.now)
    leaving = Leaving(aws, "n1")
    alone = MemberState("n1.aa", nodes={"n1.aa": ObservedNode("n1.aa", "n1", "ready", False, 0.0)})
    heir = ObservedNode("n2.bb", "n2", "ready", dead=False, silent_seconds=0.0)
    leaving.prefer("rebalance recommendation")

    leaving(alone)
    leaving(replace(alone, nodes={**alone.nodes, "n2.bb": replace(heir, drained_by="kim")}))
    leaving(replace(alone, nodes={**alone.nodes, "n2.bb": replace(heir, dead=True)}))
    assert cluster.store.objects == {}
    leaving(replace(alone, nodes={**alone.nodes, "n2.bb": heir}))

    assert read_cluster(cluster.store, "shop eu").drains["n1"].by == "AWS"
    Leaving(aws, "n1")(alone)
    assert read_cluster(cluster.store, "shop eu").drains == {}


def test_a_node_that_comes_back_keeps_the_request_of_an_operator(cluster: Cluster) -> None:
    cluster.kim.drain("n1", "kernel")

    Leaving(Requests(cluster.document_store, "AWS", cluster.clock.now), "n1")(MemberState("n1.aa"))

    assert read_cluster(cluster.store, "shop eu").drains["n1"].by == "kim"


def test_a_cluster_runs_while_each_unit_has_a_node_that_lives(running: Cluster) -> None:
    found = running.looks()

    assert (found.status, found.reason) == (ClusterState.RUNNING, "2 nodes, 2 units")
    assert found.leader == "n1"
    assert [(one.node, one.state, one.units, one.leads) for one in found.nodes] == [
        ("n1", "ready", 1, True),
        ("n2", "ready", 1, False),
    ]
    assert [(one.name, one.state, one.node, one.epoch) for one in found.units] == [
        ("shop.x", "owned", "n1", 3),
        ("shop.y", "owned", "n2", 1),
    ]
    assert clusters_at(running.store) == ["shop eu"]
    assert known_units(read_cluster(running.store, "shop eu")) == [X, Y]


def test_units_of_a_silent_node_have_nobody(running: Cluster) -> None:
    found = running.looks("n1.aa")

    assert (found.status, found.reason) == (ClusterState.UNDER_PROVISIONED, "no node has shop.x")
    assert found.leader is None
    assert [one.state for one in found.nodes] == ["silent", "ready"]


def test_a_cluster_without_a_lease_that_is_renewed_is_disconnected(running: Cluster) -> None:
    found = running.looks("n1.aa", "n2.aa")

    assert found.status is ClusterState.DISCONNECTED
    assert found.reason == "no lease is renewed; last had one: n1, n2"


def test_a_cluster_whose_nodes_have_left_is_stopped(cluster: Cluster) -> None:
    assert cluster.looks().reason == "no node ever came"
    cluster.node("n1", "gone")
    cluster.owns(X, None)

    found = cluster.looks()

    assert (found.status, found.reason) == (ClusterState.STOPPED, "all nodes have left")
    assert found.units == []


def test_a_cluster_whose_nodes_all_drain_needs_another_node(running: Cluster) -> None:
    running.kim.drain("n1", "kernel")
    running.kim.drain("n2", "")

    found = running.looks()

    assert found.status is ClusterState.UNDER_PROVISIONED
    assert found.reason == "no node is ready: all of them drain"
    assert [one.reason for one in found.nodes] == [
        f"drained by kim{SINCE}: kernel",
        f"drained by kim{SINCE}",
    ]


def test_a_unit_says_where_it_goes_and_a_stopped_one_why(running: Cluster) -> None:
    third = running.node("n3")
    plan = running.document_store.read(NodePlan, store.plan_path("n1.aa"))
    assert plan is not None
    assert running.document_store.delete(store.plan_path("n1.aa"), plan.version)
    running.plans(third, X)
    running.kim.stop(Y.task, "month end")

    x, y = running.looks().units

    assert (x.state, x.node, x.reason) == ("moving", "n1", "to n3: balance")
    assert (y.state, y.reason) == ("stopped", f"stopped by kim{SINCE}: month end")
    assert (x.since, y.since) == (NOW, ASKED)


def test_a_unit_says_where_somebody_wants_it(running: Cluster) -> None:
    assert [one.place for one in running.looks().units] == [None, None]
    running.kim.move(X, "n7", "more memory")

    x, y = running.looks().units
    assert x.place == f"to be on n7, asked by kim{SINCE}: more memory"
    assert (x.state, y.place) == ("owned", None)


def test_a_freeze_says_who_asked_for_it_since_when_and_why(running: Cluster) -> None:
    assert running.looks().frozen is None
    running.kim.freeze("audit")

    assert running.looks().frozen == f"kim{SINCE}: audit"
    running.kim.freeze("")
    assert running.looks().frozen == f"kim{SINCE}"


def test_a_damaged_object_is_named_and_hides_no_other(running: Cluster) -> None:
    running.store.put("shop%20eu/drains/n1", b"\xff not json")
    running.store.put("shop%20eu/units/strange", b"{}")

    found = running.looks()

    assert found.status is ClusterState.RUNNING
    assert any("drains/n1" in text for text in found.troubles)
