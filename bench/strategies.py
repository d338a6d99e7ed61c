"""The scaling strategies on one simulated week: delay, instance-hours, dollars a month."""

from __future__ import annotations

from collections.abc import Callable

from bench.simulated.workload import DAY, WEEK, Service, a_week, serve
from polynya_constructs.cluster.strategies import STRATEGIES, Signal, Strategy, StrategyName
from stacks.settings import prices

SEED = 7
MAXIMUM = 8
FIXED_SIZE = 2
"""Of the cluster that does not scale: enough for office hours, not for a load."""

ROOT_VOLUME_GIB = 50
# CloudWatch bills an alarm by the metrics that it looks at.
# Late data, silent nodes 2, missing nodes 2, shortage, fallback fails and idle, figures the same,
# failing agents, suspended datasets, quarantine; those of captures and streams come on top.
_FOR_PEOPLE = 13
_OF_STEP = {
    Signal.UNHANDLED_ARRIVALS: 2,
    Signal.BACKLOG_PER_NODE: 2,
    Signal.IDLENESS: 3,
    Signal.OLDEST_UNMERGED_AGE: 1,
}
_OF_TRACKING = 5  # its alarm over backlog and nodes, that of a spare node over a third metric, too
_OF_LOOKS = 3  # runs, errors, sources that are not seen
_ALARMS_OF_STREAM = 3  # its own, unhandled arrivals, idleness
# Those of a cluster in docs/agent.md: custom metrics, billed for the hours in which they come. Each
# node and each task has some of its own, which are not counted here.
_BY_NODES = 12
_BY_FALLBACK = 1  # nodes that stand in for Spot
_BY_WAKE = 1  # objects that landed, of a cluster that may be empty


def office_hours(minute: int) -> int:
    """The nodes that a schedule keeps: two from 7 to 19 o'clock, Monday to Friday."""
    weekday, hour = minute // DAY < 5, minute % DAY // 60
    return 2 if weekday and 7 <= hour < 19 else 0


def run(strategy: Strategy, scheduled: Callable[[int], int] | None = None) -> Service:
    """One week of a strategy at the sizes of this comparison."""
    fixed = strategy.name is StrategyName.NO_SCALING
    return serve(
        strategy,
        a_week(SEED),
        minimum=FIXED_SIZE if fixed else strategy.minimum,
        maximum=FIXED_SIZE if fixed else MAXIMUM,
        scheduled=scheduled or (lambda _minute: 0),
    )


def watching(
    strategy: Strategy, *, nodes: bool = True, streams: int = 0, looks: bool = True
) -> float:
    """Dollars a month of the metrics, alarms and dashboard of a cluster, with nodes or empty.

    `streams` are those whose records wake it: each is a metric of three alarms, one of which there
    is only for them, and looks at the size of the group, too. `looks` are those at its sources.
    """
    metrics = _BY_FALLBACK + (_BY_NODES if nodes else 0)
    metrics += _BY_WAKE if nodes and strategy.starts_from_zero else 0
    looked_at = _FOR_PEOPLE + sum(_OF_STEP[step.signal] for step in strategy.steps)
    looked_at += _OF_TRACKING if strategy.tracking else 0
    looked_at += _OF_LOOKS if looks and strategy.starts_from_zero else 0
    if streams and strategy.starts_from_zero:
        looked_at += 1 + _ALARMS_OF_STREAM * streams
    return metrics * prices.METRIC_MONTH + looked_at * prices.ALARM_MONTH + prices.DASHBOARD_MONTH


def dollars_a_month(strategy: Strategy, week: Service) -> tuple[float, float]:
    """Dollars of the nodes, and of the metrics and alarms of the cluster."""
    months = WEEK / 60 / prices.HOURS_A_MONTH
    nodes = prices.node_hours(
        spot=week.spot_minutes / 60 / months,
        on_demand=week.on_demand_minutes / 60 / months,
        root_volume_gib=ROOT_VOLUME_GIB,
    )
    return nodes, watching(strategy)


def main() -> None:
    """Print the table of docs/cluster.md; delays in minutes."""
    print(f"One week, seed {SEED}, {prices.NODE}, prices of {prices.AS_OF}\n")
    print("| strategy | median | 95 % | 99 % | longest | Spot h | On-Demand h | nodes | watching |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, strategy in STRATEGIES.items():
        fixed = f", {FIXED_SIZE} nodes" if name is StrategyName.NO_SCALING else ""
        print(_line(f"`{name}`{fixed}", strategy, run(strategy)))
    low_cost = STRATEGIES[StrategyName.LOW_COST]
    scheduled = run(low_cost, office_hours)
    print(_line(f"`{low_cost.name}`, 2 nodes in office hours", low_cost, scheduled))


def _line(name: str, strategy: Strategy, week: Service) -> str:
    delays = [f"{week.delay(part) / 60:.0f}" for part in (0.5, 0.95, 0.99, 1.0)]
    hours = [f"{minutes / 60:.0f}" for minutes in (week.spot_minutes, week.on_demand_minutes)]
    dollars = [f"${amount:.0f}" for amount in dollars_a_month(strategy, week)]
    return "| " + " | ".join([name, *delays, *hours, *dollars]) + " |"
