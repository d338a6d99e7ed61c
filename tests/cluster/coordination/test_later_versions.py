"""Objects and records of a later version: what this one does not know survives, and stops nobody.

A later version adds fields, anywhere, and says so with a higher `minor`; only another meaning is
another `v`. Each object is written again here by the code that does so in a cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.cluster.control.requests import FinishedRequest, PendingRequest, Requests, UnitRequests
from polynya.cluster.coordination import documents, store
from polynya.cluster.coordination.documents import Document, NodePlan, parse
from polynya.cluster.coordination.leases import Leadership, NodeSession
from polynya.cluster.coordination.member import DifferencePublisher
from polynya.cluster.coordination.member_state import CoordinationPace, NodeIdentity, one_by_one
from polynya.cluster.coordination.ownership import OwnedUnits, OwnershipRecords
from polynya.cluster.coordination.planner import UnitKnowledge
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.gossip.messages import (
    Heartbeat,
    Hint,
    Sender,
    UnitReport,
)
from polynya.cluster.gossip.records import heartbeat_records, hint_record, read_record
from polynya.cluster.network.documents import (
    AgentReport,
    ClusterCommand,
    GroupReport,
    Outage,
    command_path,
)
from polynya.cluster.network.link import Link
from polynya.cluster.network.relay import CommandQueue
from polynya.cluster.network.sign_of_life import AgentIdentity as MyAgent
from polynya.cluster.network.sign_of_life import SignOfLife
from polynya.cluster.unit import JobKey
from polynya.engine.commands.unit_command import UnitCommand
from polynya.testing.fakes import FakeClock, MemoryObjectStore

AT = datetime(2026, 11, 23, tzinfo=UTC)
X = JobKey("t", "s.n")
ME = NodeIdentity("n1", version="1")
GROUP = GroupReport(minimum=0, maximum=4, desired=2, in_service=2, starting=0, ending=0, seen_at=AT)
REPORT = AgentReport(
    agent="a", token="b", state="disconnected", since=AT, renewed_at=AT,
    outage=Outage(since=AT, until=AT, reason="cut"), group=GROUP,
)  # fmt: skip

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
#: Names that no version has used yet.
UNKNOWN = st.dictionaries(st.text(max_size=8).map(lambda name: f"new {name}"), VALUES, min_size=1)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """An object, where it is, and what in a cluster writes it again."""

    path: str
    document: Document
    again: Callable[[DocumentStore, FakeClock], object]


def marked_gone(document_store: DocumentStore, clock: FakeClock) -> None:
    NodeSession(document_store, ME, clock, CoordinationPace()).begin(["n1.aa"])


def followed(document_store: DocumentStore, clock: FakeClock) -> None:
    leadership = Leadership(document_store, ME, clock, CoordinationPace())
    leadership.turn("n1.aa", willing=True, alone=True, configuration="cc", over=lambda _: True)


def published(document_store: DocumentStore, _clock: FakeClock) -> None:
    knowledge = UnitKnowledge(document_store, one_by_one)
    assert knowledge.refresh(document_store.list_without_units(), lambda: True)
    knowledge.publish(frozenset({X}), "cc")


def differed(document_store: DocumentStore, clock: FakeClock) -> None:
    document_store.write(store.WANTED_UNITS, documents.LeaderUnits(configuration="cc"), None)
    knowing = DifferencePublisher(document_store, clock, CoordinationPace())
    knowing.turn("n1.aa", frozenset({X}), "cc")
    clock.advance(timedelta(seconds=CoordinationPace().learn))
    knowing.turn("n1.aa", frozenset({X}), "cc")


def released(document_store: DocumentStore, clock: FakeClock) -> None:
    owned_units = OwnedUnits(
        OwnershipRecords(document_store, one_by_one), clock, CoordinationPace()
    )
    owned_units.begin("n1.aa")
    owned_units.take(X, 3, "")
    owned_units.release([X], "it moves", lambda: True)


def asked(request: Callable[[Requests], object]) -> Callable[[DocumentStore, FakeClock], object]:
    return lambda document_store, clock: request(Requests(document_store, "kim", clock.now))


def settled(document_store: DocumentStore, clock: FakeClock) -> None:
    requests = UnitRequests(document_store, "n1", clock)
    errand = PendingRequest("1f", UnitCommand("reload"), "kim", AT)
    requests.settle(FinishedRequest(X, errand, done=True, text="3 rows", epoch=4))
    requests()


def taken(document_store: DocumentStore, _clock: FakeClock) -> None:
    queue = CommandQueue(document_store)
    queue.refresh()
    ((name, command),) = queue.all()
    assert queue.change(name, command.model_copy(update={"state": "taken"}))


def renewed(document_store: DocumentStore, clock: FakeClock) -> None:
    link = Link(connected=True, since=AT)
    SignOfLife(document_store, MyAgent("a", "c", "1"), clock).renew(link, GROUP)


OBJECTS: Mapping[str, Rewritten] = {
    "lease": Rewritten(
        store.node_path("n1.aa"),
        documents.NodeLease(node="n1", incarnation="n1.aa", state="ready", since=AT),
        marked_gone,
    ),
    "leader": Rewritten(store.LEADER, documents.LeaderLease(term=4), followed),
    "wanted": Rewritten(store.WANTED_UNITS, documents.LeaderUnits(configuration="bb"), published),
    "difference": Rewritten(
        store.difference_path("n1.aa"),
        documents.UnitDifference(
            configuration="aa", base="bb", more=(("t", "s.n", "new"),), less=(("t", "s.m"),)
        ),
        differed,
    ),
    "ownership": Rewritten(
        store.unit_path(X), documents.UnitOwnership(owner="n1.aa", epoch=3, since=AT), released
    ),
    "freeze": Rewritten(
        store.FREEZE, documents.Freeze(by="lee", since=AT), asked(lambda kim: kim.freeze(""))
    ),
    "drain": Rewritten(
        store.drain_path("n1"),
        documents.DrainRequest(by="lee", since=AT),
        asked(lambda kim: kim.drain("n1", "")),
    ),
    "move": Rewritten(
        store.move_path(X),
        documents.MoveRequest(to="n1", by="lee", since=AT),
        asked(lambda kim: kim.move(X, "n2", "")),
    ),
    "task": Rewritten(
        store.task_path("t"),
        documents.TaskRequest(state="stopped", by="lee", since=AT),
        asked(lambda kim: kim.resume("t", "")),
    ),
    "outcome": Rewritten(
        store.outcome_path(X),
        documents.UnitOutcome(
            wish="1e",
            kind="reload",
            done=False,
            node="n2",
            epoch=3,
            by="lee",
            asked=AT,
            ended=AT,
        ),
        settled,
    ),
    "command": Rewritten(
        command_path("20261123T000000.000000Z-aa"),
        ClusterCommand(kind="roll", by="lee", since=AT),
        taken,
    ),
    "network agent": Rewritten("network-agent", REPORT, renewed),
}
PARSED: Mapping[str, Document] = {
    **{name: one.document for name, one in OBJECTS.items()},
    "plan": NodePlan(term=1, number=1, units=(("t", "s.n", "new"),)),
    "wish": documents.UnitRequest(kind="reload", by="lee", since=AT),
}


def later(document: Document, unknown: Mapping[str, Any]) -> bytes:
    """The object as a later version writes it."""
    fields = json.loads(document.encoded())
    return json.dumps(fields | {"minor": 7} | unknown).encode()


@pytest.mark.parametrize("name", OBJECTS)
@settings(max_examples=15)
@given(unknown=UNKNOWN)
def test_an_object_that_is_written_again_keeps_what_nobody_here_knows(
    name: str, unknown: dict[str, Any]
) -> None:
    store, clock, one = MemoryObjectStore(), FakeClock(), OBJECTS[name]
    document_store = DocumentStore(store, "c", Random(1))
    store.put(f"c/{one.path}", later(one.document, unknown))

    one.again(document_store, clock)

    written = json.loads(store.get(f"c/{one.path}"))
    assert written["nonce"] != one.document.nonce, "it was written again"
    assert {key: written.get(key) for key in unknown} == unknown
    assert written["minor"] == 7


@pytest.mark.parametrize("name", PARSED)
@settings(max_examples=15)
@given(unknown=UNKNOWN)
def test_an_object_of_a_later_version_is_read_and_comes_back_whole(
    name: str, unknown: dict[str, Any]
) -> None:
    document = PARSED[name]
    data = later(document, unknown)

    again = parse(type(document), data, name).encoded()

    assert json.loads(again) == json.loads(data)


@settings(max_examples=25)
@given(unknown=UNKNOWN)
def test_what_is_new_inside_of_an_object_survives_too(unknown: dict[str, Any]) -> None:
    store, clock = MemoryObjectStore(), FakeClock()
    fields = json.loads(REPORT.encoded())
    for part in ("outage", "group"):
        fields[part] |= unknown
    store.put("c/network-agent", json.dumps(fields).encode())

    renewed(DocumentStore(store, "c", Random(1)), clock)

    written = json.loads(store.get("c/network-agent"))
    for part in ("outage", "group"):
        assert {key: written[part].get(key) for key in unknown} == unknown


@settings(max_examples=25)
@given(more=st.lists(VALUES, min_size=1, max_size=3))
def test_a_unit_of_a_plan_may_have_more_to_it(more: list[Any]) -> None:
    data = json.dumps({"v": 1, "term": 1, "number": 2, "units": [["t", "s.n", "new", *more]]})

    plan = parse(NodePlan, data.encode(), "plans/n1.aa")

    assert plan.reasons() == {X: "new"}
    assert json.loads(plan.encoded())["units"] == [["t", "s.n", "new", *more]]
    assert plan.with_units({X: "again"}).units == (("t", "s.n", "again", *more),)


@settings(max_examples=50)
@given(unknown=UNKNOWN, inside=UNKNOWN)
def test_a_record_of_the_stream_with_more_fields_says_the_same(
    unknown: dict[str, Any], inside: dict[str, Any]
) -> None:
    sender = Sender("c", "n1", "n1.aa")
    units = (UnitReport(X, 3, 0.5, 1.0, 2.0),)
    heartbeat = Heartbeat(sender, 4, AT, "running", 0.5, 0.25, units)
    for record in (*heartbeat_records(heartbeat), hint_record(Hint("planned", sender, 5, AT))):
        fields = json.loads(record) | {"minor": 7} | unknown
        fields |= {"units": [one | inside for one in fields.get("units", [])]}

        assert read_record(json.dumps(fields).encode(), "c") == read_record(record, "c")
