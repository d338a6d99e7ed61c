"""The Lambda function of the Spot fallback: reads one group, decides, changes its base.

The intention is written to a tag of the group before the group is changed: killed in between,
the next run finds the two apart and finishes. A run every minute makes up for a lost
event; two runs at once decide the same from the same facts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import boto3

from .decision import Action, Decision, Facts, Intention, Mix, decide, is_spot_shortage

INTENTION_TAG = "polynya:spot-fallback"
"""Tag of the group; its value is `<base>@<time of the last change>`."""

_ALIVE = ("Pending", "Pending:Wait", "Pending:Proceed", "InService")


def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function; the event is only a reason to look."""
    name = os.environ["GROUP_NAME"]
    configured_base = int(os.environ["CONFIGURED_BASE"])
    autoscaling, ec2 = boto3.client("autoscaling"), boto3.client("ec2")
    decision = reconcile(autoscaling, ec2, name, configured_base, datetime.now(UTC))
    record = _record(name, configured_base, decision)
    sys.stdout.write(json.dumps(record) + "\n")
    return {"action": decision.action, "base": decision.intention.base, "reason": decision.reason}


def reconcile(
    autoscaling: Any, ec2: Any, name: str, configured_base: int, now: datetime
) -> Decision:
    """Bring the group's On-Demand base to what the facts ask for; returns the decision.

    Raises:
        LookupError: the group does not exist.
        botocore.exceptions.ClientError: AWS refused; nothing or only the tag was written.
    """
    group = _group(autoscaling, name)
    facts = _facts(autoscaling, ec2, group, configured_base, now)
    decision = decide(facts)
    if facts.intention != decision.intention:
        _write_intention(autoscaling, name, decision.intention)
    if facts.mix.base != decision.intention.base:
        _write_base(autoscaling, group, decision.intention.base)
    return decision


def _group(autoscaling: Any, name: str) -> dict[str, Any]:
    answer = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    if not answer["AutoScalingGroups"]:
        raise LookupError(f"no Auto Scaling group {name}; the fallback belongs to a deleted one")
    group: dict[str, Any] = answer["AutoScalingGroups"][0]
    return group


def _facts(
    autoscaling: Any, ec2: Any, group: dict[str, Any], configured_base: int, now: datetime
) -> Facts:
    distribution = group["MixedInstancesPolicy"]["InstancesDistribution"]
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    return Facts(
        now=now,
        desired=group["DesiredCapacity"],
        mix=Mix(
            distribution["OnDemandBaseCapacity"],
            distribution["OnDemandPercentageAboveBaseCapacity"],
        ),
        configured_base=configured_base,
        spot_alive=_spot_alive(ec2, group),
        last_shortage=_last_shortage(autoscaling, group["AutoScalingGroupName"]),
        intention=parse_intention(tags.get(INTENTION_TAG, ""), now),
    )


def _spot_alive(ec2: Any, group: dict[str, Any]) -> int:
    """Nodes that are not known to be On-Demand: EC2 may not yet describe a node just launched."""
    alive = {i["InstanceId"] for i in group["Instances"] if i["LifecycleState"] in _ALIVE}
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[
            {"Name": "tag:aws:autoscaling:groupName", "Values": [group["AutoScalingGroupName"]]}
        ]
    )
    instances: Iterable[dict[str, Any]] = (
        instance
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    )
    on_demand = {i["InstanceId"] for i in instances if i.get("InstanceLifecycle") != "spot"}
    return len(alive - on_demand)


def _last_shortage(autoscaling: Any, name: str) -> datetime | None:
    """The newest page is enough: it holds 100 activities, newest first."""
    answer = autoscaling.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=100)
    times: list[datetime] = [
        activity["StartTime"]
        for activity in answer["Activities"]
        if activity["StatusCode"] == "Failed"
        and is_spot_shortage(activity.get("StatusMessage", ""))
    ]
    return max(times, default=None)


def parse_intention(text: str, now: datetime) -> Intention | None:
    """Read the tag; a value that nobody of us wrote, or of the future, is as good as none."""
    base, _, changed = text.partition("@")
    try:
        intention = Intention(int(base), datetime.fromisoformat(changed))
    except ValueError:
        return None
    if intention.changed.tzinfo is None or intention.changed > now or intention.base < 0:
        return None
    return intention


def _write_intention(autoscaling: Any, name: str, intention: Intention) -> None:
    autoscaling.create_or_update_tags(
        Tags=[
            {
                "ResourceId": name,
                "ResourceType": "auto-scaling-group",
                "Key": INTENTION_TAG,
                "Value": f"{intention.base}@{intention.changed.isoformat(timespec='seconds')}",
                "PropagateAtLaunch": False,
            }
        ]
    )


def _write_base(autoscaling: Any, group: dict[str, Any], base: int) -> None:
    """Send the whole distribution back: AWS does not say that it keeps what a caller leaves out.

    Without the launch template, which an update may leave out (`MixedInstancesPolicy`, Amazon EC2
    Auto Scaling API Reference): what was read may be older than what a deploy has just written.
    """
    distribution = group["MixedInstancesPolicy"]["InstancesDistribution"]
    autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=group["AutoScalingGroupName"],
        MixedInstancesPolicy={
            "InstancesDistribution": {**distribution, "OnDemandBaseCapacity": base}
        },
    )


def _record(name: str, configured_base: int, decision: Decision) -> dict[str, Any]:
    """One log line that is also a metric (CloudWatch's embedded metric format)."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    return {
        "_aws": {
            "Timestamp": now_ms,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Polynya",
                    "Dimensions": [["Group"]],
                    "Metrics": [{"Name": "FallbackNodes", "Unit": "Count"}],
                }
            ],
        },
        "Group": name,
        "FallbackNodes": max(decision.intention.base - configured_base, 0),
        "level": "info" if decision.action is Action.KEEP else "warning",
        "action": decision.action,
        "base": decision.intention.base,
        "reason": decision.reason,
    }
