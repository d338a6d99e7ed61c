"""A quarantined record can be read again from its raw bytes alone."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats.batch import Rejected
from polynya.formats.native.format import reread_native
from tests.formats.helpers import a_dataset, column, json_lines, read, reread, rereading


def test_a_json_record_fits_after_the_settings_changed() -> None:
    raw = json_lines({"id": 1, "n": 1, "x": "12"})
    refused = read(raw, a_dataset(columns={"x": "date"})).rejected[0]

    batch = reread(refused.raw, a_dataset(columns={"x": "int"}), offset=7)

    assert column(batch, "x") == [12]
    assert (column(batch, "__file"), column(batch, "__offset")) == (["f"], [7])
    assert dict(batch.files) == {}


def test_a_record_that_is_still_bad_is_refused_again() -> None:
    batch = reread(b"garbage", a_dataset(), offset=7)

    assert [(one.offset, one.rule, one.raw) for one in batch.rejected] == [
        (7, "bad_json", b"garbage")
    ]


def test_a_csv_record_brings_its_header() -> None:
    raw = column(read(b'id,n,x\n1,1,"a\nb"\n', a_dataset("csv")), "__raw")[0]

    assert column(reread(raw, a_dataset("csv")), "x") == ["a\nb"]


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([b"\0\xff"]), "binary"),
        (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), "decimal(9,2)"),
        (pa.array([datetime(2026, 1, 1, 1, 2, 3, 4, tzinfo=UTC)]), "timestamp"),
        (pa.array([datetime(2026, 1, 1)]), "timestamp_ntz"),
        (pa.array([datetime(2026, 1, 1).date()]), "date"),
        (pa.array([{"a": [b"x"]}]), "struct<a:array<binary>>"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), "map<string,int>"),
    ],
)
def test_a_parquet_record_keeps_every_value(array: pa.Array, kind: str) -> None:
    out = io.BytesIO()
    parquet.write_table(pa.table({"id": [1], "n": [1], "x": array}), out)
    first = read(out.getvalue(), a_dataset("parquet"))

    raw = column(first, "__raw")[0]
    again = reread(raw, a_dataset("parquet"), first.schema)

    assert str(first.schema["x"]) == kind
    assert again.schema == first.schema
    assert again.rows.to_pylist() == first.rows.to_pylist()


def test_several_records_are_read_again_as_one_batch() -> None:
    good = json_lines({"id": 1, "n": 1})
    records = [Rejected("a", 3, "r", "e", good), Rejected("b", 5, "r", "e", b"still bad")]

    batch = reread_native(rereading(records, a_dataset()))

    assert (column(batch, "__file"), column(batch, "__offset")) == (["a"], [3])
    assert [(one.file, one.offset) for one in batch.rejected] == [("b", 5)]
    assert (batch.rows_in, dict(batch.files)) == (2, {})
