"""Ends the attempts of a group whose release does not boot, and lets the next release try.

A group replaces a node that did not boot for as long as it wants one. `decide` chooses from facts
whether it may; the process `Launch` of the group is then suspended, which holds for every group and
for everything that asks for nodes. A tag of the group remembers for which code, so that a
suspension by hand, without our tag, is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

HELD_TAG = "polynya:launches-held"
"""Tag of the group; its value is the beginning of the code that does not boot."""

MOST_FAILED_BOOTS = 3
FAILURES_COUNT_FOR = timedelta(hours=6)
"""A release of which so many nodes did not boot in this time gets no further one."""

_LAUNCH = ["Launch"]


class LaunchChange(StrEnum):
    """What becomes of the launches of a group."""

    NONE = "none"
    HOLD = "launches held: nodes of this release do not boot"
    RESUME = "launches resumed"


@dataclass(frozen=True, slots=True)
class BootFacts:
    """What is known about the boots of a group.

    Attributes:
        code: beginning of the code that is deployed; None where it is not known.
        failed: nodes with this code that did not boot in the hours before.
        release_serves: whether a node of the newest launch template is in service.
        held_for: the code for which launches were held last; None when they were not.
    """

    code: str | None
    failed: int
    release_serves: bool
    held_for: str | None


def decide(facts: BootFacts) -> LaunchChange:
    """Whether to hold or to resume the launches of a group.

    While a node of the release serves, failed boots of other nodes do not count.
    Launches that were held for this code already are left as they are, so that an operator can
    resume them by hand.
    """
    fails = facts.failed >= MOST_FAILED_BOOTS and not facts.release_serves
    if fails and facts.held_for != facts.code:
        return LaunchChange.HOLD
    if not fails and facts.held_for is not None:
        return LaunchChange.RESUME
    return LaunchChange.NONE


def watch_boots(
    autoscaling: Any,
    cloudwatch: Any,
    group: Mapping[str, Any],
    code: str | None,
    now: datetime,
) -> LaunchChange:
    """Bring the launches of a group to what the facts ask for; returns what was changed.

    Each step may be repeated: killed before its tag is written or removed, the next run does both.

    Raises:
        botocore.exceptions.ClientError: AWS refused.
    """
    name, held_for = group["AutoScalingGroupName"], held_code(group)
    serves = release_serves(group)
    if held_for is None and (serves or not _starts(group)):
        return LaunchChange.NONE  # without a request to CloudWatch, which costs
    failed = failed_boots(cloudwatch, name, code, now)
    change = decide(BootFacts(code, failed, serves, held_for))
    tag = {"ResourceId": name, "ResourceType": "auto-scaling-group", "Key": HELD_TAG}
    if change is LaunchChange.HOLD:
        autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=_LAUNCH)
        autoscaling.create_or_update_tags(
            Tags=[{**tag, "Value": str(code), "PropagateAtLaunch": False}]
        )
    if change is LaunchChange.RESUME:
        autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=_LAUNCH)
        autoscaling.delete_tags(Tags=[tag])
    return change


def held_code(group: Mapping[str, Any]) -> str | None:
    """The code for which launches were held; None when they were not."""
    tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}
    return tags.get(HELD_TAG)


def release_serves(group: Mapping[str, Any]) -> bool:
    """Whether a node of the launch template that the group has now is in service."""
    template = group["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"]
    return any(
        node["LifecycleState"] == "InService"
        and node.get("LaunchTemplate", {}).get("Version") == template["Version"]
        for node in group["Instances"]
    )


def failed_boots(cloudwatch: Any, name: str, code: str | None, now: datetime) -> int:
    """How many nodes with this code did not boot in the hours before.

    Raises:
        botocore.exceptions.ClientError: AWS refused.
    """
    if code is None:
        return 0
    answer = cloudwatch.get_metric_statistics(
        Namespace="Polynya",
        MetricName="FailedBoots",
        Dimensions=[{"Name": "Cluster", "Value": name}, {"Name": "Code", "Value": code}],
        StartTime=now - FAILURES_COUNT_FOR,
        EndTime=now,
        Period=3600,
        Statistics=["Sum"],
    )
    return int(sum(point["Sum"] for point in answer["Datapoints"]))


def _starts(group: Mapping[str, Any]) -> bool:
    """Whether a node boots, or one is wanted; during a refresh there may be more than wanted."""
    states = [node["LifecycleState"] for node in group["Instances"]]
    return any(state.startswith("Pending") for state in states) or group[
        "DesiredCapacity"
    ] > states.count("InService")
