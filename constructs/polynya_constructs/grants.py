"""A right: what for, on what, and why any wildcard in it has to be there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

Holder: TypeAlias = iam.Role | iam.ManagedPolicy
"""Who gets a right: a role, or a policy that people are attached to."""

_STATEMENT_CHARACTERS: Final = 4_000
"""Of the resources of a statement; a managed policy has 6,144 characters (`policy_sizes`)."""

_REFERENCE: Final = re.compile("<[^>]+>")
_LONG_NAME: Final = "n" * 20
"""What a reference stands for: most are partition, region and account."""

LIST_TABLES: Final = ("glue:GetDatabase", "glue:GetTable", "glue:GetTables")
"""What every reader of the catalog calls."""


def allow(
    role: Holder,
    purpose: str,
    *,
    actions: Sequence[str],
    resources: Sequence[str],
    wildcard: str | None = None,
    conditions: Mapping[str, Mapping[str, str | list[str]]] | None = None,
) -> None:
    """Add a statement to a role or a policy, or several with so many resources.

    When the inline policy of a role is full, the CDK moves whole statements to managed policies.

    Args:
        role: who may.
        purpose: the statement's id, letters and digits; further ones are numbered.
        actions: whole names; no wildcard among them.
        resources: ARNs.
        wildcard: why a `*` in a resource is needed; becomes the acknowledgement of cdk-nag's
            finding, for exactly these resources.
        conditions: under which it holds; default: always.

    Raises:
        ValueError: for a wildcard in an action, or one in a resource without a reason.
    """
    if any("*" in action for action in actions):
        raise ValueError(f"{purpose}: name the actions; there is a wildcard in {actions}")
    stack = cdk.Stack.of(role)
    names = [shown(stack.resolve(resource)) for resource in resources]
    for number, part in enumerate(_parts(resources, names)):
        role.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(
                sid=f"{purpose}{number + 1}" if number else purpose,
                actions=[*actions],
                resources=part,
                conditions=dict(conditions) if conditions else None,
            )
        )
    for name in names:
        if "*" not in name:
            continue
        if wildcard is None:
            raise ValueError(f"{purpose}: say why {name} has a wildcard")
        cdk.Validations.of(role).acknowledge(
            cdk.Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{name}]", reason=wildcard)
        )


def deny(role: Holder, purpose: str, *, actions: Sequence[str], resources: Sequence[str]) -> None:
    """Forbid `role` actions, whatever another policy of it allows; wildcards only widen that."""
    role.grant_principal.add_to_principal_policy(
        iam.PolicyStatement(
            sid=purpose, effect=iam.Effect.DENY, actions=[*actions], resources=[*resources]
        )
    )


def for_this_account(scope: IConstruct, service: str) -> iam.ServicePrincipal:
    """A service that acts for this account, and not for another one that knows our names."""
    account = cdk.Stack.of(scope).account
    return iam.ServicePrincipal(
        service, conditions={"StringEquals": {"aws:SourceAccount": account}}
    )


def allow_objects(
    role: Holder,
    purpose: str,
    bucket: s3.IBucket,
    keys: str | Sequence[str],
    actions: Sequence[str],
) -> None:
    """Let `role` do `actions` to the objects of `bucket` whose keys match one of `keys`."""
    patterns = [keys] if isinstance(keys, str) else keys
    allow(
        role,
        purpose,
        actions=actions,
        resources=[bucket.arn_for_objects(pattern) for pattern in patterns],
        wildcard="objects come and go at run time; their bucket or prefix is named",
    )


def allow_tables(
    role: Holder, purpose: str, databases: Sequence[str], actions: Sequence[str]
) -> None:
    """Let `role` do `actions` to the tables of Glue databases.

    Glue wants the catalog and the database named beside the table.
    """
    names = ["catalog"]
    for database in databases:
        names += [f"database/{database}", f"table/{database}/*"]
    stack = cdk.Stack.of(role)
    allow(
        role,
        purpose,
        actions=actions,
        resources=[
            stack.format_arn(
                service="glue", resource=name, arn_format=cdk.ArnFormat.NO_RESOURCE_NAME
            )
            for name in names
        ],
        wildcard="tables are made at run time, in databases that are named",
    )


def _parts(resources: Sequence[str], names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the resources in parts that each fit into a managed policy with their actions."""
    part: list[str] = []
    size = 0
    for resource, name in zip(resources, names, strict=True):
        size += len(_REFERENCE.sub(_LONG_NAME, name))
        if part and size > _STATEMENT_CHARACTERS:
            yield part
            part, size = [], len(name)
        part.append(resource)
    yield part


def shown(resolved: Any) -> str:
    """Write a resolved ARN as cdk-nag writes it in the id of a finding."""
    if isinstance(resolved, str):
        return resolved
    (function, value), *_ = resolved.items()
    if function == "Fn::Join":
        return "".join(shown(part) for part in value[1])
    if function == "Ref":
        return f"<{value}>"
    return f"<{value[0]}.{value[1]}>"
