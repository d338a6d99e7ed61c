"""The Lambda function that starts the first node of an empty group.

It runs for batches of the events of objects that land, so that 100,000 of them are some looks at
the group. What landed for other clusters does not count (`own_landing`). An event is only a reason
to look: whether the group is empty the group itself tells, so that events which are doubled, late
or for a group that runs change nothing.

It counts the objects that landed for the cluster, for the alarm that ends its last node, and their
bytes while no node serves: nodes count what waits for themselves.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from .own_landing import OwnLanding, OwnLandingReader

_IN_TIME = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 2})
"""An S3 that does not answer leaves the function time to wake the group, of its 30 seconds."""


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function."""
    own = _own_landing()(_s3)
    came = arrived(events_of(event), os.environ["LANDING_BUCKET"], own)
    return {"action": act(came, os.environ["GROUP_NAME"], own, _autoscaling, datetime.now(UTC))}


# Both live as long as the process, for making a client takes long.
@cache
def _autoscaling() -> Any:
    return boto3.client("autoscaling")


@cache
def _s3() -> Any:
    return boto3.client("s3", config=_IN_TIME)


@cache
def _own_landing() -> OwnLandingReader:
    """What the process remembers of the document."""
    place = os.environ["CONFIGURATION_BUCKET"], os.environ["OWN_LANDING_KEY"]
    return OwnLandingReader(place, os.environ["LANDING_BUCKET"])


def events_of(event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The events of a batch that the queue brought; anything else is an event by itself."""
    if "Records" not in event:
        yield event
    for message in event.get("Records", ()):
        yield json.loads(message["body"])


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a batch brought for a cluster.

    Attributes:
        objects: number of objects that landed, and `size` their bytes.
        edits: number of files of the configuration that were written.
        others: number of other events: alarms.
    """

    objects: int = 0
    size: int = 0
    edits: int = 0
    others: int = 0


def arrived(events: Iterable[Mapping[str, Any]], landing: str, own: OwnLanding) -> Arrived:
    """What of the events is for the cluster; `landing` is the bucket of data."""
    objects = size = edits = others = 0
    for event in events:
        detail = event.get("detail") or {}
        landed, bucket = detail.get("object") or {}, (detail.get("bucket") or {}).get("name")
        if bucket is None:
            others += 1
        elif bucket != landing:
            edits += 1
        elif own.has(landed.get("key") or ""):
            objects += 1
            size += int(landed.get("size") or 0)
    return Arrived(objects, size, edits, others)


def act(
    came: Arrived, name: str, own: OwnLanding, autoscaling: Callable[[], Any], now: datetime
) -> str:
    """Wake the group `name` for what came, and count it; returns what was done and why.

    Raises:
        LookupError: the group does not exist.
        botocore.exceptions.ClientError: AWS refused; nothing was changed.
    """
    if came == Arrived():
        return "none: nothing is for this cluster"
    group = look(autoscaling(), name)
    counted = counts(came, served=serves(group))
    if counted:
        sys.stdout.write(json.dumps(record(name, counted, own, now)) + "\n")
    return wake(autoscaling(), group)


def look(autoscaling: Any, name: str) -> Mapping[str, Any]:
    """The group as it is.

    Raises:
        LookupError: the group does not exist.
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


def counts(came: Arrived, *, served: bool) -> dict[str, int]:
    """The metrics of what came; `served`: nodes count themselves what waits.

    An edit is a byte that waits. If the group may have no node now, the function of figures asks
    for one later: only a node tells which objects are for a task that is new.
    """
    found = {"LandedObjects": came.objects}
    if not served:
        found["LandedBytes"] = came.size + came.edits
    return {metric: value for metric, value in found.items() if value}


def record(name: str, counted: Mapping[str, int], own: OwnLanding, now: datetime) -> dict[str, Any]:
    """One log line that is also metrics (CloudWatch's embedded metric format)."""
    units = {"LandedObjects": "Count", "LandedBytes": "Bytes"}
    named = [{"Name": metric, "Unit": units[metric]} for metric in counted]
    directive = {"Namespace": "Polynya", "Dimensions": [["Cluster"]], "Metrics": named}
    return {
        "_aws": {"Timestamp": int(now.timestamp() * 1000), "CloudWatchMetrics": [directive]},
        "Cluster": name,
        **counted,
        "counted": "everything that lands" if own.prefixes is None else "its own objects",
        "because": own.why,
    }
