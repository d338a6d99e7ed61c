"""The Lambda function that publishes what waits while a cluster has no node to do so.

When there is work and nobody is wanted, it asks for a node: the event that woke the group is long
over, and its node may have been taken back before it served. It holds the launches of a group whose
release does not boot (`boots`).

It keeps nothing. What nodes left is their last figure; what landed since was counted by the
function that wakes the group. Both are metrics, as are the figures that it writes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import boto3

from .boots import LaunchChange, watch_boots
from .estimate import Figures, Landed, Left, estimate

NAMESPACE = "Polynya"
LANDED = "LandedBytes"
"""Published by the function that wakes the group, while no node serves."""

_MINUTE = timedelta(minutes=1)
_MOMENT = 2 * _MINUTE
"""Nodes that published so lately may still do; twice the same work would be twice the sum."""

# How far back, in steps of what: at most 1,440 values an answer, and values of single minutes are
# kept for 15 days ("Metrics retention", Amazon CloudWatch User Guide).
_SPANS = ((timedelta(days=1), _MINUTE), (timedelta(days=14), timedelta(minutes=20)))
_DAYS = timedelta(days=14)

_Points: TypeAlias = Sequence[tuple[datetime, float]]


def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function."""
    name, now = os.environ["GROUP_NAME"], datetime.now(UTC)
    autoscaling, cloudwatch = boto3.client("autoscaling"), boto3.client("cloudwatch")
    group = find(autoscaling, name)
    figures = look(group, cloudwatch, name, now)
    if figures is not None:
        sys.stdout.write(json.dumps(record(name, figures, now)) + "\n")
    launches = watch_boots(autoscaling, cloudwatch, group, os.environ.get("CODE"), now)
    if launches is not LaunchChange.NONE:
        sys.stdout.write(json.dumps({"Cluster": name, "level": "warning", "launches": launches}))
        sys.stdout.write("\n")
    if figures is None:
        return {"action": "none: nodes publish, or nothing waits"}
    return {"action": "woken" if wake(autoscaling, group, figures) else "published"}


def serves(group: Mapping[str, Any]) -> bool:
    """Whether a node works."""
    return any(node["LifecycleState"] == "InService" for node in group["Instances"])


def find(autoscaling: Any, name: str) -> Mapping[str, Any]:
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


def wake(autoscaling: Any, group: Mapping[str, Any], figures: Figures) -> bool:
    """Ask for one node if there is work and the group asks for none, though it may.

    Raises:
        botocore.exceptions.ClientError: AWS refused; nothing was changed.
    """
    if not figures.needs_node or group["DesiredCapacity"] > 0 or group["MaxSize"] < 1:
        return False
    autoscaling.set_desired_capacity(
        AutoScalingGroupName=group["AutoScalingGroupName"], DesiredCapacity=1, HonorCooldown=False
    )
    return True


def look(group: Mapping[str, Any], cloudwatch: Any, name: str, now: datetime) -> Figures | None:
    """What waits for the group; None when nothing does, or nodes say so themselves.

    Raises:
        botocore.exceptions.ClientError: AWS refused.
    """
    if serves(group):
        return None
    metrics = _Metrics(cloudwatch, name, now)
    heard = metrics.last_heard()
    if heard is not None and heard > now - _MOMENT:
        return None
    landed = metrics.landed(since=heard + _MINUTE if heard is not None else None)
    left = metrics.left(heard) if heard is not None else None
    found = estimate(now, left, landed, metrics.speed() if landed is not None else None)
    # A metric costs in each hour in which it has a value; an idle cluster is to cost nothing.
    return found if found.backlog_seconds > 0 or found.oldest_seconds > 0 else None


def record(cluster: str, figures: Figures, now: datetime) -> dict[str, Any]:
    """One log line that is also two metrics (CloudWatch's embedded metric format)."""
    metrics = [
        {"Name": each, "Unit": "Seconds"} for each in ("BacklogSeconds", "OldestUnmergedAge")
    ]
    directive = {"Namespace": NAMESPACE, "Dimensions": [["Cluster"]], "Metrics": metrics}
    return {
        "_aws": {"Timestamp": int(now.timestamp() * 1000), "CloudWatchMetrics": [directive]},
        "Cluster": cluster,
        "BacklogSeconds": figures.backlog_seconds,
        "OldestUnmergedAge": figures.oldest_seconds,
        "reason": "no node serves",
    }


class _Metrics:
    """The metrics of one cluster until a moment."""

    def __init__(self, cloudwatch: Any, cluster: str, now: datetime) -> None:
        self._cloudwatch, self._cluster, self._now = cloudwatch, cluster, now

    def last_heard(self) -> datetime | None:
        """The last minute in which a node published; only nodes publish the bytes that wait."""
        for back, step in _SPANS:
            points = self._points("BacklogBytes", "Sum", self._now - back, self._now, step)
            if points:
                return self._minutes("BacklogBytes", points[-1][0], step)[-1][0]
        return None

    def left(self, heard: datetime) -> Left:
        """What nodes published in that minute."""
        end = heard + _MINUTE
        seconds = self._points("BacklogSeconds", "Sum", heard, end, _MINUTE)
        oldest = self._points("OldestUnmergedAge", "Maximum", heard, end, _MINUTE)
        return Left(
            heard,
            seconds=seconds[-1][1] if seconds else 0.0,
            oldest_seconds=oldest[-1][1] if oldest else 0.0,
        )

    def landed(self, *, since: datetime | None) -> Landed | None:
        """What landed since then."""
        start = self._now - _DAYS if since is None else since
        step = next(step for back, step in _SPANS if start >= self._now - back or back == _DAYS)
        points = [one for one in self._points(LANDED, "Sum", start, self._now, step) if one[1] > 0]
        if not points:
            return None
        first = [at for at, size in self._minutes(LANDED, points[0][0], step) if size > 0]
        return Landed(sum(value for _, value in points), since=first[0] if first else points[0][0])

    def speed(self) -> float | None:
        """Bytes a second of a node with work, on the last day on which there was any."""
        points = self._points(
            "BytesPerSecond", "Average", self._now - _DAYS, self._now, timedelta(days=1)
        )
        return points[-1][1] if points and points[-1][1] > 0 else None

    def _minutes(self, name: str, start: datetime, step: timedelta) -> _Points:
        """The sums of the single minutes of a step in which there is a value."""
        found = () if step == _MINUTE else self._points(name, "Sum", start, start + step, _MINUTE)
        return found or [(start, 1.0)]

    def _points(
        self, name: str, statistic: str, start: datetime, end: datetime, step: timedelta
    ) -> _Points:
        """The values of a metric, the oldest first."""
        answer = self._cloudwatch.get_metric_statistics(
            Namespace=NAMESPACE,
            MetricName=name,
            Dimensions=[{"Name": "Cluster", "Value": self._cluster}],
            StartTime=start,
            EndTime=end,
            Period=int(step.total_seconds()),
            Statistics=[statistic],
        )
        return sorted((point["Timestamp"], point[statistic]) for point in answer["Datapoints"])
