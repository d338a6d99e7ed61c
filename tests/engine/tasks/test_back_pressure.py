"""What is read waits for what cannot follow: copies for the apply, landing for the copies."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from polynya.engine.landing import TaskLanding
from polynya.engine.listing import SharedListing
from polynya.engine.runner import run_once, units
from polynya.engine.tasks.direct import DirectUnit
from polynya.engine.tasks.storage import DeclaredDataset
from polynya.engine.unit import TimeSlice
from polynya.observe.engine import BatchCopied, DatasetApplied
from polynya.observe.events import CopyWaiting, Event
from polynya.observe.streams import StreamWaiting
from tests.engine.tasks.direct_table import MERGED, DirectTable, message
from tests.engine.tasks.test_landed_expiry import copied, reader
from tests.engine.tasks.test_streams import GOES_ON, Zone
from tests.lab.lab import Lab
from tests.streams.kafka.fake import FakeKafka

#: An apply is worth it at two rows, and at four of them copies wait for it.
APPLY: dict[str, Any] = {"max_pending_rows": 2, "min_fraction": 0, "copies_wait_at": 2}


def told(lab: Lab, kind: type[Event]) -> list[Any]:
    return [event for event in lab.events if isinstance(event, kind)]


def record(key: int) -> dict[str, Any]:
    return {"id": key, "seq": key, "op": "U", "at": f"2026-01-01T00:00:{key:02d}Z"}


def test_copies_wait_while_the_apply_cannot_follow_and_go_on_then(lab: Lab) -> None:
    users = lab.feed(task={"apply": APPLY, "batch": {"max_rows": 1, "freshness": "1s"}})
    users.apply(record(0))
    users.land(*(record(key) for key in range(1, 9)))
    context = lab.context("policy")
    look = SharedListing(TaskLanding(context, users.task), context.clock, ())
    unit = DeclaredDataset(context, users.task, users.dataset, look)
    lab.events.clear()

    def step() -> Any:
        return unit.step(GOES_ON)

    # The apply is slow: it has no turn for a long time.
    ends = [step() for _ in range(8)]

    assert [one.more for one in ends] == [True] * 4 + [False] * 4
    assert len(told(lab, BatchCopied)) == 4
    [waiting] = told(lab, CopyWaiting)
    assert waiting.reason == "4 pending rows are 2 times 2"
    [applies] = [one for one in ends[-1].ready_units if one.name.endswith("(apply)")]
    applies.step(TimeSlice())
    assert [step().more for _ in range(5)] == [True] * 4 + [False]
    assert users.current("id") == [(key,) for key in range(9)]


def test_a_run_that_ends_applies_in_between_and_ends(lab: Lab) -> None:
    users = lab.feed(task={"apply": APPLY, "batch": {"max_rows": 1}})
    users.apply(record(0))
    users.land(*(record(key) for key in range(1, 9)))
    context = lab.context("policy")
    lab.events.clear()

    assert run_once(context, units(context, [users.task])).failures == {}

    assert len(told(lab, DatasetApplied)) == 2
    assert users.current("id") == [(key,) for key in range(9)]


def test_a_run_that_never_applies_waits_for_nothing(lab: Lab) -> None:
    users = lab.feed(task={"apply": APPLY, "batch": {"max_rows": 1}})
    users.land(*(record(key) for key in range(6)))
    users.run("never")

    assert told(lab, CopyWaiting) == []
    assert len(users.current("id")) == 6


def test_a_table_that_reads_its_stream_waits_too(lab: Lab) -> None:
    facts = DirectTable(lab, landing={"batch": {"max_records": 1}}, transform={**MERGED})
    facts.transform["apply"] = APPLY
    facts.partition.add(*[message(number) for number in range(6)])
    context = lab.context("policy")
    whole = DirectUnit(context, facts.task, facts.look.dataset, facts.source)

    for _ in range(8):
        whole.step(GOES_ON)
        lab.clock.advance(timedelta(minutes=2))

    assert len(told(lab, CopyWaiting)) == 1
    assert sum(one.rows_in for one in told(lab, BatchCopied)) < 6


def zone_with_late_table() -> Zone:
    source = FakeKafka("clicks")
    source.topic("clicks").partitions[0].add(*[json.dumps({"id": n}).encode() for n in range(9)])
    zone = Zone(source, {"batch": {"max_records": 1}, "max_uncopied": 1, "interval": "1s"})
    zone.tasks = [reader("late")]
    return zone


def test_landing_waits_for_tables_that_lack_too_much_of_it() -> None:
    zone = zone_with_late_table()
    _, task = zone.process()
    [unit] = task.step(GOES_ON).ready_units

    for _ in range(5):
        unit.step(GOES_ON)
        zone.clock.advance(timedelta(seconds=1))

    assert zone.tables == {"clicks": 1}
    [waiting] = zone.told(StreamWaiting)
    assert waiting.tables == ("web.late",)
    assert "landing waits for the copies of web.late" in waiting.text()
    zone.states["web.late"] = copied(1)
    zone.clock.advance(timedelta(seconds=6))
    unit.step(GOES_ON)
    assert zone.tables == {"clicks": 2}


def test_a_run_that_ends_lands_all_that_there_was() -> None:
    zone = zone_with_late_table()

    assert zone.run() == {}

    assert zone.tables == {"clicks": 9}
    assert zone.told(StreamWaiting) == []


def test_landing_waits_for_nobody_where_no_table_reads_or_none_is_known() -> None:
    for tasks in ([], None):
        zone = zone_with_late_table()
        zone.tasks = tasks
        _, task = zone.process()
        [unit] = task.step(GOES_ON).ready_units
        for _ in range(3):
            unit.step(GOES_ON)

        assert zone.tables == {"clicks": 3}


def test_who_reads_is_asked_only_when_the_room_may_be_full() -> None:
    zone = zone_with_late_table()
    context, task = zone.process(max_uncopied="1MB")

    def asked(_folder: str) -> None:
        raise AssertionError("nobody has to look at tables")

    context.landed_readers.of = asked  # type: ignore[method-assign]
    [unit] = task.step(GOES_ON).ready_units

    for _ in range(3):
        unit.step(GOES_ON)

    assert zone.tables == {"clicks": 3}
