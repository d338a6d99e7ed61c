"""CSV, Parquet, ORC and Avro: typed without loss, replayable from their raw bytes."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from tests.formats.helpers import a_dataset, column, read, rules, schema, types

_CSV = a_dataset("csv")


def _csv(*rows: str) -> bytes:
    return "\n".join(rows).encode()


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["1", "-5", ""], "bigint", [1, -5, None]),
        (["007", "1"], "string", ["007", "1"]),
        (["9223372036854775808"], "string", ["9223372036854775808"]),
        (["1.5", "2"], "double", [1.5, 2.0]),
        (["1.50"], "string", ["1.50"]),
        (["0.12345678901234567890"], "string", ["0.12345678901234567890"]),
        (["-0"], "string", ["-0"]),
        (["true", "false"], "boolean", [True, False]),
        (["True"], "string", ["True"]),
        (["", ""], "void", [None, None]),
        (["NaN"], "string", ["NaN"]),
    ],
)
def test_csv_types_are_inferred_without_loss(
    texts: list[str], kind: str, values: list[Any]
) -> None:
    batch = read(_csv("id,n,x", *(f"1,1,{text}" for text in texts)), _CSV)

    assert (schema(batch)["x"], column(batch, "x")) == (kind, values)


def test_csv_quotes_line_ends_and_marks() -> None:
    batch = read(b'\xef\xbb\xbfid,n,"a,b"\r\n1,1,"x\r\n""y"""\r\n\r\n2,2,\xc3\xa9\r\n', _CSV)

    assert column(batch, "a,b") == ['x\r\n"y"', "é"]
    assert column(batch, "__raw")[0] == b'id,n,"a,b"\n1,1,"x\r\n""y"""'


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("1,1", "bad_csv"),
        ("1,1,x,y", "bad_csv"),
        ('1,1,"x"y', "bad_csv"),
        ('1,1,"open', "bad_csv"),
        ("1,1,\udcff", "bad_utf8"),
    ],
)
def test_a_bad_csv_row_is_refused(row: str, rule: str) -> None:
    content = f"id,n,x\n0,0,a\n{row}".encode(errors="surrogateescape")

    batch = read(content, _CSV)

    assert rules(batch) == [(1, rule)]
    assert column(batch, "id") == [0]


def test_csv_follows_known_and_declared_types() -> None:
    dataset = a_dataset(
        "csv", columns={"at": "timestamp", "tags": "array<int>", "p": "decimal(9,2)"}
    )
    rows = _csv(
        "id,n,x,at,tags,p",
        '1,1,5,2026-01-01T00:00:00Z,"[1,2]",1.5',
        "2,2,007,2026-01-01,,1",
        "3,3,b,,,",
        "4,4,1,soon,,",
        '5,5,1,,"[",',
        "6,6,1,,,1.234",
    )

    batch = read(rows, dataset, types(x="bigint"))

    assert rules(batch) == [
        (1, "type_mismatch"),
        (2, "type_mismatch"),
        (3, "bad_value"),
        (4, "bad_json"),
        (5, "bad_value"),
    ]
    assert column(batch, "tags") == [[1, 2]]
    assert column(batch, "p") == [Decimal("1.50")]


def test_a_csv_file_without_rows_still_brings_its_columns() -> None:
    assert schema(read(b"id,n,x\n", _CSV)) == {"id": "void", "n": "void", "x": "void"}


_TABLE = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "n": pa.array([1, 2], pa.uint32()),
        "big": pa.array([2**64 - 1, None], pa.uint64()),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("ms", "UTC")),
        "wall": pa.array([datetime(2026, 1, 1), None], pa.timestamp("us")),
        "day": pa.array([date(2026, 1, 1), None], pa.date32()),
        "raw": pa.array([b"\0\xff", None], pa.binary()),
        "f": pa.array([0.5, None], pa.float32()),
        "s": pa.array([{"a": 1, "b": ["x"]}, None]),
        "nothing": pa.nulls(2, pa.string()),
    }
)
_KINDS = {
    "id": "int",
    "n": "bigint",
    "big": "decimal(20,0)",
    "price": "decimal(9,2)",
    "at": "timestamp",
    "wall": "timestamp_ntz",
    "day": "date",
    "raw": "binary",
    "f": "float",
    "s": "struct<a:bigint,b:array<string>>",
    "nothing": "string",
}


def _written(table: pa.Table, file_format: str) -> bytes:
    out = io.BytesIO()
    if file_format == "parquet":
        parquet.write_table(table, out)
    else:
        orc.write_table(table, out)
    return out.getvalue()


def test_parquet_keeps_types_and_values() -> None:
    batch = read(_written(_TABLE, "parquet"), a_dataset("parquet"))

    assert schema(batch) == _KINDS
    expected = _TABLE.to_pylist()
    assert batch.rows.select(list(_KINDS)).to_pylist() == expected


def test_orc_keeps_types_and_values() -> None:
    table = _TABLE.drop_columns(["big", "n"]).append_column("n", pa.array([1, 2], pa.int64()))

    batch = read(_written(table, "orc"), a_dataset("orc"))

    assert schema(batch) == {name: _KINDS[name] for name in table.column_names}
    assert batch.rows.select(table.column_names).to_pylist() == table.to_pylist()


def test_parquet_goes_on_where_a_batch_ended() -> None:
    content = _written(_TABLE, "parquet")

    assert column(read(content, a_dataset("parquet"), starts={"f": 1}), "id") == [2]


def test_parquet_nanoseconds_are_kept_or_refused() -> None:
    stamps = pa.array([1_000, 1_001, 2_000_000_000], pa.timestamp("ns"))
    table = pa.table({"id": [1, 2, 3], "n": [1, 2, 3], "at": stamps})

    batch = read(_written(table, "parquet"), a_dataset("parquet"))

    assert rules(batch) == [(1, "type_mismatch")]
    assert column(batch, "at") == [datetime(1970, 1, 1, 0, 0, 0, 1), datetime(1970, 1, 1, 0, 0, 2)]


def test_parquet_times_of_day_are_text() -> None:
    table = pa.table({"id": [1], "n": [1], "t": pa.array([time(1, 2, 3)], pa.time64("us"))})

    assert column(read(_written(table, "parquet"), a_dataset("parquet")), "t") == [
        "01:02:03.000000"
    ]


def test_a_reserved_parquet_column_refuses_its_records() -> None:
    table = pa.table({"id": [1], "n": [1], "hdr__x": [1]})

    batch = read(_written(table, "parquet"), a_dataset("parquet"))

    assert rules(batch) == [(0, "bad_column")]
    assert "hdr__x" not in batch.schema


def test_files_of_different_types_share_the_column_that_holds_both() -> None:
    def file(values: pa.Array) -> bytes:
        return _written(pa.table({"id": [1], "n": [1], "x": values}), "parquet")

    files = {"a": file(pa.array([1], pa.int32())), "b": file(pa.array([2**40], pa.int64()))}

    batch = read(files, a_dataset("parquet"))

    assert (schema(batch)["x"], column(batch, "x")) == ("bigint", [1, 2**40])


_AVRO = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "n", "type": "long"},
        {
            "name": "price",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            ],
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "wall", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "t", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "m", "type": {"type": "map", "values": "long"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {
            "name": "s",
            "type": {"type": "record", "name": "inner", "fields": [{"name": "a", "type": "float"}]},
        },
        {"name": "again", "type": ["null", "inner"]},
        {"name": "nothing", "type": "null"},
    ],
}
_AVRO_RECORD = {
    "id": 1,
    "n": 2,
    "price": Decimal("1.50"),
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "wall": datetime(2026, 1, 1),
    "day": date(2026, 1, 1),
    "t": time(1, 2, 3),
    "uid": "123e4567-e89b-12d3-a456-426614174000",
    "m": {"k": 1},
    "e": "B",
    "s": {"a": 0.5},
    "again": None,
    "nothing": None,
}


def test_avro_keeps_types_and_values() -> None:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(_AVRO), [_AVRO_RECORD])

    batch = read(out.getvalue(), a_dataset("avro"))

    assert schema(batch) == {
        "id": "int",
        "n": "bigint",
        "price": "decimal(9,2)",
        "at": "timestamp",
        "wall": "timestamp_ntz",
        "day": "date",
        "t": "string",
        "uid": "string",
        "m": "map<string,bigint>",
        "e": "string",
        "s": "struct<a:float>",
        "again": "struct<a:float>",
        "nothing": "void",
    }
    (row,) = batch.rows.select(list(batch.schema)).to_pylist()
    assert row == {**_AVRO_RECORD, "t": "01:02:03", "m": [("k", 1)]}


def test_a_recursive_avro_schema_is_refused() -> None:
    recursive = {
        "type": "record",
        "name": "node",
        "fields": [{"name": "id", "type": "int"}, {"name": "next", "type": ["null", "node"]}],
    }
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(recursive), [{"id": 1, "next": None}])

    assert rules(read(out.getvalue(), a_dataset("avro"))) == [(-1, "unreadable_file")]
