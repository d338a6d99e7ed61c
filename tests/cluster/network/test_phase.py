"""The status of a cluster from what its network agent sees of the group."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from polynya.cluster.control.reading import read_cluster
from polynya.cluster.control.status import ClusterState, ClusterStatus, cluster_status
from polynya.cluster.coordination.documents import NodeLease
from polynya.cluster.coordination.store import node_path
from polynya.cluster.network.commands import Phase, phase_of
from polynya.cluster.network.sign_of_life import why_disconnected
from polynya.store.jobs import Bounds, FailedLaunch, GroupFacts, Refresh
from tests.cluster.network.given import CLUSTER, Network

AT = datetime(2026, 1, 1, tzinfo=UTC)
TWO = Bounds(1, 4, 2)
SPOT = FailedLaunch(AT, "no Spot capacity", capacity=True)
IMAGE = FailedLaunch(AT, "no such image", capacity=False)
ROLLING = Refresh("r", "running", "InProgress", 40, AT)
GIVEN_UP = Refresh("r", "failed", "never ready", 40, AT)
NONE = Bounds(0, 0, 0)


@pytest.mark.parametrize(
    ("facts", "phase", "reason"),
    [
        (GroupFacts(TWO, in_service=2), "serving", "2 nodes in service"),
        (GroupFacts(TWO, starting=2), "deploying", "0 of 2 nodes in service, the others"),
        (GroupFacts(TWO, in_service=1, starting=1), "serving", "1 of 2 nodes in service"),
        (GroupFacts(TWO, in_service=2, refresh=ROLLING), "deploying", "its nodes are being"),
        (GroupFacts(TWO, in_service=2, refresh=GIVEN_UP), "serving", "2 nodes"),
        (GroupFacts(TWO, in_service=1, refresh=GIVEN_UP), "deploy-failed", "1 of 2 nodes"),
        (GroupFacts(TWO, in_service=1, failed_launch=SPOT), "pending", "1 of 2 nodes in service;"),
        (GroupFacts(TWO, failed_launch=SPOT), "pending", "0 of 2 nodes in service; AWS has no"),
        (GroupFacts(TWO, failed_launch=IMAGE), "deploy-failed", "0 of 2 nodes in service; the"),
        (GroupFacts(TWO, in_service=1, failed_launch=IMAGE), "short", "1 of 2 nodes in service;"),
        (GroupFacts(Bounds(0, 4, 0)), "empty", "its strategy wants no node now"),
        (GroupFacts(NONE, ending=1, stopped=TWO), "stopping", "1 node hand"),
        (GroupFacts(NONE, stopped=TWO), "stopped", "an operator stopped it"),
        (GroupFacts(TWO, in_service=2, stopped=TWO), "serving", "2 nodes"),
        (GroupFacts(TWO, in_service=2, deleting=True), "deleting", "the group is being deleted"),
    ],
)
def test_a_phase_and_its_reason(facts: GroupFacts, phase: Phase, reason: str) -> None:
    found, why = phase_of(facts)

    assert (found, why[: len(reason)]) == (phase, reason)


def looks(network: Network) -> ClusterStatus:
    reading = read_cluster(network.store, CLUSTER)
    assert reading.network is not None
    agent_trouble = why_disconnected(reading.network, network.clock.now())
    return cluster_status(reading, (), agent_trouble=agent_trouble)


def test_a_cluster_is_stopped_started_and_replaced() -> None:
    network = Network()
    lease = NodeLease(node="n1", incarnation="n1.a", state="ready", since=AT)
    assert network.people.write(node_path("n1.a"), lease, None)
    network.turns()
    assert looks(network).status is ClusterState.RUNNING
    seen = []
    for kind in ("stop", "start", "roll"):
        network.give(kind)
        network.turns()
        assert network.groups.now is not None
        if kind == "stop":
            network.groups.now = replace(network.groups.now, ending=2, in_service=0)
            network.turns()
        seen.append(looks(network).status)
        network.groups.settle()
        network.turns(4)
        seen.append(looks(network).status)

    assert seen == [
        ClusterState.STOPPING, ClusterState.STOPPED, ClusterState.DEPLOYING, ClusterState.RUNNING,
        ClusterState.DEPLOYING, ClusterState.RUNNING,
    ]  # fmt: skip


def test_a_phase_keeps_its_beginning_across_processes() -> None:
    network = Network()
    assert network.groups.now is not None
    network.groups.now = replace(network.groups.now, in_service=0, failed_launch=SPOT)
    network.turns(12)
    network.boot()
    network.turns(12)

    status = looks(network)
    assert (status.status, status.since) == (ClusterState.PENDING_RESOURCES, AT)
    assert status.reason == "0 of 2 nodes in service; AWS has no more: no Spot capacity"


def test_a_network_agent_that_is_not_heard_is_not_believed() -> None:
    network = Network()
    network.give("stop")
    network.turns()
    network.groups.settle()
    network.turns(4)
    assert looks(network).status is ClusterState.STOPPED
    lease = NodeLease(node="n1", incarnation="n1.a", state="ready", since=AT)
    assert network.people.write(node_path("n1.a"), lease, None)
    network.clock.advance(timedelta(minutes=5))

    status = looks(network)
    assert status.status is ClusterState.RUNNING
    assert "the network agent gateway last reported at 2026-01-01" in status.troubles[0]


def test_an_empty_group_is_no_cluster_that_was_cut_off() -> None:
    network = Network(minimum=0, desired=0)
    lease = NodeLease(node="n1", incarnation="n1.a", state="ready", since=AT)
    assert network.people.write(node_path("n1.a"), lease, None)
    network.turns()

    found = cluster_status(read_cluster(network.store, CLUSTER), ["n1.a"])
    assert (found.status, found.reason) == (ClusterState.STOPPED, "its strategy wants no node now")
    unsure = cluster_status(read_cluster(network.store, CLUSTER), ["n1.a"], agent_trouble="gone")
    assert unsure.status is ClusterState.DISCONNECTED
