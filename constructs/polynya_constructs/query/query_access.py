"""Who may query the lakehouse through Athena: a policy for people, rights for services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from polynya_constructs.grants import (
    LIST_TABLES,
    Holder,
    allow,
    allow_objects,
    allow_tables,
)
from polynya_constructs.nodes.access import Lakehouse, grant_reading
from polynya_constructs.query.athena import AthenaWorkGroup

_DATABASE_CHARACTERS: Final = 114
"""Of the two ARNs of a database and its tables, without its name, which is in both."""

_FIRST_CHARACTERS: Final = 3_600
_OTHER_CHARACTERS: Final = 5_600
"""A managed policy has 6,144."""


class QueryAccess(Construct):
    """A managed policy that lets people query the tables, and reach nothing else.

    It is attached to nobody: attach it to the roles or permission sets of those who may query.
    `policy` is the policy; with many databases, `more` are the others that belong to it. With
    `governed`, it reads files only through Lake Formation: for readers whose grants leave out rows
    or columns, whom a right of their own to the files would show everything.

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
        governed: bool = False,
    ) -> None:
        """Create the policy; `name` is unique in the account. Further ones are numbered."""
        super().__init__(scope, id_)
        first, *others = _parts(lakehouse.databases)
        self.policy = self._policy(name, "Policy")
        own = replace(lakehouse, databases=first)
        if governed:
            grant_governed_queries(self.policy, workgroup, own)
        else:
            grant_queries(self.policy, workgroup, own)
        self.more: list[iam.ManagedPolicy] = []
        for number, databases in enumerate(others, start=2):
            policy = self._policy(f"{name}-{number}", f"Policy{number}")
            allow_tables(policy, "CatalogTables", databases, LIST_TABLES)
            self.more.append(policy)

    def _policy(self, name: str, id_: str) -> iam.ManagedPolicy:
        return iam.ManagedPolicy(
            self,
            id_,
            managed_policy_name=name,
            description="Polynya: query the lakehouse with Athena",
        )


def _parts(databases: Sequence[str]) -> list[list[str]]:
    """Return the databases of each policy: the first one has other rights, too."""
    parts: list[list[str]] = [[]]
    room = _FIRST_CHARACTERS
    for name in databases:
        size = _DATABASE_CHARACTERS + 2 * len(name)
        if size > room:
            parts.append([])
            room = _OTHER_CHARACTERS
        room -= size
        parts[-1].append(name)
    return parts


def grant_queries(role: Holder, workgroup: AthenaWorkGroup, lakehouse: Lakehouse) -> None:
    """Let `role` run queries in the workgroup over the tables of the lakehouse."""
    grant_reading(role, lakehouse)
    _grant_athena(role, workgroup)


def grant_governed_queries(role: Holder, workgroup: AthenaWorkGroup, lakehouse: Lakehouse) -> None:
    """Let `role` run queries over what Lake Formation grants it, and read no file by itself."""
    if lakehouse.databases:
        allow_tables(role, "CatalogTables", lakehouse.databases, LIST_TABLES)
    allow(
        role,
        "AskLakeFormation",
        actions=["lakeformation:GetDataAccess"],
        resources=["*"],
        wildcard="the action knows no resource; Lake Formation's grants decide",
    )
    _grant_athena(role, workgroup)


def _grant_athena(role: Holder, workgroup: AthenaWorkGroup) -> None:
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
