"""A bucket that holds data: encrypted, private, versioned, kept when its stack goes."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct


class DataBucket(Construct):
    """One S3 bucket with the house's rules: KMS, no public access, TLS only, versions, Retain.

    `bucket` is the S3 bucket; grants are made on it, in the stack.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        encryption_key: kms.IKey,
        old_versions_days: int = 30,
    ) -> None:
        """Create the bucket.

        Args:
            scope: the parent.
            id_: unique below the parent. Renaming it replaces the bucket.
            encryption_key: encrypts every object; required, so that it is a decision.
            old_versions_days: how long an overwritten or deleted object can be brought back.
        """
        super().__init__(scope, id_)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.KMS,
            encryption_key=encryption_key,
            bucket_key_enabled=True,  # one KMS call for many objects instead of one for each
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            removal_policy=cdk.RemovalPolicy.RETAIN,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
                    noncurrent_version_expiration=cdk.Duration.days(old_versions_days),
                    expired_object_delete_marker=True,
                )
            ],
        )
