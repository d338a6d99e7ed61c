"""A Spot interruption by the AWS Fault Injection Service, and its removal.

The action and what its role may do are those of the AWS FIS User Guide, "Actions reference":
`aws:ec2:send-spot-instance-interruptions` sends a rebalance recommendation, then the notice, and
ends the instance after `durationBeforeInterruption`, 2 to 15 minutes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from botocore.exceptions import ClientError

from stacks.verify.run import Clock, StepError, until
from stacks.verify.throwaway import NAME

Client: TypeAlias = Callable[[str], Any]

ROLE: Final = f"polynya-{NAME}-faults"
ACTION: Final = "aws:ec2:send-spot-instance-interruptions"
_TAGS: Final = {"polynya:stage": NAME, "application": "polynya"}
_NOTICE: Final = "PT2M"  # what Spot itself gives
_MADE_SECONDS: Final = 15.0
"""How long a new role may take until another service can assume it."""


def interrupt(client: Client, clock: Clock, instance_arn: str) -> str:
    """Take one Spot instance back; returns the id of the experiment, which then runs.

    Raises:
        StepError: the experiment could not be started, or failed.
    """
    role = _make_role(client("iam"), instance_arn)
    clock.sleep(_MADE_SECONDS)
    fis = client("fis")
    template = fis.create_experiment_template(**template_of(role, instance_arn))
    started = fis.start_experiment(
        clientToken=str(uuid.uuid4()),
        experimentTemplateId=template["experimentTemplate"]["id"],
        tags=_TAGS,
    )["experiment"]["id"]

    def ended() -> dict[str, Any] | None:
        state: dict[str, Any] = fis.get_experiment(id=started)["experiment"]["state"]
        return state if state["status"] in {"completed", "stopped", "failed", "cancelled"} else None

    state = until(clock, f"experiment {started}", 600, ended)
    if state["status"] != "completed":
        raise StepError(f"experiment {started} {state['status']}: {state.get('reason', '')}")
    return str(started)


def template_of(role_arn: str, instance_arn: str) -> dict[str, Any]:
    """The experiment: one instance by its ARN, two minutes of notice, no other target."""
    target = {
        "resourceType": "aws:ec2:spot-instance",
        "resourceArns": [instance_arn],
        "selectionMode": "ALL",
    }
    action = {
        "actionId": ACTION,
        "parameters": {"durationBeforeInterruption": _NOTICE},
        "targets": {"SpotInstances": "node"},
    }
    return {
        "clientToken": str(uuid.uuid4()),
        "description": "Polynya: verification of a deployment",
        "stopConditions": [{"source": "none"}],
        "targets": {"node": target},
        "actions": {"interrupt": action},
        "roleArn": role_arn,
        "tags": _TAGS,
    }


def forget(client: Client) -> None:
    """Remove the experiment's template and its role, however far `interrupt` got."""
    fis = client("fis")
    for page in fis.get_paginator("list_experiment_templates").paginate():
        for template in page["experimentTemplates"]:
            if template.get("tags", {}).get("polynya:stage") == NAME:
                fis.delete_experiment_template(id=template["id"])
    iam = client("iam")
    try:
        iam.delete_role_policy(RoleName=ROLE, PolicyName=ROLE)
    except ClientError as error:
        _unless_gone(error)
    try:
        iam.delete_role(RoleName=ROLE)
    except ClientError as error:
        _unless_gone(error)


def _unless_gone(error: ClientError) -> None:
    if error.response["Error"]["Code"] != "NoSuchEntity":
        raise error


def _make_role(iam: Any, instance_arn: str) -> str:
    account = instance_arn.split(":")[4]
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "fis.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": account}},
    }
    rights = [
        {"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": "ec2:SendSpotInstanceInterruptions",
            "Resource": instance_arn,
        },
    ]
    made = iam.create_role(
        RoleName=ROLE,
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        Tags=[{"Key": key, "Value": value} for key, value in _TAGS.items()],
    )
    iam.put_role_policy(
        RoleName=ROLE,
        PolicyName=ROLE,
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": rights}),
    )
    return str(made["Role"]["Arn"])
