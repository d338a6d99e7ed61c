"""A release whose nodes do not boot: the attempts end, and the next release gets its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya_constructs.functions.figures.boots import (
    HELD_TAG,
    BootFacts,
    LaunchChange,
    decide,
    failed_boots,
    held_code,
    watch_boots,
)
from polynya_constructs.functions.figures.handler import find
from tests.aws import REGION, aws_clients

START = datetime(2026, 11, 28, 6, tzinfo=UTC)
BOOT_MINUTES = 6


@pytest.mark.parametrize(
    ("facts", "change"),
    [
        (BootFacts("new", 2, release_serves=False, held_for=None), LaunchChange.NONE),
        (BootFacts("new", 3, release_serves=False, held_for=None), LaunchChange.HOLD),
        # Single nodes of a release that serves failed.
        (BootFacts("new", 3, release_serves=True, held_for=None), LaunchChange.NONE),
        # Held already; or an operator resumed, which holds.
        (BootFacts("new", 3, release_serves=False, held_for="new"), LaunchChange.NONE),
        # The release changed, and that one does not boot either.
        (BootFacts("new", 3, release_serves=False, held_for="old"), LaunchChange.HOLD),
        (BootFacts("new", 0, release_serves=False, held_for="old"), LaunchChange.RESUME),
        # Its failures are hours ago: what kept it from booting may be repaired.
        (BootFacts("new", 0, release_serves=False, held_for="new"), LaunchChange.RESUME),
        (BootFacts("new", 3, release_serves=True, held_for="new"), LaunchChange.RESUME),
        (BootFacts(None, 0, release_serves=False, held_for="old"), LaunchChange.RESUME),
    ],
)
def test_launches_are_held_for_a_release_that_does_not_boot(
    facts: BootFacts, change: LaunchChange
) -> None:
    assert decide(facts) is change


class Replacing:
    """A group that starts a node whenever one is missing; its own client, and its metrics."""

    def __init__(self, *, minimum: int, boots: bool = False) -> None:
        self.minimum, self.boots, self.code, self.version = minimum, boots, "v1", "1"
        self.minute = 0
        self.nodes: list[tuple[int, str]] = []
        self.serving: list[str] = []
        self.starts: dict[str, int] = {}
        self.failures: list[tuple[datetime, str]] = []
        self.suspended: set[str] = set()
        self.tags: dict[str, str] = {}
        self.looks_at_metrics = 0

    @property
    def now(self) -> datetime:
        return START + timedelta(minutes=self.minute)

    def deploy(self, code: str, *, boots: bool) -> None:
        self.code, self.version, self.boots = code, str(int(self.version) + 1), boots

    def run(self, minutes: int) -> None:
        """Let Auto Scaling, the nodes and the function do theirs, minute by minute."""
        for _ in range(minutes):
            self.minute += 1
            due = self.minute - BOOT_MINUTES
            for start, version in [one for one in self.nodes if one[0] <= due]:
                self.nodes.remove((start, version))
                if self.boots:
                    self.serving.append(version)
                else:
                    self.failures.append((self.now, self.code))
            if "Launch" not in self.suspended and not self.nodes and not self.serving:
                self.nodes.append((self.minute, self.version))
                self.starts[self.code] = self.starts.get(self.code, 0) + 1
            watch_boots(self, self, self.described(), self.code, self.now)

    def described(self) -> dict[str, Any]:
        states = [
            *(("Pending:Wait", version) for _, version in self.nodes),
            *(("InService", version) for version in self.serving),
        ]
        return {
            "AutoScalingGroupName": "shop",
            "MinSize": self.minimum,
            "DesiredCapacity": 1,
            "MixedInstancesPolicy": {
                "LaunchTemplate": {"LaunchTemplateSpecification": {"Version": self.version}}
            },
            "Instances": [
                {"LifecycleState": state, "LaunchTemplate": {"Version": version}}
                for state, version in states
            ],
            "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()],
        }

    def get_metric_statistics(
        self, *, Dimensions: list[dict[str, str]], StartTime: datetime, **_asked: Any
    ) -> dict[str, Any]:
        self.looks_at_metrics += 1
        code = Dimensions[1]["Value"]
        return {
            "Datapoints": [
                {"Sum": 1.0} for at, failed in self.failures if failed == code and at > StartTime
            ]
        }

    def suspend_processes(self, *, ScalingProcesses: list[str], **_asked: Any) -> None:
        self.suspended.update(ScalingProcesses)

    def resume_processes(self, *, ScalingProcesses: list[str], **_asked: Any) -> None:
        self.suspended.difference_update(ScalingProcesses)

    def create_or_update_tags(self, *, Tags: list[dict[str, Any]]) -> None:
        self.tags |= {tag["Key"]: tag["Value"] for tag in Tags}

    def delete_tags(self, *, Tags: list[dict[str, Any]]) -> None:
        for tag in Tags:
            del self.tags[tag["Key"]]


@pytest.mark.parametrize("minimum", [0, 1])
def test_three_failed_boots_end_the_attempts(minimum: int) -> None:
    group = Replacing(minimum=minimum)

    group.run(5 * 60)

    # The group starts a fourth node before the function sees the third one fail.
    assert group.starts == {"v1": 4}
    assert group.suspended == {"Launch"}


def test_the_next_release_starts_at_once() -> None:
    group = Replacing(minimum=1)
    group.run(60)

    group.deploy("v2", boots=True)
    group.run(BOOT_MINUTES + 2)

    assert (group.serving, group.starts["v2"]) == (["2"], 1)
    assert (group.suspended, group.tags) == (set(), {})


def test_the_same_release_tries_again_after_hours() -> None:
    group = Replacing(minimum=1)

    group.run(24 * 60)

    # Six hours after each failure it no longer counts: four rounds of four nodes, instead of 240.
    assert 4 < group.starts["v1"] <= 20


def test_launches_that_an_operator_resumed_stay_so() -> None:
    group = Replacing(minimum=1)
    group.run(60)

    group.suspended.clear()
    group.boots = True
    group.run(BOOT_MINUTES + 2)

    assert group.serving == ["1"]
    assert (group.suspended, group.tags) == (set(), {})


def test_what_an_operator_suspended_stays_suspended() -> None:
    group = Replacing(minimum=1, boots=True)
    group.suspended.add("Launch")

    group.run(60)

    assert group.suspended == {"Launch"}


def test_a_group_that_serves_costs_no_look_at_metrics() -> None:
    group = Replacing(minimum=1, boots=True)
    group.run(BOOT_MINUTES + 2)
    looked = group.looks_at_metrics

    group.run(60)

    assert group.looks_at_metrics == looked


class Stand:
    """A group and metrics of a stand-in for AWS, which checks requests as AWS does."""

    def __init__(self, client: Any) -> None:
        self.autoscaling, self.cloudwatch = client("autoscaling"), client("cloudwatch")
        template = {"LaunchTemplateName": "node", "Version": "1"}
        client("ec2").create_launch_template(
            LaunchTemplateName="node",
            LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "m7g.xlarge"},
        )
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName="shop",
            MixedInstancesPolicy={"LaunchTemplate": {"LaunchTemplateSpecification": template}},
            MinSize=0,
            MaxSize=1,
            DesiredCapacity=0,
            AvailabilityZones=[f"{REGION}a"],
        )

    def failed(self, code: str, now: datetime, minutes_ago: float) -> None:
        self.cloudwatch.put_metric_data(
            Namespace="Polynya",
            MetricData=[
                {
                    "MetricName": "FailedBoots",
                    "Dimensions": [
                        {"Name": "Cluster", "Value": "shop"},
                        {"Name": "Code", "Value": code},
                    ],
                    "Timestamp": now - timedelta(minutes=minutes_ago),
                    "Value": 1.0,
                }
            ],
        )

    def group(self) -> dict[str, Any]:
        """As it is, but that it waits for a node, which no node of the stand-in ever does."""
        return {**find(self.autoscaling, "shop"), "DesiredCapacity": 1}


@pytest.fixture
def stand() -> Iterator[Stand]:
    with aws_clients() as client:
        yield Stand(client)


def suspended(group: dict[str, Any]) -> list[str]:
    return [one["ProcessName"] for one in group["SuspendedProcesses"]]


def test_only_boots_of_the_code_that_is_deployed_count(stand: Stand) -> None:
    now = datetime.now(UTC)
    for code, minutes in (("new", 5.0), ("new", 90.0), ("old", 5.0), ("new", 500.0)):
        stand.failed(code, now, minutes)

    assert failed_boots(stand.cloudwatch, "shop", "new", now) == 2
    assert failed_boots(stand.cloudwatch, "shop", None, now) == 0


def test_the_group_remembers_for_which_code_its_launches_are_held(stand: Stand) -> None:
    now = datetime.now(UTC)
    for minutes in (10.0, 20.0, 30.0):
        stand.failed("old", now, minutes)

    held = watch_boots(stand.autoscaling, stand.cloudwatch, stand.group(), "old", now)

    assert held is LaunchChange.HOLD
    assert (suspended(stand.group()), held_code(stand.group())) == (["Launch"], "old")
    (tag,) = stand.group()["Tags"]
    assert (tag["Key"], tag["PropagateAtLaunch"]) == (HELD_TAG, False)

    resumed = watch_boots(stand.autoscaling, stand.cloudwatch, stand.group(), "new", now)

    assert resumed is LaunchChange.RESUME
    assert (suspended(stand.group()), held_code(stand.group())) == ([], None)
