"""How much is read at a time, from what the records before were like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.streams.kafka.source import Amounts
from polynya.streams.source import LandingLimits
from tests.streams.kafka.fake import FakeKafka

MIB = 2**20
LIMITS = LandingLimits(max_records=500_000, max_bytes=64 * MIB)


def met(*reads: tuple[int, int, int]) -> Amounts:
    """After reads of so many offsets, bytes, and with a largest record of so many."""
    amounts = Amounts()
    for offsets, size, largest in reads:
        amounts = amounts.after(offsets=offsets, size_bytes=size, largest=largest)
    return amounts


def test_a_read_has_about_as_many_offsets_as_the_bytes_allow():
    assert met((1000, 500_000, 700)).offsets(LIMITS) == int(0.8 * 64 * MIB / 500)
    assert met((1000, 10_000, 20)).offsets(LIMITS) == 500_000
    assert met((1, 900 * MIB, 900 * MIB)).offsets(LIMITS) == 1


def test_records_of_like_sizes_need_no_count_while_they_are_read():
    amounts = met((1000, 500_000, 700))

    assert amounts.record_bytes(LIMITS, amounts.offsets(LIMITS)) == 2048


def test_the_most_of_a_record_hardly_ever_changes():
    reads = [met((1000, 500_000, largest)) for largest in (600, 700, 900, 1000)]

    found = {one.record_bytes(LIMITS, offsets) for one in reads for offsets in (10, 9_000, 100_000)}

    assert found == {2048}


def test_somewhat_larger_ones_make_a_read_smaller_and_much_larger_ones_are_counted():
    larger, much_larger = met((1000, 500_000, 4000)), met((1000, 500_000, 1_000_000))

    assert larger.offsets(LIMITS) == 4 * 64 * MIB // 8000
    assert larger.record_bytes(LIMITS, larger.offsets(LIMITS)) is not None
    assert much_larger.record_bytes(LIMITS, much_larger.offsets(LIMITS)) is None
    # Few of them fit in any case.
    assert much_larger.record_bytes(LIMITS, 10) is not None


def test_a_large_record_is_forgotten_after_a_while():
    amounts = met((1000, 500_000, 1_000_000), *[(1000, 500_000, 600)] * 80)

    assert amounts.record_bytes(LIMITS, amounts.offsets(LIMITS)) is not None


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**9), st.integers(0, 10**9))),
    st.integers(1, 10**6),
    st.integers(1, 2**31),
)
def test_memory_is_bounded_whatever_was_read(reads, max_records, max_bytes):
    limits, amounts = LandingLimits(max_records, max_bytes), met(*reads)

    offsets = amounts.offsets(limits)
    most = amounts.record_bytes(limits, offsets)

    assert 1 <= offsets <= max_records
    if most is not None:
        assert most >= amounts.largest
        assert offsets * most <= max(4 * max_bytes, offsets)


@pytest.mark.parametrize("sizes", [[500, 10, 10, 10], [10, 500, 10, 10], [10, 10, 10, 500]])
def test_one_large_record_among_small_ones_is_taken_in_its_turn(sizes):
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    partition.add(*[b"x" * size for size in sizes])
    stream, limits = source.stream("clicks"), LandingLimits(max_records=4, max_bytes=100)
    position, taken = None, []
    for _ in range(10):
        wanted = stream.next(("clicks",), position, limits, once=False)
        if not wanted.records:
            break
        found = stream.read(wanted, limits)
        taken += [len(value) for value in found.rows["value"].to_pylist()]
        position = found.end

    assert taken == sizes
    # It was not in memory beside others: bytes were counted where it was read.
    assert None in source.asked
