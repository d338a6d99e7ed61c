"""Expected rows against found ones: partial, in any order, by the types of the table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.testing.rows import as_column, differences


def told(expected, found, keys=("id",)):
    return [
        (one.kind, one.number, one.columns, one.found) for one in differences(expected, found, keys)
    ]


def test_order_and_columns_that_are_not_named_do_not_matter():
    assert told([{"id": 2}, {"id": 1, "b": "x"}], [{"id": 1, "b": "x"}, {"id": 2, "b": None}]) == []


def test_rows_are_matched_so_that_as_many_as_possible_agree():
    found = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 1}]

    assert told([{"a": 1}, {"b": 1}, {"a": 1, "b": 1}], found) == []
    assert told([{"a": 1}, {"a": 1}, {"a": 1}], found) != []


def test_a_row_of_the_same_record_is_put_beside_the_expected_one():
    found = [{"id": 1, "a": "x", "b": "y"}, {"id": 2, "a": "n", "b": "m"}]

    assert told([{"id": 2, "a": "x", "b": "y"}, {"id": 1}], found) == [
        ("different", 0, ("a", "b"), found[1])
    ]


def test_rows_that_share_nothing_are_missing_and_unexpected():
    assert told([{"id": 1}], [{"id": 2}]) == [
        ("missing", 0, (), None),
        ("unexpected", None, (), {"id": 2}),
    ]
    assert told([], [{"id": 2}]) == [("unexpected", None, (), {"id": 2})]


def test_a_row_that_is_there_twice_has_to_be_expected_twice():
    assert told([{"id": 1}, {"id": 1}], [{"id": 1}, {"id": 1}]) == []
    assert [kind for kind, *_ in told([{"id": 1}], [{"id": 1}, {"id": 1}])] == ["unexpected"]


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, "1"), (0, None), (1, 1.5)])
def test_values_of_different_types_differ(one, other):
    assert told([{"id": 7, "v": one}], [{"id": 7, "v": other}])[0][2] == ("v",)


@pytest.mark.parametrize(
    ("written", "kind", "shown"),
    [
        ("12.5", pa.decimal128(10, 2), "12.50"),
        (12.5, pa.decimal128(10, 2), "12.50"),
        ("12.505", pa.decimal128(10, 2), "12.505"),
        ("much", pa.decimal128(10, 2), "much"),
        (1, pa.float64(), 1.0),
        ("2026-01-01T02:00:00+02:00", pa.timestamp("us", "UTC"), "2026-01-01T00:00:00Z"),
        ("2026-01-01 00:00:00.5Z", pa.timestamp("us", "UTC"), "2026-01-01T00:00:00.500000Z"),
        ("soon", pa.timestamp("us", "UTC"), "soon"),
        ("2026-01-01", pa.date32(), "2026-01-01"),
        (None, pa.date32(), None),
        (True, pa.decimal128(3, 0), True),
        (["1"], pa.list_(pa.decimal128(3, 1)), ["1.0"]),
        ({"a": "1", "z": 2}, pa.struct([("a", pa.decimal128(3, 1))]), {"a": "1.0", "z": 2}),
        ({"k": 1}, pa.map_(pa.string(), pa.float32()), {"k": 1.0}),
    ],
)
def test_an_expected_value_is_read_as_its_column_would_show_it(written, kind, shown):
    assert as_column(written, kind) == shown


@given(
    st.lists(st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.integers(0, 2)}), max_size=6),
    st.data(),
)
def test_parts_of_all_rows_in_any_order_are_as_expected(rows, data):
    shuffled = data.draw(st.permutations(rows))
    parts = [
        {name: row[name] for name in data.draw(st.sampled_from([("a",), ("b",), ("a", "b")]))}
        for row in shuffled
    ]

    assert differences(parts, rows) == []
