"""Shards land in the order of their lineage, exactly once; what is lost is named."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.model.errors import OperationError
from polynya.store.shards import BusyError, ExpiredError, ShardPage
from polynya.streams.kinesis.plan import described
from polynya.streams.kinesis.source import position_of
from polynya.streams.source import LandingLimits
from polynya.testing.fakes import busy, expired
from tests.streams.kinesis.given import NOW, Landing


def test_records_land_with_what_the_stream_says_of_them() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a", "b")

    assert landing.land() == ["a", "b"]
    assert landing.rows[1] == {
        "hdr__kinesis_stream": "clicks",
        "hdr__kinesis_shard": "s0",
        "hdr__kinesis_offset": "00000000000000000002",
        "hdr__kinesis_key": "s0",
        "hdr__kinesis_timestamp": NOW,
        "value": b"b",
    }
    assert landing.land() == []


def test_children_are_read_after_all_their_parents() -> None:
    landing = Landing()
    landing.memory.make("clicks", shards=2)
    landing.memory.put("clicks", "s0", *"abcde")
    landing.memory.put("clicks", "s1", *"vwxyz")
    landing.memory.replace("clicks", ["s0", "s1"], ["s2"])
    landing.memory.put("clicks", "s2", "1")
    landing.memory.replace("clicks", ["s2"], ["s3", "s4"])
    landing.memory.put("clicks", "s4", "2")

    landed = landing.land(records=4)

    assert sorted(landed) == sorted("abcdevwxyz12")
    assert landed[-2:] == ["1", "2"]


def test_a_shard_that_came_of_one_that_was_read_is_read_from_its_first_record() -> None:
    landing = Landing(start_from="now")
    landing.memory.put("clicks", "s0", "old")
    landing.clock.advance(timedelta(minutes=1))
    landing.land()
    landing.memory.put("clicks", "s0", "a")
    landing.land()
    landing.memory.replace("clicks", ["s0"], ["s1", "s2"])
    landing.memory.put("clicks", "s1", "b")
    landing.again()

    assert [row["value"] for row in landing.rows] == [b"a"]
    assert landing.land() == ["b"]


def test_it_begins_where_the_settings_say() -> None:
    landed = {}
    for start in ("earliest", NOW + timedelta(minutes=5), "now"):
        landing = Landing(start_from=start)
        landing.memory.put("clicks", "s0", "old")
        landing.clock.advance(timedelta(minutes=10))
        landing.memory.put("clicks", "s0", "recent")
        landing.clock.advance(timedelta(minutes=1))
        first = landing.land()
        landing.again()
        landing.memory.put("clicks", "s0", "new")
        landed[str(start)] = first + landing.land()

    assert list(landed.values()) == [["old", "recent", "new"], ["recent", "new"], ["new"]]


def test_limits_are_shared_among_shards_and_one_record_is_always_taken() -> None:
    landing = Landing()
    landing.memory.make("clicks", shards=2)
    landing.memory.put("clicks", "s0", *("x" * 50 for _ in range(10)))
    landing.memory.put("clicks", "s1", *("y" * 500 for _ in range(2)))

    landing.step(size=200)

    assert [row["hdr__kinesis_shard"] for row in landing.rows] == ["s0", "s0", "s1"]
    landing.land(size=200)
    assert len(landing.rows) == 12


def test_an_expired_place_is_asked_for_again_and_a_busy_shard_waits() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", *"abcdefgh")
    landing.memory.failures = [expired()]
    assert landing.step(records=3)

    landing.memory.failures = [busy()]
    with pytest.raises(BusyError):
        landing.step(records=3)
    landing.memory.failures = [expired()] * 3
    with pytest.raises(ExpiredError):
        landing.step(records=3)

    assert landing.land() == list("defgh")


def test_a_shard_that_gets_busy_leaves_what_was_read_of_it() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", *"abcdefgh")
    read = landing.memory.read

    def busy_after_a_page(stream: str, iterator: str):
        if landing.memory.reads == 1:
            landing.memory.reads += 1
            raise busy()
        return read(stream, iterator)

    landing.memory.read = busy_after_a_page  # type: ignore[method-assign]

    landing.step()

    assert [row["value"] for row in landing.rows] == [b"a", b"b", b"c"]
    assert landing.land() == list("defgh")


def test_a_busy_shard_keeps_no_other_one_waiting() -> None:
    landing = Landing()
    landing.memory.make("clicks", shards=2)
    landing.memory.put("clicks", "s0", "a")
    landing.memory.put("clicks", "s1", "b")
    read = landing.memory.read

    def busy_first(stream: str, iterator: str):
        if iterator.startswith("s0"):
            raise busy()
        return read(stream, iterator)

    landing.memory.read = busy_first  # type: ignore[method-assign]

    assert landing.step()
    assert [row["value"] for row in landing.rows] == [b"b"]
    landing.memory.read = read  # type: ignore[method-assign]
    assert landing.land() == ["a"]


def test_records_that_the_stream_deleted_before_they_were_read_are_named_and_counted() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a")
    landing.land()
    landing.memory.put("clicks", "s0", "never read")
    landing.clock.advance(timedelta(days=2))
    landing.memory.put("clicks", "s0", "b")
    landing.memory.trim("clicks")
    landing.again()

    assert landing.land() == ["b"]
    assert landing.lost == [("clicks/s0", "retention")]


def test_an_idle_stream_is_not_taken_for_one_that_lost_records() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a")
    landing.land()
    for _ in range(30):
        landing.clock.advance(timedelta(hours=2))
        landing.memory.trim("clicks")
        landing.land()
    landing.memory.put("clicks", "s0", "b")
    landing.again()

    assert landing.land() == ["b"]
    assert landing.lost == []
    # Written down four times a day, not at each look.
    assert landing.batches <= 2 + 10 + 1


def test_a_shard_that_is_gone_before_it_was_read_to_its_end_is_named() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", *"abc")
    landing.step(records=1)
    landing.memory.replace("clicks", ["s0"], ["s1"])
    landing.clock.advance(timedelta(days=2))
    landing.memory.trim("clicks")
    landing.memory.put("clicks", "s1", "d")
    landing.again()

    assert landing.land() == ["d"]
    assert landing.lost == [("clicks/s0", "retention")]


def test_a_stream_that_was_made_again_is_read_from_its_first_record_and_named() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a")
    landing.land()
    landing.memory.drop("clicks")
    assert landing.land() == []
    landing.clock.advance(timedelta(minutes=1))
    landing.memory.make("clicks")
    landing.memory.put("clicks", "s0", "b")

    assert landing.land() == ["b"]
    assert landing.lost == [("clicks", "recreated")]


def test_streams_are_found_by_name_and_by_wildcard_and_missing_ones_are_named() -> None:
    landing = Landing(streams=("click%", "orders"))
    landing.memory.make("clicks-2")
    landing.memory.make("other")

    found = landing.source.find()

    assert found.tables == {"events": ("clicks", "clicks-2")}
    assert "there is no stream `orders`" in str(found.refused)


def test_once_ends_although_records_keep_coming() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a")
    steps = 0
    while landing.step(once=True):
        landing.memory.put("clicks", "s0", "more")
        steps += 1

    assert steps == 1


def test_the_position_of_another_source_is_refused() -> None:
    with pytest.raises(OperationError, match="not one of Kinesis streams"):
        position_of({"topics": {}}, "clicks")


@settings(max_examples=100)
@given(st.data())
def test_every_record_lands_once_and_in_the_order_of_its_key(data: st.DataObject) -> None:
    """Shards split and merge, processes end between any steps, places expire."""
    landing = Landing()
    landing.memory.make("clicks", shards=2)
    open_shards, number, made = ["s0", "s1"], 0, 2
    lineage: dict[str, list[str]] = {}
    for _ in range(data.draw(st.integers(5, 25))):
        what = data.draw(st.sampled_from(["put", "put", "split", "merge", "step", "killed"]))
        shard = data.draw(st.sampled_from(open_shards))
        if what == "put":
            for _ in range(data.draw(st.integers(1, 8))):
                landing.memory.put("clicks", shard, str(number))
                lineage.setdefault(shard, []).append(str(number))
                number += 1
        elif what == "split" and len(open_shards) < 5:
            children = [f"s{made}", f"s{made + 1}"]
            landing.memory.replace("clicks", [shard], children)
            open_shards = [one for one in open_shards if one != shard] + children
            made += 2
        elif what == "merge" and len(open_shards) > 1:
            parents = open_shards[:2]
            landing.memory.replace("clicks", parents, [f"s{made}"])
            open_shards = [*open_shards[2:], f"s{made}"]
            made += 1
        elif what in {"step", "killed"}:
            if data.draw(st.booleans(), "expires"):
                landing.memory.failures = [expired()]
            landing.step(records=data.draw(st.integers(1, 6)), put=what == "step")
            landing.memory.failures = []
            if what == "killed":
                landing.again()
    landing.land(records=4)

    places = {row["value"].decode(): place for place, row in enumerate(landing.rows)}
    assert sorted(places, key=int) == [str(one) for one in range(number)]
    assert len(landing.rows) == number
    assert landing.lost == []
    # In a shard in order, and a child after its parents.
    stream = landing.memory.stream("clicks")
    for shard in stream.shards if stream else ():
        mine = [places[one] for one in lineage.get(shard.id, [])]
        assert mine == sorted(mine)
        for parent in shard.parents:
            before = [places[one] for one in lineage.get(parent, [])]
            assert not mine or not before or max(before) < min(mine)


def test_a_position_says_where_each_shard_is() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a")
    landing.memory.replace("clicks", ["s0"], ["s1"])
    landing.memory.put("clicks", "s1", "b")
    landing.land()

    assert described(landing.position or {}).places == {
        "clicks/s0": "read to its end",
        "clicks/s1": "after 00000000000000000002",
    }


def test_what_was_read_in_vain_is_read_again_also_by_a_run_that_ends() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", *"abc")

    assert not landing.step(put=False, once=True)
    assert landing.step(once=True)
    assert [row["value"] for row in landing.rows] == [b"a", b"b", b"c"]
    landing.memory.put("clicks", "s0", "late")
    assert not landing.step(once=True)


def test_a_stream_that_is_older_than_what_it_keeps_may_lack_what_was_read() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a")
    began = landing.stream.next(("clicks",), None, LandingLimits(0, 0), once=False).end
    again = landing.source.reread_from(began)
    limits = LandingLimits(100, 1000)

    landing.clock.advance(timedelta(hours=23))
    assert not landing.source.stream("events").next(("clicks",), again, limits, once=False).lost
    landing.clock.advance(timedelta(hours=2))
    [lost] = landing.source.stream("events").next(("clicks",), again, limits, once=False).lost

    assert (lost.at, lost.why) == ("clicks/s0", "retention")
    assert not landing.source.stream("events").next(("clicks",), began, limits, once=False).lost


def test_a_position_says_how_many_shards_have_more_and_since_when() -> None:
    landing = Landing()
    landing.memory.make("clicks", shards=2)
    landing.memory.put("clicks", "s0", *"abcdef")
    landing.memory.put("clicks", "s1", "x")
    landing.clock.advance(timedelta(minutes=2))

    landing.step(records=4)
    behind = described(landing.position or {})
    landing.land()
    after = described(landing.position or {})

    # Of the first shard the first ones were read, which arrived two minutes ago.
    assert (behind.behind, behind.unread_since) == (1, NOW)
    assert (after.behind, after.unread_since) == (0, landing.clock.now())


def test_what_was_behind_and_is_no_longer_is_written_down_once() -> None:
    landing = Landing()
    landing.memory.put("clicks", "s0", "a")
    landing.land()
    assert landing.position is not None
    landing.position["behind"] = 1

    assert [landing.step(), landing.step()] == [True, False]
    assert landing.position["behind"] == 0


@pytest.mark.parametrize(("readers", "at_once"), [("auto", 8), (1, 1), (3, 3)])
def test_so_many_shards_are_read_side_by_side(readers: int | str, at_once: int) -> None:
    landing = Landing(readers=readers)
    landing.memory.make("clicks", shards=12)
    for shard in range(12):
        landing.memory.put("clicks", f"s{shard}", "x")
    at_work: list[str] = []
    most: list[int] = []
    reading = landing.memory.read

    def read(stream: str, iterator: str) -> ShardPage:
        at_work.append(iterator)
        most.append(len(at_work))
        time.sleep(0.005)
        at_work.remove(iterator)
        return reading(stream, iterator)

    landing.memory.read = read  # type: ignore[method-assign]

    assert len(landing.land()) == 12
    assert max(most) <= at_once
    assert (max(most) == 1) == (at_once == 1)
