"""A figure that grows is caught, whatever it begins with; one that is only restless passes."""

from __future__ import annotations

import math
import random

import pytest

from bench.streams.levels import Point, trend

TIMES = [60.0 * number for number in range(121)]


def points(values: list[float]) -> list[Point]:
    return list(zip(TIMES, values, strict=True))


@pytest.mark.parametrize("start", [0, 10, 50], ids="from {}".format)
def test_a_figure_that_grows_linearly_is_caught(start: float) -> None:
    assert not trend(points([start + at / 60 for at in TIMES])).level_off


def test_a_figure_that_grows_under_much_noise_is_caught() -> None:
    chance = random.Random(1)

    assert not trend(points([chance.uniform(0.7, 1.3) * (10 + at / 60) for at in TIMES])).level_off


@pytest.mark.parametrize("seed", range(20))
def test_a_level_figure_under_noise_passes(seed: int) -> None:
    chance = random.Random(seed)

    assert trend(points([chance.uniform(0.7, 1.3) * 40 for _ in TIMES])).level_off


@pytest.mark.parametrize("period", [4, 7, 15])
def test_a_figure_that_maintenance_brings_down_again_and_again_passes(period: int) -> None:
    assert trend(points([20 + number % period for number in range(121)])).level_off


def test_what_settles_after_a_start_passes_and_what_falls_too() -> None:
    assert trend(points([100 * (1 - math.exp(-at / 1200)) for at in TIMES])).level_off
    assert trend(points([100 - at / 120 for at in TIMES])).level_off


def test_the_growth_is_that_of_the_second_half() -> None:
    found = trend(points(list(TIMES)))

    assert found.level == pytest.approx(5400)
    assert found.growth == pytest.approx(2 / 3)


def test_too_few_points_prove_nothing_and_missing_ones_are_left_out() -> None:
    assert not trend([]).level_off
    assert not trend([(0.0, 1.0), (1.0, 1.0)]).level_off
    holes = [(at, math.nan if at % 120 else 5.0) for at in TIMES]
    assert trend(holes).level_off
    assert trend(holes).level == 5.0
