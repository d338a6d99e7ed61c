"""Times of 96 bits in Parquet arrive exactly, or are refused by name; never as another year."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats.batch import WHOLE_FILE
from tests.formats.helpers import a_dataset, column, read, rules

FAR = [
    datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1), datetime(1600, 2, 29),
    datetime(2262, 4, 12), datetime(2026, 1, 1, 12, 0, 0, 123456), None,
]  # fmt: skip


def int96(at: pa.Array) -> bytes:
    """A file of records with such times."""
    out = io.BytesIO()
    table = pa.table({"id": range(len(at)), "n": [1] * len(at), "at": at})
    parquet.write_table(table, out, use_deprecated_int96_timestamps=True, store_schema=False)
    return out.getvalue()


@pytest.mark.parametrize("declared", ["timestamp", "timestamp_ntz", "string", None])
def test_years_beyond_64_bits_of_nanoseconds_arrive(declared: str | None) -> None:
    columns = {} if declared is None else {"at": declared}

    batch = read(int96(pa.array(FAR, pa.timestamp("us"))), a_dataset("parquet", columns=columns))

    assert rules(batch) == []
    found = column(batch, "at")
    if declared == "string":
        found = [
            None if text is None else datetime.fromisoformat(text.strip('"')) for text in found
        ]
    assert [one and one.replace(tzinfo=None) for one in found] == FAR


def test_years_inside_of_nested_values_arrive() -> None:
    inside = [[{"t": one}] for one in FAR]
    kind = pa.list_(pa.struct([("t", pa.timestamp("us"))]))

    batch = read(int96(pa.array(inside, kind)), a_dataset("parquet"))

    assert rules(batch) == []
    assert column(batch, "at") == inside


def test_a_time_that_is_finer_than_a_microsecond_is_refused_alone() -> None:
    nanos = pa.array([1_767_225_600_000_000_001, 1_767_225_600_000_000_000], pa.timestamp("ns"))

    batch = read(int96(nanos), a_dataset("parquet", columns={"at": "timestamp"}))

    [(offset, _)] = rules(batch)
    assert offset == 0
    assert "finer than a microsecond" in batch.rejected[0].error
    assert [one.replace(tzinfo=None) for one in column(batch, "at")] == [datetime(2026, 1, 1)]


def test_a_nested_one_refuses_its_file_with_the_reason() -> None:
    nested: Any = pa.array([[1_767_225_600_000_000_001]], pa.list_(pa.timestamp("ns")))

    batch = read(int96(nested), a_dataset("parquet"))

    assert rules(batch) == [(WHOLE_FILE, "unreadable_file")]
    assert "finer than a microsecond" in batch.rejected[0].error
