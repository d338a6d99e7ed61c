"""Nodes that hear each other, and go on when they do not."""

from __future__ import annotations

import threading
import time

import pytest

from polynya.cluster.gossip.messages import NodeReport, Picture
from polynya.cluster.gossip.records import heartbeat_records
from polynya.cluster.gossip.stream import NoGossip, StreamGossip
from polynya.store.clock import SystemClock
from polynya.store.streams import THROTTLED, ObjectStream
from polynya.testing.fakes import FakeClock, MemoryObjectStore, MemoryRecordStream, no_stream
from tests.cluster.gossip.given import Node, heartbeat, let_pass, names, process, unit
from tests.cluster.gossip.test_records import landed


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def some(number: int, clock: FakeClock, stream: MemoryRecordStream) -> list[Node]:
    return [Node(f"n{one}", stream, clock) for one in range(number)]


def test_nodes_hear_what_the_others_do(clock: FakeClock) -> None:
    one, two, three = some(3, clock, MemoryRecordStream())
    one.works(unit("orders", load=0.5), unit("users"))

    let_pass(15, clock, one, two, three)

    heard = two.hears()
    assert sorted(heard) == ["n0", "n2"]
    told = heard["n0"].heartbeat
    assert (told.state, told.cpu, told.memory) == ("running", 0.5, 0.75)
    assert names(told.units) == ["orders", "users"]
    assert heard["n0"].age_seconds <= 15
    assert one.gossip.trouble is None


def test_what_changes_is_heard_with_the_next_heartbeat(clock: FakeClock) -> None:
    one, two = some(2, clock, MemoryRecordStream())
    one.works(unit("orders"))
    let_pass(15, clock, one, two)

    one.works(unit("users"))
    let_pass(16, clock, one, two)

    assert names(two.hears()["n0"].heartbeat.units) == ["users"]


def test_a_new_state_is_told_at_once(clock: FakeClock) -> None:
    one, two = some(2, clock, MemoryRecordStream())
    let_pass(15, clock, one, two)

    one.works(state="draining")
    let_pass(5, clock, one, two)

    assert two.hears()["n0"].heartbeat.state == "draining"


def test_a_hint_wakes_the_others_within_seconds(clock: FakeClock) -> None:
    one, two, three = some(3, clock, MemoryRecordStream())
    let_pass(15, clock, one, two, three)
    before = [node.woken for node in (one, two, three)]

    one.gossip.hint("planned", [two.me.incarnation])
    let_pass(3, clock, one, two, three)

    woken = [node.woken - was for node, was in zip((one, two, three), before, strict=True)]
    assert woken == [0, 1, 0]


def test_many_hints_are_one_reason_to_look(clock: FakeClock) -> None:
    one, two = some(2, clock, MemoryRecordStream())
    let_pass(15, clock, one, two)
    before = two.woken

    for _ in range(500):
        one.gossip.hint("released")
    let_pass(3, clock, one, two)

    assert two.woken - before == 1


def test_hints_of_objects_reach_each_node_once_and_wake_no_member(clock: FakeClock) -> None:
    stream = MemoryRecordStream()
    one, two = some(2, clock, stream)
    other = Node("n2", stream, clock, cluster="other")
    let_pass(15, clock, one, two, other)
    before = [node.woken for node in (one, two)]

    for record in (landed(seq=3), landed(seq=3), landed(seq=4, starts=["b/", "a/"])):
        stream.put("f1", record)
    let_pass(3, clock, one, two, other)

    assert one.landed == two.landed == [frozenset({"a/", "b/"})]
    assert other.landed == []
    # Nor does it take the function for a reader, which would slow its own reads down.
    assert other.gossip.picture().readers == 3
    assert [node.woken for node in (one, two)] == before


def test_a_stream_that_goes_away_is_said_and_comes_back(clock: FakeClock) -> None:
    stream = MemoryRecordStream()
    one, two = some(2, clock, stream)
    let_pass(15, clock, one, two)

    stream.failure = no_stream()
    let_pass(900, clock, one, two)
    picture = two.gossip.picture()
    assert picture.trouble == "POLYNYA-AGT-042: " + no_stream().message
    assert picture.nodes == {}

    stream.failure = None
    let_pass(150, clock, one, two)
    assert two.gossip.picture().trouble is None
    assert sorted(two.hears()) == ["n0"]


def test_a_heartbeat_that_is_refused_once_is_no_trouble(clock: FakeClock) -> None:
    stream = MemoryRecordStream()
    (one,) = some(1, clock, stream)
    let_pass(5, clock, one)

    stream.failure = THROTTLED(where="a stream in memory", why="told to")
    let_pass(10, clock, one)
    once = one.gossip.trouble
    let_pass(120, clock, one)

    assert once is None
    assert str(one.gossip.trouble).startswith("POLYNYA-AGT-041: ")


def test_records_of_others_in_the_stream_are_counted_only(clock: FakeClock) -> None:
    stream = MemoryRecordStream()
    one, two = some(2, clock, stream)
    stranger = heartbeat(1, sender=process("n9", cluster="other"))
    let_pass(5, clock, one, two)

    stream.put("doctor", b'{"type": "doctor"}')
    stream.put("n9", heartbeat_records(stranger)[0])
    let_pass(15, clock, one, two)

    assert sorted(two.hears()) == ["n0"]
    assert dict(two.gossip.picture().skipped) == {"of another version": 1, "of another cluster": 1}


@pytest.mark.parametrize("nodes", [5, 40])
def test_nodes_do_not_ask_a_shard_more_often_than_it_answers(clock: FakeClock, nodes: int) -> None:
    stream = MemoryRecordStream(2)
    all_nodes = some(nodes, clock, stream)
    let_pass(60, clock, *all_nodes)
    before = len(stream.reads)

    let_pass(120, clock, *all_nodes)

    reads = (len(stream.reads) - before) / 120 / 2
    assert reads <= 2.5
    assert {len(node.hears()) for node in all_nodes} == {nodes - 1}


def test_it_works_through_a_store_of_objects_too(clock: FakeClock) -> None:
    store = MemoryObjectStore()
    one, two = (Node(name, ObjectStream(store, clock), clock) for name in ("n0", "n1"))
    one.works(*(unit(f"t{number}") for number in range(200)))

    let_pass(30, clock, one, two)
    before = two.woken
    one.gossip.hint("released")
    let_pass(3, clock, one, two)

    assert len(two.hears()["n0"].heartbeat.units) == 200
    assert two.woken == before + 1


def test_the_thread_tells_and_hears() -> None:
    stream, woken = MemoryRecordStream(), threading.Event()
    clock = SystemClock()
    one, two = (
        StreamGossip(process(name), stream, clock=clock, draw=lambda: 0.0, wake=wake)
        for name, wake in (("n0", lambda: None), ("n1", woken.set))
    )
    for node in (one, two):
        node.publish(NodeReport("running", ()))
        node.start()
    assert woken.wait(10)

    woken.clear()
    one.hint("released")
    one.publish(NodeReport("draining", ()))

    assert woken.wait(10)
    while not two.picture().nodes:
        time.sleep(0.05)


def test_a_fault_of_the_program_is_said_and_the_thread_goes_on() -> None:
    class Broken(MemoryRecordStream):
        broken = True

        def shards(self) -> tuple[str, ...]:
            if self.broken:
                raise RuntimeError("a bug")
            return super().shards()

    stream, woken = Broken(), threading.Event()
    gossip = StreamGossip(process(), stream, clock=SystemClock(), draw=lambda: 0.0, wake=woken.set)
    gossip.start()
    while gossip.trouble is None:
        time.sleep(0.01)
    assert gossip.picture().trouble == "RuntimeError: a bug"

    stream.broken = False

    assert woken.wait(10)


def test_without_a_stream_nothing_is_heard() -> None:
    silence = NoGossip()
    silence.publish(NodeReport("running", ()))
    silence.hint("planned")

    assert silence.picture() == Picture()
