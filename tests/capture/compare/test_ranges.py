"""Decisions of a comparison."""

from __future__ import annotations

from polynya.capture.compare.ranges import (
    DifferingRow,
    Fault,
    Range,
    RowState,
    affordable,
    bits_for,
    differing_rows,
    rounds_needed,
    unchanged,
    unlike,
)


def test_ranges_have_about_sixteen_rows_up_to_a_quarter_million_of_them():
    assert bits_for(0) == 1
    assert 2 ** bits_for(1_000_000) in range(32_768, 131_073)
    assert bits_for(10**12) == 18


def test_ranges_differ_by_rows_by_hashes_or_by_being_there():
    source = {1: Range(2, 10), 2: Range(2, 10), 3: Range(1, 1), 4: Range(1, 7)}
    current = {1: Range(2, 10), 2: Range(1, 10), 4: Range(1, 8), 5: Range(1, 1)}

    assert unlike(source, current) == [2, 3, 4, 5]


def test_so_many_ranges_are_read_as_rows_allow_but_one_at_least():
    ranges = {number: Range(10, 0) for number in range(5)}

    assert affordable(range(5), ranges, {}, 30) == [0, 1, 2]
    assert affordable(range(5), ranges, {0: Range(99, 0)}, 30) == [0]


def test_rows_are_missing_surplus_or_different():
    source = {"a": RowState("1", "x"), "b": RowState("2", "x"), "c": RowState("3", "x", 2)}
    current = {"a": RowState("1", "x"), "c": RowState("3", "x", 1), "d": RowState("4", "x")}

    assert differing_rows(source, current) == {
        "b": DifferingRow("2", Fault.MISSING, 1, 0),
        "c": DifferingRow("3", Fault.DIFFERENT, 2, 1),
        "d": DifferingRow("4", Fault.SURPLUS, 0, 1),
    }


def test_a_row_is_unchanged_when_its_version_is():
    before = {"a": RowState("1", "x", 1, "7"), "b": RowState("2", "x", 1, "7")}
    after = {"a": RowState("1", "x", 1, "7"), "b": RowState("2", "x", 1, "8")}

    assert unchanged(["a", "b", "gone"], before, after) == {"a", "gone"}


def test_what_has_no_version_is_looked_at_twice():
    assert rounds_needed(RowState("1", "x", 1, "7")) == 1
    assert rounds_needed(RowState("1", "x")) == rounds_needed(None) == 2
