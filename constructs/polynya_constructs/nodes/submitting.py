"""Rights of nodes that submit the work of tasks to EMR Serverless and Glue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from polynya_constructs.grants import allow
from polynya_constructs.patterns import EMR_APPLICATION, GLUE_JOB, JOB_ROLE


@dataclass(frozen=True, slots=True, kw_only=True)
class EmrApplication:
    """An application to which nodes submit jobs, and the role that these have.

    Raises ValueError for an id or an ARN that cannot be.
    """

    application_id: str
    execution_role: str

    def __post_init__(self) -> None:
        """Check both."""
        for text, pattern, what in (
            (self.application_id, EMR_APPLICATION, "the id of an application"),
            (self.execution_role, JOB_ROLE, "the ARN of a role"),
        ):
            if not cdk.Token.is_unresolved(text) and not re.fullmatch(pattern, text):
                raise ValueError(f"{text!r} is not {what}")


def grant_submitting(
    role: iam.Role, *, applications: Sequence[EmrApplication] = (), glue_jobs: Sequence[str] = ()
) -> None:
    """Let `role` start, look at, list and cancel runs of these, and of nothing else.

    Args:
        role: of the nodes.
        applications: of EMR Serverless; their role may be passed to EMR Serverless only.
        glue_jobs: names of Glue jobs; each has a role of its own.

    Raises:
        ValueError: for a name of a Glue job that cannot be.
    """
    for name in glue_jobs:
        if not re.fullmatch(GLUE_JOB, name):
            raise ValueError(f"{name!r} is not the name of a Glue job")
    if applications:
        _grant_applications(role, applications)
    if glue_jobs:
        allow(
            role,
            "SubmitToGlue",
            actions=[
                "glue:BatchStopJobRun",
                "glue:GetJobRun",
                "glue:GetJobRuns",
                "glue:StartJobRun",
            ],
            resources=[_arn(role, "glue", f"job/{name}") for name in glue_jobs],
        )


def _grant_applications(role: iam.Role, applications: Sequence[EmrApplication]) -> None:
    ids = [one.application_id for one in applications]
    allow(
        role,
        "SubmitToEmr",
        actions=["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"],
        resources=[_arn(role, "emr-serverless", f"/applications/{one}") for one in ids],
    )
    allow(
        role,
        "FollowInEmr",
        actions=["emr-serverless:CancelJobRun", "emr-serverless:GetJobRun"],
        resources=[_arn(role, "emr-serverless", f"/applications/{one}/jobruns/*") for one in ids],
        wildcard="jobs are made at run time, in applications that are named",
    )
    allow(
        role,
        "PassJobRole",
        actions=["iam:PassRole"],
        resources=list(dict.fromkeys(one.execution_role for one in applications)),
        conditions={"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}},
    )


def _arn(role: iam.Role, service: str, resource: str) -> str:
    stack = cdk.Stack.of(role)
    return stack.format_arn(
        service=service, resource=resource, arn_format=cdk.ArnFormat.NO_RESOURCE_NAME
    )
