"""How the lakehouse is queried, and fed by Firehose: Athena, and the engines that a stage names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kinesis as kinesis
from constructs import Construct

from polynya_constructs.buckets import AccessLogBucket, DataBucket
from polynya_constructs.firehose_landing import FirehoseLanding
from polynya_constructs.query.athena import AthenaWorkGroup
from polynya_constructs.query.emr_serverless import EmrServerlessSpark
from polynya_constructs.query.lake_formation import LakeFormationGovernance
from polynya_constructs.query.notebook_role import NotebookRole
from polynya_constructs.query.query_access import QueryAccess
from polynya_constructs.query.quicksight import QuickSightSource
from polynya_constructs.query.redshift import RedshiftServerless
from stacks.handover import read_lakehouse, read_vpc
from stacks.settings.consumption import AthenaSettings, ConsumptionSettings, FirehoseSettings
from stacks.settings.stage import StageConfig


class ConsumptionStack(cdk.Stack):
    """An Athena workgroup with the bucket of its results, and each engine that is named."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        stage: StageConfig,
        removal_policy: cdk.RemovalPolicy,
        **options: Any,
    ) -> None:
        """Create the stack; `name` begins what it makes. `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        lakehouse, engines = read_lakehouse(self, stage), stage.consumption
        named = lakehouse
        if stage.catalog.readers_see_all:
            lakehouse = replace(lakehouse, databases=["*"])
        self._name, self._lakehouse, self._removal_policy = name, lakehouse, removal_policy
        if stage.athena.enabled:
            self._queried_by_athena(stage.athena, engines)
        if engines.redshift or engines.emr_serverless:
            self._queried_by_clusters(engines, read_vpc(self, stage))
        for stream in engines.firehose:
            self._fed_by(stream)
        if governed := engines.lake_formation:
            LakeFormationGovernance(
                self,
                "LakeFormation",
                lakehouse=named,
                admins=governed.admins,
                readers=governed.readers,
            )

    def _queried_by_athena(self, athena: AthenaSettings, engines: ConsumptionSettings) -> None:
        """Add the workgroup, and what queries through it."""
        name, lakehouse = self._name, self._lakehouse
        access_logs = AccessLogBucket(self, "AccessLogs", removal_policy=self._removal_policy)
        results = DataBucket(
            self,
            "Results",
            encryption_key=lakehouse.key,
            access_logs=access_logs,
            old_versions_days=1,
            keep_days=athena.keep_results_days,
            removal_policy=self._removal_policy,
        )
        workgroup = AthenaWorkGroup(
            self,
            "Athena",
            name=name,
            results=results.bucket,
            encryption_key=lakehouse.key,
            scan_limit_bytes=athena.scan_limit_gb * 10**9,
        )
        cdk.CfnOutput(self, "AthenaWorkGroup", value=name)
        access = QueryAccess(
            self, "QueryAccess", name=f"{name}-query", workgroup=workgroup, lakehouse=lakehouse
        )
        cdk.CfnOutput(self, "QueryPolicyArn", value=access.policy.managed_policy_arn)
        for number, policy in enumerate(access.more, start=2):
            cdk.CfnOutput(self, f"QueryPolicyArn{number}", value=policy.managed_policy_arn)
        if engines.quicksight:
            QuickSightSource(
                self,
                "QuickSight",
                name=name,
                owner=engines.quicksight.owner,
                workgroup=workgroup,
                lakehouse=lakehouse,
            )
        if engines.sagemaker:
            notebook = NotebookRole(self, "SageMaker", workgroup=workgroup, lakehouse=lakehouse)
            cdk.CfnOutput(self, "NotebookRoleArn", value=notebook.role.role_arn)

    def _queried_by_clusters(self, engines: ConsumptionSettings, vpc: ec2.IVpc) -> None:
        """Add the engines that have machines of their own while they work."""
        if redshift := engines.redshift:
            RedshiftServerless(
                self,
                "Redshift",
                name=self._name,
                vpc=vpc,
                lakehouse=self._lakehouse,
                base_capacity=redshift.base_capacity,
                max_capacity=redshift.max_capacity,
                removal_policy=self._removal_policy,
            )
        if spark := engines.emr_serverless:
            emr = EmrServerlessSpark(
                self,
                "EmrServerless",
                name=self._name,
                vpc=vpc,
                lakehouse=self._lakehouse,
                release=spark.release,
                max_vcpu=spark.max_vcpu,
                idle_minutes=spark.idle_minutes,
            )
            cdk.CfnOutput(self, "EmrApplicationId", value=emr.application.attr_application_id)
            cdk.CfnOutput(self, "EmrJobRoleArn", value=emr.job_role.role_arn)

    def _fed_by(self, stream: FirehoseSettings) -> None:
        """Add a delivery stream into the landing bucket."""
        source = None
        if stream.source_arn:
            source = kinesis.Stream.from_stream_arn(
                self, f"Source-{stream.name}", stream.source_arn
            )
        FirehoseLanding(
            self,
            f"Firehose-{stream.name}",
            name=f"{self._name}-{stream.name}",
            prefix=stream.prefix,
            lakehouse=self._lakehouse,
            source=source,
            buffer_seconds=stream.buffer_seconds,
            buffer_mb=stream.buffer_mb,
            removal_policy=self._removal_policy,
        )
