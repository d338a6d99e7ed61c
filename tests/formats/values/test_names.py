"""Names that an engine under the table cannot hold: the record is refused, and others go on."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats.values.names import MAX_COLUMNS, NameSpace, schema_problem
from polynya.formats.values.rows import ColumnTypes, Evolving, TypedRecords, typed_records
from polynya.model.types import parse_type
from tests.formats.helpers import a_dataset, column, json_lines, read, rules


def typed(
    records: Sequence[dict[str, Any]],
    known: Mapping[str, str] | None = None,
    observed: Mapping[str, str] | None = None,
    **how: Any,
) -> TypedRecords:
    """Records as columns; `known` are those of the table, `observed` those of a file's schema."""
    before, of_file = (
        {name: parse_type(text) for name, text in (types or {}).items()}
        for types in (known, observed)
    )
    return typed_records(records, ColumnTypes(before, observed=of_file, evolving=Evolving(**how)))


def refused(found: TypedRecords) -> list[int]:
    """The records that go to quarantine for a name."""
    return [index for index, (rule, _) in found.faults.items() if rule == "bad_column"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("s\u0131ra", "sira"),
        ("\u00b5", "\u03bc"),
        ("\u017f", "s"),
        ("\u03c2", "\u03c3"),
        ("\u212a", "k"),
        ("\u0130D", "id"),
        ("\u0130D", "i\u0307d"),
        ("straße", "STRA\u1e9eE"),
        ("ᾳ", "ᾼ"),
        ("ID", "id"),
    ],
)
def test_names_that_spark_takes_for_one_cannot_stand_side_by_side(first: str, second: str) -> None:
    assert NameSpace([first]).clash(second)
    assert NameSpace([second]).clash(first)
    assert refused(typed([{first: 1}, {second: 1}])) == [1]
    assert refused(typed([{"o": {first: 1}}, {"o": {second: 1}}])) == [1]


@pytest.mark.parametrize(("first", "second"), [("straße", "strasse"), ("é", "e"), ("ﬁ", "fi")])
def test_names_that_spark_tells_apart_are_two_columns(first: str, second: str) -> None:
    assert typed([{first: 1}, {second: 1}]).faults == {}


@pytest.mark.parametrize(
    ("records", "known"),
    [
        ([{"a": {"b": 1}}, {"a.b": 2}], {}),
        ([{"a.b": 1}, {"a": {"b": 2}}], {}),
        ([{"c": 1}, {"A.B": 2}], {"a": "struct<b:int>"}),
        ([{"c": 1}, {"a": {"b": 2}}], {"a.b": "int"}),
        ([{"c": 1}, {"a": {"x.y": 2}}], {"a": "struct<x:struct<y:int>>"}),
        ([{"c": 1}, {"a": [{"x.y": 2}]}], {"a": "array<struct<x:struct<y:int>>>"}),
        ([{"c": 1}, {"a.element": 1}], {"a": "array<int>"}),
        ([{"c": 1}, {"a.key": 1}], {"a": "map<string,int>"}),
        ([{"c": 1}, {"x": {"y": 1}, "x.y": 2}], {}),
    ],
)
def test_a_dot_in_a_name_beside_the_field_of_an_object_is_refused(
    records: list[dict[str, Any]], known: dict[str, str]
) -> None:
    assert refused(typed(records, known)) == [1]
    # What is left of the batch makes columns that a table can have.
    left = typed([records[0], {}], known)
    assert left.faults == {}
    assert schema_problem(known, left.schema()) is None


def test_a_file_that_declares_two_columns_of_one_name_loses_only_its_records() -> None:
    observed = {"id": "bigint", "a": "struct<b:int>", "a.b": "int"}
    rows = [{"id": 1, "a": {"b": 1}, "a.b": 1}, {"id": 2, "a": None, "a.b": None}]
    assert refused(typed(rows, {"id": "bigint"}, observed)) == [0, 1]

    left = typed([{}, {}], {"id": "bigint"}, observed)

    assert list(left.schema()) == ["id", "a"]
    inner = {"id": "bigint", "a": "struct<c:int,`x.y`:int,x:struct<y:int>>"}
    assert typed([{}], {"a": "struct<c:int>"}, inner).schema()["a"] == parse_type("struct<c:int>")


@pytest.mark.parametrize("name", ["_file", "_pos", "_Deleted", "_spec_id", "_partition", "_row_id"])
def test_a_name_of_icebergs_metadata_columns_is_refused_unless_it_is_left_out(name: str) -> None:
    records = [{"id": 1}, {"id": 2, name: 1}, {"id": 3, "o": {name: 1}}]

    assert refused(typed(records, {"id": "bigint"})) == [1]
    assert typed(records, {"id": "bigint"}, excluded=[name]).faults == {}
    assert schema_problem([], {name: parse_type("int")})


@pytest.mark.parametrize("name", ["pos", "file_path", "partition", "row", "_metadata", "filename"])
def test_names_that_only_look_like_metadata_are_columns(name: str) -> None:
    assert typed([{name: 1}]).faults == {}


def test_a_column_more_than_a_table_may_have_is_refused_and_the_others_go_on() -> None:
    wide = {f"c{number}": number for number in range(MAX_COLUMNS)}

    found = typed([wide, {"one": "more", "c0": 1}, {"c1": 2}])

    assert refused(found) == [1]
    assert len(found.columns) == MAX_COLUMNS
    # A table that is wider by now stays what it is.
    known = dict.fromkeys([*wide, "one"], "bigint")
    assert typed([{"one": 1}], known).faults == {}
    assert refused(typed([{"two": 1}], known)) == [0]
    assert typed([{"two": 1}], known, excluded=["two"]).faults == {}
    assert schema_problem([], {name: parse_type("int") for name in known})


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_record_of_too_many_columns_takes_no_room_from_others(kind: str) -> None:
    names = [f"c{number}" for number in range(MAX_COLUMNS)]
    wide = {**dict.fromkeys(names, 1), "id": 1, "n": 1}
    good = {"id": 2, "n": 1, "v": 5}

    def file(row: dict[str, int]) -> bytes:
        if kind == "json":
            return json_lines(row)
        if kind == "csv":
            return f"{','.join(row)}\n{','.join(map(str, row.values()))}\n".encode()
        out = io.BytesIO()
        parquet.write_table(pa.Table.from_pylist([row]), out)
        return out.getvalue()

    batch = read({"1": file(wide), "2": file(good)}, a_dataset(kind))

    assert rules(batch) == [(0, "bad_column")]
    assert [batch.rejected[0].file, column(batch, "id")] == ["1", [2]]
    assert column(batch, "v") in ([5], ["5"])
