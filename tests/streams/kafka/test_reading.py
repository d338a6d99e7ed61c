"""What a task of Spark takes of a partition, and what that says of the position."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from polynya.formats.landed import SCHEMAS
from polynya.streams.kafka.plan import (
    CUT,
    MARKED,
    OFFSET,
    PARTITION,
    TOPIC,
    Extent,
    Reads,
    all_bounded,
    bounded,
    budgets,
    cuts,
    largest,
    records,
    sizes,
)

ONE = ("clicks", 0)


def taken(values, limit, *, offsets=None, per_piece=2):
    rows = [
        {TOPIC: "clicks", PARTITION: 0, OFFSET: offset, "value": value}
        for offset, value in zip(offsets or range(len(values)), values, strict=True)
    ]
    pieces = pa.Table.from_pylist(rows, SCHEMAS["kafka"]).to_batches(max_chunksize=per_piece)
    found = list(bounded(iter(pieces), {ONE: limit}))
    return pa.Table.from_batches(found, MARKED)


@pytest.mark.parametrize(
    ("limit", "count"), [(1, 1), (10, 1), (11, 2), (20, 2), (29, 3), (50, 5), (99, 5)]
)
@pytest.mark.parametrize("per_piece", [1, 2, 5])
def test_a_partition_is_read_until_its_bytes_are_used_up(limit, count, per_piece):
    rows = taken([b"0123456789"] * 5, limit, per_piece=per_piece)

    assert records(rows).num_rows == count
    assert cuts(rows) == ({} if count == 5 else {ONE: count})


def test_one_record_is_taken_whatever_its_size():
    rows = taken([b"x" * 1000, b"y"], 10)

    assert records(rows)["value"].to_pylist() == [b"x" * 1000]
    assert cuts(rows) == {ONE: 1}


def test_a_cut_is_at_the_next_record_also_where_offsets_are_missing():
    rows = taken([b"0123456789"] * 3, 15, offsets=[3, 8, 21])

    assert records(rows)[OFFSET].to_pylist() == [3, 8]
    assert cuts(rows) == {ONE: 21}


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param(((0, 3), (3, 4), (4, 6)), id="a task for each partition"),
        pytest.param(((0, 6),), id="a task for all"),
        pytest.param(((0, 2), (2, 5), (5, 6)), id="a batch ends anywhere"),
    ],
)
def test_nothing_is_taken_of_a_partition_from_a_record_on_that_was_left_out(batches):
    rows = [
        {TOPIC: "clicks", PARTITION: 0, OFFSET: 4, "value": b"12"},
        {TOPIC: "clicks", PARTITION: 0, OFFSET: 5, CUT: 900},
        {TOPIC: "clicks", PARTITION: 0, OFFSET: 6, "value": b"34"},
        {TOPIC: "clicks", PARTITION: 1, OFFSET: 0, CUT: 700},
        {TOPIC: "clicks", PARTITION: 2, OFFSET: 0, "value": b"56"},
        {TOPIC: "clicks", PARTITION: 2, OFFSET: 1, "value": b"78"},
    ]
    pieces = [
        piece
        for begin, end in batches
        for piece in pa.Table.from_pylist(rows[begin:end], MARKED).to_batches()
    ]
    limits = {("clicks", 0): 99, ("clicks", 1): 99, ("clicks", 2): 1}

    found = all_bounded(pa.Table.from_batches(pieces), limits)

    assert records(found)["value"].to_pylist() == [b"12", b"56"]
    assert cuts(found) == {ONE: 5, ("clicks", 1): 0, ("clicks", 2): 1}
    assert largest(found) == 900


def test_a_partition_without_records_says_nothing():
    [*empty] = SCHEMAS["kafka"].empty_table().to_batches()

    assert list(bounded(empty, {})) == []
    assert cuts(taken([], 10)) == {}


def test_key_headers_and_value_count_and_null_is_nothing():
    rows = pa.Table.from_pylist(
        [{"hdr__kafka_key": "abc", "hdr__kafka_headers": "[]", "value": b"12"}, {"value": None}],
        SCHEMAS["kafka"],
    )

    assert sizes(rows).to_pylist() == [7, 0]


def test_the_bytes_of_a_batch_are_shared_by_what_waits():
    reads = Reads({("a", 0): Extent(0, 300), ("a", 1): Extent(5, 105)})

    assert budgets(reads, 1000) == {("a", 0): 750, ("a", 1): 250}


def test_spark_is_told_partitions_and_ends_in_json():
    from polynya.streams.kafka.reading import _options

    options = _options({"a.b": "c"}, Reads({("t", 1): Extent(3, 9), ("t", 0): Extent(0, 2)}))

    assert options["kafka.a.b"] == "c"
    assert json.loads(options["assign"]) == {"t": [0, 1]}
    assert json.loads(options["startingOffsets"]) == {"t": {"0": 0, "1": 3}}
    assert json.loads(options["endingOffsets"]) == {"t": {"0": 2, "1": 9}}
