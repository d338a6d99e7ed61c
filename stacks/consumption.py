"""How the lakehouse is queried."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from polynya_constructs.buckets import AccessLogBucket, DataBucket
from polynya_constructs.consumption import AthenaWorkGroup
from stacks.settings.consumption import AthenaSettings


class ConsumptionStack(cdk.Stack):
    """An Athena workgroup and the bucket of its results."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        settings: AthenaSettings,
        key: kms.IKey,
        removal_policy: cdk.RemovalPolicy,
        **options: Any,
    ) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        access_logs = AccessLogBucket(self, "AccessLogs", removal_policy=removal_policy)
        results = DataBucket(
            self,
            "Results",
            encryption_key=key,
            access_logs=access_logs,
            old_versions_days=1,
            keep_days=settings.keep_results_days,
            removal_policy=removal_policy,
        )
        AthenaWorkGroup(
            self,
            "Athena",
            name=name,
            results=results.bucket,
            encryption_key=key,
            scan_limit_bytes=settings.scan_limit_gb * 10**9,
        )
        cdk.CfnOutput(self, "AthenaWorkGroup", value=name)
