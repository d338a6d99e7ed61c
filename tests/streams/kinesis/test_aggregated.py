"""Records that the Kinesis Producer Library has packed into one."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.store.shards import ShardRecord
from polynya.streams.kinesis.reading import user_records
from tests.streams.kinesis.given import NOW, Landing
from tests.streams.kinesis.packed import MAGIC, number, packed, sealed, text

FULL = (0, 2**128 - 1)
#: The example of the format's page: two records of one key.
EXAMPLE = packed(("key", b"first"), ("key", b"second"))


def record(data: bytes) -> ShardRecord:
    return ShardRecord("7", "packed", data, NOW)


def found(data: bytes, hashes: tuple[int, int] | None = FULL) -> list[tuple[str, str, bytes]]:
    return [(one.number, one.key, one.data) for one in user_records(record(data), hashes)]


def place(key: str) -> int:
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest(), "big")


def test_each_record_has_its_own_key_and_number():
    assert found(packed(("a", b"1"), ("b", b""), ("a", b"x" * 300))) == [
        ("7.000000", "a", b"1"),
        ("7.000001", "b", b""),
        ("7.000002", "a", b"x" * 300),
    ]


def test_a_record_that_is_not_packed_is_itself():
    for data in (b"", b"{}", MAGIC, EXAMPLE[:-1], EXAMPLE[:-1] + b"\x00", MAGIC + b"x" * 40):
        assert user_records(record(data), FULL) == (record(data),)


@pytest.mark.parametrize(
    "message",
    [
        text(3, number(1, 0) + text(3, b"data")),  # no such key
        text(1, b"key") + text(3, number(1, 0)),  # no data
        text(1, b"key") + text(3, text(3, b"data")),  # no key
        text(1, b"\xff") + text(3, number(1, 0) + text(3, b"data")),
        text(1, b"key") + b"\x1a\x7f",  # longer than the message
        text(1, b"key") + b"\x80" * 11,
        text(1, b"key") + b"\x0f",  # a kind of value that there is not
        text(1, b"key")
        + text(2, b"no number")
        + text(3, number(1, 0) + number(2, 0) + text(3, b"")),
    ],
)
def test_what_only_begins_and_ends_alike_is_itself(message):
    data = sealed(message)

    assert user_records(record(data), FULL) == (record(data),)


def test_tags_and_fields_that_came_later_are_passed_over():
    fixed = bytes([9 << 3 | 1, *range(8), 10 << 3 | 5, *range(4)])

    assert found(packed(("a", b"1"), tags=text(4, text(1, b"tag")) + fixed)) == [
        ("7.000000", "a", b"1")
    ]


def test_records_of_another_shard_are_left_out():
    middle = sorted([place("a"), place("b")])[0]
    kept = "a" if place("a") == middle else "b"
    data = packed(("a", b"a"), ("b", b"b"), ("a", b"far"), hashes=[None, None, 2**128 - 1])

    assert [one[1] for one in found(data, (0, middle))] == [kept]
    assert [one[2] for one in found(data, (2**128 - 1, 2**128 - 1))] == [b"far"]
    assert len(found(data, None)) == 3


@given(st.binary())
def test_no_bytes_are_too_hostile(message):
    for data in (message, MAGIC + message, sealed(message)):
        assert b"".join(one.data for one in user_records(record(data), FULL)) is not None


def test_packed_records_land_whole_and_in_order_whatever_the_limits_are():
    landing = Landing()
    for begin in (0, 3):
        parts = [("k", b"%d" % n) for n in range(begin, begin + 3)]
        landing.memory.put("clicks", "s0", packed(*parts))
    landing.memory.put("clicks", "s0", "6")

    assert landing.land(records=1) == [str(n) for n in range(7)]
    assert landing.batches == 3
    offsets = [row["hdr__kinesis_offset"] for row in landing.rows]
    assert offsets == sorted(offsets)
    assert {row["hdr__kinesis_key"] for row in landing.rows} == {"k", "s0"}
