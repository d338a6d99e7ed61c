"""The first batch of a table is what reading each of its messages exactly gives."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest

from polynya.formats.batch import BatchLimits, DatasetBatch
from polynya.formats.stream import reading as first
from polynya.formats.stream import reading as reader
from polynya.formats.stream.reading import read_stream
from tests.formats.stream.streams import WHOLE, landed, request_for

PLAIN = [{"id": at, "name": f"n{at}", "in": {"x": at / 4}} for at in range(40)]


def read_both(
    records: list[Any], limits: BatchLimits = WHOLE, **content: Any
) -> tuple[DatasetBatch, DatasetBatch, int]:
    """A batch as it is read, as the exact reader has it, and how often it was read."""
    values = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
    request = request_for(landed(values, **content), limits=limits)
    with (
        patch.object(first, "TYPE_SAMPLE_MESSAGES", 4),
        patch.object(first, "TYPE_SAMPLE_FROM_MESSAGES", 16),
        patch.object(reader, "_read", wraps=reader._read) as reading,
    ):
        found = read_stream(request)
    with patch.object(first, "TYPE_SAMPLE_FROM_MESSAGES", 10**9):
        return found, read_stream(request), reading.call_count


def same(one: DatasetBatch, other: DatasetBatch) -> bool:
    names = sorted(set(one.rows.column_names) - {"__raw"})
    rows = one.rows.select(names).to_pylist() == other.rows.select(names).to_pylist()
    refused = [(bad.offset, bad.rule) for bad in one.rejected]
    return (
        rows
        and one.schema == other.schema
        and refused == [(bad.offset, bad.rule) for bad in other.rejected]
        and one.rows_in == other.rows_in
        and one.files == other.files
        and one.met == other.met
    )


def test_messages_that_are_like_the_first_ones_are_read_as_columns():
    found, exact, times = read_both(PLAIN)

    assert same(found, exact)
    assert times == 2


@pytest.mark.parametrize(
    "other",
    [
        {"id": "text"},
        {"id": 1.5},
        {"id": 99, "new": True},
        {"id": 99, "in": {"x": 1.0, "y": 2}},
        {"id": 99, "in": "text"},
        {"id": 99, "name": 7},
        {"id": None},
        [{"id": 50}, {"id": 51}],
        b"no json",
        b'{"id": 1, "id": 2}',
    ],
    ids=str,
)
@pytest.mark.parametrize("at", [1, 30])
def test_another_message_gives_what_the_exact_reader_gives(other, at):
    found, exact, _ = read_both([*PLAIN[:at], other, *PLAIN[at:]])

    assert same(found, exact)


def test_limits_end_the_batch_where_they_always_do():
    found, exact, _ = read_both(PLAIN, BatchLimits(max_rows=21))

    assert same(found, exact)
    assert found.rows_in == 21


def test_few_messages_and_other_contents_are_read_once():
    assert read_both(PLAIN[:9])[2] == 1
    assert read_both([b"id\n1"] * 20, type="csv")[2] == 1
