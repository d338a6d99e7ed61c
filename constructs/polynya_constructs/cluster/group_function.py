"""The functions that look after a group from outside: what all of them have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from polynya_constructs.cluster.cluster import Cluster

FUNCTIONS: Final = Path(__file__).resolve().parents[1] / "functions"
"""The code of all functions."""

_TIMEOUT: Final = cdk.Duration.seconds(30)


def group_role(scope: Construct, does: str, id_: str = "Role") -> iam.Role:
    """The role of a function, without rights. `does` says what the function is for."""
    return iam.Role(
        scope,
        id_,
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        description=f"Polynya: {does}",
    )


def group_function(
    scope: Construct,
    entry: str,
    does: str,
    *,
    cluster: Cluster,
    role: iam.Role,
    log_retention: logs.RetentionDays,
    removal_policy: cdk.RemovalPolicy,
    environment: Mapping[str, str] | None = None,
    retry_attempts: int | None = None,
    max_event_age: cdk.Duration | None = None,
    timeout: cdk.Duration = _TIMEOUT,
) -> lambda_.Function:
    """A function with its log, whose code is a package of `functions/` as it stands.

    Args:
        scope: the parent.
        entry: what is called, below `functions/`: `PACKAGE.MODULE.FUNCTION`.
        does: what it is for.
        cluster: whose group it looks after; the function finds its name as GROUP_NAME.
        role: of the function; it gets the right to write the log.
        log_retention: how long its log is kept.
        removal_policy: what becomes of its log with its stack.
        environment: more variables.
        retry_attempts: of an event that it failed on; default: two, as Lambda has it.
        max_event_age: how long an event that Lambda could not take is tried again.
        timeout: default: 30 seconds.
    """
    log_group = logs.LogGroup(scope, "Log", retention=log_retention, removal_policy=removal_policy)
    log_group.grant_write(role)
    return lambda_.Function(
        scope,
        "Function",
        description=f"Polynya: {does}",
        runtime=lambda_.Runtime.PYTHON_3_14,
        architecture=lambda_.Architecture.ARM_64,
        handler=entry,
        # The folder above the package, so that it is one: its modules import each other.
        code=lambda_.Code.from_asset(str(FUNCTIONS), exclude=["**/__pycache__", "**/*.pyc"]),
        role=role,
        log_group=log_group,
        memory_size=256,
        timeout=timeout,
        retry_attempts=retry_attempts,
        max_event_age=max_event_age,
        environment={"GROUP_NAME": cluster.name, **(environment or {})},
    )
