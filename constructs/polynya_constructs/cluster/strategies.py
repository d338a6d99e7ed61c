"""The four scaling strategies as numbers: the one home of every threshold.

`scaling.py` makes CloudWatch alarms and scaling policies of them, the simulator in `bench/` runs
the same numbers. Pure: no aws_cdk here.

All are about the *backlog per node*: seconds that the group's nodes would need for the work that
waits. It falls in proportion as nodes are added, which target tracking asks of its metric; an
age or a latency does not ("Target tracking scaling policies", EC2 Auto Scaling User Guide).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MINUTE = 60
"""Seconds; every metric has one value a minute, and one evaluation period is one value."""

REMOVAL_COOLDOWN_SECONDS = 5 * MINUTE
"""Between two nodes that are removed. An alarm asks again each minute until figures of the smaller
group are there: a minute of work, two until they are there, and the one in which it looks. Without
this a group lost three nodes for one that was spare."""

MOST_STREAMS = 7
"""Whose records may wake a group: an alarm looks at ten metrics at most, and that of idleness at
three others ("Using math expressions", Amazon CloudWatch User Guide)."""


class StrategyName(StrEnum):
    """How the owner of a cluster weighs cost against delay."""

    LOW_COST = "low_cost"
    LOW_LATENCY = "low_latency"
    CONSISTENT_LOW_LATENCY = "consistent_low_latency"
    NO_SCALING = "no_scaling"


class Signal(StrEnum):
    """What a step looks at: seconds, but for the last one whether there are any.

    Unhandled arrivals are events that the function which wakes a group does not take, and records
    on their way: the second way to wake it. They are seen minutes late, so one of several values is
    enough.

    Idleness is the backlog per node, and a day for as long as the last node still gets work: a
    node that keeps up with a trickle has next to no backlog, yet ending it would only start
    another one a minute later.
    """

    BACKLOG_PER_NODE = "backlog per node"
    IDLENESS = "idleness"
    OLDEST_UNMERGED_AGE = "oldest unmerged age"
    UNHANDLED_ARRIVALS = "unhandled arrivals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """Target tracking adds nodes by the backlog; how busy they are decides when one may go.

    A backlog shows that nodes are too few, not how many are enough: nodes that just keep up have
    next to none. A group that removes a node for that reason has one too few at once, and learns
    it a boot and some late figures too late.

    Attributes:
        target_seconds: the backlog per node above which nodes are added.
        busy_percent: a node goes when the others would be less busy than this with its work, and
            would have less than half of the target waiting.
        busy_minutes: for how long in a row that has to hold.
    """

    target_seconds: int
    busy_percent: int = 90
    busy_minutes: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Add or remove nodes when a signal was beyond a threshold often enough.

    Attributes:
        signal: what is looked at.
        threshold: in the signal's unit; beyond it is above it (`change` > 0) or below it.
        datapoints: how many of the last `periods` values must be beyond the threshold.
        periods: number of one-minute values looked at.
        change: nodes to add, or to remove when negative.
        change_beyond_double: nodes to add when the signal is above twice the threshold.
    """

    signal: Signal
    threshold: int
    datapoints: int
    periods: int
    change: int
    change_beyond_double: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One strategy; what the owner of a cluster does not set comes from here.

    Attributes:
        name: its name in a stage file.
        minimum: nodes at least; 0 lets the group end its last node.
        on_demand_base: nodes that are always On-Demand.
        on_demand_percentage: part of the other nodes that is On-Demand.
        warmup_seconds: from the moment in which a node is in service until its figures count: a
            minute of work, and two until figures are there. Its boot comes before: the hook of
            the launch keeps it out of service until its agent is ready. Until both are over, Auto
            Scaling removes no node ("Set the default instance warmup", EC2 Auto Scaling User
            Guide).
        tracking: the target tracking policy, if any.
        predictive_cpu_percent: mean load of the processors that predictive scaling plans for, if
            it is turned on; None where nothing would take its nodes away again.
        steps: the step policies; of several policies the largest group wins.
    """

    name: StrategyName
    minimum: int
    on_demand_base: int = 0
    on_demand_percentage: int = 0
    warmup_seconds: int = 180
    tracking: Tracking | None = None
    predictive_cpu_percent: int | None = None
    steps: tuple[Step, ...] = ()

    @property
    def starts_from_zero(self) -> bool:
        """Whether a group without nodes gets one when something lands."""
        return any(step.signal is Signal.UNHANDLED_ARRIVALS for step in self.steps)


# The thresholds are choices, not measured optima: `python -m bench strategies` shows what they
# do to delay and cost, docs/cluster.md its figures. Low cost waits long before it buys a node,
# and so has peaks of delay; consistent low latency pays for a second node and On-Demand.
STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            name=StrategyName.LOW_COST,
            minimum=0,
            predictive_cpu_percent=80,
            steps=(
                Step(
                    signal=Signal.UNHANDLED_ARRIVALS,
                    threshold=0,
                    datapoints=1,
                    periods=5,
                    change=1,
                ),
                Step(
                    signal=Signal.BACKLOG_PER_NODE,
                    threshold=30 * MINUTE,
                    datapoints=10,
                    periods=15,
                    change=1,
                ),
                Step(
                    signal=Signal.IDLENESS,
                    threshold=1 * MINUTE,
                    datapoints=15,
                    periods=15,
                    change=-1,
                ),
            ),
        ),
        Strategy(
            name=StrategyName.LOW_LATENCY,
            minimum=1,
            tracking=Tracking(target_seconds=5 * MINUTE),
            predictive_cpu_percent=80,
        ),
        Strategy(
            name=StrategyName.CONSISTENT_LOW_LATENCY,
            minimum=2,
            on_demand_base=1,
            tracking=Tracking(target_seconds=90),
            predictive_cpu_percent=60,
            steps=(
                Step(
                    signal=Signal.OLDEST_UNMERGED_AGE,
                    threshold=5 * MINUTE,
                    datapoints=2,
                    periods=2,
                    change=2,
                    change_beyond_double=4,
                ),
            ),
        ),
        Strategy(name=StrategyName.NO_SCALING, minimum=1),
    )
}
