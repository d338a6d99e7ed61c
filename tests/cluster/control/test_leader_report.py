"""What the leader heard of all nodes, as people see it: suspended work, a stream that is dead."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from polynya.cluster.control.leader_report import HEARD, LeaderReport, LeaderReportWriter
from polynya.cluster.control.reading import read_cluster
from polynya.cluster.control.status import ClusterState, ClusterStatus, cluster_status
from polynya.cluster.coordination import store
from polynya.cluster.coordination.documents import LeaderLease, NodeLease, UnitOwnership
from polynya.cluster.coordination.member_state import MemberState, ObservedNode
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.gossip.messages import (
    Heartbeat,
    NodeReport,
    Picture,
    ReceivedHeartbeat,
    Sender,
    UnitReport,
)
from polynya.cluster.unit import JobKey
from polynya.model.errors import DependencyError
from polynya.testing.fakes import FakeClock, MemoryObjectStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
X, Y = JobKey("a", "shop.x"), JobKey("a", "shop.y")
GAP = "POLYNYA-AGT-042: there is no such workload stream in this region"


def unit(key: JobKey, state: str = "running", reason: str = "", epoch: int = 3) -> UnitReport:
    return UnitReport(key, epoch, 0.1, 0.0, 0.0, state, reason)


def node(name: str, **more: Any) -> ObservedNode:
    return ObservedNode(
        f"{name}.aa", name, **{"state": "ready", "dead": False, **more}, silent_seconds=0
    )


class Leader:
    """n1, which leads and has X, beside n2, which has Y; and a person who looks."""

    def __init__(self, *, stream: bool = True) -> None:
        self.store, self.clock = MemoryObjectStore(), FakeClock()
        self.document_store = DocumentStore(self.store, "shop", Random(1))
        for name, key in (("n1", X), ("n2", Y)):
            me = f"{name}.aa"
            lease = NodeLease(node=name, incarnation=me, state="ready", since=NOW)
            owner = UnitOwnership(owner=me, node=name, epoch=3, since=NOW, reason="nobody had it")
            assert self.document_store.write(store.node_path(me), lease, None)
            assert self.document_store.write(store.unit_path(key), owner, None)
        self.leads("n1")
        self.member_state = MemberState(
            "n1.aa", leading=True, nodes={"n1.aa": node("n1"), "n2.aa": node("n2")}
        )
        self.writer = LeaderReportWriter(self.document_store, self.clock, stream=stream)
        self.own = NodeReport("running", (unit(X),))

    def leads(self, name: str) -> None:
        found = self.document_store.read(LeaderLease, store.LEADER)
        lease = LeaderLease(node=name, incarnation=f"{name}.aa", term=1)
        assert self.document_store.write(store.LEADER, lease, found.version if found else None)

    def hears(self, *units: UnitReport, trouble: str | None = None, age: float = 1.0) -> None:
        """Of n2, ten seconds later."""
        self.clock.sleep(10.0)
        sender = Sender("shop", "n2", "n2.aa")
        beat = Heartbeat(sender, 1, NOW, "running", None, None, units)
        picture = Picture({"n2.aa": ReceivedHeartbeat(beat, age)}, trouble=trouble)
        self.writer(self.member_state, self.own, picture)

    def hears_nothing(self, seconds: float, *, readers: int = 2) -> None:
        for _ in range(int(seconds // 10)):
            self.clock.sleep(10.0)
            self.writer(self.member_state, self.own, Picture(readers=readers))

    def shows(self) -> ClusterStatus:
        return cluster_status(read_cluster(self.store, "shop"), ())


@pytest.fixture
def leader() -> Leader:
    return Leader()


def test_work_that_waits_on_any_node_is_seen_with_its_reason(leader: Leader) -> None:
    leader.own = NodeReport("running", (unit(X, reason="shop.z waits for a decision"),))
    leader.hears(unit(Y, "suspended", "null_key: a key column is NULL"))

    status = leader.shows()

    assert [(one.name, one.state, one.work, one.why) for one in status.units] == [
        ("shop.x", "owned", "held", "shop.z waits for a decision"),
        ("shop.y", "owned", "suspended", "null_key: a key column is NULL"),
    ]
    assert status.status is ClusterState.RUNNING
    assert status.troubles == (
        "a/shop.x is held on n1: shop.z waits for a decision",
        "a/shop.y is suspended on n2: null_key: a key column is NULL",
    )


def test_work_that_goes_on_again_is_no_trouble_any_more(leader: Leader) -> None:
    leader.hears(unit(Y, "suspended", "no"))
    leader.hears(unit(Y))

    assert leader.shows().troubles == ()


def test_what_an_owner_before_told_is_not_believed(leader: Leader) -> None:
    leader.hears(unit(Y, "suspended", "no", epoch=2))

    assert [one.work for one in leader.shows().units] == [None, None]


def test_what_a_dead_node_told_is_not_repeated(leader: Leader) -> None:
    nodes = {**leader.member_state.nodes, "n2.aa": node("n2", dead=True)}
    leader.member_state = replace(leader.member_state, nodes=nodes)

    leader.hears(unit(Y, "suspended", "no"))

    assert leader.shows().troubles == ()


def test_what_a_leader_before_heard_is_not_believed(leader: Leader) -> None:
    leader.hears(unit(Y, "suspended", "no"), trouble=GAP)

    leader.leads("n2")

    assert leader.shows().troubles == ()


def test_a_stream_that_is_gone_is_said_and_work_continues(leader: Leader) -> None:
    leader.hears(unit(Y), trouble=GAP)

    status = leader.shows()

    assert status.status is ClusterState.RUNNING
    assert status.troubles == (
        f"workload stream: {GAP}; work continues, hand-offs and balance are slower",
    )
    leader.hears(unit(Y))
    assert leader.shows().troubles == ()


def test_a_node_that_lives_and_tells_nothing_is_said(leader: Leader) -> None:
    leader.hears_nothing(50.0)
    assert leader.shows().troubles == ()

    leader.hears_nothing(30.0)

    assert "no heartbeats of n2" in leader.shows().troubles[0]


def test_a_node_may_send_less_often_where_other_clusters_share_the_stream(leader: Leader) -> None:
    leader.hears_nothing(90.0, readers=100)
    assert leader.shows().troubles == ()

    leader.hears_nothing(30.0, readers=100)

    assert "no heartbeats of n2" in leader.shows().troubles[0]


def test_without_a_stream_nobody_is_expected_to_tell_anything() -> None:
    leader = Leader(stream=False)

    leader.hears_nothing(600.0)

    assert leader.shows().troubles == ()


def test_it_is_written_when_it_changes_and_not_more_often(leader: Leader) -> None:
    def version() -> str:
        return leader.store.read("shop/heard", 10_000).version

    for _ in range(10):
        leader.hears(unit(Y, "suspended", "no"))
    assert version() == "1"
    leader.hears(unit(Y))
    assert version() == "2"

    for seconds, expected in ((5.0, "2"), (5.0, "3")):
        leader.clock.sleep(seconds)
        ill = NodeReport("running", (unit(X, "suspended", f"after {seconds}"),))
        leader.writer(leader.member_state, ill, Picture())
        assert version() == expected


def test_who_does_not_lead_writes_nothing(leader: Leader) -> None:
    leader.member_state = replace(leader.member_state, leading=False)

    leader.hears(unit(Y, "suspended", "no"))

    assert leader.document_store.read(LeaderReport, HEARD) is None


def test_a_store_that_does_not_answer_ends_no_turn(
    leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise DependencyError("POLYNYA-AWS-003", "AWS did not answer")

    with monkeypatch.context() as patch:
        patch.setattr(leader.document_store, "read", down)
        leader.hears(unit(Y, "suspended", "no"))
    leader.hears(unit(Y, "suspended", "no"))

    assert len(leader.shows().troubles) == 1


def test_what_a_later_version_added_survives(leader: Leader) -> None:
    leader.hears(unit(Y, "suspended", "no"))
    found = leader.document_store.read(LeaderReport, HEARD)
    assert found is not None
    later = found.document.model_copy(update={"new": {"a": 1}})
    assert leader.document_store.write(HEARD, later, found.version)

    leader.hears(unit(Y, "suspended", "other"))

    after = leader.document_store.read(LeaderReport, HEARD)
    assert after is not None
    assert after.document.model_extra == {"new": {"a": 1}}
    assert after.document.units[0].reason == "other"


def test_very_many_are_counted(leader: Leader) -> None:
    keys = [JobKey("a", f"shop.t{number:04}") for number in range(600)]
    for key in keys:
        owner = UnitOwnership(owner="n2.aa", node="n2", epoch=3, since=NOW, reason="x")
        assert leader.document_store.write(store.unit_path(key), owner, None)

    leader.hears(*(unit(key, "waiting", "no") for key in keys))

    found = leader.document_store.read(LeaderReport, HEARD)
    assert found is not None
    assert (len(found.document.units), found.document.more) == (500, 100)
    assert leader.shows().troubles[-1] == "597 more units wait: `polynya cluster tasks`"
