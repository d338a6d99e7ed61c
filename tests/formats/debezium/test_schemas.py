"""Columns and types of change events: documents, schemas of the source, declared types."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from polynya.model.types import parse_type
from tests.formats.debezium.builders import an_event, capture, read_capture, the_table, with_schema
from tests.formats.helpers import column, rules, schema

_ROW = {"id": 1, "v": "x"}
_KEY = {"id": 1}


def test_documents_of_mongodb() -> None:
    def event(op: str, after: Any, ident: str) -> Any:
        return an_event(
            op,
            after,
            key={"id": ident},
            connector="mongodb",
            schema=None,
            table=None,
            collection="c",
            ord=3,
            lsn=None,
            sequence=None,
        )

    document = json.dumps(
        {
            "_id": {"$oid": "596e275826f08b2730779e1f"},
            "n": {"$numberLong": "5"},
            "at": {"$date": 1767225601000},
            "price": {"$numberDecimal": "1.10"},
            "bin": {"$binary": {"base64": "AP8=", "subType": "00"}},
            "tags": [{"$numberInt": "1"}],
            "sub": {"a": {"$numberDouble": "0.5"}},
        }
    )
    oid = '{"$oid":"596e275826f08b2730779e1f"}'

    batch = read_capture(capture(event("c", document, oid), event("d", None, oid))).datasets["wl.c"]

    assert batch.keys == ("_id",)
    assert column(batch, "_id") == ["596e275826f08b2730779e1f"] * 2
    assert schema(batch) == {
        "_id": "string",
        "n": "bigint",
        "at": "timestamp",
        "price": "decimal(38,1)",
        "bin": "binary",
        "tags": "array<bigint>",
        "sub": "struct<a:double>",
    }
    assert column(batch, "__ci") == ["0001767225601000" + "3".zfill(19)] * 2


def test_a_schema_of_the_value_types_columns_that_are_null() -> None:
    batch = the_table(
        with_schema(an_event("c", {"a": None, "b": None}), {"a": "int32", "b": "string"})
    )

    assert schema(batch) == {"a": "int", "b": "string"}


def test_a_wider_type_of_the_source_widens_the_column() -> None:
    batch = the_table(
        with_schema(an_event("c", {"a": 1}), {"a": "int32"}),
        with_schema(an_event("c", {"a": 2**40}), {"a": "int64"}),
    )

    assert (schema(batch)["a"], column(batch, "a")) == ("bigint", [1, 2**40])


def test_a_schema_that_makes_no_sense_rejects_its_record() -> None:
    event = with_schema(an_event("c", {"a": 1}), {"a": "imaginary"})

    assert rules(the_table(event, an_event("c", _ROW))) == [(0, "bad_schema")]


def test_declared_types_read_debezium_encodings_without_schemas() -> None:
    columns = {
        name: parse_type(kind)
        for name, kind in {
            "d": "date",
            "at": "timestamp",
            "price": "decimal(9,2)",
            "raw": "binary",
        }.items()
    }
    scope = DebeziumScope(default=TableSettings(columns=columns))
    row = {"d": 19848, "at": 1767225601000000, "price": "AeJA", "raw": "AP8="}

    (out,) = the_table(an_event("c", row), scope=scope).rows.select(list(columns)).to_pylist()

    assert (str(out["d"]), str(out["price"]), out["raw"]) == ("2024-05-05", "1234.56", b"\0\xff")
    assert out["at"] == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
