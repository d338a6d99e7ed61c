"""Shards are read once more up to where a landed batch ends: the same records, and no other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polynya.streams.source import Again, LandingLimits
from tests.streams.kinesis.given import Landing
from tests.streams.kinesis.packed import packed
from tests.streams.reading import read_all

ALL = LandingLimits(1000, 10**7)


def begin(landing: Landing) -> Any:
    """Where a landing begins that has not read anything."""
    return (
        landing.source.stream("events").next(("clicks",), None, LandingLimits(0, 0), once=False).end
    )


def read(again: Again, limits: LandingLimits = ALL) -> tuple[list[str], list[str]]:
    """All that there is, and what is lost."""
    values, lost = read_all(again, limits)
    return [one.decode() for one in values], lost


@given(
    steps=st.lists(st.sampled_from(["put", "put", "land", "split", "merge"]), max_size=12),
    after=st.lists(st.sampled_from(["put", "split"]), max_size=4),
    most=st.integers(1, 7),
)
def test_what_had_landed_is_read_whatever_came_before_and_after(
    steps: list[str], after: list[str], most: int
) -> None:
    landing = Landing()
    began, shards, numbers = begin(landing), ["s0"], iter(range(1000))

    def do(step: str) -> None:
        if step == "put":
            for shard in shards:
                landing.memory.put("clicks", shard, str(next(numbers)))
        elif step == "land":
            landing.step(records=most)
        elif step == "split" or len(shards) == 1:
            new = [f"s{next(numbers)}x", f"s{next(numbers)}y"]
            landing.memory.replace("clicks", [shards.pop(0)], new)
            shards.extend(new)
        else:
            new = [f"s{next(numbers)}m"]
            landing.memory.replace("clicks", [shards.pop(0), shards.pop(0)], new)
            shards.extend(new)

    for step in ["put", "land", *steps]:
        do(step)
    landed = [row["value"].decode() for row in landing.rows]
    until = dict(landing.position or {})
    for step in after:
        do(step)

    values, lost = read(landing.source.again("events", began, until), LandingLimits(most, 10**7))

    assert sorted(values) == sorted(landed)
    assert lost == []


def test_records_that_are_packed_come_whole() -> None:
    landing = Landing()
    began = begin(landing)
    pairs = ([("k", b"a"), ("k", b"b")], [("k", b"c"), ("k", b"d")])
    landing.memory.put("clicks", "s0", *(packed(*pair) for pair in pairs))
    landing.step(records=1)
    landing.memory.put("clicks", "s0", packed(("k", b"e")))

    values, _ = read(landing.source.again("events", began, landing.position or {}))

    assert values == ["a", "b"]


def test_what_was_deleted_or_belongs_to_another_stream_is_lost() -> None:
    landing = Landing()
    began = begin(landing)
    landing.memory.put("clicks", "s0", "a", "b")
    landing.land()
    until = landing.position or {}
    landing.clock.advance(timedelta(hours=25))
    landing.memory.trim("clicks")
    landing.memory.put("clicks", "s0", "later")
    assert read(landing.source.again("events", began, until)) == ([], ["retention"])

    landing.memory.drop("clicks")
    landing.memory.make("clicks")
    landing.memory.put("clicks", "s0", "other")
    assert read(landing.source.again("events", began, until)) == ([], ["recreated"])


def test_a_shard_comes_after_those_that_it_came_of_and_no_other() -> None:
    landing = Landing()
    landing.memory.replace("clicks", ["s0"], ["s1", "s2"])
    landing.memory.replace("clicks", ["s1"], ["s3"])

    in_order = landing.source.order_of(("clicks", "gone"))

    assert in_order("clicks/s0", "clicks/s3")
    assert in_order("clicks/s3", "clicks/s1")
    assert not in_order("clicks/s2", "clicks/s3")
    assert not in_order("clicks/s1", "clicks/s2")
