"""How much is read at a time, from what the records before were like."""

from __future__ import annotations

import pytest

from polynya.streams.kafka.source import offsets_of
from polynya.streams.source import LandingLimits
from tests.streams.kafka.fake import FakeKafka

MIB = 2**20
LIMITS = LandingLimits(max_records=500_000, max_bytes=64 * MIB)


@pytest.mark.parametrize(
    ("offset_bytes", "offsets"),
    [(500, int(0.8 * 64 * MIB / 500)), (10, 500_000), (0, 500_000), (900 * MIB, 1)],
)
def test_a_read_has_about_as_many_offsets_as_the_bytes_allow(offset_bytes, offsets):
    assert offsets_of(LIMITS, offset_bytes) == offsets


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
