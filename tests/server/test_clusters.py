"""Clusters over the API, on objects as nodes write them, and on the state of an agent. No JVM."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.cluster.control.interruptions import InterruptionLog
from polynya.cluster.control.requests import Requests
from polynya.cluster.coordination import store as paths
from polynya.cluster.coordination.documents import (
    LeaderLease,
    NodeLease,
    NodePlan,
    NodeState,
    UnitOwnership,
)
from polynya.cluster.coordination.member_state import NodeIdentity
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.network.documents import AgentReport, MachinePrice, PriceReport
from polynya.cluster.spot import INTERRUPTION
from polynya.cluster.unit import JobKey
from polynya.server.app import app_of
from polynya.server.clusters import ClusterWatch
from polynya.server.state import ServerState
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.projects import USERS, write_project

ORDERS, USERS_UNIT = JobKey("orders", "shop.orders"), JobKey("users", "shop.users")


class Cluster:
    """A cluster in a folder, as two nodes would write it, and the API that shows it."""

    def __init__(self, root: Path) -> None:
        self.clock = FakeClock()
        folder = root / "coordination"
        folder.mkdir()
        self.documents = DocumentStore(LocalObjectStore(folder), "shop", Random(1))
        self.kim = Requests(self.documents, "kim", self.clock.now)
        self.state = ServerState(write_project(root, users=USERS), None, self.clock)
        environment = {"POLYNYA_COORDINATION": str(folder)}
        self.state.__dict__["clusters"] = ClusterWatch(root, self.clock, environment)
        self.client = TestClient(app_of(self.state), raise_server_exceptions=False)

    def node(
        self,
        name: str,
        state: NodeState = "ready",
        age: float = 0,
        *,
        on_demand: bool = False,
        leaving: str = "",
        machine: str = "m7g.large",
    ) -> str:
        now = self.clock.now()
        lease = NodeLease(
            node=name,
            incarnation=f"{name}.aa",
            state=state,
            on_demand=on_demand,
            since=now - timedelta(hours=1),
            machine=machine,
            zone="eu-1a" if machine else "",
            leaving=leaving,
            renewed_at=now - timedelta(seconds=age),
        )
        assert self.documents.write(paths.node_path(f"{name}.aa"), lease, None)
        return f"{name}.aa"

    def owns(self, unit: JobKey, owner: str) -> None:
        one = UnitOwnership(
            owner=owner, node=owner[:-3], epoch=3, since=self.clock.now(), reason="nobody had it"
        )
        assert self.documents.write(paths.unit_path(unit), one, None)

    def plans(self, incarnation: str, *units: JobKey) -> None:
        named = tuple((unit.task, unit.name, "balance") for unit in units)
        plan = NodePlan(term=1, number=1, units=named)
        assert self.documents.write(paths.plan_path(incarnation), plan, None)

    def asks(self, path: str) -> Any:
        answer = self.client.get(f"/api/v1/clusters{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Two nodes; the unit of the first is to go to the second."""
    cluster = Cluster(tmp_path)
    first, second = cluster.node("n1"), cluster.node("n2", on_demand=True)
    cluster.owns(ORDERS, first)
    cluster.owns(USERS_UNIT, second)
    cluster.plans(first)
    cluster.plans(second, ORDERS, USERS_UNIT)
    leader = LeaderLease(node="n1", incarnation=first, term=1)
    assert cluster.documents.write(paths.LEADER, leader, None)
    return cluster


def test_a_cluster_has_one_status_its_nodes_and_its_units(cluster: Cluster) -> None:
    (shown,) = cluster.asks("")["items"]
    first, second = cluster.asks("/shop/nodes")["items"]
    moving, owned = cluster.asks("/shop/units")["items"]

    assert (shown["name"], shown["status"], shown["seen_by"]) == ("shop", "Running", "coordination")
    assert (shown["nodes"], shown["leader"]) == ({"ready": 2}, "n1")
    assert (shown["units"], shown["tasks"]) == ({"moving": 1, "owned": 1}, ["users"])
    assert [(one["node"], one["market"], one["leads"]) for one in (first, second)] == [
        ("n1", "spot", True),
        ("n2", "on-demand", False),
    ]
    assert (moving["node"], moving["moves_to"], moving["reason"]) == ("n1", "n2", "to n2: balance")
    assert (owned["node"], owned["moves_to"], owned["epoch"]) == ("n2", None, 3)
    assert cluster.asks("/shop/units?state=moving")["total"] == 1
    assert cluster.asks("/shop/units?node=n2")["items"] == [owned]


def test_a_node_that_is_drained_and_one_that_has_left_say_so(cluster: Cluster) -> None:
    cluster.node("n3", "gone", leaving="Spot interruption notice: terminate")
    cluster.kim.drain("n1", "new disk")

    first, _ = cluster.asks("/shop/nodes")["items"]

    assert first["reason"].startswith("drained by kim since")
    gone = cluster.asks("/shop/nodes?gone=true")["items"][-1]
    assert (gone["node"], gone["machine"]) == ("n3", "m7g.large")
    assert gone["leaving"] == "Spot interruption notice: terminate"
    assert gone["reason"] == "it has left: Spot interruption notice: terminate"


def test_a_cluster_tells_its_cost_and_how_often_aws_took_nodes_back(cluster: Cluster) -> None:
    now = cluster.clock.now()
    price = MachinePrice(
        machine="m7g.large",
        zone="eu-1a",
        asked_at=now,
        spot=0.03,
        spot_at=now,
        on_demand=0.08,
        on_demand_at=now,
    )
    report = AgentReport(
        agent="gateway",
        token="a",
        state="connected",
        since=now,
        renewed_at=now,
        prices=PriceReport(machines=(price,)),
    )
    assert cluster.documents.write("network-agent", report, None)
    cluster.node("n3", machine="", on_demand=True)
    cluster.node("n4", "gone")
    InterruptionLog(cluster.documents, NodeIdentity("n4"), cluster.clock.now)(f"{INTERRUPTION}: x")

    shown, nodes = cluster.asks("/shop"), cluster.asks("/shop/nodes")["items"]

    assert shown["cost"] == {"dollars_per_hour": 0.11, "nodes": 3, "unknown": 1}
    assert shown["spot_interruptions"] == {"last_24_hours": 1, "last_30_days": 1}
    assert [one["price"]["dollars_per_hour"] for one in nodes] == [0.03, 0.08, None]
    assert "EC2" in nodes[2]["price"]["unknown"]


def test_a_node_without_a_fresh_lease_is_unclear_and_then_silent(cluster: Cluster) -> None:
    cluster.node("n3", age=300)

    before = cluster.asks("/shop/nodes")["items"][-1]
    cluster.clock.sleep(13)
    after = {one["node"]: one["state"] for one in cluster.asks("/shop/nodes")["items"]}

    assert (before["node"], before["state"]) == ("n3", "unclear")
    assert after["n3"] == "silent"


def test_without_a_place_the_agent_of_the_project_folder_is_the_cluster(tmp_path: Path) -> None:
    clock = FakeClock()
    state = ServerState(write_project(tmp_path, users=USERS), None, clock)
    state.__dict__["clusters"] = ClusterWatch(tmp_path, clock, {})
    client = TestClient(app_of(state))

    (nothing,) = client.get("/api/v1/clusters").json()["items"]
    folder = tmp_path / ".polynya" / "agent"
    folder.mkdir(parents=True)
    job = {"state": "waiting", "reason": "S3 does not answer", "held": False, "epoch": 2}
    report = {
        "node": "laptop", "cluster": "shop", "state": "running", "at": clock.now().isoformat(),
        "started_at": clock.now().isoformat(), "configuration": {"errors": []},
        "tasks": {"users": {"jobs": {"shop.users": job}}},
    }  # fmt: skip
    (folder / "state.json").write_text(json.dumps(report))
    (shown,) = client.get("/api/v1/clusters").json()["items"]
    (node,) = client.get("/api/v1/clusters/shop/nodes").json()["items"]
    (unit,) = client.get("/api/v1/clusters/shop/units").json()["items"]

    assert (nothing["status"], nothing["seen_by"]) == ("Unknown", "nothing")
    assert (shown["status"], shown["seen_by"], shown["nodes"]) == ("Running", "agent", {"ready": 1})
    assert (node["node"], node["units"]) == ("laptop", 1)
    assert (unit["work"], unit["why"]) == ("waiting", "S3 does not answer")
    clock.sleep(61)
    assert client.get("/api/v1/clusters/shop").json()["status"] == "Unknown"
    assert client.get("/api/v1/clusters/none").status_code == 404
