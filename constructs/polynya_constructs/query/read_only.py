"""Rights of engines that only read: files of named databases, their catalog, and no change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from polynya_constructs.grants import allow, allow_objects, allow_tables, deny
from polynya_constructs.nodes.access import WAREHOUSE_PREFIX, Lakehouse

_PREFIXES_AT_ONCE: Final = 40
"""Of a statement: with names of 50 characters it is well below the 6,144 of a managed policy."""

_CHANGE_FILES: Final = (
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:DeleteObjectVersion",
    "s3:PutObject",
    "s3:RestoreObject",
)
_CHANGE_CATALOG: Final = (
    "glue:BatchCreatePartition",
    "glue:BatchDeletePartition",
    "glue:BatchDeleteTable",
    "glue:BatchDeleteTableVersion",
    "glue:BatchUpdatePartition",
    "glue:CreateDatabase",
    "glue:CreatePartition",
    "glue:CreateTable",
    "glue:DeleteDatabase",
    "glue:DeletePartition",
    "glue:DeleteTable",
    "glue:DeleteTableVersion",
    "glue:UpdateDatabase",
    "glue:UpdatePartition",
    "glue:UpdateTable",
)


def grant_files(role: iam.Role, lakehouse: Lakehouse) -> None:
    """Let `role` list and read the files of the tables of these databases, and of no others.

    They lie where `grant_tables` writes them. Rows are decrypted through S3 only.
    """
    warehouse, stack = lakehouse.warehouse, cdk.Stack.of(role)
    folders = [
        folder
        for name in lakehouse.databases
        for folder in (f"{name}/*", f"{WAREHOUSE_PREFIX}{name}.db/*")
    ]
    allow_objects(role, "ReadTables", warehouse, folders, ["s3:GetObject", "s3:GetObjectVersion"])
    allow(role, "FindBucket", actions=["s3:GetBucketLocation"], resources=[warehouse.bucket_arn])
    for number, first in enumerate(range(0, len(folders), _PREFIXES_AT_ONCE)):
        allow(
            role,
            f"ListTables{number + 1}" if number else "ListTables",
            actions=["s3:ListBucket"],
            resources=[warehouse.bucket_arn],
            conditions={"StringLike": {"s3:prefix": folders[first : first + _PREFIXES_AT_ONCE]}},
        )
    key = warehouse.encryption_key or lakehouse.key
    allow(
        role,
        "UseKey",
        actions=["kms:Decrypt"],
        resources=[key.key_arn],
        conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}},
    )


def grant_catalog(role: iam.Role, lakehouse: Lakehouse, actions: Sequence[str]) -> None:
    """Let `role` do `actions`, which only read, to the tables of these databases."""
    allow_tables(role, "CatalogTables", lakehouse.databases, actions)


def deny_changes(role: iam.Role, lakehouse: Lakehouse) -> None:
    """Forbid `role` to change files of the warehouse and any table of the account's catalog.

    The rights above allow none of it. This keeps a `DROP TABLE` of an engine without effect even
    when someone attaches a wider policy to its role.
    """
    warehouse = lakehouse.warehouse
    deny(
        role,
        "ChangeNoFile",
        actions=_CHANGE_FILES,
        resources=[warehouse.arn_for_objects("*")],
    )
    stack = cdk.Stack.of(role)
    deny(
        role,
        "ChangeNoTable",
        actions=_CHANGE_CATALOG,
        resources=[
            stack.format_arn(
                service="glue", resource=name, arn_format=cdk.ArnFormat.NO_RESOURCE_NAME
            )
            for name in ("catalog", "database/*", "table/*/*")
        ],
    )
