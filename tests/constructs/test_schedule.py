"""Schedules and forecasts that cannot be are refused where they are written down."""

from __future__ import annotations

from typing import Any

import pytest

from polynya_constructs.cluster.capacity import Capacity, CapacityError
from polynya_constructs.cluster.schedule import ScheduledBounds, check_predictive, check_schedules
from polynya_constructs.cluster.strategies import STRATEGIES, StrategyName

LOW_COST, LOW_LATENCY = STRATEGIES[StrategyName.LOW_COST], STRATEGIES[StrategyName.LOW_LATENCY]


def bounds(**settings: Any) -> ScheduledBounds:
    return ScheduledBounds(**{"name": "morning", "cron": "0 7 * * 1-5", "minimum": 2} | settings)


@pytest.mark.parametrize("cron", ["0 7 * * 1-5", "*/15 6-18/2 1,15 * 0", "59 23 31 12 7"])
def test_cron_as_people_write_it_is_taken(cron: str) -> None:
    check_schedules([bounds(cron=cron)], Capacity.of(LOW_LATENCY, maximum=4), LOW_LATENCY)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cron": "0 7 * *"}, "write five fields"),
        ({"cron": "60 7 * * *"}, "write five fields"),
        ({"cron": "0 9-7 * * *"}, "write five fields"),
        ({"cron": "0 7 ? * MON"}, "write five fields"),
        ({"cron": "0 7 * * * *"}, "write five fields"),
        ({"cron": "*/0 7 * * *"}, "write five fields"),
        ({"time_zone": "Berlin"}, "there is no time zone 'Berlin'"),
        ({"minimum": None}, "neither minimum nor maximum"),
        ({"minimum": 5}, "nodes would be 5 to 4"),
        ({"minimum": None, "maximum": 0}, "nodes would be 1 to 0"),
        ({"minimum": 0}, "never starts a first node"),
        ({"name": "Morning!"}, "the name 'Morning!' is not"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(CapacityError, match=r"schedules\[0\]: ") as refused:
        check_schedules([bounds(**settings)], Capacity.of(LOW_LATENCY, maximum=4), LOW_LATENCY)

    assert said in str(refused.value)


def test_an_empty_night_needs_a_strategy_that_wakes_up_and_names_are_unique() -> None:
    capacity = Capacity.of(LOW_COST, maximum=4)
    night = bounds(name="night", minimum=0)

    check_schedules([bounds(), night], capacity, LOW_COST)
    with pytest.raises(CapacityError, match=r"schedules\[1\]: the name 'night' is taken"):
        check_schedules([night, night], capacity, LOW_COST)


def test_a_forecast_counts_nodes_of_one_size_that_something_takes_away_again() -> None:
    check_predictive(Capacity.of(LOW_LATENCY, maximum=4), LOW_LATENCY)
    mixed = Capacity.of(LOW_LATENCY, maximum=4, instance_types=["m7g.xlarge", "m7g.2xlarge"])
    with pytest.raises(CapacityError, match="instance_types are of 2 sizes"):
        check_predictive(mixed, LOW_LATENCY)
    fixed = STRATEGIES[StrategyName.NO_SCALING]
    with pytest.raises(CapacityError, match="no policy that would take back"):
        check_predictive(Capacity.of(fixed, maximum=4), fixed)
