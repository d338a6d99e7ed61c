"""Avro, where the file tells the types."""

from __future__ import annotations

import io
from datetime import time
from typing import Any

import fastavro

from polynya.formats.batch import DatasetBatch
from tests.formats.data_types.page import (
    A_UUID,
    DAYS,
    INSTANTS,
    LARGE,
    SPECIAL_FLOATS,
    UTC,
    WALLS,
    Sample,
    check,
)
from tests.formats.helpers import a_dataset, read


def _avro(sample: tuple[Any, list[Any]]) -> DatasetBatch:
    kind, values = sample
    fields = [{"name": name, "type": "int"} for name in ("id", "n")]
    shape = {"type": "record", "name": "R", "fields": [*fields, {"name": "x", "type": kind}]}
    out = io.BytesIO()
    fastavro.writer(out, shape, [{"id": 1, "n": 1, "x": value} for value in values])
    return read(out.getvalue(), a_dataset("avro"))


def test_avro() -> None:
    def same(kind: Any, values: list[Any], column_: str) -> Sample:
        return (kind, values), column_, values

    def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "logicalType": name, **more}

    def known(kinds: list[tuple[str, str]], values: list[Any], column_: str) -> list[Sample]:
        return [same(logical(kind, name), values, column_) for kind, name in kinds]

    millis = [wall.replace(microsecond=999000) for wall in WALLS]
    enum = {"type": "enum", "name": "E", "symbols": ["a", "b"]}
    fixed = {"type": "fixed", "name": "F", "size": 2}
    large = {"type": "fixed", "name": "D", "size": 16}
    inner = {"type": "record", "name": "I", "fields": [{"name": "a", "type": ["null", "int"]}]}
    samples: dict[str, list[Sample]] = {
        "boolean": [same("boolean", [True], "boolean")],
        "int": [same("int", [-(2**31)], "int")],
        "long": [
            same("long", [-(2**63)], "bigint"),
            same(logical("long", "timestamp-nanos"), [1], "bigint"),
        ],
        "float": [same("float", SPECIAL_FLOATS, "float")],
        "double": [same("double", SPECIAL_FLOATS, "double")],
        "string, enum, uuid": [
            same("string", ["", "日本"], "string"),
            same(enum, ["a"], "string"),
            ((logical("string", "uuid"), [A_UUID]), "string", [str(A_UUID)]),
        ],
        "bytes, fixed": [same("bytes", [b"", b"\0\xff"], "binary"), same(fixed, [b"ab"], "binary")],
        "decimal, in bytes or fixed": [
            same(logical("bytes", "decimal", precision=38, scale=18), LARGE, "decimal(38,18)"),
            same(
                {**large, **logical("fixed", "decimal", precision=38, scale=18)},
                LARGE,
                "decimal(38,18)",
            ),
        ],
        "date": [same(logical("int", "date"), DAYS, "date")],
        "time-millis, time-micros": [
            ((logical("int", "time-millis"), [time(1, 2, 3, 4000)]), "string", ["01:02:03.004000"]),
            (
                (logical("long", "time-micros"), [time(23, 59, 59, 999999)]),
                "string",
                ["23:59:59.999999"],
            ),
        ],
        "timestamp-millis, timestamp-micros": [
            same(
                logical("long", "timestamp-millis"),
                [w.replace(tzinfo=UTC) for w in millis],
                "timestamp",
            ),
            same(logical("long", "timestamp-micros"), INSTANTS, "timestamp"),
        ],
        "local-timestamp-millis, local-timestamp-micros": [
            *known([("long", "local-timestamp-millis")], millis, "timestamp_ntz"),
            *known([("long", "local-timestamp-micros")], WALLS, "timestamp_ntz"),
        ],
        "array, map, record": [
            same({"type": "array", "items": ["null", "int"]}, [[], [None], [1]], "array<int>"),
            (
                ({"type": "map", "values": "int"}, [{"a": 1}, {}]),
                "map<string,int>",
                [[("a", 1)], []],
            ),
            same(inner, [{"a": None}], "struct<a:int>"),
        ],
        "union with null": [same(["null", "string"], [None, ""], "string")],
        "union of several types": [same(["int", "long"], [1, 2**40], "bigint")],
    }
    check("Avro", samples, _avro)
