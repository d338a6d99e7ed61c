"""What `python -m bench capture` prints, and one part of it in tiny size; no time is asserted."""

from __future__ import annotations

import math

import pytest

from bench.capture.__main__ import main
from bench.capture.figures import Figure, middle, quantile, table
from examples.servers.postgresql import UnavailableError
from tests.absent import absent


def test_a_table_says_which_goals_were_reached() -> None:
    lines = table([Figure("load", "5/s", "≥ 9/s", False), Figure("copy", "7/s")]).splitlines()

    assert lines[2:] == ["| load | 5/s | ≥ 9/s | **not reached** |", "| copy | 7/s |  |  |"]


def test_several_rounds_have_a_median_and_a_range() -> None:
    assert middle([3000.0, 1000.0, 2000.0]) == "2,000 (1,000 to 3,000)"
    assert middle([1.234], ".2f") == "1.23"


def test_most_ages_do_not_exceed_the_quantile() -> None:
    ages = [float(one) for one in range(100)]

    assert (quantile(ages, 0.5), quantile(ages, 0.95), quantile([3.0], 0.95)) == (50.0, 95.0, 3.0)
    assert math.isnan(quantile([], 0.5))


@pytest.mark.slow
def test_every_part_that_captures_alone_measures_something(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sizes = (
        "--rounds",
        "1",
        "--load-rows",
        "2000",
        "--changes",
        "2000",
        "--rows",
        "2000",
        "--limit",
        "400",
    )
    try:
        main(["load", "changes", "memory", *sizes, "--limit", "400"])
    except UnavailableError as error:
        absent(str(error))

    said = capsys.readouterr().out
    assert "not measured" not in said
    assert len([line for line in said.splitlines() if line.startswith("| ")]) == 5
