"""Values of expressions in the types of their columns: one query, exact or told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.copy.mapped_values import Typed
from polynya.lake.copy.values import Made, WantedValue, computed
from polynya.lake.spark.api import SparkSession
from polynya.model.errors import ConfigError
from polynya.model.types import DataType, parse_type

COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "text": ("string", ["1", "1.50", "x", None]),
    "number": ("double", [1.0, 1.5, 3e10, None]),
    "home": (
        "struct<zip:string,no:int>",
        [{"zip": "a", "no": 1}, {"zip": None, "no": 2}, None, None],
    ),
    "tags": ("array<int>", [[1, 2], [], [None], None]),
    "nothing": ("void", [None] * 4),
}
#: Expression, type, values, and the texts that the type cannot hold by row.
CASES: list[tuple[str, str | None, list[Any], dict[int, str]]] = [
    ("text", "int", [1, None, None, None], {1: "1.50", 2: "x"}),
    ("text", "decimal(4,1)", [1, 1.5, None, None], {2: "x"}),
    ("number", "int", [1, None, None, None], {1: "1.5", 2: "3.0E10"}),
    ("number", "decimal(4,2)", [1, 1.5, None, None], {2: "3.0E10"}),
    ("to_int(text)", None, [1, 1, None, None], {}),
    ("home", "struct<no:bigint,more:string,zip:string>", [
        {"no": 1, "more": None, "zip": "a"}, {"no": 2, "more": None, "zip": None}, None, None,
    ], {}),
    ("tags", "array<string>", [["1", "2"], [], [None], None], {}),
    ("home", "string", ['{"zip":"a","no":1}', '{"no":2}', None, None], {}),
    ("coalesce(nothing, number)", None, [1.0, 1.5, 3e10, None], {}),
    ("nothing", "date", [None] * 4, {}),
    ("upper(nothing)", None, [None] * 4, {}),
    ("absent.field", None, [None] * 4, {}),
]  # fmt: skip


def made(spark: SparkSession, *wanted: tuple[str, str | None]) -> list[Made]:
    rows = {
        name: Typed(pa.array(values, arrow_type(parse_type(kind))), parse_type(kind))
        for name, (kind, values) in COLUMNS.items()
    }
    places = pa.table({"__file": ["f"] * 4, "__offset": [0] * 4, "|number": range(4)})

    def choice(declared: str | None) -> Any:
        def choose(kind: DataType) -> DataType:
            return kind if declared is None else parse_type(declared)

        return choose

    asked = [WantedValue(text, choice(kind), f"column of {text}") for text, kind in wanted]
    return computed(rows, places, asked, lambda: spark)


def test_a_value_is_held_exactly_or_told(spark: SparkSession) -> None:
    found = made(spark, *((text, kind) for text, kind, *_ in CASES))
    for (text, kind, values, misfits), one in zip(CASES, found, strict=True):
        held = one.column.array.to_pylist()
        good = [None if row in one.misfits else value for row, value in enumerate(held)]
        assert (text, kind, good, dict(one.misfits)) == (text, kind, values, misfits)


def test_elements_of_one_record_are_told_apart(spark: SparkSession) -> None:
    first, again = (made(spark, ("uuid_generator()", None))[0] for _ in range(2))
    values = first.column.array.to_pylist()
    assert len(set(values)) == 4
    assert again.column.array.to_pylist() == values


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("home + 1", None, "column of home \\+ 1"),
        ("INTERVAL 1 DAY", None, "interval"),
        ("tags", "int", "types of their columns"),
    ],
)
def test_what_no_table_can_have_is_refused_with_its_column(
    spark: SparkSession, text: str, kind: str | None, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        made(spark, ("number", None), (text, kind))
    assert caught.value.code == "POLYNYA-MAP-005"
