"""The scaling strategies on the simulated week: each keeps the order that its name promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import strategies
from bench.simulated.workload import MINUTE, Service, a_week, serve
from polynya_constructs.cluster.strategies import STRATEGIES, Signal, StrategyName

LOW_COST, LOW_LATENCY, CONSISTENT, FIXED = (STRATEGIES[name] for name in StrategyName)


@pytest.fixture(scope="module")
def weeks() -> dict[StrategyName, Service]:
    return {name: strategies.run(strategy) for name, strategy in STRATEGIES.items()}


def test_less_delay_costs_more(weeks: dict[StrategyName, Service]) -> None:
    ordered = [LOW_COST, LOW_LATENCY, CONSISTENT]

    costs = [sum(strategies.dollars_a_month(each, weeks[each.name])) for each in ordered]
    delays = [weeks[each.name].delay(0.95) for each in ordered]
    assert costs == sorted(costs)
    assert delays == sorted(delays, reverse=True)
    assert weeks[LOW_LATENCY.name].delay(0.95) <= 5 * MINUTE
    assert weeks[CONSISTENT.name].delay(0.99) <= 90


def test_low_cost_leaves_nothing_behind_overnight(weeks: dict[StrategyName, Service]) -> None:
    week = weeks[LOW_COST.name]

    assert week.spot_minutes < 0.8 * weeks[LOW_LATENCY.name].spot_minutes
    assert week.delay(1.0) < 3 * 3600


def test_a_strategy_that_ends_busy_nodes_would_be_seen(
    weeks: dict[StrategyName, Service],
) -> None:
    """The planted fault: the last node ends as soon as it has kept up for a while."""
    hasty = replace(
        LOW_COST,
        steps=tuple(
            replace(step, signal=Signal.BACKLOG_PER_NODE)
            if step.signal is Signal.IDLENESS
            else step
            for step in LOW_COST.steps
        ),
    )

    assert strategies.run(hasty).delay(0.95) > 10 * weeks[LOW_COST.name].delay(0.95)


def test_the_group_stays_within_its_bounds() -> None:
    week = serve(LOW_LATENCY, a_week(1), minimum=1, maximum=1)

    assert week.spot_minutes == len(week.delays)
    assert week.on_demand_minutes == 0


def test_a_schedule_for_office_hours_buys_their_delay(weeks: dict[StrategyName, Service]) -> None:
    scheduled = strategies.run(LOW_COST, strategies.office_hours)

    assert scheduled.delay(0.95) < 60 < weeks[LOW_COST.name].delay(0.95)
    assert scheduled.spot_minutes < weeks[LOW_LATENCY.name].spot_minutes
