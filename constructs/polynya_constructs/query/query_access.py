"""Who may query the lakehouse through Athena: a policy for people, rights for services."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from polynya_constructs.grants import Holder, allow, allow_objects
from polynya_constructs.nodes.access import Lakehouse, grant_reading
from polynya_constructs.query.athena import AthenaWorkGroup


class QueryAccess(Construct):
    """A managed policy that lets people query the tables, and reach nothing else.

    It is attached to nobody: attach it to the roles or permission sets of those who may query.
    `policy` is the policy.

    Example:
        >>> QueryAccess(
        ...     stack, "Access", name="shop-query", workgroup=workgroup, lakehouse=lakehouse
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        workgroup: AthenaWorkGroup,
        lakehouse: Lakehouse,
    ) -> None:
        """Create the policy; `name` is unique in the account."""
        super().__init__(scope, id_)
        self.policy = iam.ManagedPolicy(
            self,
            "Policy",
            managed_policy_name=name,
            description="Polynya: query the lakehouse with Athena",
        )
        grant_queries(self.policy, workgroup, lakehouse)


def grant_queries(role: Holder, workgroup: AthenaWorkGroup, lakehouse: Lakehouse) -> None:
    """Let `role` run queries in the workgroup over the tables of the lakehouse."""
    grant_reading(role, lakehouse)
    allow(
        role,
        "Query",
        actions=[
            "athena:GetQueryExecution",
            "athena:GetQueryResults",
            "athena:GetWorkGroup",
            "athena:StartQueryExecution",
            "athena:StopQueryExecution",
        ],
        resources=[
            cdk.Stack.of(role).format_arn(
                service="athena", resource="workgroup", resource_name=workgroup.name
            )
        ],
    )
    results = workgroup.results
    allow_objects(
        role, "Results", results, "*", ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"]
    )
    allow(
        role,
        "ResultsBucket",
        actions=["s3:GetBucketLocation", "s3:ListBucket"],
        resources=[results.bucket_arn],
    )
    allow(
        role,
        "UseResultsKey",
        actions=["kms:Decrypt", "kms:GenerateDataKey"],
        resources=[workgroup.encryption_key.key_arn],
    )
