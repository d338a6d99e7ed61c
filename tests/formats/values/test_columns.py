"""Typing columns: known types win, values are never changed, nested values evolve."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.values.columns import build
from polynya.formats.values.times import MIN_MICROS, epoch_micros
from polynya.model.types import parse_type


def _built(
    values: list[Any], known: str | None = None, *, declared: bool = False
) -> tuple[str, list[Any], dict[int, str]]:
    column = build(values, parse_type(known) if known else None, declared=declared)
    column.array.validate(full=True)
    faults = {index: rule for index, (rule, _) in column.faults.items()}
    return str(column.type), column.array.to_pylist(), faults


@pytest.mark.parametrize(
    ("values", "kind", "out", "faults"),
    [
        ([None, None], "void", [None, None], {}),
        (["a", None], "string", ["a", None], {}),
        ([True, False], "boolean", [True, False], {}),
        ([1, "a", True], "bigint", [1, None, None], {1: "type_mismatch", 2: "type_mismatch"}),
        ([{}, {}], "struct<>", ["{}", "{}"], {}),
        ([{}, "a"], "string", ["{}", "a"], {}),
        ([{}, {"a": 1}], "struct<a:bigint>", [{"a": None}, {"a": 1}], {}),
        ([[], None], "array<void>", [[], None], {}),
        ([[1, None], []], "array<bigint>", [[1, None], []], {}),
        ([[1], ["x"]], "array<bigint>", [[1], [None]], {1: "type_mismatch"}),
        (
            [[{"a": 1}], [{"b": "x"}, None]],
            "array<struct<a:bigint,b:string>>",
            [[{"a": 1, "b": None}], [{"a": None, "b": "x"}, None]],
            {},
        ),
        (
            [{"a": {"": 1}}, {"a": {}}],
            "struct<a:struct<>>",
            [{"a": None}, {"a": "{}"}],
            {0: "bad_column"},
        ),
        ([{"a": 1, "A": 2}], "struct<a:bigint>", [{"a": 1}], {0: "bad_column"}),
    ],
)
def test_a_new_column_takes_the_type_of_its_first_value(
    values: list[Any], kind: str, out: list[Any], faults: dict[int, str]
) -> None:
    assert _built(values) == (kind, out, faults)


@pytest.mark.parametrize(
    ("values", "known", "kind", "out", "faults"),
    [
        ([1.0, 1.5], "bigint", "bigint", [1, None], {1: "type_mismatch"}),
        ([2**63], "bigint", "bigint", [None], {0: "type_mismatch"}),
        ([1, 2**40], "int", "bigint", [1, 2**40], {}),
        ([2**53 + 1, 1], "double", "double", [None, 1.0], {0: "type_mismatch"}),
        ([12345.5], "decimal(5,2)", "decimal(7,2)", [Decimal("12345.50")], {}),
        ([1.555], "decimal(5,2)", "decimal(5,2)", [None], {0: "type_mismatch"}),
        ([1, "x"], "string", "string", [None, "x"], {0: "type_mismatch"}),
        (
            [{"a": 1, "b": 2}],
            "struct<a:bigint>",
            "struct<a:bigint,b:bigint>",
            [{"a": 1, "b": 2}],
            {},
        ),
        ([{"a": "x"}], "struct<a:void>", "struct<a:string>", [{"a": "x"}], {}),
        ([None], "decimal(9,2)", "decimal(9,2)", [None], {}),
        ([5], "array<int>", "array<int>", [None], {0: "type_mismatch"}),
    ],
)
def test_a_known_type_wins(
    values: list[Any], known: str, kind: str, out: list[Any], faults: dict[int, str]
) -> None:
    assert _built(values, known) == (kind, out, faults)


@pytest.mark.parametrize(
    ("value", "kind", "out"),
    [
        ("2026-01-01T00:00:01Z", "timestamp", datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("2026-01-01 02:00:01.5+02:00", "timestamp", datetime(2026, 1, 1, 0, 0, 1, 500000, UTC)),
        (1767225601, "timestamp", datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (1767225601000, "timestamp", datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("1767225601000000", "timestamp", datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("2026-01-01T00:00:01", "timestamp_ntz", datetime(2026, 1, 1, 0, 0, 1)),
        ("2026-01-01", "date", date(2026, 1, 1)),
        ("12.30", "decimal(5,2)", Decimal("12.30")),
        (12.3, "decimal(5,2)", Decimal("12.30")),
        ("7", "int", 7),
        ("1e3", "double", 1000.0),
        ("TRUE", "boolean", True),
        ("f", "boolean", False),
        ("1", "boolean", True),
        ("aGk=", "binary", b"hi"),
        ({"a": [1]}, "string", '{"a":[1]}'),
        (1.5, "string", "1.5"),
        ({"k": "1"}, "map<string,int>", [("k", 1)]),
    ],
)
def test_a_declared_type_reads_text(value: Any, kind: str, out: Any) -> None:
    assert _built([value], kind, declared=True) == (kind, [out], {})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("2026-13-01T00:00:00Z", "timestamp"),
        ("infinity", "timestamp"),
        ("0000-01-01", "date"),
        ("10000-01-01", "date"),
        ("2026-01-01T00:00:00.1234567Z", "timestamp"),
        ("1.234", "decimal(5,2)"),
        ("1234.5", "decimal(5,2)"),
        ("NaN", "double"),
        ("1_000", "bigint"),
        ("2147483648", "int"),
        ("??", "binary"),
        ("yes", "boolean"),
        ({1: 2}, "array<int>"),
    ],
)
def test_what_does_not_fit_a_declared_type_is_refused(value: Any, kind: str) -> None:
    _, out, faults = _built([value], kind, declared=True)

    assert out == [None]
    assert set(faults) == {0}


def test_a_map_with_a_bad_key_loses_only_its_record() -> None:
    kind, out, faults = _built([{"1": 1}, {"x": 2}], "map<int,int>", declared=True)

    assert (kind, out[0], set(faults)) == ("map<int,int>", [(1, 1)], {1})


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text("ab", max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


def _same(value: Any, out: Any) -> bool:
    """Whether a column value is the JSON value, apart from missing fields that came as NULL."""
    if isinstance(value, dict):
        if out == "{}":
            return value == {}
        return isinstance(out, dict) and all(
            _same(value.get(name), inner) for name, inner in out.items()
        )
    if isinstance(value, list):
        return isinstance(out, list) and len(value) == len(out) and all(map(_same, value, out))
    if isinstance(value, float) and isinstance(out, Decimal):
        return Decimal(repr(value)) == out
    return bool(value == out)


@given(st.lists(_JSON, max_size=6), st.lists(_JSON, max_size=6))
def test_a_value_arrives_as_it_is_or_is_named(first: list[Any], second: list[Any]) -> None:
    before = build(first, None)
    after = build(second, before.type)

    for values, column in ((first, before), (second, after)):
        assert len(column.array) == len(values)
        for index, (value, out) in enumerate(zip(values, column.array.to_pylist(), strict=True)):
            assert index in column.faults or _same(value, out)


@pytest.mark.parametrize(
    "odd", [Decimal("1e-400"), Decimal("1." + "1" * 60), 10**60, Decimal(10) ** 400, -(10**39)]
)
def test_a_number_that_no_column_holds_has_no_say_in_the_type(odd: Any) -> None:
    first = build([1.5, odd, 100.25], None)
    known = build([5, odd, 3_000_000_000], parse_type("int"))
    narrow = build([Decimal("1.5"), odd, Decimal("123456.5")], parse_type("decimal(4,1)"))

    # A whole number of that size is a double of the same text.
    assert str(first.type) == "double"
    assert set(first.faults) <= {1}
    assert (str(known.type), sorted(known.faults)) == ("bigint", [1])
    assert (str(narrow.type), sorted(narrow.faults)) == ("decimal(7,1)", [1])
    assert str(build([1, odd], parse_type("int")).type) == "int"
    kept = "double" if isinstance(odd, int) else "float"
    assert str(build([0.5, odd], parse_type("float")).type) == kept


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        (Decimal("0." + "1" * 38), "decimal(38,2)"),
        (Decimal("1e-38"), "decimal(38,2)"),
        (Decimal("1." + "1" * 20), "decimal(38,20)"),
    ],
)
def test_a_new_column_gets_the_scale_that_holds_most_of_its_numbers(odd: Any, kind: str) -> None:
    column = build([odd, Decimal("100.25"), 7, Decimal("12345.5")], None)

    assert str(column.type) == kind
    assert sorted(column.faults) == ([0] if kind == "decimal(38,2)" else [])


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000])
@pytest.mark.parametrize("seconds", [253_370_764_800, 253_402_214_400, 253_402_300_800])
def test_a_number_that_means_never_is_no_day_of_1978(seconds: int, unit: int) -> None:
    column = build([seconds * unit, "2026-01-01T00:00:00Z"], parse_type("timestamp"), declared=True)

    assert sorted(column.faults) == [0]
    assert "9999" in column.faults[0][1]


def test_numbers_beside_that_range_are_times_by_their_size() -> None:
    assert epoch_micros(253_370_764_799) == 253_370_764_799_000
    assert epoch_micros(253_433_923_200) == 253_433_923_200_000
    assert epoch_micros(-62_135_596_800) == epoch_micros(-62_135_596_800_000) == MIN_MICROS
