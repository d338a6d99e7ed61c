"""What other engines cannot read in a table, by name."""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, LongType, MapType, NestedField, StructType

from polynya.lake.read.other_engines import obstacles


def field(number: int, name: str, kind: IcebergType, *, required: bool = False) -> NestedField:
    return NestedField(number, name, kind, required=required)


def listed(number: int, kind: IcebergType, *, required: bool = False) -> ListType:
    return ListType(element_id=number, element=kind, element_required=required)


def test_a_plain_table_stops_no_engine() -> None:
    inner = StructType(field(3, "x", LongType(), required=True))
    schema = Schema(field(1, "id", LongType(), required=True), field(2, "place", inner))

    assert list(obstacles(schema, 2, 2)) == []


def test_names_that_differ_in_case_only_are_named_at_any_depth() -> None:
    inner = StructType(field(4, "x", LongType()), field(5, "X", LongType()))
    schema = Schema(
        field(1, "Id", LongType()), field(2, "iD", LongType()), field(3, "a", listed(6, inner))
    )

    assert list(obstacles(schema, 2, 2)) == [
        "columns `Id` and `iD` are one to Snowflake, Redshift and Athena",
        "columns `x` and `X` of `a` are one to Snowflake, Redshift and Athena",
    ]


def test_what_must_not_be_null_inside_lists_and_maps_is_named() -> None:
    inner = StructType(field(4, "x", LongType(), required=True))
    kind = MapType(key_id=5, key_type=LongType(), value_id=6, value_type=inner, value_required=True)
    schema = Schema(field(1, "a", listed(2, LongType(), required=True)), field(3, "m", kind))

    assert [one.split("`")[1] for one in obstacles(schema, 2, 2)] == [
        "a.element", "m.value", "m.value.x",
    ]  # fmt: skip


def test_a_table_of_version_3_names_who_raised_it_and_who_cannot_read_it() -> None:
    schema = Schema(field(1, "id", LongType()), field(2, "tags", listed(3, LongType())))

    by_other, nested = obstacles(schema, 3, 2)
    own, _ = obstacles(schema, 3, 3)

    assert "of version 3, by another engine: Trino 476 cannot read its deleted rows" in by_other
    assert "of version 3, as `format_version` says" in own
    assert nested == "Redshift reads no `tags` in a table of version 3"
