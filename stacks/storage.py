"""What outlives every cluster: the key, the buckets, the stream and the databases."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.buckets import AccessLogBucket, DataBucket
from polynya_constructs.catalog import LakehouseCatalog
from polynya_constructs.cluster.strategies import STRATEGIES
from polynya_constructs.coordination import enforce_conditional_writes, forget_old_versions
from polynya_constructs.removal import KEPT
from polynya_constructs.workload_stream import WorkloadStream
from stacks.handover import CONFIGURATION, KEY, LANDING, NOTHING, STREAM, WAREHOUSE, publish
from stacks.settings.stage import BucketSettings, StageConfig, StreamSettings


class StorageStack(cdk.Stack):
    """Landing, configuration and warehouse buckets, workload stream and Glue databases.

    `key`, `landing`, `configuration`, `warehouse` and `stream` are made here or exist already.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: StageConfig,
        removal_policy: cdk.RemovalPolicy,
        **options: Any,
    ) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        kept = removal_policy is KEPT
        super().__init__(scope, id_, termination_protection=kept, **options)
        self._removal_policy = removal_policy
        storage = settings.storage
        self.key = self._key(storage.key_arn)
        self._access_logs = AccessLogBucket(
            self, "AccessLogs", keep_days=storage.access_log_days, removal_policy=removal_policy
        )
        # Only of a stage that may have to be woken, or wants hints: events are paid.
        wakes = any(STRATEGIES[each.strategy].starts_from_zero for each in settings.clusters)
        hints = any(each.arrival_hints for each in settings.clusters)
        self.landing = self._bucket(
            "Landing", storage.landing, old_versions_days=30, events=wakes or hints
        )
        self.configuration = self._bucket(
            "Configuration", storage.configuration, old_versions_days=365, events=wakes
        )
        # Iceberg never overwrites an object and expires its own snapshots: versions only guard
        # against deletion by mistake, and they cost as much as the data.
        self.warehouse = self._bucket("Warehouse", storage.warehouse, old_versions_days=7)
        self._guard_coordination()
        self.stream = self._stream(settings.stream)
        LakehouseCatalog(
            self,
            "Catalog",
            warehouse=self.warehouse,
            databases=settings.catalog.made_databases,
            removal_policy=removal_policy,
        )
        publish(
            self,
            settings.name,
            {
                LANDING: self.landing.bucket_name,
                CONFIGURATION: self.configuration.bucket_name,
                WAREHOUSE: self.warehouse.bucket_name,
                STREAM: self.stream.stream_arn if self.stream else NOTHING,
                KEY: self.key.key_arn,
            },
            {},
        )
        for name, value in (
            ("LandingBucket", self.landing.bucket_name),
            ("ConfigurationBucket", self.configuration.bucket_name),
            ("WarehouseBucket", self.warehouse.bucket_name),
            ("WorkloadStream", self.stream.stream_name if self.stream else NOTHING),
        ):
            cdk.CfnOutput(self, f"{name}Name", value=value)
        cdk.CfnOutput(self, "DataKeyArn", value=self.key.key_arn)

    def _key(self, existing: str | None) -> kms.IKey:
        if existing:
            return kms.Key.from_key_arn(self, "ExistingDataKey", existing)
        return kms.Key(
            self,
            "DataKey",
            description="Encrypts the data of Polynya",
            enable_key_rotation=True,
            removal_policy=self._removal_policy,
        )

    def _bucket(
        self, id_: str, settings: BucketSettings, *, old_versions_days: int, events: bool = False
    ) -> s3.IBucket:
        existing = settings.existing
        if existing:
            if events:
                cdk.Annotations.of(self).add_warning_v2(
                    f"polynya:events{id_}",
                    "A cluster needs its events, and an existing bucket is not changed from "
                    f"here: let {existing.name} send its events to EventBridge.",
                )
            key = existing.key_arn
            return s3.Bucket.from_bucket_attributes(
                self,
                id_,
                bucket_name=existing.name,
                encryption_key=kms.Key.from_key_arn(self, f"{id_}Key", key) if key else None,
            )
        return DataBucket(
            self,
            id_,
            encryption_key=self.key,
            access_logs=self._access_logs,
            old_versions_days=settings.old_versions_days or old_versions_days,
            events=events,
            removal_policy=self._removal_policy,
        ).bucket

    def _guard_coordination(self) -> None:
        if isinstance(self.configuration, s3.Bucket):
            forget_old_versions(self.configuration)
        if not enforce_conditional_writes(self.configuration).statement_added:
            cdk.Annotations.of(self).add_warning_v2(
                "polynya:conditionalWrites",
                "The policy of an existing configuration bucket is not changed from here: add the "
                "statement ConditionalWritesOnly of docs/deploy.md to it, and expire old versions "
                "below coordination/ after a day.",
            )

    def _stream(self, settings: StreamSettings) -> kinesis.IStream | None:
        if not settings.enabled:
            return None
        if settings.existing_arn:
            return kinesis.Stream.from_stream_arn(self, "ExistingStream", settings.existing_arn)
        return WorkloadStream(
            self,
            "Workload",
            encryption_key=self.key,
            shards=settings.shards,
            retention_hours=settings.retention_hours,
            removal_policy=self._removal_policy,
        ).stream
