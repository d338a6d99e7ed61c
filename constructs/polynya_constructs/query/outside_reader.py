"""A role that an engine outside of the account takes, to read and for nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from polynya_constructs.patterns import EXTERNAL_ID, PRINCIPAL


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTrust:
    """The user or role that takes a role, and the external id that it has to say with it.

    The id keeps another customer of the same vendor from naming our role as its own (IAM User
    Guide, "The confused deputy problem"). Raises ValueError for a principal that is not one user or
    role, and for an id that STS refuses or that could be guessed.
    """

    principal_arn: str
    external_id: str

    def __post_init__(self) -> None:
        """Check both."""
        if not re.fullmatch(PRINCIPAL, self.principal_arn):
            raise ValueError(f"{self.principal_arn!r} is not the ARN of an IAM user or role")
        if not re.fullmatch(EXTERNAL_ID, self.external_id):
            raise ValueError(f"{self.external_id!r} is not an external id of 8 characters or more")


def outside_role(
    scope: Construct,
    id_: str,
    *,
    name: str,
    description: str,
    trust: OutsideTrust | None,
    takes_itself: bool = False,
) -> iam.Role:
    """Return a new role that `trust` may take; without it nobody may, until a later deployment.

    Args:
        scope: the parent.
        id_: unique below the parent.
        name: of the role, unique in the account; the outside engine is told it before it is
            trusted, so it may not change.
        description: of the role.
        trust: who takes it, or None while the engine has not told that yet.
        takes_itself: whether the role has to be able to take itself, as Databricks wants it.
    """
    own_arn = cdk.Stack.of(scope).format_arn(
        service="iam", region="", resource="role", resource_name=name
    )
    own_account = iam.AccountRootPrincipal()
    if trust is None:
        # A role needs a trust policy. No principal of an account is a service of AWS.
        nobody = {"Bool": {"aws:PrincipalIsAWSService": "true"}}
        principal: iam.IPrincipal = iam.PrincipalWithConditions(own_account, nobody)
    else:
        says_id = {"StringEquals": {"sts:ExternalId": trust.external_id}}
        outside = iam.PrincipalWithConditions(iam.ArnPrincipal(trust.principal_arn), says_id)
        principal = outside
        if takes_itself:
            # By condition: IAM refuses a principal that does not exist, as itself does not yet.
            itself = {**says_id, "ArnEquals": {"aws:PrincipalArn": own_arn}}
            principal = iam.CompositePrincipal(
                outside, iam.PrincipalWithConditions(own_account, itself)
            )
    role = iam.Role(
        scope,
        id_,
        role_name=name,
        assumed_by=principal,
        description=description,
    )
    if takes_itself:
        role.add_to_policy(
            iam.PolicyStatement(sid="TakeItself", actions=["sts:AssumeRole"], resources=[own_arn])
        )
    return role
