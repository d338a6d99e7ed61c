"""What outlives every cluster: the key and the three buckets."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from polynya_constructs.buckets import DataBucket


class StorageStack(cdk.Stack):
    """Landing, configuration and warehouse buckets under one key of the account."""

    def __init__(self, scope: Construct, id_: str, **options: Any) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, termination_protection=True, **options)
        self.key = kms.Key(
            self,
            "DataKey",
            description="Encrypts the data of Polynya",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        self.landing = DataBucket(self, "Landing", encryption_key=self.key)
        self.configuration = DataBucket(
            self, "Configuration", encryption_key=self.key, old_versions_days=365
        )
        # Iceberg never overwrites an object and expires its own snapshots: versions only guard
        # against deletion by mistake, and they cost as much as the data.
        self.warehouse = DataBucket(self, "Warehouse", encryption_key=self.key, old_versions_days=7)
        for name, data in (
            ("LandingBucket", self.landing),
            ("ConfigurationBucket", self.configuration),
            ("WarehouseBucket", self.warehouse),
        ):
            cdk.CfnOutput(self, name, value=data.bucket.bucket_name)
