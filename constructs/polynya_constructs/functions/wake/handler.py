"""The Lambda function that starts the first node of an empty group.

It runs for every object that lands. The event is only a reason to look: whether the group is empty
the group itself tells, so that events which are doubled, late or for a group that runs change
nothing.
"""

from __future__ import annotations

import os
from typing import Any

import boto3


def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function."""
    return {"action": wake(boto3.client("autoscaling"), os.environ["GROUP_NAME"])}


def wake(autoscaling: Any, name: str) -> str:
    """Ask for one node if the group asks for none; returns what was done and why.

    Raises:
        LookupError: there is no group of this name.
        botocore.exceptions.ClientError: AWS refused; nothing was changed.
    """
    groups = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    if not groups["AutoScalingGroups"]:
        raise LookupError(f"no Auto Scaling group {name}; this function belongs to a deleted one")
    (group,) = groups["AutoScalingGroups"]
    if group["DesiredCapacity"] > 0:
        return "kept: the group has nodes"
    if group["MaxSize"] < 1:
        return "kept: a schedule allows no node now"
    autoscaling.set_desired_capacity(
        AutoScalingGroupName=name, DesiredCapacity=1, HonorCooldown=False
    )
    return "woken"
