"""Freshness: the figures, and that files which are never seen, or too late, are found."""

from __future__ import annotations

import pytest

from tests.newcomer.shop.freshness import freshness, quantile

CLOSED = {("orders", number): float(number) for number in range(100)}
SEEN = {one: at + 2.0 for one, at in CLOSED.items()}


def test_figures_are_those_of_all_files() -> None:
    found = freshness(CLOSED, SEEN)

    assert (found.files, found.p50, found.p95, found.most) == (100, 2.0, 2.0, 2.0)
    assert found.problems(10.0) == []


@pytest.mark.parametrize(
    ("part", "wanted"), [(0.5, 50), (0.95, 95), (0.951, 96), (1.0, 100), (0.0, 1)]
)
def test_a_quantile_is_a_value_that_was_measured(part: float, wanted: float) -> None:
    assert quantile([float(n) for n in range(1, 101)], part) == wanted


def test_one_file_in_twenty_may_be_late_and_not_more() -> None:
    five = {**SEEN, **{("orders", n): 99.0 for n in range(5)}}
    six = {**SEEN, **{("orders", n): 99.0 for n in range(6)}}

    assert freshness(CLOSED, five).problems(10.0) == []
    assert freshness(CLOSED, six).problems(10.0) == ["p95 is 94.0 s, more than 10 s"]
    assert freshness(CLOSED, six).problems(None) == []


def test_a_file_that_is_never_seen_is_found_whatever_the_floor() -> None:
    seen = {one: at for one, at in SEEN.items() if one != ("orders", 7)}

    (said,) = freshness(CLOSED, seen).problems(None)

    assert said == "1 files never came into sight: (('orders', 7),)"


def test_a_measurement_that_cannot_be_is_found() -> None:
    assert freshness(CLOSED, {**SEEN, ("orders", 7): 6.5}).problems(None) == [
        "1 files seen before they were there: (('orders', 7),)"
    ]
    assert freshness({}, {}).problems(10.0) == ["no file was measured"]
