"""The thread of a member: turns when they are due, sooner when somebody waits for one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue
from random import Random
from typing import Any

from polynya.cluster.control.leader_document import LeaderDocumentWriter
from polynya.cluster.control.own_landing import LANDING, OwnLanding
from polynya.cluster.control.requests import FinishedRequest, PendingRequest, PendingRequests
from polynya.cluster.coordination.member_state import MemberAction, MemberState, NodeFacts
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.gossip.messages import HintKind, NodeReport, Picture
from polynya.cluster.member_thread import MemberThread
from polynya.cluster.messages import MembershipEnded, TurnTaken
from polynya.cluster.unit import JobKey
from polynya.engine.commands.unit_command import UnitCommand
from polynya.model.errors import ConflictError
from polynya.testing.fakes import FakeClock, MemoryObjectStore

X = JobKey("a", "shop.x")
LONG = 600.0
WISH = PendingRequest("1f", UnitCommand("reload"), "kim", datetime(2026, 1, 1, tzinfo=UTC))


class FakeMember:
    """Answers with what a test wants; `turns` are what it saw."""

    def __init__(self) -> None:
        self.turns: SimpleQueue[NodeFacts] = SimpleQueue()
        self.next: MemberState | Exception = MemberState(
            "n1.aa", state="ready", next_turn_seconds=LONG
        )

    def turn(self, seen: NodeFacts) -> MemberState:
        self.turns.put(seen)
        if isinstance(self.next, Exception):
            raise self.next
        return self.next


class FakeGossip:
    def __init__(self) -> None:
        self.hints: list[HintKind] = []
        self.reports: list[NodeReport] = []
        self.wake: Callable[[], None] = lambda: None

    def publish(self, report: NodeReport) -> None:
        self.reports.append(report)

    def hint(self, kind: HintKind, to: Iterable[str] = ()) -> None:
        self.hints.append(kind)

    def picture(self) -> Picture:
        return Picture()

    def stop(self) -> None:
        self.hints.clear()


class FakeRequests:
    def __init__(self) -> None:
        self.settled: list[FinishedRequest] = []

    def __call__(self) -> PendingRequests:
        return PendingRequests({"b": "stopped"})

    def confirmed(self, asked: PendingRequests, grants: Mapping[JobKey, int]) -> PendingRequests:
        return replace(asked, units=dict.fromkeys(grants, WISH))

    def settle(self, settled: FinishedRequest) -> None:
        self.settled.append(settled)


class FakeLeave:
    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.asked = threading.Event()

    def prefer(self, reason: str) -> None:
        self.reasons.append(reason)

    def __call__(self, member_state: MemberState) -> None:
        self.asked.set()


class Running:
    """A thread that has taken its first turn."""

    def __init__(self) -> None:
        self.member, self.gossip, self.leave = FakeMember(), FakeGossip(), FakeLeave()
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.requests = FakeRequests()
        self.documents = DocumentStore(MemoryObjectStore(), "shop", Random(1))
        self.thread = MemberThread(
            self.member,
            self._opened,
            self.requests,
            self.leave,
            self.inbox,
            own_landing=LeaderDocumentWriter(self.documents, FakeClock(), OwnLanding, LANDING),
        )
        self.thread.start()
        self.first = self.member.turns.get(timeout=10)
        self.taken = self.inbox.get(timeout=10)

    def _opened(self, incarnation: str, wake: Callable[[], None]) -> FakeGossip:
        assert incarnation == "n1.aa"
        self.gossip.wake = wake
        return self.gossip

    def turn(self) -> NodeFacts:
        return self.member.turns.get(timeout=10)

    def ends_after_a_turn(self) -> None:
        """Take a turn to its end; then one in which the member has left."""
        self.thread.see(NodeFacts(wanted=frozenset({X})))
        self.turn()
        self.ends()
        self.turn()

    def ends(self) -> None:
        self.member.next = MemberState("n1.aa", left=True)
        self.thread.see(NodeFacts(wanted=frozenset(), draining=True))


def test_a_turn_is_taken_at_once_when_others_wait_for_it() -> None:
    running = Running()
    assert running.first == NodeFacts(wanted=None)
    assert running.taken.requests.stopped == {"b": "stopped"}
    works = NodeFacts(wanted=frozenset({X}), working=frozenset({X}))

    running.thread.see(works)
    assert running.turn() == works
    running.thread.see(NodeFacts(wanted=frozenset({X}), working=frozenset({X}), loads={X: 0.5}))
    running.thread.see(NodeFacts(wanted=frozenset({X}), loads={X: 0.5}))

    assert running.turn().working == frozenset()
    assert running.member.turns.empty()
    running.ends()
    assert running.turn().draining


def test_hints_wake_it_and_what_it_released_is_hinted() -> None:
    running = Running()
    running.member.next = MemberState(
        "n1.aa",
        state="ready",
        actions=(MemberAction("released", X, "drains"),),
        next_turn_seconds=LONG,
    )

    for _ in range(20):
        # The stream is opened just after the first turn.
        running.gossip.wake()
        if running.gossip.hints or not running.member.turns.empty():
            break
        threading.Event().wait(0.05)
    running.turn()
    running.inbox.get(timeout=10)
    running.ends()
    running.turn()

    assert running.gossip.hints[:1] == ["released"]


def test_advice_to_leave_is_followed_before_the_next_turn() -> None:
    running = Running()
    running.thread.prefer_to_leave("recommended")

    running.turn()

    assert running.leave.reasons == ["recommended"]
    assert running.leave.asked.is_set()
    running.ends()


def test_what_ends_the_member_reaches_the_agent() -> None:
    running = Running()
    running.member.next = ConflictError("POLYNYA-AGT-011", "another agent has this node id")
    running.thread.prefer_to_leave("so that there is a turn")

    ended = running.inbox.get(timeout=10)

    assert isinstance(ended, MembershipEnded)
    assert ended.error.code == "POLYNYA-AGT-011"


def test_a_bug_of_the_member_ends_it_too_and_says_so() -> None:
    running = Running()
    running.member.next = RuntimeError("oops")
    running.thread.prefer_to_leave("so that there is a turn")

    ended = running.inbox.get(timeout=10)

    assert isinstance(ended, MembershipEnded)
    assert ended.error.code == "POLYNYA-BUG-001"


def test_who_has_left_takes_no_other_turn() -> None:
    running = Running()
    running.ends()
    running.turn()
    taken = running.inbox.get(timeout=10)

    assert isinstance(taken, TurnTaken)
    running.thread.prefer_to_leave("too late")
    assert running.member.turns.empty()


def test_the_outcome_of_a_request_is_written_in_a_turn_at_once() -> None:
    running = Running()
    settled = FinishedRequest(X, WISH, done=True, text="3 rows loaded", epoch=7)

    running.thread.settle(settled)

    running.turn()
    assert running.requests.settled == [settled]
    running.ends()


def test_what_is_asked_is_read_again_for_the_units_that_a_turn_left_to_the_node() -> None:
    running = Running()
    assert running.taken.requests.units == {}
    running.member.next = MemberState("n1.aa", grants={X: 7}, next_turn_seconds=LONG)

    running.thread.see(NodeFacts(wanted=frozenset({X})))

    running.turn()
    assert running.inbox.get(timeout=10).requests.units == {X: WISH}
    running.ends()


def test_a_member_that_leads_writes_which_objects_are_for_its_cluster() -> None:
    running = Running()
    own = OwnLanding(bucket="land", prefixes=("orders/",))
    running.thread.know_landing(own)
    running.member.next = MemberState("n1.aa", leading=True)

    running.ends_after_a_turn()

    found = running.documents.read(OwnLanding, LANDING)
    assert found is not None
    assert found.document.prefixes == own.prefixes
