"""Buckets: of data, encrypted, private, versioned and kept; and the one for their access logs."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.removal import KEPT


class AccessLogBucket(Construct):
    """The bucket to which S3 writes who did what to the others; its objects expire.

    `bucket` is the S3 bucket. S3 delivers access logs only to a bucket with SSE-S3, so no KMS key
    encrypts it (Amazon S3 User Guide, "Enabling Amazon S3 server access logging").

    Example:
        >>> logs = AccessLogBucket(stack, "AccessLogs", keep_days=365)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        keep_days: int = 90,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the bucket.

        Args:
            scope: the parent.
            id_: unique below the parent. Renaming it replaces the bucket.
            keep_days: when a log expires, 1 to 3650 days; default 90.
            removal_policy: what becomes of it with its stack; default: it is kept.

        Raises:
            ValueError: when `keep_days` is out of its range.
        """
        super().__init__(scope, id_)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            removal_policy=removal_policy,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
                    expiration=cdk.Duration.days(_days("keep_days", keep_days)),
                    noncurrent_version_expiration=cdk.Duration.days(1),
                )
            ],
        )
        cdk.Validations.of(self.bucket).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-S1",
                reason="this bucket receives the access logs; logging its own would never end",
            )
        )


class DataBucket(Construct):
    """One S3 bucket with the house's rules: KMS, no public access, TLS only, versions, kept.

    `bucket` is the S3 bucket; grants are made on it, in the stack.

    Example:
        >>> DataBucket(stack, "Landing", encryption_key=key, access_logs=access_logs)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        encryption_key: kms.IKey,
        access_logs: AccessLogBucket,
        old_versions_days: int = 30,
        keep_days: int | None = None,
        events: bool = False,
        name: str | None = None,
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the bucket.

        Args:
            scope: the parent.
            id_: unique below the parent. Renaming it replaces the bucket.
            encryption_key: encrypts every object; required, so that it is a decision.
            access_logs: where S3 logs who did what, below a prefix that is `id_` in lower case.
            old_versions_days: how long an overwritten or deleted object can be brought back, 1 to
                3650 days; default 30.
            keep_days: when an object expires, 1 to 3650 days; default: never.
            events: whether S3 tells EventBridge of every object; default: no, for it is paid by
                the event.
            name: of the bucket; default: CloudFormation makes one. A bucket that another region
                uses needs one.
            removal_policy: what becomes of it with its stack; default: it is kept.

        Raises:
            ValueError: when a number of days is out of its range.
        """
        super().__init__(scope, id_)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=name,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=encryption_key,
            bucket_key_enabled=True,  # one KMS call for many objects instead of one for each
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            removal_policy=removal_policy,
            server_access_logs_bucket=access_logs.bucket,
            server_access_logs_prefix=f"{id_.lower()}/",
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
                    noncurrent_version_expiration=cdk.Duration.days(
                        _days("old_versions_days", old_versions_days)
                    ),
                    expiration=cdk.Duration.days(_days("keep_days", keep_days))
                    if keep_days
                    else None,
                    # S3 refuses the two together; a delete marker expires with the objects.
                    expired_object_delete_marker=None if keep_days else True,
                )
            ],
        )

        if events:
            # L1: the L2 would do it with a function and a custom resource.
            resource = self.bucket.node.default_child
            assert isinstance(resource, s3.CfnBucket)
            resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
                event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(
                    event_bridge_enabled=True
                )
            )


def _days(name: str, days: int) -> int:
    if not 1 <= days <= 3650:
        raise ValueError(f"{name} is {days}; it has to be 1 to 3650 days")
    return days
