"""Types that Debezium takes from statements for others than the server has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.capture.landing.statements import as_read, as_read_statement, mistyped


def table(*columns: dict[str, Any], id_: str = '"w"."t"', kind: str = "ALTER") -> dict[str, Any]:
    return {"type": kind, "id": id_, "table": {"columns": list(columns)}}


def column(kind: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "jdbcType": 1111, "typeName": kind, "charsetName": None, **more}


def line(*changes: dict[str, Any]) -> bytes:
    source = {"connector": "mariadb", "db": "w", "file": "binlog.000003", "pos": 70}
    return json.dumps({"key": None, "value": {"source": source, "tableChanges": changes}}).encode()


@pytest.mark.parametrize(
    ("kind", "read", "number", "length"),
    [
        ("UUID", "BINARY", -2, 16),
        ("BOOLEAN", "TINYINT", 5, 1),
        ("BOOL", "TINYINT", 5, 1),
        ("SERIAL", "BIGINT UNSIGNED", -5, None),
        ("REAL UNSIGNED", "DOUBLE UNSIGNED", 8, None),
        ("FLOAT4", "FLOAT", 6, None),
    ],
)
def test_a_history_has_the_type_by_which_a_column_is_read(
    kind: str, read: str, number: int, length: int | None
) -> None:
    made = column(kind, hasDefaultValue=True, defaultValueExpression="'1'")
    history = json.dumps({"ddl": "ALTER …", "tableChanges": [table(made)]}).encode() + b"\n"

    text = as_read(history)

    (change,) = json.loads(text)["tableChanges"]
    (found,) = change["table"]["columns"]
    assert (found["typeName"], found["jdbcType"]) == (read, number)
    assert found.get("length") == length
    assert not found["hasDefaultValue"]
    assert "defaultValueExpression" not in found
    assert as_read(text) == text


@pytest.mark.parametrize(
    ("kind", "number", "read"),
    [
        ("CHAR", 1, "BINARY"),
        ("VARCHAR", 12, "VARBINARY"),
        ("CHARACTER VARYING", 12, "VARBINARY"),
        ("MEDIUMTEXT", 12, "BLOB"),
        ("ENUM", 1, "ENUM"),
    ],
)
def test_a_text_in_the_character_set_binary_is_read_as_bytes(
    kind: str, number: int, read: str
) -> None:
    made = column(kind, jdbcType=number, charsetName="binary", length=4)

    text = as_read(json.dumps({"ddl": "", "tableChanges": [table(made)]}).encode())

    (found,) = json.loads(text)["tableChanges"][0]["table"]["columns"]
    assert (found["typeName"], found["length"]) == (read, 4)


@pytest.mark.parametrize("kind", ["INT", "VARCHAR", "DOUBLE", "TINYINT UNSIGNED", ""])
def test_other_types_are_left_alone(kind: str) -> None:
    history = json.dumps({"ddl": "", "tableChanges": [table(column(kind))]}).encode() + b"\n"

    assert as_read(history) == history
    assert mistyped(line(table(column(kind)))) == {}


def test_a_statement_names_the_tables_whose_rows_would_be_misread() -> None:
    changes = [
        table(column("INT"), column("UUID"), kind="CREATE"),
        table(column("BOOLEAN"), id_='"w"."old","w"."a.b ""c"""'),
        table(column("INT"), id_='"w"."other"'),
        {"type": "DROP", "id": '"w"."gone"', "table": None},
    ]

    assert mistyped(line(*changes)) == {"w.t": (3, 70), 'w.a.b "c"': (3, 70)}


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("CREATE TABLE t (uuid uuid, b BOOLEAN NOT NULL)",
         "CREATE TABLE t (uuid BINARY(16), b TINYINT(1) NOT NULL)"),
        ("CREATE TABLE t (`real` REAL, /* bool */ k UUID DEFAULT uuid(), KEY uuid (k))",
         "CREATE TABLE t (`real` DOUBLE, /* bool */ k BINARY(16) DEFAULT uuid(), KEY uuid (k))"),
        ("CREATE TABLE uuid (a INT COMMENT 'b bool', PRIMARY KEY (a))",
         "CREATE TABLE uuid (a INT COMMENT 'b bool', PRIMARY KEY (a))"),
        ("CREATE TABLE t (a 'unfinished", "CREATE TABLE t (a 'unfinished"),
    ],
)  # fmt: skip
def test_a_statement_that_makes_a_table_has_the_types_that_are_read(
    statement: str, read: str
) -> None:
    assert as_read_statement(statement) == read
