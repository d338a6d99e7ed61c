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
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.query.athena import AthenaWorkGroup
from polynya_constructs.query.databricks import UNITY_CATALOG, DatabricksAccess
from polynya_constructs.query.emr_serverless import EmrServerlessSpark
from polynya_constructs.query.lake_formation import LakeFormationGovernance, LakeGrant
from polynya_constructs.query.notebook_role import NotebookRole
from polynya_constructs.query.outside_reader import OutsideTrust
from polynya_constructs.query.query_access import QueryAccess
from polynya_constructs.query.quicksight import QuickSightSource
from polynya_constructs.query.redshift import RedshiftServerless
from polynya_constructs.query.snowflake import SnowflakeAccess
from stacks.handover import read_lakehouse, read_vpc
from stacks.settings.consumption import AthenaSettings, ConsumptionSettings, FirehoseSettings
from stacks.settings.readers import OutsideTrustSettings
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
                grants=[LakeGrant(**one.as_arguments()) for one in governed.grants],
                tags=governed.tags,
            )
        self._read_from_outside(stage, named)

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
        self._tell_policies("QueryPolicyArn", access)
        if engines.lake_formation:
            governed = QueryAccess(
                self,
                "GovernedAccess",
                name=f"{name}-governed-query",
                workgroup=workgroup,
                lakehouse=lakehouse,
                governed=True,
            )
            self._tell_policies("GovernedQueryPolicyArn", governed)
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

    def _tell_policies(self, output: str, access: QueryAccess) -> None:
        for number, policy in enumerate((access.policy, *access.more), start=1):
            suffix = "" if number == 1 else str(number)
            cdk.CfnOutput(self, f"{output}{suffix}", value=policy.managed_policy_arn)

    def _read_from_outside(self, stage: StageConfig, lakehouse: Lakehouse) -> None:
        """Add the roles of engines outside of the account, and say what they lack."""
        if snowflake := stage.consumption.snowflake:
            access = SnowflakeAccess(
                self,
                "Snowflake",
                name=self._name,
                lakehouse=replace(lakehouse, databases=stage.databases_read(snowflake.databases)),
                volume_trust=_trust(snowflake.volume),
                catalog_trust=_trust(snowflake.catalog),
                iceberg_rest=snowflake.catalog_linked,
            )
            cdk.CfnOutput(self, "SnowflakeVolumeRoleArn", value=access.volume_role.role_arn)
            cdk.CfnOutput(self, "SnowflakeCatalogRoleArn", value=access.catalog_role.role_arn)
            if snowflake.volume is None or snowflake.catalog is None:
                self._tell_next_step(
                    "snowflake",
                    "create volume and integration with the ARNs of the outputs "
                    "SnowflakeVolumeRoleArn and SnowflakeCatalogRoleArn, write what DESCRIBE shows "
                    "of them to `volume` and `catalog`, and deploy again",
                )
        if databricks := stage.consumption.databricks:
            roles = DatabricksAccess(
                self,
                "Databricks",
                name=self._name,
                lakehouse=replace(lakehouse, databases=stage.databases_read(databricks.databases)),
                external_id=databricks.external_id,
                principal_arn=databricks.principal_arn or UNITY_CATALOG,
            )
            cdk.CfnOutput(self, "DatabricksStorageRoleArn", value=roles.storage_role.role_arn)
            cdk.CfnOutput(self, "DatabricksCatalogRoleArn", value=roles.catalog_role.role_arn)
            if databricks.external_id is None:
                self._tell_next_step(
                    "databricks",
                    "create both credentials with the ARNs of the outputs DatabricksStorageRoleArn "
                    "and DatabricksCatalogRoleArn, write the external id that they show to "
                    "`external_id`, and deploy again",
                )
        if snowflake or databricks:
            url = lakehouse.warehouse.s3_url_for_object()
            cdk.CfnOutput(self, "WarehouseUrl", value=url)

    def _tell_next_step(self, engine: str, fix: str) -> None:
        cdk.Annotations.of(self).add_warning_v2(
            f"polynya:{engine}Trust",
            f"`consumption.{engine}` does not say whom to trust: it reads nothing yet. fix: {fix}",
        )

    def _queried_by_clusters(self, engines: ConsumptionSettings, vpc: ec2.IVpc) -> None:
        """Add the engines that have machines of their own while they work."""
        if redshift := engines.redshift:
            warehouse = RedshiftServerless(
                self,
                "Redshift",
                name=self._name,
                vpc=vpc,
                lakehouse=self._lakehouse,
                base_capacity=redshift.base_capacity,
                max_capacity=redshift.max_capacity,
                removal_policy=self._removal_policy,
            )
            arn = warehouse.workgroup.attr_workgroup_workgroup_arn
            cdk.CfnOutput(self, "RedshiftWorkgroupArn", value=arn)
            cdk.CfnOutput(self, "RedshiftRoleArn", value=warehouse.role.role_arn)
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


def _trust(settings: OutsideTrustSettings | None) -> OutsideTrust | None:
    if settings is None:
        return None
    return OutsideTrust(principal_arn=settings.user_arn, external_id=settings.external_id)
