"""The scaling strategies on the simulated week: each keeps the order that its name promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import strategies
from bench.simulated.workload import (
    ARRIVALS_LATE,
    BOOT_MINUTES,
    MINUTE,
    Service,
    a_week,
    serve,
)
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

    def late(week: Service) -> int:
        return sum(delay > 0 for delay in week.delays)

    assert late(strategies.run(hasty)) > 1.3 * late(weeks[LOW_COST.name])


def test_the_group_stays_within_its_bounds() -> None:
    week = serve(LOW_LATENCY, a_week(1), minimum=1, maximum=1)

    assert week.spot_minutes == len(week.delays)
    assert week.on_demand_minutes == 0


def test_a_node_that_publishes_nothing_is_not_taken_for_idle() -> None:
    """Ten hours of work, and a node that is silent all the while."""
    work = [36_000.0] + [0.0] * 300

    def minutes(*, missing_is_zero: bool) -> int:
        silent = serve(
            LOW_COST,
            work,
            minimum=0,
            maximum=1,
            silent=lambda _minute: True,
            missing_is_zero=missing_is_zero,
        )
        return silent.spot_minutes

    assert minutes(missing_is_zero=False) >= 290
    # The planted fault, plain metric math: the node is ended in the middle of its work.
    assert minutes(missing_is_zero=True) < 60


def test_a_silent_node_is_not_scaled_in_by_a_target_either() -> None:
    work = [36_000.0] + [0.0] * 200
    known = serve(LOW_LATENCY, work, minimum=1, maximum=4, silent=lambda minute: minute > 30)
    faulty = serve(
        LOW_LATENCY,
        work,
        minimum=1,
        maximum=4,
        silent=lambda minute: minute > 30,
        missing_is_zero=True,
    )

    assert faulty.spot_minutes < known.spot_minutes


def test_an_empty_group_wakes_without_events_though_figures_come_late() -> None:
    work = [0.0] * 60 + [600.0] + [0.0] * 120

    by_event = serve(LOW_COST, work, minimum=0, maximum=1)
    by_alarm = serve(LOW_COST, work, minimum=0, maximum=1, events=False)

    assert by_alarm.delay(1.0) - by_event.delay(1.0) == ARRIVALS_LATE * MINUTE
    # The planted fault: one value of one, which is always the one that is not there yet.
    asleep = replace(
        LOW_COST,
        steps=tuple(
            replace(step, periods=1) if step.signal is Signal.UNHANDLED_ARRIVALS else step
            for step in LOW_COST.steps
        ),
    )
    assert serve(asleep, work, minimum=0, maximum=1, events=False).delay(1.0) >= 119 * MINUTE


@pytest.mark.parametrize(("held_back", "saved"), [(1, 0), (3, 0), (4, 1), (6, 3), (15, 5)])
def test_records_in_a_stream_wake_a_group_before_they_land(held_back: int, saved: int) -> None:
    """Held back for longer than the alarm is late, they land on a node that boots or serves."""
    work = [0.0] * 60 + [60.0] + [0.0] * 120

    def delay(*, counted: bool) -> float:
        week = serve(LOW_COST, work, minimum=0, maximum=1, held_back=held_back, counted=counted)
        return max(week.delay(1.0), held_back * MINUTE)

    assert delay(counted=False) == (held_back + BOOT_MINUTES - 1) * MINUTE
    assert delay(counted=False) - delay(counted=True) == saved * MINUTE


def test_a_schedule_for_office_hours_buys_their_delay(weeks: dict[StrategyName, Service]) -> None:
    scheduled = strategies.run(LOW_COST, strategies.office_hours)

    assert scheduled.delay(0.95) < 60 < weeks[LOW_COST.name].delay(0.95)
    assert scheduled.spot_minutes < weeks[LOW_LATENCY.name].spot_minutes
