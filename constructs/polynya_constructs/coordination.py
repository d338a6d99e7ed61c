"""S3 itself refuses a blind write where nodes agree on who owns what."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

COORDINATION_PREFIX: Final = "coordination/"
"""Where leases and ownership lie in the configuration bucket."""


def enforce_conditional_writes(
    bucket: s3.IBucket, *, prefix: str = COORDINATION_PREFIX
) -> iam.AddToResourcePolicyResult:
    """Deny writes below `prefix` without `If-None-Match` or `If-Match`, deletes without the latter.

    Leases are safe only as long as everybody compares before writing; this holds for people and
    other programs, too. It also refuses copies to the prefix, which S3 cannot make conditional.
    The parts of a multipart upload carry no such header and are let through; its completion is not
    (Amazon S3 User Guide, "Enforce conditional writes on Amazon S3 buckets" and
    "Enforce conditional deletes on Amazon S3 buckets").

    Args:
        bucket: whose policy is extended. That of an imported bucket cannot be: the result says so.
        prefix: of the keys, ending in `/`; default `coordination/`.

    Raises:
        ValueError: when the prefix would not be a folder of its own.
    """
    if not prefix.endswith("/") or prefix.startswith("/") or "*" in prefix:
        raise ValueError(
            f"prefix is {prefix!r}; it has to end in `/`, without `*` or a leading `/`"
        )
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            sid="ConditionalDeletesOnly",
            effect=iam.Effect.DENY,
            principals=[iam.AnyPrincipal()],
            actions=["s3:DeleteObject"],
            resources=[bucket.arn_for_objects(f"{prefix}*")],
            conditions={"Null": {"s3:if-match": "true"}},
        )
    )
    return bucket.add_to_resource_policy(
        iam.PolicyStatement(
            sid="ConditionalWritesOnly",
            effect=iam.Effect.DENY,
            principals=[iam.AnyPrincipal()],
            actions=["s3:PutObject"],
            resources=[bucket.arn_for_objects(f"{prefix}*")],
            conditions={
                "Null": {"s3:if-none-match": "true", "s3:if-match": "true"},
                "Bool": {"s3:ObjectCreationOperation": "true"},
            },
        )
    )


def forget_old_versions(bucket: s3.Bucket, *, prefix: str = COORDINATION_PREFIX) -> None:
    """Remove old versions below `prefix` after a day, whatever holds for the rest of the bucket.

    A node renews its lease 8 640 times a day, and nobody goes back to one. Of two rules S3 follows
    the one that expires earlier (Amazon S3 User Guide, "Lifecycle configuration conflicts").

    Args:
        bucket: with versions.
        prefix: of the keys; default `coordination/`.
    """
    bucket.add_lifecycle_rule(prefix=prefix, noncurrent_version_expiration=cdk.Duration.days(1))
