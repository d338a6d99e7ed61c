"""What is published of a cluster that has no node, from the metrics that there are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya_constructs.cluster.strategies import STRATEGIES, Signal
from polynya_constructs.functions.figures.estimate import (
    IDLE_SECONDS,
    Figures,
    Landed,
    Left,
    estimate,
)
from polynya_constructs.functions.figures.handler import find, look, record, wake
from tests.aws import aws_clients

NOW = datetime.now(UTC).replace(second=30, microsecond=0)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("left", "landed", "speed", "figures"),
    [
        (None, None, None, Figures(0, 0)),
        (Left(ago(60), 0, 0), None, None, Figures(0, 0)),
        (Left(ago(60), 500, 40), None, None, Figures(500, 3640, needs_node=True)),
        # A last node left it on purpose.
        (Left(ago(60), 50, 40), None, None, Figures(50, 3640)),
        # Of a suspended task: no work for anybody, but it gets older.
        (Left(ago(60), 0, 40), None, None, Figures(0, 3640)),
        (Left(ago(60), 0, 0), Landed(9e6, ago(5)), 3e6, Figures(3, 300, needs_node=True)),
        (None, Landed(9e6, ago(5)), None, Figures(9, 300, needs_node=True)),
        (
            Left(ago(60), 500, 40),
            Landed(9e6, ago(5)),
            3e6,
            Figures(503, 3640, needs_node=True),
        ),
    ],
)
def test_what_waits_is_what_was_left_and_what_landed_since(
    left: Left | None, landed: Landed | None, speed: float | None, figures: Figures
) -> None:
    assert estimate(NOW, left, landed, speed) == figures


class Stand:
    """Metrics in a stand-in for CloudWatch, and a group whose nodes are in given states."""

    def __init__(self, cloudwatch: Any) -> None:
        self.cloudwatch = cloudwatch
        self.states: list[str] = []

    def describe_auto_scaling_groups(self, AutoScalingGroupNames: list[str]) -> dict[str, Any]:
        nodes = [{"LifecycleState": state} for state in self.states]
        return {"AutoScalingGroups": [{"Instances": nodes}] if AutoScalingGroupNames else []}

    def put(self, minutes_ago: float, **figures: float) -> None:
        """Figures of cluster `shop`, and others of one that is called alike."""
        self.cloudwatch.put_metric_data(
            Namespace="Polynya",
            MetricData=[
                {
                    "MetricName": name,
                    "Dimensions": [{"Name": "Cluster", "Value": cluster}],
                    "Timestamp": ago(minutes_ago),
                    "Value": value + other,
                }
                for name, value in figures.items()
                for cluster, other in (("shop", 0.0), ("shop2", 77.0))
            ],
        )

    def node(self, minutes_ago: float, *, seconds: float = 0.0, oldest: float = 0.0) -> None:
        self.put(
            minutes_ago,
            BacklogBytes=seconds * 2e6,
            BacklogSeconds=seconds,
            OldestUnmergedAge=oldest,
            **({"BytesPerSecond": 2e6} if seconds else {}),
        )

    def look(self) -> Figures | None:
        return look(find(self, "shop"), self.cloudwatch, "shop", NOW)


@pytest.fixture
def stand() -> Iterator[Stand]:
    with aws_clients() as client:
        yield Stand(client("cloudwatch"))


def test_nodes_that_serve_publish_for_themselves(stand: Stand) -> None:
    stand.states = ["Terminating:Wait", "InService"]
    assert stand.look() is None
    stand.states = []
    stand.node(1.0)
    assert stand.look() is None


def test_an_idle_cluster_has_nothing_to_wait_for(stand: Stand) -> None:
    stand.node(60.0)

    assert stand.look() is None


def test_nodes_that_died_left_their_work_and_more_landed_since(stand: Stand) -> None:
    stand.node(31.0, seconds=900.0)
    for _ in range(2):  # two nodes: the sum of what they had, the oldest of any
        stand.node(30.0, seconds=100.0, oldest=60.0)
    stand.put(10.0, LandedBytes=4e6)
    stand.put(5.0, LandedBytes=6e6)
    stand.states = ["Pending:Wait"]
    # What this function published itself is not what nodes left.
    stand.put(3.0, BacklogSeconds=5000.0, OldestUnmergedAge=5000.0)

    figures = stand.look()

    assert figures is not None
    assert figures.backlog_seconds == pytest.approx(200 + 10e6 / 2e6)
    assert figures.oldest_seconds == pytest.approx(60 + 30 * 60, abs=60)


def test_the_first_file_for_a_cluster_that_never_had_a_node(stand: Stand) -> None:
    stand.put(4.0, LandedBytes=3e6)

    figures = stand.look()

    assert figures is not None
    assert figures.backlog_seconds == 3.0
    assert figures.oldest_seconds == pytest.approx(240, abs=60)


def test_a_weekend_later_what_was_left_is_still_known(stand: Stand) -> None:
    stand.node(3 * 24 * 60.0, seconds=100.0, oldest=60.0)
    stand.put(24 * 60.0, LandedBytes=4e6)

    figures = stand.look()

    assert figures is not None
    assert figures.backlog_seconds == pytest.approx(102)
    assert figures.oldest_seconds == pytest.approx(3 * 86_400 + 60, abs=60)


def test_the_figures_are_those_that_a_cluster_scales_by() -> None:
    line = record("shop", Figures(12.5, 300.0), NOW)

    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Polynya", [["Cluster"]])
    assert (line["Cluster"], line["BacklogSeconds"], line["OldestUnmergedAge"]) == (
        "shop", 12.5, 300.0,
    )  # fmt: skip


def test_a_group_that_is_gone_is_an_error(stand: Stand) -> None:
    class Gone:
        def describe_auto_scaling_groups(self, **_asked: Any) -> dict[str, Any]:
            return {"AutoScalingGroups": []}

    with pytest.raises(LookupError, match="belongs to a deleted one"):
        find(Gone(), "shop")


@pytest.mark.parametrize(
    ("needs_node", "desired", "maximum", "woken"),
    [
        (True, 0, 1, True),
        (False, 0, 1, False),
        (True, 1, 1, False),
        # Stopped by hand, or by the clock.
        (True, 0, 0, False),
    ],
)
def test_work_without_a_wanted_node_wakes_the_group(
    needs_node: bool, desired: int, maximum: int, woken: bool
) -> None:
    asked: list[dict[str, Any]] = []

    class Groups:
        def set_desired_capacity(self, **how: Any) -> None:
            asked.append(how)

    group = {"AutoScalingGroupName": "shop", "DesiredCapacity": desired, "MaxSize": maximum}

    assert wake(Groups(), group, Figures(90, 300, needs_node)) is woken
    assert [how["DesiredCapacity"] for how in asked] == [1] * woken


def test_what_an_idle_node_leaves_wakes_nobody() -> None:
    steps = [step for one in STRATEGIES.values() for step in one.steps]

    assert {step.threshold for step in steps if step.signal is Signal.IDLENESS} == {IDLE_SECONDS}
