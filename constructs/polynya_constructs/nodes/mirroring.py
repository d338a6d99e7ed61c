"""Rights of nodes that mirror: the Data API of named Redshift workgroups and clusters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from polynya_constructs.grants import allow
from polynya_constructs.patterns import REDSHIFT_CLUSTER, REDSHIFT_DATABASE, REDSHIFT_WORKGROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class RedshiftTarget:
    """A Redshift Serverless workgroup, or a database of a provisioned cluster of this account.

    Raises ValueError unless exactly one of the two is given, and for names that cannot be.
    """

    workgroup_arn: str | None = None
    cluster: str | None = None
    database: str | None = None

    def __post_init__(self) -> None:
        """Check that there is one place."""
        if (self.workgroup_arn is None) == (self.cluster is None):
            raise ValueError("a target in Redshift is a workgroup or a cluster")
        if (self.cluster is None) != (self.database is None):
            raise ValueError("a cluster of Redshift is named together with its database")
        for text, pattern in (
            (self.workgroup_arn, REDSHIFT_WORKGROUP),
            (self.cluster, REDSHIFT_CLUSTER),
            (self.database, REDSHIFT_DATABASE),
        ):
            if text is not None and not re.fullmatch(pattern, text):
                raise ValueError(f"{text!r} does not name a target in Redshift")


def grant_mirroring(role: iam.Role, targets: Sequence[RedshiftTarget]) -> None:
    """Let `role` run statements in these targets, as the database user that is called as it.

    What that user may do is decided in Redshift (Redshift Management Guide, "Authorizing access to
    the Amazon Redshift Data API").
    """
    if not targets:
        return
    stack = cdk.Stack.of(role)
    workgroups = [one.workgroup_arn for one in targets if one.workgroup_arn]
    clusters = [one for one in targets if one.cluster]

    def arn(kind: str, name: str) -> str:
        return stack.format_arn(
            service="redshift",
            resource=kind,
            resource_name=name,
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )

    allow(
        role,
        "MirrorToRedshift",
        actions=["redshift-data:ExecuteStatement"],
        resources=[
            *workgroups,
            *dict.fromkeys(arn("cluster", f"{one.cluster}") for one in clusters),
        ],
    )
    if workgroups:
        actions = ["redshift-serverless:GetCredentials"]
        allow(role, "ConnectToWorkgroups", actions=actions, resources=workgroups)
    if clusters:
        allow(
            role,
            "ConnectToClusters",
            actions=["redshift:GetClusterCredentialsWithIAM"],
            resources=[arn("dbname", f"{one.cluster}/{one.database}") for one in clusters],
        )
    allow(
        role,
        "FollowOwnStatements",
        actions=[
            "redshift-data:CancelStatement",
            "redshift-data:DescribeStatement",
            "redshift-data:GetStatementResult",
        ],
        resources=["*"],
        wildcard="a statement has no ARN; the condition leaves only those of the node itself",
        conditions={"StringEquals": {"redshift-data:statement-owner-iam-userid": "${aws:userid}"}},
    )
