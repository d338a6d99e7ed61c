"""What a node may run, what it lets its member know, and what it says of the cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from polynya.cluster.control.own_landing import OwnLanding
from polynya.cluster.control.requests import FinishedRequest, PendingRequest, PendingRequests
from polynya.cluster.control.watch_list import WatchList
from polynya.cluster.coordination.documents import Freeze
from polynya.cluster.coordination.member_state import (
    MemberAction,
    MemberState,
    NodeFacts,
    ObservedNode,
)
from polynya.cluster.gossip.messages import (
    Heartbeat,
    NodeReport,
    Picture,
    ReceivedHeartbeat,
    Sender,
    UnitReport,
)
from polynya.cluster.jobs import AgentJob, Failure, JobAction, JobDecision
from polynya.cluster.membership import ClusterMembership, LoadMeter
from polynya.cluster.messages import LeaveAdvised, TurnTaken
from polynya.cluster.unit import JobKey
from polynya.engine.commands.unit_command import UnitCommand
from polynya.observe.events import Event
from polynya.testing.fakes import FakeClock
from tests.cluster.fakes import wanted

NOW = datetime(2026, 1, 1, tzinfo=UTC)
X, Y = JobKey("a", "shop.x"), JobKey("a", "shop.y")
READY = MemberState("n1.aa", state="ready", grants={X: 7}, grants_until=24.0, leader="n2.bb")


class FakePeers:
    """Takes what a part says to its member and to the others."""

    def __init__(self) -> None:
        self.seen = NodeFacts(wanted=None)
        self.told: list[NodeReport] = []
        self.leaves: list[str] = []
        self.settled: list[FinishedRequest] = []
        self.landing: OwnLanding | None = None
        self.sources: WatchList | None = None

    def see(self, facts: NodeFacts) -> None:
        self.seen = facts

    def publish(self, report: NodeReport) -> None:
        self.told.append(report)

    def know_landing(self, landing: OwnLanding | None) -> None:
        self.landing = landing

    def know_sources(self, sources: WatchList) -> None:
        self.sources = sources

    def prefer_to_leave(self, reason: str) -> None:
        self.leaves.append(reason)

    def settle(self, settled: FinishedRequest) -> None:
        self.settled.append(settled)


class Node:
    """A part with two jobs, and what it told."""

    def __init__(self) -> None:
        self.clock, self.peers = FakeClock(), FakePeers()
        self.told: list[Event] = []
        self.membership = ClusterMembership(
            "n1", self.peers, self.told.append, self.clock.monotonic
        )
        task = wanted("a", "x", "y")
        self.jobs = {key: AgentJob(key, task.task, task.version) for key in (X, Y)}

    def hears(
        self, member_state: MemberState, picture: Picture | None = None, **stopped: str
    ) -> list[Event]:
        self.told.clear()
        asked = PendingRequests(stopped)
        self.membership.taken(TurnTaken(member_state, asked, picture or Picture()))
        return list(self.told)

    def shows(self, *, draining: bool = False) -> NodeFacts:
        self.membership.show(self.jobs, state="running", draining=draining)
        return self.peers.seen


@pytest.fixture
def node() -> Node:
    return Node()


def picture_of(*units: JobKey, age: float = 1.0, trouble: str | None = None) -> Picture:
    told = tuple(UnitReport(unit, 3, 0.5, 0.0, 0.0) for unit in units)
    beat = Heartbeat(Sender("c", "n2", "n2.bb"), 1, NOW, "running", None, None, told)
    return Picture({"n2.bb": ReceivedHeartbeat(beat, age)}, trouble=trouble)


def test_nothing_may_run_before_the_cluster_answers(node: Node) -> None:
    assert node.membership.rights().of(X).epoch is None
    assert node.membership.rights().of(X).where == "waiting"


def test_grants_hold_until_their_time_is_over_whoever_hears_nothing_newer(node: Node) -> None:
    node.hears(READY)
    assert node.membership.rights().of(X).epoch == 7
    node.clock.advance(timedelta(seconds=23.9))
    assert node.membership.rights().of(X).epoch == 7

    node.clock.advance(timedelta(seconds=0.1))

    assert node.membership.rights().of(X).epoch is None
    assert "lease" in node.membership.rights().of(X).reason
    node.hears(replace(READY, grants_until=60.0))
    assert node.membership.rights().of(X).epoch == 7


def test_a_job_elsewhere_names_the_node_that_has_it_as_long_as_that_is_heard(node: Node) -> None:
    node.hears(READY, picture_of(Y))
    assert node.membership.rights().of(Y).reason == "node n2 has it"

    node.hears(READY, picture_of(Y, age=61.0))

    assert node.membership.rights().of(Y).reason == "another node has it, or will have it"


def test_a_job_that_others_are_asked_to_release_says_what_it_waits_for(node: Node) -> None:
    node.hears(replace(READY, waiting={Y: "waits for n2 to release it"}))

    assert node.membership.rights().of(Y).reason == "waits for n2 to release it"
    assert node.membership.rights().of(Y).where == "elsewhere"


def test_a_unit_counts_as_working_until_its_revocation_has_arrived(node: Node) -> None:
    """Otherwise it could be released in the moment in which the agent starts it."""
    node.hears(READY)
    assert node.shows().working == {X}

    node.hears(replace(READY, grants={}, revoked=frozenset({X})))

    assert node.shows().working == frozenset()
    node.jobs[X].running = "v1"
    assert node.shows().working == {X}


def test_a_draining_node_releases_what_no_longer_runs(node: Node) -> None:
    node.hears(READY)
    assert node.shows(draining=True).working == frozenset()
    assert node.peers.seen.draining


def test_a_stopped_task_is_wanted_by_nobody(node: Node) -> None:
    node.hears(READY)
    assert node.shows().wanted == {X, Y}

    node.hears(READY, a="stopped by kim")

    assert node.shows().wanted == frozenset()
    assert node.membership.rights().of(X).where == "stopped"


def test_what_was_fenced_is_told_until_the_answer_is_there(node: Node) -> None:
    node.hears(READY)
    node.jobs[X].fenced = 9
    assert node.shows().fenced == {X: 9}
    assert node.shows().fenced == {X: 9}

    node.jobs[X].fenced = None

    assert node.shows().fenced == {}


def test_the_others_hear_what_works_here(node: Node) -> None:
    node.hears(READY)
    node.jobs[X].running, node.jobs[X].epoch = "v1", 7
    node.shows()

    (told,) = node.peers.told[-1].units
    assert (told.unit, told.epoch) == (X, 7)
    assert (told.state, told.reason) == ("running", "")


def test_the_others_hear_what_its_work_waits_for(node: Node) -> None:
    node.hears(READY)
    job = node.jobs[X]
    # About to begin: that is no reason for anybody to look.
    job.decision = JobDecision(JobAction.WAIT, "the node drains")

    def told() -> tuple[str, str]:
        node.shows()
        (one,) = node.peers.told[-1].units
        return one.state, one.reason

    assert told() == ("waiting", "")
    job.failures.append(Failure(at=0.0, pause=1.0, reason="no"))
    job.decision = JobDecision(JobAction.WAIT, "failed once: no")
    assert told() == ("waiting", "failed once: no")
    job.decision = JobDecision(JobAction.SUSPEND, "failed 5 times, last: no")
    assert told() == ("suspended", "failed 5 times, last: no")
    job.failures, job.running, job.held = [], "v1", "shop.x waits for a decision"
    assert told() == ("running", "shop.x waits for a decision")


def test_decisions_and_their_reasons_become_events(node: Node) -> None:
    claimed = MemberAction("claimed", X, "nobody had it", epoch=7)
    alarm = MemberAction("alarm", Y, "two owners in epoch 3")

    told = node.hears(replace(READY, actions=(claimed, alarm)))

    assert [one.type for one in told] == ["unit.claimed", "unit.alarm", "cluster.leader"]
    assert told[0].as_json() == {
        "subject": "shop.x", "task": "a", "reason": "nobody had it", "epoch": 7,
    }  # fmt: skip
    assert node.membership.rights().of(X).reason == "nobody had it"


def test_what_lasts_is_told_once(node: Node) -> None:
    trouble = replace(READY, troubles=("POLYNYA-AWS-003: no answer",))
    frozen = Freeze(by="kim", reason="audit", since=NOW)

    first = node.hears(trouble, picture_of(trouble="it is throttled"))
    again = node.hears(trouble, picture_of(trouble="it is throttled"))
    cold = node.hears(replace(READY, frozen=frozen))
    warm = node.hears(READY)

    types = [[one.type for one in told] for told in (first, again, cold, warm)]
    assert types == [
        ["cluster.leader", "sharing.trouble", "sharing.trouble"],
        [],
        ["cluster.frozen", "sharing.recovered"],
        ["cluster.frozen"],
    ]
    assert cold[0].text() == "frozen   n1: kim: audit"
    assert warm[0].text() == "unfrozen n1: kim: audit"


def test_the_report_says_who_leads_what_is_frozen_and_that_the_stream_is_gone(node: Node) -> None:
    other = ObservedNode("n2.bb", "n2", "ready", dead=False, silent_seconds=1.0)
    gone = ObservedNode("n3.cc", "n3", "ready", dead=True, silent_seconds=99.0)
    frozen = Freeze(by="kim", reason="audit", since=NOW)
    nodes = {"n2.bb": other, "n3.cc": gone}

    node.hears(replace(READY, frozen=frozen, nodes=nodes), Picture(trouble="no such stream"))

    report = node.membership.report()
    assert report["leader"] == "n2.bb"
    assert report["frozen"] == {"by": "kim", "since": NOW.isoformat(), "reason": "audit"}
    assert report["stream_trouble"] == "no such stream"
    assert (report["units"], report["nodes"]) == (1, 1)


def test_tasks_are_tried_again_once_each_time_that_somebody_asks(node: Node) -> None:
    def asked(mark: str) -> frozenset[str]:
        return node.membership.taken(TurnTaken(READY, PendingRequests({}, {"a": mark}), Picture()))

    assert [asked("1"), asked("1"), asked("2")] == [{"a"}, frozenset(), {"a"}]


def test_advice_to_leave_goes_on_to_the_member(node: Node) -> None:
    node.membership.leave(LeaveAdvised("rebalance recommendation"))

    assert node.peers.leaves == ["rebalance recommendation"]


def test_while_a_freeze_cannot_be_ruled_out_nothing_that_is_asked_is_begun(node: Node) -> None:
    frozen = Freeze(by="kim", reason="audit", since=NOW)

    node.hears(replace(READY, held=True))
    unsure = node.membership.held
    node.hears(replace(READY, held=True, frozen=frozen))

    assert (unsure, node.membership.held) == (
        "it is unknown whether the cluster is frozen",
        "the cluster is frozen",
    )


def test_load_is_work_per_second_and_follows_slowly() -> None:
    meter = LoadMeter()
    assert meter.measured({X: 100.0}, 0.0) == {}
    assert meter.measured({X: 105.0}, 5.0) == {}
    assert meter.measured({X: 105.0}, 10.0) == {X: 0.5}
    assert meter.measured({X: 105.0}, 70.0) == {X: 0.25}
    assert meter.measured({Y: 0.0}, 80.0) == {Y: 0.0}


def test_the_outcome_of_a_request_is_reported_here_and_to_all(node: Node) -> None:
    request = PendingRequest("1f", UnitCommand("reload"), "kim", NOW)
    node.membership.taken(TurnTaken(READY, PendingRequests(units={X: request}), Picture()))
    assert node.membership.requests() == {X: request}
    assert node.membership.held is None
    settled = FinishedRequest(X, request, done=False, text="no file", epoch=7)

    node.membership.settle(settled)

    assert node.peers.settled == [settled]
    assert node.told[-1].as_json() == {
        "subject": "shop.x", "task": "a", "kind": "reload", "by": "kim", "done": False,
        "outcome": "no file",
    }  # fmt: skip
