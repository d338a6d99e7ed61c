"""The order that maintenance gives to rows, on plain Arrow tables."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.maintenance.rewrite_writer import Kind, RowOrder

COLUMNS: list[dict[str, Any]] = [
    {"id": 1, "name": "a", "type": "int"},
    {"id": 2, "name": "b", "type": "string"},
    {"id": 3, "name": "c", "type": {"type": "list"}},
]


def ordered(rows: list[tuple[Any, Any]], *by: tuple[str, Kind]) -> list[tuple[Any, Any]]:
    names = ["a", "b"]
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    found = table.take(RowOrder.of(COLUMNS, by).indices(table)).to_pylist()
    return [(row["a"], row["b"]) for row in found]


def test_each_column_has_its_direction_and_its_place_for_null() -> None:
    rows = [(1, "x"), (None, "y"), (2, None), (1, None), (2, "z"), (1, "y")]

    assert ordered(rows, ("a", "asc"), ("b", "desc")) == [
        (None, "y"), (1, "y"), (1, "x"), (1, None), (2, "z"), (2, None),
    ]  # fmt: skip
    assert ordered(rows, ("a", "desc"), ("b", "desc"))[-1] == (None, "y")
    assert ordered(rows, ("b", "asc"))[:2] == [(2, None), (1, None)]


def test_without_columns_or_with_one_that_has_no_order_rows_stay() -> None:
    rows = [(3, "x"), (1, "y")]

    assert ordered(rows) == rows
    assert RowOrder.of(COLUMNS, [("c", "asc")]).by == ()


@pytest.mark.parametrize("kind", ["asc", "desc"])
def test_nan_is_above_all_numbers(kind: Kind) -> None:
    column: dict[str, Any] = {"id": 1, "name": "a", "type": "double"}
    rows = pa.table({"a": [1.0, None, math.nan, -math.inf, math.inf]})

    found = rows.take(RowOrder.of([column], [("a", kind)]).indices(rows)).column("a").to_pylist()

    ascending = ["None", "-inf", "1.0", "inf", "nan"]
    assert list(map(str, found)) == (ascending if kind == "asc" else ascending[::-1])


def test_a_z_order_keeps_what_is_alike_in_both_columns_together() -> None:
    rows = [(a, f"{b:02}") for a in range(32) for b in range(32)]

    found = ordered(rows, ("a", "zorder"), ("b", "zorder"))

    # A quarter of the rows is a quarter of the square: half of either range.
    quarter = found[: len(found) // 4]
    assert {a for a, _ in quarter} == set(range(16))
    assert {int(b) for _, b in quarter} == set(range(16))
    assert sorted(found) == sorted(rows)
