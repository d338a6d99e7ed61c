"""Values in other types: SQL gives what a reader of declared columns gives, or nothing."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from polynya.formats.values.columns import build
from polynya.lake.fold.sql import converted, unconverted
from polynya.lake.spark.api import SparkSession
from polynya.model.names import literal
from polynya.model.promotion import is_rewritable
from polynya.model.types import parse_type

_BIG = 2**53

#: old type, new type, values that have one in the new type, values that have none
CASES: list[tuple[str, str, list[Any], list[Any]]] = [
    ("bigint", "double", [0, -7, _BIG, 2**60, -(2**63)], [_BIG + 1, 2**63 - 1]),
    ("bigint", "decimal(38,10)", [0, 10, 2**63 - 1, -(2**63)], []),
    ("bigint", "decimal(5,2)", [0, 999, -999], [1000]),
    ("int", "double", [0, 2**31 - 1, -(2**31)], []),
    ("bigint", "string", [0, -5, 2**63 - 1], []),
    ("double", "bigint", [0.0, -5.0, 2.0**62], [0.5, 2.0**63, 1e19, float("nan"), float("inf")]),
    ("double", "decimal(18,2)", [0.0, 10.5, 0.1, 99.99], [0.125, 1e17, float("nan"), 0.1 + 0.2]),
    ("decimal(18,4)", "double", [Decimal("10.5"), Decimal("0.1")],
     [Decimal("90071992547409.9311")]),
    ("float", "int", [0.0, 7.0, -(2.0**31)], [0.5, 2.0**31]),
    ("decimal(18,4)", "decimal(18,2)", [Decimal("10.5"), Decimal("-0.25")], [Decimal("0.125")]),
    ("decimal(18,4)", "bigint", [Decimal(10), Decimal(-3)], [Decimal("0.5")]),
    ("string", "bigint", ["0", "-5", "007", "9223372036854775807"],
     ["", " 1", "1.5", "x", "9223372036854775808", "1e3", "٣"]),
    ("string", "decimal(18,2)", ["10", "10.5", "-0.10", "+7", "1.2500"], ["1.255", "x", "1e3", ""]),
    ("string", "double", ["10", "10.5", "-1e3", "007"], ["x", "NaN", "Infinity", "1_0", "1d", ""]),
    ("string", "boolean", ["true", "False", "TRUE"], ["t", "1", "yes", ""]),
    ("string", "date", ["2026-01-31", "0001-01-01"], ["2026-02-30", "2026-1-3", "2026", "31.1.26"]),
    ("string", "timestamp",
     ["2026-01-31T10:00:00Z", "2026-01-31 10:00", "2026-01-31T10:00:00.5+02:00"],
     ["2026-01-31", "1700000000", "2026-01-31T25:00:00Z", "2026-01-31T10:00:00.1234567Z"]),
    ("string", "timestamp_ntz", ["2026-01-31T10:00:00", "2026-01-31 10:00:00.25"],
     ["2026-01-31T10:00:00Z", "now"]),
    ("boolean", "string", [True, False], []),
    ("date", "string", [dt.date(2026, 1, 31)], []),
]  # fmt: skip


def in_sql(value: Any, kind: str) -> str:
    """A literal of a type."""
    return f"CAST({literal(str(value))} AS {kind})"


def as_read(value: Any, new: str) -> Any:
    """What a reader makes of a landed value for a declared column."""
    landed = value.isoformat() if isinstance(value, dt.date) else value
    column = build([landed], parse_type(new), declared=True)
    assert not column.faults
    return column.array


def test_values_have_the_same_value_or_none(spark: SparkSession) -> None:
    selected, expected = [], []
    for old, new, good, bad in CASES:
        assert is_rewritable(parse_type(old), parse_type(new)), (old, new)
        for value in [*good, *bad]:
            given = in_sql(value, old)
            found = converted(given, parse_type(old), parse_type(new))
            lacking = unconverted(given, parse_type(old), parse_type(new))
            selected += [f"{found} AS v{len(selected)}", f"{lacking} AS v{len(selected) + 1}"]
            expected.append((old, new, value, value in bad or value != value))

    row = spark.sql(f"SELECT {', '.join(selected)}").toArrow()

    for index, (old, new, value, is_bad) in enumerate(expected):
        found, lacking = row.column(2 * index), row.column(2 * index + 1)
        case = (old, new, value)
        assert lacking.to_pylist() == [is_bad], case
        if is_bad:
            assert found.to_pylist() == [None], case
        else:
            assert found.to_pylist() == _plain(as_read(value, new), found.type), case


def _plain(array: pa.Array, kind: pa.DataType) -> list[Any]:
    return array.cast(kind).to_pylist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint", "bigint"),
        ("int", "bigint"),
        ("bigint", "int"),
        ("decimal(9,2)", "decimal(18,2)"),
        ("double", "string"),
        ("string", "float"),
        ("string", "binary"),
        ("boolean", "bigint"),
        ("array<bigint>", "array<double>"),
        ("struct<a:bigint>", "struct<a:double>"),
    ],
)
def test_other_pairs_are_not_rewritten(old: str, new: str) -> None:
    assert not is_rewritable(parse_type(old), parse_type(new))
