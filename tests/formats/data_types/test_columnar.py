"""Parquet and ORC, where the file tells the types."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from polynya.formats.batch import DatasetBatch
from tests.formats.data_types.page import (
    A_UUID,
    BEFORE_1970,
    DAYS,
    FIRST,
    INSTANTS,
    LARGE,
    SPECIAL_FLOATS,
    UTC,
    WALLS,
    Sample,
    check,
)
from tests.formats.helpers import a_dataset, column, read, rules, schema


def _arrow(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(list(values), kind)


def _columnar(column_: pa.Array, file_format: str, **options: Any) -> DatasetBatch:
    ones = pa.array([1] * len(column_))
    table = pa.table({"id": ones, "n": ones, "x": column_})
    out = io.BytesIO()
    if file_format == "orc":
        orc.write_table(table, out)
    else:
        parquet.write_table(table, out, **options)
    return read(out.getvalue(), a_dataset(file_format))


def _same(values: list[Any], arrow: pa.DataType, kind: str) -> Sample:
    return _arrow(values, arrow), kind, values


def _floats() -> dict[str, list[Sample]]:
    return {
        "single": [_same(SPECIAL_FLOATS, pa.float32(), "float")],
        "double": [_same([*SPECIAL_FLOATS, 5e-324], pa.float64(), "double")],
    }


def _nested() -> list[Sample]:
    entries = pa.map_(pa.string(), pa.time64("us"))
    inner = pa.struct([("t", pa.time64("us")), ("w", pa.timestamp("ns"))])
    rows = [[{"t": time(1), "w": BEFORE_1970}], [], [None], None]
    read_rows = [[{"t": "01:00:00.000000", "w": BEFORE_1970}], [], [None], None]
    return [
        _same([[], None, [None], [1]], pa.list_(pa.int32()), "array<int>"),
        (_arrow(rows, pa.list_(inner)), "array<struct<t:string,w:timestamp_ntz>>", read_rows),
        _same([[("a", 1)], [], None], pa.map_(pa.string(), pa.int32()), "map<string,int>"),
        (
            _arrow([[("a", time(1))]], entries),
            "map<string,string>",
            [[("a", "01:00:00.000000")]],
        ),
        _same([{"a": None}, None], pa.struct([("a", pa.int8())]), "struct<a:int>"),
    ]


def test_parquet() -> None:
    floats = _floats()
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([A_UUID.bytes], pa.binary(16)))
    samples: dict[str, list[Sample]] = {
        "BOOLEAN": [_same([True, None], pa.bool_(), "boolean")],
        "INT 8, 16, 32; UINT 8, 16": [
            _same([-128], pa.int8(), "int"),
            _same([-(2**31)], pa.int32(), "int"),
            _same([2**16 - 1], pa.uint16(), "int"),
        ],
        "INT 64, UINT 32": [
            _same([-(2**63)], pa.int64(), "bigint"),
            _same([2**32 - 1], pa.uint32(), "bigint"),
        ],
        "UINT 64": [
            (_arrow([2**64 - 1, 0], pa.uint64()), "decimal(20,0)", [Decimal(2**64 - 1), Decimal(0)])
        ],
        "FLOAT16, FLOAT": [(_arrow([1.5], pa.float16()), "float", [1.5]), *floats["single"]],
        "DOUBLE": floats["double"],
        "DECIMAL(p,s)": [
            _same(LARGE, pa.decimal128(38, 18), "decimal(38,18)"),
            _same([Decimal("1.5")], pa.decimal32(5, 1), "decimal(5,1)"),
        ],
        "STRING, ENUM, JSON": [
            _same(["", None, "日本"], pa.string(), "string"),
            (_arrow(["a"], pa.string()).dictionary_encode(), "string", ["a"]),
            (_arrow(['{"a":1}'], pa.json_()), "string", ['{"a":1}']),
        ],
        "UUID": [(uuids, "string", [str(A_UUID)])],
        "BINARY, FIXED": [
            _same([b"", b"\0\xff"], pa.binary(), "binary"),
            _same([b"ab"], pa.binary(2), "binary"),
        ],
        "DATE": [_same(DAYS, pa.date32(), "date")],
        "TIME, in any unit": [
            (_arrow([time(23, 59, 59, 999999)], pa.time64("us")), "string", ["23:59:59.999999"]),
            (_arrow([1], pa.time64("ns")), "string", ["00:00:00.000000001"]),
            (_arrow([1], pa.time32("ms")), "string", ["00:00:00.001"]),
        ],
        "TIMESTAMP, adjusted to UTC": [
            _same(INSTANTS, pa.timestamp("us", "UTC"), "timestamp"),
            (_arrow([-1], pa.timestamp("ms", "Asia/Tokyo")), "timestamp", [_millis_before_1970()]),
        ],
        "TIMESTAMP, not adjusted; INT96": [
            _same(WALLS, pa.timestamp("us"), "timestamp_ntz"),
            (_arrow([-1000], pa.timestamp("ns")), "timestamp_ntz", [BEFORE_1970]),
        ],
        "duration (Arrow)": [
            (_arrow([timedelta(seconds=-1)], pa.duration("us")), "bigint", [-1_000_000])
        ],
        "LIST, MAP, group": _nested(),
    }
    check("Parquet", samples, lambda values: _columnar(values, "parquet"))
    old = _columnar(
        _arrow([BEFORE_1970], pa.timestamp("us")), "parquet", use_deprecated_int96_timestamps=True
    )
    assert (schema(old)["x"], column(old, "x")) == ("timestamp_ntz", [BEFORE_1970])


def _millis_before_1970() -> datetime:
    return datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_values_out_of_the_calendar_spoil_their_record_only(file_format: str) -> None:
    days = pa.array([2932897, 0, -719163], pa.int32()).cast(pa.date32())
    batch = _columnar(days, file_format)

    assert rules(batch) == [(0, "type_mismatch"), (2, "type_mismatch")]
    assert column(batch, "x") == [date(1970, 1, 1)]


def test_times_that_no_column_holds_spoil_their_record_only() -> None:
    late = pa.array([253402300800000000, -1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    fine = pa.array([[1], [1000]], pa.list_(pa.timestamp("ns")))

    for values, kept in ((late, INSTANTS[2]), (fine, [datetime(1970, 1, 1, 0, 0, 0, 1)])):
        batch = _columnar(values, "parquet")
        assert rules(batch) == [(0, "type_mismatch")]
        assert column(batch, "x") == [kept]


def test_orc() -> None:
    floats = _floats()
    kept = [datetime(1678, 1, 1), datetime(2261, 12, 31, 23, 59, 59, 999999), BEFORE_1970]
    zoned = [wall.replace(tzinfo=UTC) for wall in kept]
    samples: dict[str, list[Sample]] = {
        "boolean": [_same([True, None], pa.bool_(), "boolean")],
        "tinyint, smallint, int": [
            _same([-128], pa.int8(), "int"),
            _same([-(2**15)], pa.int16(), "int"),
            _same([2**31 - 1], pa.int32(), "int"),
        ],
        "bigint": [_same([-(2**63)], pa.int64(), "bigint")],
        "float": floats["single"],
        "double": floats["double"],
        "decimal(p,s)": [_same(LARGE, pa.decimal128(38, 18), "decimal(38,18)")],
        "string, char, varchar": [_same(["", None, "日本"], pa.string(), "string")],
        "binary": [_same([b"", b"\0\xff"], pa.binary(), "binary")],
        "date": [_same(DAYS, pa.date32(), "date")],
        "timestamp with local time zone": [_same(zoned, pa.timestamp("us", "UTC"), "timestamp")],
        "timestamp": [_same(kept, pa.timestamp("us"), "timestamp_ntz")],
        "list, map, struct": [
            _same([[], None, [None], [1]], pa.list_(pa.int32()), "array<int>"),
            _same([[("a", 1)], [], None], pa.map_(pa.string(), pa.int32()), "map<string,int>"),
            _same([{"a": None}, None], pa.struct([("a", pa.int8())]), "struct<a:int>"),
        ],
    }
    check("ORC", samples, lambda values: _columnar(values, "orc"))
    refused = _columnar(_arrow([FIRST], pa.timestamp("us")), "orc")
    assert rules(refused) == [(-1, "unreadable_file")]
