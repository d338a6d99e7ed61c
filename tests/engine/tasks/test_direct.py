"""A table that reads its stream itself: rows and position together, whatever happens in between."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta

import pytest

from polynya.engine.unit import TimeSlice
from polynya.model.config.dataset import KEEPING
from polynya.model.errors import OperationError, TaskStoppedError
from polynya.observe.streams import StreamIgnored, StreamLost
from tests.engine.tasks.direct_table import MERGED, DirectTable, PowerCut, killed, message
from tests.lab.lab import Lab
from tests.streams.kafka.fake import FakeKafka, FakePartition

slow = pytest.mark.slow
APPEND = {"mode": "append_only", "partition_by": "none"}


def test_messages_become_a_table_and_the_position_comes_with_them(lab: Lab) -> None:
    facts = DirectTable(lab)
    facts.partition.add(message(1, name="Ann"), b"no json", None, message(2, name="Ben"))
    facts.run()
    facts.partition.add(message(1, name="Anna"), message(2, gone=True))
    facts.run("always")
    facts.run("always")

    assert facts.look.current("id", "name", "hdr__deleted") == [
        (1, "Anna", False),
        (2, "Ben", True),
    ]
    assert [row[:2] for row in facts.look.history("id", "name")] == [
        (1, "Ann"), (1, "Anna"), (2, "Ben"), (2, "Ben"),
    ]  # fmt: skip
    assert facts.look.rejected() == [("kafka:clicks/0/1", 0, "bad_json")]
    position = facts.position
    assert (position.number, position.totals) == (
        2,
        {"records": 5, "bytes": position.totals["bytes"], "lost": 0},
    )
    assert position.end["topics"]["clicks"]["partitions"] == {"0": 6}
    assert facts.look.table().state.copy.position.files == {}


#: Of a run over two batches: the takeover, the columns, and each batch.
COMMITS = range(1, 5)


@pytest.mark.parametrize(
    ("at", "before"),
    [
        pytest.param(at, before, marks=() if (at, before) == (3, False) else slow)
        for at in COMMITS
        for before in (True, False)
    ],
)
def test_a_kill_at_any_commit_loses_and_doubles_nothing(lab: Lab, at: int, before: bool) -> None:
    facts = DirectTable(lab, landing={"batch": {"max_records": 3}}, transform=dict(APPEND))
    facts.partition.add(*(message(number) for number in range(5)), b"no json")
    with killed(at, before=before), pytest.raises(PowerCut):
        facts.work()
    facts.run()

    assert facts.look.current("id") == [(number,) for number in range(5)]
    assert facts.look.rejected() == [("kafka:clicks/0/5", 0, "bad_json")]
    assert facts.look.totals() == {"in": 6, "out": 5, "filtered": 0, "quarantined": 1}


@pytest.mark.slow
def test_what_was_in_quarantine_goes_back_to_its_place_in_the_order(lab: Lab) -> None:
    transform = {**MERGED, "where": None, "timestamp": "seen"}
    facts = DirectTable(lab, transform={key: one for key, one in transform.items() if one})
    two = json.dumps([{"id": 1, "name": "b", "seen": "soon"}, {"id": 2, "name": "x"}]).encode()
    facts.partition.add(message(1, name="a"), two, message(1, name="c"))
    facts.run()
    refused = facts.look.rejected()
    facts.transform = dict(MERGED)
    replayed = facts.replay()
    facts.run("always")

    assert refused == [("kafka:clicks/0/1", 0, "bad_timestamp")]
    assert (replayed.records, replayed.copied) == (1, 1)
    assert facts.look.current("id", "name") == [(1, "c"), (2, "x")]
    assert facts.look.rejected() == []


@pytest.mark.slow
def test_a_record_that_is_refused_again_stays_where_it_was(lab: Lab) -> None:
    facts = DirectTable(lab)
    facts.partition.add(message(1), b"no json")
    facts.run()
    facts.replay()
    facts.replay()

    assert facts.look.rejected() == [("kafka:clicks/0/1", 0, "bad_json")]


@pytest.mark.slow
def test_a_table_that_begins_now_remembers_where_now_was(lab: Lab) -> None:
    source = FakeKafka("clicks", start="now")
    facts = DirectTable(lab, source, {"start_from": "now"}, dict(APPEND))
    facts.partition.add(message(1))
    facts.run()
    facts.partition.add(message(2))
    facts.run()

    assert facts.look.current("id") == [(2,)]


@pytest.mark.slow
def test_messages_that_expand_are_read_in_smaller_batches(lab: Lab) -> None:
    several = gzip.compress(json.dumps([{"id": n} for n in range(40)]).encode())
    facts = DirectTable(lab, transform={**APPEND, "batch": {"max_rows": 100}})
    facts.partition.add(*[several] * 8)
    facts.run()

    totals = facts.look.totals()
    assert (totals["in"], totals["out"]) == (320, 320)
    assert facts.position.totals["records"] == 8
    assert facts.position.number > 2


@pytest.mark.slow
def test_a_message_with_more_records_than_a_batch_may_have_is_taken(lab: Lab) -> None:
    several = json.dumps([{"id": n} for n in range(40)]).encode()
    facts = DirectTable(lab, transform={**APPEND, "batch": {"max_rows": 10}})
    facts.partition.add(several, several)
    facts.run()

    assert facts.look.totals()["out"] == 80


@pytest.mark.slow
def test_what_is_lost_is_told_and_counted(lab: Lab) -> None:
    facts = DirectTable(lab, transform=dict(APPEND))
    facts.partition.add(message(1))
    facts.run()
    facts.partition.add(*(message(number) for number in range(2, 6)))
    facts.partition.expire(before=4)
    facts.run()

    assert facts.look.current("id") == [(1,), (5,)]
    [lost] = facts.told(StreamLost)
    assert (lost.at, lost.begin, lost.end) == ("clicks/0", "1", "4")
    assert facts.position.totals["lost"] == 3


@pytest.mark.slow
def test_a_batch_comes_at_each_interval_and_at_once_while_more_is_there(lab: Lab) -> None:
    landing = {"interval": "10s", "batch": {"max_records": 2}}
    facts = DirectTable(lab, landing=landing, transform=dict(APPEND))
    facts.partition.add(*(message(number) for number in range(3)))
    unit, goes_on = facts.unit(), TimeSlice(at_once=False)

    assert unit.step(goes_on).more
    assert unit.step(goes_on).wait_seconds == 10
    facts.partition.add(message(3))
    lab.clock.advance(timedelta(seconds=4))
    assert unit.step(goes_on).wait_seconds == 6
    lab.clock.advance(timedelta(seconds=6))
    unit.step(goes_on)

    assert len(facts.look.current("id")) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "taken"), [("propagate", True), ("ignore", False), ("suspend", False)]
)
def test_a_topic_that_comes_later_follows_its_policy(lab: Lab, policy: str, taken: bool) -> None:
    source = FakeKafka("o-%", into={"table": "all"})
    landing = {"into": {"table": "all"}, "on_new_topic": policy}
    facts = DirectTable(lab, source, landing, dict(APPEND))
    source.topic("o-1").partitions[0].add(message(1))
    facts.run()
    source.topic("o-2").partitions[0].add(message(2))
    codes = {one.code for one in facts.failures().values()}

    assert facts.look.current("id") == ([(1,), (2,)] if taken else [(1,)])
    assert codes == ({"POLYNYA-STR-016"} if policy == "suspend" else set())
    assert bool(facts.told(StreamIgnored)) == (policy == "ignore")


@pytest.mark.slow
def test_the_policy_stop_ends_the_task(lab: Lab) -> None:
    source = FakeKafka("o-%", into={"table": "all"})
    facts = DirectTable(
        lab, source, {"into": {"table": "all"}, "on_new_topic": "stop"}, dict(APPEND)
    )
    source.topic("o-1").partitions[0].add(message(1))
    facts.run()
    source.topic("o-2")

    with pytest.raises(TaskStoppedError):
        facts.run()


@pytest.mark.slow
def test_a_stream_that_is_not_there_is_an_error_that_does_not_last(lab: Lab) -> None:
    facts = DirectTable(lab, transform=dict(APPEND))
    [failure] = facts.failures().values()
    facts.partition.add(message(1))
    facts.run()

    assert failure.code == "POLYNYA-STR-064"
    assert facts.look.current("id") == [(1,)]


@pytest.mark.slow
def test_a_reload_reads_the_source_again_and_moves_what_differs(lab: Lab) -> None:
    facts = DirectTable(lab, landing={"batch": {"max_records": 2}})
    facts.partition.add(message(1, name="a"), message(2, name="b"), message(1, name="c"))
    facts.run("always")
    before = (facts.look.current("id", "name"), facts.look.history("id", "name"))
    facts.partition.add(message(3, name="d"))
    done = facts.reload()

    assert facts.look.current("id", "name") == [*before[0], (3, "d")]
    assert [row for row in facts.look.history("id", "name") if row[0] != 3] == before[1]
    assert done.loaded == 4
    facts.partition.add(message(1, name="e"))
    facts.run("always")
    assert facts.look.current("id", "name") == [(1, "e"), (2, "b"), (3, "d")]
    assert facts.position.totals["records"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
def test_a_reload_that_was_killed_goes_on_and_a_run_waits_for_it(lab: Lab, before: bool) -> None:
    facts = DirectTable(lab, landing={"batch": {"max_records": 1}})
    facts.partition.add(message(1, name="a"), message(2, name="b"), message(1, name="c"))
    facts.run("always")
    with killed(4, before=before), pytest.raises(PowerCut):
        facts.reload()
    facts.partition.add(message(4, name="d"))
    facts.run()
    meanwhile = facts.look.current("id", "name")
    facts.reload()
    facts.run("always")

    assert meanwhile == [(1, "c"), (2, "b")]
    assert facts.look.current("id", "name") == [(1, "c"), (2, "b"), (4, "d")]


@pytest.mark.slow
def test_a_reload_is_refused_when_the_source_has_deleted_the_beginning(lab: Lab) -> None:
    facts = DirectTable(lab)
    facts.partition.add(message(1, name="a"), message(2, name="b"))
    facts.run("always")
    facts.partition.expire(before=1)
    with pytest.raises(OperationError) as refused:
        facts.reload()
    facts.partition.add(message(3, name="c"))
    facts.reload(KEEPING)

    assert refused.value.code == "POLYNYA-STR-066"
    assert "clicks/0 from 0 on (retention)" in refused.value.message
    assert facts.look.current("id", "name") == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [True, False])
def test_a_reload_needs_an_order_for_a_record_in_two_partitions(lab: Lab, ordered: bool) -> None:
    """The second partition came when the first had been read; a reload reads both at a time."""
    settings = {"sequence_by": ["seq"]} if ordered else {}
    facts = DirectTable(lab, transform={**MERGED, **settings})
    facts.partition.add(*(message(1, name=f"{n}", seq=n) for n in range(5)))
    facts.run()
    facts.source.topics["clicks"].partitions.append(FakePartition())
    facts.source.topics["clicks"].partitions[1].add(message(1, name="newest", seq=9))
    facts.run("always")
    try:
        facts.reload()
    except OperationError as refused:
        assert refused.code == "POLYNYA-STR-073"
        assert not ordered
    else:
        assert ordered

    assert facts.look.current("id", "name") == [(1, "newest")]


@pytest.mark.slow
def test_a_source_that_deletes_what_was_read_is_not_reloaded_with_deleting(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = DirectTable(lab)
    facts.partition.add(message(1, name="a"))
    facts.run("always")
    files = {"url": "/in", "pattern": "<yyyy>/part-*", "delete_after_load": True}
    monkeypatch.setattr(DirectTable, "written", {"files": files})
    with pytest.raises(OperationError) as refused:
        facts.reload()

    assert refused.value.code == "POLYNYA-STR-066"
    assert "files are deleted after they were read" in refused.value.message
    assert facts.look.current("id", "name") == [(1, "a")]


@pytest.mark.slow
def test_a_reload_names_no_files_and_needs_something_that_was_read(lab: Lab) -> None:
    facts = DirectTable(lab)
    facts.partition.add(message(1))
    with pytest.raises(OperationError, match="nothing was read of its stream yet"):
        facts.reload()
    facts.run()
    with pytest.raises(OperationError) as refused:
        facts.reload(files="clicks/*")

    assert refused.value.code == "POLYNYA-STR-067"


@pytest.mark.slow
def test_a_table_does_not_change_over_to_landed_batches_or_to_another_stream(lab: Lab) -> None:
    facts = DirectTable(lab, transform=dict(APPEND))
    facts.partition.add(message(1))
    facts.run()
    facts.landing = {"into": {"table": "other"}}
    facts.source.into = facts.task.reads.into
    [failure] = facts.failures().values()

    assert failure.code == "POLYNYA-STR-065"
