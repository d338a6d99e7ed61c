"""Loads that placement goes by: smoothed, and no figure too wild to stop it."""

from __future__ import annotations

from math import inf, nan

import pytest

from polynya.cluster.placement import Loads
from polynya.cluster.unit import JobKey

UNIT, OTHER = JobKey("orders", "a"), JobKey("orders", "b")
BOTH = {UNIT, OTHER}


def test_the_first_figure_counts_whole_and_a_later_one_half_after_two_minutes() -> None:
    first = Loads().after(120.0, {UNIT: 4.0}, BOTH)

    assert first.values == {UNIT: 4.0}
    assert first.after(120.0, {UNIT: 8.0}, BOTH).values == {UNIT: 6.0}


def test_time_counts_and_not_the_number_of_figures() -> None:
    often = Loads({UNIT: 4.0})
    for _ in range(24):
        often = often.after(5.0, {UNIT: 8.0}, BOTH)

    assert often.values[UNIT] == pytest.approx(6.0)


def test_what_is_not_heard_of_keeps_its_average_and_what_is_not_wanted_goes() -> None:
    loads = Loads({UNIT: 4.0, OTHER: 2.0})

    assert loads.after(60.0, {}, {UNIT}).values == {UNIT: 4.0}
    assert loads.after(60.0, {OTHER: 9.0}, {UNIT}).values == {UNIT: 4.0}


@pytest.mark.parametrize("figure", [nan, inf, -1.0])
def test_a_figure_that_is_none_is_ignored(figure: float) -> None:
    assert Loads({UNIT: 4.0}).after(60.0, {UNIT: figure, OTHER: figure}, BOTH).values == {UNIT: 4.0}


def test_what_nobody_measured_is_taken_for_typical() -> None:
    assert Loads({UNIT: 4.0, OTHER: 2.0}).typical == 3.0
    assert Loads().typical == 1.0
