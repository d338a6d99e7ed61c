"""Partitions are read once more up to where a landed batch ends: the same records, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.streams.source import LandingLimits
from tests.streams.kafka.fake import FakeKafka, FakePartition
from tests.streams.reading import read_all

TABLE, STREAMS = "clicks", ("clicks",)


def step(source: FakeKafka, position: Any, limits: LandingLimits) -> tuple[Any, list[bytes]]:
    """The next batch of a landing: the position after it, and its messages."""
    stream = source.stream(TABLE)
    wanted = stream.next(STREAMS, position, limits, once=False)
    taken = stream.read(wanted, limits)
    return taken.end, taken.rows["value"].to_pylist()


@given(
    steps=st.lists(st.sampled_from(["put", "put", "gap", "land", "partition"]), max_size=12),
    most=st.integers(1, 7),
)
def test_what_had_landed_is_read_whatever_came_before_and_after(
    steps: list[str], most: int
) -> None:
    source, numbers, limits = FakeKafka(TABLE), iter(range(1000)), LandingLimits(most, 10**6)
    partitions = source.topic(TABLE).partitions
    began = source.stream(TABLE).next(STREAMS, None, LandingLimits(0, 0), once=False).end
    position, landed = began, list[bytes]()

    def do(step_: str) -> None:
        nonlocal position, landed
        if step_ == "put":
            for one in partitions:
                one.add(b"%d" % next(numbers), b"%d" % next(numbers))
        elif step_ == "gap":
            partitions[0].add(None)
        elif step_ == "partition":
            partitions.append(FakePartition())
        else:
            position, values = step(source, position, limits)
            landed += values

    for one in ["put", "land", *steps]:
        do(one)
    until = position
    for one in ("put", "partition", "put"):
        do(one)

    values, lost = read_all(source.again(TABLE, began, until), limits)

    assert sorted(values) == sorted(landed)
    assert lost == []


@pytest.mark.parametrize(
    ("gone", "left", "why"),
    [
        ("deleted", [], ["deleted"]),
        ("recreated", [], ["recreated"]),
        ("truncated", [b"a"], ["truncated"]),
        ("retention", [b"b"], ["retention"]),
    ],
)
def test_what_is_gone_is_told_and_nothing_else_read_instead(
    gone: str, left: list[bytes], why: list[str]
) -> None:
    source, limits = FakeKafka(TABLE), LandingLimits(10, 10**6)
    [partition] = source.topic(TABLE).partitions
    began = source.stream(TABLE).next(STREAMS, None, LandingLimits(0, 0), once=False).end
    partition.add(b"a", b"b")
    until, _ = step(source, began, limits)
    if gone == "deleted":
        del source.topics[TABLE]
    elif gone == "recreated":
        source.topic(TABLE, id="id-2").partitions[0].add(b"x", b"y", b"z")
    elif gone == "truncated":
        partition.end = 1
        del partition.records[1]
    else:
        partition.expire(before=1)

    values, lost = read_all(source.again(TABLE, began, until), limits)

    # What is cut is told with each look at it.
    assert (values, sorted(set(lost))) == (left, why)


def test_a_topic_that_came_later_is_read_from_its_begin() -> None:
    source, limits = FakeKafka("%", into={"table": TABLE}), LandingLimits(10, 10**6)
    source.topic("one").partitions[0].add(b"a")
    began = source.stream(TABLE).next(("one",), None, LandingLimits(0, 0), once=False).end
    source.topic("two").partitions[0].add(b"b")
    source.topics["two"].partitions[0].expire(before=0)
    stream = source.stream(TABLE)
    wanted = stream.next(("one", "two"), began, limits, once=False)
    until = stream.read(wanted, limits).end

    assert read_all(source.again(TABLE, began, until), limits) == ([b"a", b"b"], [])
    source.topics["two"].partitions[0].expire(before=1)
    assert read_all(source.again(TABLE, began, until), limits) == ([b"a"], ["retention"])
