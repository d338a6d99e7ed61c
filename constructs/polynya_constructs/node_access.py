"""What a node may do: its rights, each for a purpose, each on a named resource."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.grants import allow

_LIST = ("s3:GetBucketLocation", "s3:ListBucket")
_WRITE = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lakehouse:
    """What nodes work on.

    Attributes:
        landing: the bucket in which changes land.
        configuration: the bucket of the tasks.
        warehouse: the bucket of the Iceberg tables.
        stream: the workload stream.
        key: encrypts all of them, unless a bucket names its own.
        databases: names of the Glue databases whose tables nodes make.
    """

    landing: s3.IBucket
    configuration: s3.IBucket
    warehouse: s3.IBucket
    stream: kinesis.IStream
    key: kms.IKey
    databases: Sequence[str]


def grant_configuration(role: iam.Role, lakehouse: Lakehouse) -> None:
    """Let `role` read tasks, and write where nodes agree and tell their state."""
    configuration = lakehouse.configuration
    _allow_objects(role, "ReadTasks", configuration, "*", ["s3:GetObject"])
    allow(role, "ListTasks", actions=_LIST, resources=[configuration.bucket_arn])
    _allow_objects(
        role,
        "Coordinate",
        configuration,
        f"{COORDINATION_PREFIX}*",
        ["s3:DeleteObject", "s3:PutObject"],
    )
    allow(
        role,
        "TellState",
        actions=[
            "kinesis:DescribeStreamSummary",
            "kinesis:GetRecords",
            "kinesis:GetShardIterator",
            "kinesis:ListShards",
            "kinesis:PutRecord",
            "kinesis:PutRecords",
        ],
        resources=[lakehouse.stream.stream_arn],
    )
    allow(
        role,
        "UseKeys",
        actions=["kms:Decrypt", "kms:GenerateDataKey"],
        resources=_keys(lakehouse),
    )


def grant_tables(role: iam.Role, lakehouse: Lakehouse) -> None:
    """Let `role` read what landed and keep the tables of the lakehouse."""
    landing, warehouse = lakehouse.landing, lakehouse.warehouse
    _allow_objects(role, "ReadLanding", landing, "*", ["s3:GetObject"])
    allow(role, "ListLanding", actions=_LIST, resources=[landing.bucket_arn])
    _allow_objects(role, "KeepTables", warehouse, "*", _WRITE)
    allow(role, "ListTables", actions=_LIST, resources=[warehouse.bucket_arn])
    if lakehouse.databases:
        _allow_catalog(role, lakehouse.databases)


def _allow_objects(
    role: iam.Role, purpose: str, bucket: s3.IBucket, keys: str, actions: Sequence[str]
) -> None:
    allow(
        role,
        purpose,
        actions=actions,
        resources=[bucket.arn_for_objects(keys)],
        bucket=bucket,
        wildcard="objects come and go at run time; their bucket or prefix is named",
    )


def _allow_catalog(role: iam.Role, databases: Sequence[str]) -> None:
    """Glue wants the catalog and the database named beside the table."""
    names = ["catalog"]
    for database in databases:
        names += [f"database/{database}", f"table/{database}/*"]
    stack = cdk.Stack.of(role)
    allow(
        role,
        "CatalogTables",
        actions=[
            "glue:CreateTable",
            "glue:DeleteTable",
            "glue:GetDatabase",
            "glue:GetTable",
            "glue:GetTables",
            "glue:UpdateTable",
        ],
        resources=[
            stack.format_arn(
                service="glue", resource=name, arn_format=cdk.ArnFormat.NO_RESOURCE_NAME
            )
            for name in names
        ],
        wildcard="tables are made at run time, in databases that are named",
    )


def _keys(lakehouse: Lakehouse) -> list[str]:
    buckets = (lakehouse.landing, lakehouse.configuration, lakehouse.warehouse)
    own = [bucket.encryption_key.key_arn for bucket in buckets if bucket.encryption_key]
    return list(dict.fromkeys([lakehouse.key.key_arn, *own]))
