"""A streaming landing as a task: what lands, and what a kill at any step leaves behind."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from polynya.engine.backlog import LandedReaders
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once
from polynya.engine.tasks.streams import LandingTask
from polynya.engine.unit import TimeSlice, Unit
from polynya.lake.spark.api import SparkSession
from polynya.lake.table.state import CopyState
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.config.task import StorageTask
from polynya.model.errors import TaskStoppedError
from polynya.observe.events import Event
from polynya.observe.streams import StreamIgnored, StreamLanded, StreamLost
from polynya.streams.landing import LandedLog, landed_tables
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.streams.kafka.fake import FakeKafka

GOES_ON = TimeSlice(at_once=False)


class PowerCut(BaseException):
    """The process is gone."""


class Store(MemoryObjectStore):
    """A store whose process may be killed just before or just after a batch is put."""

    kill: str | None = None

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if self.kill == "before":
            raise PowerCut
        done = super().put_if_absent(path, data)
        if self.kill == "after":
            raise PowerCut
        return done


@dataclass
class Zone:
    """A landing zone, and processes that land there."""

    source: FakeKafka
    settings: dict[str, Any] = field(default_factory=dict)
    store: Store = field(default_factory=Store)
    clock: FakeClock = field(default_factory=FakeClock)
    events: list[Event] = field(default_factory=list)
    tasks: list[StorageTask] | None = field(default_factory=list)
    states: dict[str, CopyState] = field(default_factory=dict)

    def process(self, **settings: Any) -> tuple[EngineContext, LandingTask]:
        task = StreamingLanding.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "streaming_landing",
                "name": "in",
                "source": {"kafka": {"bootstrap_servers": "b", "topics": self.source.wanted}},
                **self.settings,
                **settings,
            }
        )
        context = EngineContext(
            spark=cast("SparkSession", None), landing=self.store, clock=self.clock,
            sink=self.events.append,
            landed_readers=LandedReaders(lambda one: self.states.get(one.relations.current)),
        )  # fmt: skip
        context.landed_readers.know(self.tasks)
        return context, LandingTask(context, task, self.source)

    def run(self, **settings: Any) -> dict[str, Any]:
        """As `polynya run --once`, in a process of its own."""
        context, task = self.process(**settings)
        return run_once(context, [Unit("in", "in", task.step, lands=True)]).failures

    def values(self, table: str) -> list[tuple[int, int, bytes]]:
        log = LandedLog(self.store, "in", table)
        found = []
        for number in log.numbers():
            rows = parquet.read_table(io.BytesIO(self.store.get(log.path(number)))).to_pylist()
            found += [
                (row["hdr__kafka_partition"], row["hdr__kafka_offset"], row["value"])
                for row in rows
            ]
        return found

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def tables(self) -> dict[str, int]:
        return landed_tables(self.store, "in")


def test_a_run_lands_what_there_is_and_ends():
    source = FakeKafka("clicks", "orders-%")
    source.topic("clicks", 2).partitions[1].add(b"a", b"b")
    source.topic("orders-eu").partitions[0].add(b"c")
    source.topic("other").partitions[0].add(b"d")
    zone = Zone(source)

    assert zone.run() == {}
    assert zone.run() == {}

    assert zone.tables == {"clicks": 1, "orders_eu": 1}
    assert zone.values("clicks") == [(1, 0, b"a"), (1, 1, b"b")]
    assert zone.values("orders_eu") == [(0, 0, b"c")]
    told = {event.subject: event.records for event in zone.told(StreamLanded)}
    assert told == {"in/clicks": 2, "in/orders_eu": 1}


def test_a_run_ends_although_more_comes_while_it_lands():
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    partition.add(*[b"x"] * 10)
    taking = source.records

    def take(*asked):
        found = taking(*asked)
        partition.add(*[b"late"] * 5)
        return found

    source.records = take
    zone = Zone(source)
    zone.run(batch={"max_records": 4})

    assert [value for _, _, value in zone.values("clicks")] == [b"x"] * 10


def test_a_landing_that_begins_now_remembers_where_now_was():
    source = FakeKafka("clicks", start="now")
    [partition] = source.topic("clicks").partitions
    partition.add(b"before")
    zone = Zone(source, {"start_from": "now"})
    zone.run()
    partition.add(b"after")
    zone.run()

    assert [value for _, _, value in zone.values("clicks")] == [b"after"]


def test_batches_come_at_the_interval_and_at_once_while_more_is_there():
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    partition.add(*[b"x"] * 5)
    zone = Zone(source, {"interval": "10s", "batch": {"max_records": 3}})
    _, task = zone.process()
    [unit] = task.step(GOES_ON).ready_units

    assert unit.step(GOES_ON).more
    assert unit.step(GOES_ON).wait_seconds == 10
    partition.add(b"y")
    zone.clock.advance(timedelta(seconds=4))
    assert unit.step(GOES_ON).wait_seconds == 6
    assert zone.tables == {"clicks": 2}
    zone.clock.advance(timedelta(seconds=6))
    unit.step(GOES_ON)
    assert zone.tables == {"clicks": 3}


def test_a_table_without_news_puts_nothing():
    source = FakeKafka("clicks")
    source.topic("clicks").partitions[0].add(b"x")
    zone = Zone(source)
    for _ in range(5):
        zone.run()

    assert zone.tables == {"clicks": 1}


def test_what_is_no_record_moves_the_position_once():
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    partition.add(b"x")
    zone = Zone(source)
    zone.run()
    partition.add(None, None)
    for _ in range(3):
        zone.run()

    assert zone.tables == {"clicks": 2}
    assert len(zone.values("clicks")) == 1


def test_what_is_lost_is_told_once_and_stays_counted():
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    partition.add(*[b"x"] * 3)
    zone = Zone(source)
    zone.run()
    partition.add(*[b"y"] * 6)
    partition.expire(before=7)
    zone.run()
    partition.add(b"z")
    zone.run()

    [lost] = zone.told(StreamLost)
    assert lost.text() == (
        "lost     in/clicks: clicks/0: 3 to 7 were deleted by the retention of the source before "
        "they were read"
    )
    footer = LandedLog(zone.store, "in", "clicks").newest()
    assert (footer.counts.lost, footer.totals.lost, footer.totals.records) == (0, 4, 6)


def test_a_table_of_another_task_is_left_alone():
    source = FakeKafka("clicks")
    source.topic("clicks").partitions[0].add(b"x")
    zone = Zone(source)
    zone.run()
    source.topics["clicks"].partitions[0].add(b"y")

    failures = zone.run(name="renamed", folder="in")

    assert failures["renamed/clicks"].code == "POLYNYA-STR-013"
    assert zone.tables == {"clicks": 1}


def test_a_table_takes_no_other_topic_that_wants_its_name():
    source = FakeKafka("a-b")
    source.topic("a-b").partitions[0].add(b"x")
    zone = Zone(source)
    zone.run()
    source.wanted = ("a.b",)
    source.topic("a.b").partitions[0].add(b"y")

    [failure] = zone.run().values()

    assert "belongs to the topic `a-b`, not `a.b`" in failure.message


@pytest.mark.parametrize(
    ("policy", "lands"), [("propagate", True), ("ignore", False), ("suspend", False)]
)
@pytest.mark.parametrize("into", [{"each": "topic"}, {"table": "all"}])
def test_a_topic_that_comes_later_follows_its_policy(policy, lands, into):
    source = FakeKafka("o-%", into=into)
    source.topic("o-1").partitions[0].add(b"x")
    zone = Zone(source, {"on_new_topic": policy, "into": into})
    zone.run()
    source.topic("o-2").partitions[0].add(b"y")
    failures = [zone.run() for _ in range(2)]

    landed = [value for table in zone.tables for _, _, value in zone.values(table)]
    assert sorted(landed) == ([b"x", b"y"] if lands else [b"x"])
    codes = [{error.code for error in failed.values()} for failed in failures]
    assert codes == ([{"POLYNYA-STR-016"}] * 2 if policy == "suspend" else [set(), set()])
    assert bool(zone.told(StreamIgnored)) == (policy == "ignore")


def test_a_topic_that_waits_for_a_decision_lands_when_it_is_named():
    source = FakeKafka("o-%")
    source.topic("o-1").partitions[0].add(b"x")
    zone = Zone(source, {"on_new_topic": "suspend"})
    zone.run()
    source.topic("o-2").partitions[0].add(b"y")
    zone.run()
    source.wanted = ("o-%", "o-2")

    assert zone.run() == {}
    assert zone.values("o_2") == [(0, 0, b"y")]


def test_the_policy_stop_ends_the_task():
    source = FakeKafka("o-%")
    source.topic("o-1").partitions[0].add(b"x")
    zone = Zone(source, {"on_new_topic": "stop"})
    zone.run()
    source.topic("o-2")
    _, task = zone.process()

    with pytest.raises(TaskStoppedError):
        task.step(GOES_ON)


def test_batches_that_are_too_old_go_but_for_the_newest():
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    zone = Zone(source, {"folder_retention": {"keep": "2d"}})
    for _ in range(4):
        partition.add(b"x")
        zone.run()
        zone.clock.advance(timedelta(days=1))
    log = LandedLog(zone.store, "in", "clicks")
    # The second was written two days before the fourth, which is too old by nothing.
    assert log.numbers() == [3, 4]

    zone.clock.advance(timedelta(days=30))
    zone.run()

    assert log.numbers() == [4]
    partition.add(b"y")
    zone.run()
    assert zone.values("clicks")[-1] == (0, 4, b"y")


def test_batches_are_kept_for_ever_where_that_is_asked_for():
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    zone = Zone(source, {"folder_retention": "keep"})
    for _ in range(3):
        partition.add(b"x")
        zone.run()
        zone.clock.advance(timedelta(days=1000))

    assert zone.tables == {"clicks": 3}
    assert len(zone.values("clicks")) == 3


@pytest.mark.parametrize("kill", ["before", "after"])
def test_a_first_look_that_was_killed_is_still_the_first(kill):
    source = FakeKafka("o-%")
    for name in ("o-1", "o-2", "o-3"):
        source.topic(name).partitions[0].add(b"x")
    zone = Zone(source, {"on_new_topic": "ignore"})
    _, task = zone.process()
    zone.store.kill = kill
    with pytest.raises(PowerCut):
        task.step(GOES_ON)
    zone.store.kill = None
    zone.run()

    assert sorted(zone.tables) == ["o_1", "o_2", "o_3"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 1), st.integers(1, 7)),
        st.tuples(st.just("marker"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("step"), st.integers(0, 1), st.sampled_from([None, "before", "after"])),
        st.tuples(st.just("grow"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=30)
@given(steps, st.integers(1, 5), st.integers(1, 40))
def test_every_record_lands_once_and_in_order_whoever_is_killed(history, records, size):
    """Two processes land the same table; each may be killed at any put and is started again."""
    source = FakeKafka("clicks")
    topic = source.topic("clicks", 2)
    zone = Zone(source, {"batch": {"max_records": records, "max_bytes": size}})
    units: list[Any] = [None, None]
    number = 0
    for kind, which, how in history:
        if kind == "add":
            for _ in range(how):
                topic.partitions[which].add(b"%04d" % number)
                number += 1
        elif kind == "marker":
            topic.partitions[which].add(*[None] * how)
        elif kind == "grow":
            topic.partitions.append(type(topic.partitions[0])())
            topic.partitions[-1].add(b"%04d" % number)
            number += 1
        else:
            zone.store.kill = how
            try:
                if units[which] is None:
                    [units[which]] = zone.process()[1].step(GOES_ON).ready_units
                zone.clock.advance(timedelta(minutes=2))
                units[which].step(GOES_ON)
            except PowerCut:
                units[which] = None
            zone.store.kill = None
    zone.run()

    wanted = [
        (at, offset, value)
        for at, partition in enumerate(topic.partitions)
        for offset, value in sorted(partition.records.items())
    ]
    found = zone.values("clicks")
    assert sorted(found) == wanted
    for at in range(len(topic.partitions)):
        offsets = [offset for place, offset, _ in found if place == at]
        assert offsets == sorted(offsets)
    footers = [
        LandedLog(zone.store, "in", "clicks").footer(n + 1) for n in range(zone.tables["clicks"])
    ]
    assert sum(footer.counts.records for footer in footers) == len(wanted)
    assert footers[-1].totals.records == len(wanted)
    assert footers[-1].totals.lost == 0
