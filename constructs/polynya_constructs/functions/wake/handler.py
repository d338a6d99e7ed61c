"""The Lambda function that starts the first node of an empty group.

It runs for batches of the events of objects that land, so that 100,000 of them are some looks at
the group. An event is only a reason to look: whether the group is empty the group itself tells, so
that events which are doubled, late or for a group that runs change nothing. While no node serves
it counts what lands, for nobody else does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function."""
    autoscaling, name, now = _autoscaling(), os.environ["GROUP_NAME"], datetime.now(UTC)
    group = look(autoscaling, name)
    bucket = os.environ.get("LANDING_BUCKET")
    size = sum(landed_bytes(each, bucket) for each in events_of(event))
    if size and not serves(group):
        sys.stdout.write(json.dumps(record(name, size, now)) + "\n")
    return {"action": wake(autoscaling, group)}


@cache
def _autoscaling() -> Any:
    """A client that lives as long as the process, for making it takes long."""
    return boto3.client("autoscaling")


def events_of(event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The events of a batch that the queue brought; anything else is an event by itself."""
    if "Records" not in event:
        yield event
    for message in event.get("Records", ()):
        yield json.loads(message["body"])


def look(autoscaling: Any, name: str) -> Mapping[str, Any]:
    """The group as it is.

    Raises:
        LookupError: there is no group of this name.
        botocore.exceptions.ClientError: AWS refused.
    """
    groups = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    if not groups["AutoScalingGroups"]:
        raise LookupError(f"no Auto Scaling group {name}; this function belongs to a deleted one")
    group: Mapping[str, Any] = groups["AutoScalingGroups"][0]
    return group


def wake(autoscaling: Any, group: Mapping[str, Any]) -> str:
    """Ask for one node if the group asks for none; returns what was done and why.

    Raises:
        botocore.exceptions.ClientError: AWS refused; nothing was changed.
    """
    if group["DesiredCapacity"] > 0:
        return "kept: the group has nodes"
    if group["MaxSize"] < 1:
        return "kept: a schedule allows no node now"
    autoscaling.set_desired_capacity(
        AutoScalingGroupName=group["AutoScalingGroupName"], DesiredCapacity=1, HonorCooldown=False
    )
    return "woken"


def serves(group: Mapping[str, Any]) -> bool:
    """Whether a node works: it counts itself what waits."""
    return any(node["LifecycleState"] == "InService" for node in group["Instances"])


def landed_bytes(event: Mapping[str, Any], bucket: str | None) -> int:
    """The size of the object that an event is about; 0 of one that is not data, or of no object."""
    detail = event.get("detail") or {}
    if bucket is None or (detail.get("bucket") or {}).get("name") != bucket:
        return 0
    return int((detail.get("object") or {}).get("size") or 0)


def record(name: str, size: int, now: datetime) -> dict[str, Any]:
    """One log line that is also a metric (CloudWatch's embedded metric format)."""
    metrics = [{"Name": "LandedBytes", "Unit": "Bytes"}]
    directive = {"Namespace": "Polynya", "Dimensions": [["Cluster"]], "Metrics": metrics}
    return {
        "_aws": {"Timestamp": int(now.timestamp() * 1000), "CloudWatchMetrics": [directive]},
        "Cluster": name,
        "LandedBytes": size,
    }
