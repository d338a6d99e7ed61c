"""What a landing has beyond its landed batches: work that waits, as landed files are."""

from __future__ import annotations

from datetime import timedelta

from polynya.engine.tasks.direct import DirectUnit
from polynya.engine.unit import TimeSlice
from tests.engine.tasks.direct_table import DirectTable, message
from tests.engine.tasks.test_direct import APPEND
from tests.engine.tasks.test_streams import GOES_ON, FakeKafka, Zone
from tests.lab.lab import Lab


def test_records_beyond_the_landed_batches_are_in_the_backlog():
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    partition.add(*[b"x"] * 8)
    zone = Zone(source, {"interval": "10s", "batch": {"max_records": 3}})
    context, task = zone.process()
    [unit] = task.step(GOES_ON).ready_units
    seen = []

    for _ in range(3):
        unit.step(GOES_ON)
        zone.clock.advance(timedelta(seconds=1))
        seen.append(context.backlog.size(zone.clock.monotonic()))

    assert [(one.files, one.size_bytes, one.oldest_seconds) for one in seen] == [
        (1, 5, 1.0),
        (1, 2, 2.0),
        (0, 0, 0.0),
    ]


def test_a_stream_that_is_behind_knows_how_old_what_it_lacks_is():
    source = FakeKafka("clicks")
    source.topic("clicks").partitions[0].add(*[b"x"] * 5)
    zone = Zone(source, {"batch": {"max_records": 3}})
    context, task = zone.process()
    [unit] = task.step(GOES_ON).ready_units
    seen = []

    for _ in range(2):
        unit.step(GOES_ON)
        zone.clock.advance(timedelta(seconds=5))
        taken = context.backlog.streams(zone.clock.monotonic())["in/clicks"]
        seen.append((taken.records, taken.behind_seconds))

    assert seen == [(3, 5.0), (5, 0.0)]


def test_a_topic_that_is_gone_leaves_no_backlog():
    source = FakeKafka("clicks")
    source.topic("clicks").partitions[0].add(*[b"x"] * 8)
    zone = Zone(source, {"batch": {"max_records": 3}})
    context, task = zone.process()
    [unit] = task.step(GOES_ON).ready_units
    unit.step(GOES_ON)
    assert context.backlog.size(0.0).files == 1

    del source.topics["clicks"]
    zone.clock.advance(timedelta(seconds=30))
    task.step(GOES_ON)

    assert context.backlog.size(0.0).files == 0


def test_a_table_that_reads_its_stream_has_that_backlog_too(lab: Lab) -> None:
    facts = DirectTable(lab, landing={"batch": {"max_records": 3}}, transform=APPEND)
    facts.partition.add(*[message(number) for number in range(8)])
    context = lab.context("never")
    whole = DirectUnit(context, facts.task, facts.look.dataset, facts.source)
    seen = []

    while whole.step(TimeSlice(at_once=True)).more:
        seen.append(context.backlog.size(lab.clock.monotonic()))

    assert [(one.files, one.size_bytes > 0) for one in seen] == [(1, True), (1, True), (0, False)]
