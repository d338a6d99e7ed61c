"""`coalesce_unchanged`: the History view merges neighbours that are equal in what is tracked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.chosen import slow
from tests.lab.lab import Lab, drop, put


def test_equal_neighbours_are_one_line_and_a_late_event_cuts_it_again(lab: Lab) -> None:
    users = lab.feed(coalesce_unchanged=True)
    users.apply(put(1, 1, city="Rome"), put(1, 2, city="Rome"), put(1, 5, city="Rome"))
    assert users.history("city") == [("Rome", "U", 1.0, None)]

    users.copy(put(1, 3, city="Oslo"))
    before = users.history("city")
    users.apply()

    assert before == users.history("city")
    assert [(city, start, end) for city, _, start, end in before] == [
        ("Oslo", 3.0, 5.0),
        ("Rome", 1.0, 3.0),
        ("Rome", 5.0, None),
    ]


def test_a_delete_ends_the_run(lab: Lab) -> None:
    users = lab.feed(coalesce_unchanged=True)

    users.apply(put(1, 1, city="Rome"), drop(1, 2), put(1, 3, city="Rome"))

    assert users.history("city") == [
        ("Rome", "D", 2.0, 3.0),
        ("Rome", "I", 1.0, 2.0),
        ("Rome", "I", 3.0, None),
    ]


@pytest.mark.parametrize(
    "tracked", [{"track_history_columns": ["name"]}, slow({"track_history_except": ["city"]})]
)
def test_what_is_not_tracked_makes_no_line_and_shows_its_last_value(
    lab: Lab, tracked: dict[str, Any]
) -> None:
    users = lab.feed(coalesce_unchanged=True, **tracked)

    users.apply(
        put(1, 1, name="Ann", city="Rome"),
        put(1, 2, name="Ann", city="Oslo"),
        put(1, 3, name="Anna", city="Oslo"),
    )

    assert users.history("name", "city") == [
        ("Ann", "Oslo", "U", 1.0, 3.0),
        ("Anna", "Oslo", "U", 3.0, None),
    ]


def test_values_of_every_kind_are_compared(lab: Lab) -> None:
    kinds = {"x": "decimal(9,2)", "m": "map<string,int>", "s": "struct<a:int,b:array<string>>"}
    users = lab.feed(coalesce_unchanged=True, columns=kinds)
    values = {"x": "1.50", "m": {"k": 1}, "s": {"a": None, "b": ["", "z"]}}
    nulls = dict.fromkeys(values)

    users.apply(
        put(1, 1, **values),
        put(1, 2, **values),
        put(1, 3, **nulls),
        put(1, 4, **nulls),
        put(1, 5, **values | {"m": {"k": 2}}),
        put(1, 6, **values | {"s": {"a": 1, "b": ["", "z"]}}),
    )

    assert users.rejected() == []
    assert [row[-2:] for row in users.history("id")] == [
        (1.0, 3.0),
        (3.0, 5.0),
        (5.0, 6.0),
        (6.0, None),
    ]


def test_a_float_that_is_no_number_equals_itself(lab: Lab) -> None:
    users = lab.parquet_feed(coalesce_unchanged=True)
    users.land_table(id=[1, 1, 1], seq=[1, 2, 3], x=[float("nan"), float("nan"), 0.5])

    users.run("always")

    assert len(users.history("x")) == 2
