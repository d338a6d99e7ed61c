"""Change identifiers sort exactly as the values that they encode.

Strings compare by code point in Python, which is the order of their UTF-8 bytes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.formats.values.sequence import sequence_encoder
from polynya.formats.values.times import MAX_DAYS, MAX_MICROS, MIN_DAYS, MIN_MICROS
from polynya.model.types import DataType, parse_type

_WHOLE = st.integers(-(1 << 63), (1 << 63) - 1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bigint": _WHOLE | st.integers(-3, 3),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "float": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "boolean": st.booleans(),
    "timestamp": st.integers(MIN_MICROS, MAX_MICROS) | st.integers(-20_000, 20_000),
    "timestamp_ntz": st.integers(MIN_MICROS, MAX_MICROS),
    "date": st.integers(MIN_DAYS, MAX_DAYS),
    "string": _TEXT | st.text("ab\0", max_size=20),
    "binary": st.binary(max_size=20),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "decimal(38,10)": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}e-10")),
    "decimal(5,2)": st.integers(-99999, 99999).map(lambda n: Decimal(f"{n}e-2")),
}


def _place(types: list[DataType], values: tuple[Any, ...]) -> tuple[str, str]:
    identifier, tail = sequence_encoder(types)(values)
    assert 35 <= len(identifier) <= 50
    assert identifier.isdigit()
    return identifier, tail or ""


def _sign(a: Any, b: Any) -> int:
    return (a > b) - (a < b)


@pytest.mark.parametrize("name", _VALUES)
@given(data=st.data())
def test_one_column_keeps_its_order(name: str, data: st.DataObject) -> None:
    a, b = (data.draw(_VALUES[name]) for _ in range(2))
    kind = [parse_type(name)]

    assert _sign(_place(kind, (a,)), _place(kind, (b,))) == _sign(a, b)


@settings(max_examples=3 * settings().max_examples)
@given(data=st.data())
def test_several_columns_compare_as_tuples(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(list(_VALUES)), min_size=2, max_size=4))
    kinds = [parse_type(name) for name in names]
    a = tuple(data.draw(_VALUES[name]) for name in names)
    # Sharing a prefix is what makes the later columns decide.
    shared = data.draw(st.integers(0, len(names)))
    b = a[:shared] + tuple(data.draw(_VALUES[name]) for name in names[shared:])

    assert _sign(_place(kinds, a), _place(kinds, b)) == _sign(a, b)


@given(st.lists(_WHOLE, min_size=2))
def test_sorting_identifiers_sorts_integers(values: list[int]) -> None:
    kinds = [parse_type("bigint")]

    assert sorted(values, key=lambda v: _place(kinds, (v,))) == sorted(values)


def test_timestamps_read_as_the_contract_says() -> None:
    micros = 1_767_225_601_239_999  # 2026-01-01T00:00:01.239999Z

    identifier, tail = sequence_encoder([parse_type("timestamp")])((micros,))

    assert identifier == "2026010100000123" + "9999".zfill(19)
    assert tail is None


def test_the_first_load_stands_before_every_value() -> None:
    for name, lowest in (("bigint", -(1 << 63)), ("decimal(38,0)", Decimal(-(10**38) + 1))):
        assert sequence_encoder([parse_type(name)])((lowest,))[0] >= "0" * 35


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_without_order_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no place"):
        sequence_encoder([parse_type("double")])((value,))


def test_both_zeros_are_the_same_place() -> None:
    encode = sequence_encoder([parse_type("double")])

    assert encode((0.0,)) == encode((-0.0,))


def test_a_struct_has_no_order() -> None:
    with pytest.raises(ValueError, match="no order"):
        sequence_encoder([parse_type("struct<a:int>")])
