"""What nodes and readers may do: rights, each for a purpose, each on a named resource."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.grants import LIST_TABLES, Holder, allow, allow_objects, allow_tables

WAREHOUSE_PREFIX: Final = "tables/"
"""The folder of the warehouse bucket that targets name as their warehouse (docs/deploy.md)."""

_WRITE = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lakehouse:
    """What nodes work on.

    Attributes:
        landing: the bucket in which changes land.
        configuration: the bucket of the tasks.
        warehouse: the bucket of the Iceberg tables.
        stream: the workload stream; None when the stage has none.
        key: encrypts all of them, unless a bucket names its own.
        databases: names of the Glue databases whose tables nodes make.
    """

    landing: s3.IBucket
    configuration: s3.IBucket
    warehouse: s3.IBucket
    stream: kinesis.IStream | None
    key: kms.IKey
    databases: Sequence[str]


def grant_configuration(
    role: iam.Role, lakehouse: Lakehouse, *, coordination: str, project: str = ""
) -> None:
    """Let `role` read tasks, write where nodes agree, and tell its state to the stream.

    Args:
        role: of the nodes.
        lakehouse: where configuration and stream are.
        coordination: the folder below the coordination prefix in which these nodes agree, and
            nobody else does.
        project: prefix of the tasks that it may read; default: all of them.
    """
    _grant_tasks(role, lakehouse, project)
    allow_objects(
        role,
        "Coordinate",
        lakehouse.configuration,
        f"{COORDINATION_PREFIX}{coordination}/*",
        ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
    )
    if lakehouse.stream:
        allow(
            role,
            "TellState",
            actions=["kinesis:PutRecord"],
            resources=[lakehouse.stream.stream_arn],
        )
    _grant_keys(role, lakehouse)


def grant_tasks(role: iam.Role, lakehouse: Lakehouse, *, project: str = "") -> None:
    """Let `role` read tasks, as a run of one of them does, and use the keys of all buckets.

    Args:
        role: of the runs.
        lakehouse: where the configuration is.
        project: prefix of the tasks that it may read; default: all of them.
    """
    _grant_tasks(role, lakehouse, project)
    _grant_keys(role, lakehouse)


def _grant_tasks(role: iam.Role, lakehouse: Lakehouse, project: str) -> None:
    configuration = lakehouse.configuration
    tasks = f"{project}/*" if project else "*"
    allow_objects(role, "ReadTasks", configuration, tasks, ["s3:GetObject"])
    # Without a condition on the prefix: whoever may not list gets 403 for what is missing, not 404.
    allow(role, "ListTasks", actions=["s3:ListBucket"], resources=[configuration.bucket_arn])


def _grant_keys(role: iam.Role, lakehouse: Lakehouse) -> None:
    allow(
        role,
        "UseKeys",
        actions=["kms:Decrypt", "kms:GenerateDataKey"],
        resources=_keys(lakehouse),
    )


def grant_hearing(role: iam.Role, lakehouse: Lakehouse) -> None:
    """Let `role` read what the nodes tell each other on the workload stream, if there is one.

    What they agree on is in the configuration bucket; without the stream they only agree later.
    """
    if lakehouse.stream:
        allow(
            role,
            "HearOthers",
            actions=["kinesis:GetRecords", "kinesis:GetShardIterator", "kinesis:ListShards"],
            resources=[lakehouse.stream.stream_arn],
        )


def grant_tables(role: iam.Role, lakehouse: Lakehouse, *, state: bool = False) -> None:
    """Let `role` read what landed and keep the tables of the databases of `lakehouse`, no others.

    With `state` also what outlasts a node: what was told, and the state of automations.

    A table lies in the folder of its database: `NAME/`, where a stage makes the database, and
    Iceberg's own `NAME.db/` below the warehouse of the target, where a database has no location.
    """
    landing, warehouse = lakehouse.landing, lakehouse.warehouse
    allow_objects(role, "ReadLanding", landing, "*", ["s3:GetObject"])
    allow(role, "ListLanding", actions=["s3:ListBucket"], resources=[landing.bucket_arn])
    allow(role, "ListTables", actions=["s3:ListBucket"], resources=[warehouse.bucket_arn])
    moved = f"{WAREHOUSE_PREFIX}.polynya/catalogs/*"
    allow_objects(role, "ReadMovedCatalogs", warehouse, moved, ["s3:GetObject"])
    if lakehouse.databases:
        folders = [
            folder
            for name in lakehouse.databases
            for folder in (f"{name}/*", f"{WAREHOUSE_PREFIX}{name}.db/*")
        ]
        allow_objects(role, "KeepTables", warehouse, folders, _WRITE)
        keep = (*LIST_TABLES, "glue:CreateTable", "glue:UpdateTable")
        allow_tables(role, "CatalogTables", lakehouse.databases, keep)
    if state:
        kept = [f"{WAREHOUSE_PREFIX}.polynya/{one}/*" for one in ("automations", "notifications")]
        allow_objects(role, "KeepState", warehouse, kept, _WRITE)


def grant_reading(role: Holder, lakehouse: Lakehouse) -> None:
    """Let `role` read the tables of the lakehouse, and nothing of landing or configuration."""
    warehouse = lakehouse.warehouse
    allow_objects(role, "ReadTables", warehouse, "*", ["s3:GetObject"])
    allow(role, "ListTables", actions=["s3:ListBucket"], resources=[warehouse.bucket_arn])
    key = warehouse.encryption_key or lakehouse.key
    allow(role, "UseKey", actions=["kms:Decrypt"], resources=[key.key_arn])
    if lakehouse.databases:
        allow_tables(role, "CatalogTables", lakehouse.databases, LIST_TABLES)


def _keys(lakehouse: Lakehouse) -> list[str]:
    buckets = (lakehouse.landing, lakehouse.configuration, lakehouse.warehouse)
    own = [bucket.encryption_key.key_arn for bucket in buckets if bucket.encryption_key]
    return list(dict.fromkeys([lakehouse.key.key_arn, *own]))
