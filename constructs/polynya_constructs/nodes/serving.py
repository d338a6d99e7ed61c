"""Rights of the instance that serves the API and the console of a project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_iam as iam

from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.grants import LIST_TABLES, allow, allow_objects, allow_tables
from polynya_constructs.nodes.access import (
    WAREHOUSE_PREFIX,
    Lakehouse,
    grant_tables,
    grant_tasks,
)

_STATE: Final = f"{WAREHOUSE_PREFIX}.polynya/"
#: What the server keeps below the state of the target: tokens, sessions and the audit log, runs of
#: automations, notifications that were sent, operations.
_KEPT: Final = ("access", "automations", "notifications", "operations")
#: What people ask of a cluster, in its folder; the rest of the folder is its nodes'.
_REQUESTS: Final = ("commands/*", "drains/*", "freeze", "moves/*", "tasks/*", "wishes/*")
_ASKED: Final = "_asked"
"""Folder of a capture's landing folder with what people ask of it."""

_CHANGE: Final = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")


def grant_serving(
    role: iam.Role,
    lakehouse: Lakehouse,
    *,
    project: str,
    cluster: str | None = None,
    captures: Sequence[str] = (),
    tables: bool = False,
) -> None:
    """Let `role` show a project, edit its files, and ask its cluster and its captures.

    Args:
        role: of the instance.
        lakehouse: what it shows: its landing zone, and the tables of its databases.
        project: prefix of the project in the configuration bucket. Files change below `current/`,
            beside what is pushed.
        cluster: name of the group of the cluster that it asks; default: none.
        captures: folders of the landing bucket whose captures it asks.
        tables: whether it may also change the tables of the databases, as a node may.
    """
    configuration, landing, warehouse = (
        lakehouse.configuration,
        lakehouse.landing,
        lakehouse.warehouse,
    )
    grant_tasks(role, lakehouse, project=project)
    changed = ["s3:DeleteObject", "s3:PutObject"]
    allow_objects(role, "EditDocuments", configuration, f"{project}/current/*", changed)
    state = [f"{_STATE}{name}/*" for name in _KEPT]
    allow_objects(role, "KeepState", warehouse, state, _CHANGE)
    allow_objects(role, "ReadState", warehouse, f"{_STATE}*", ["s3:GetObject"])
    if tables:
        grant_tables(role, lakehouse)
    else:
        allow_objects(role, "ReadLanding", landing, "*", ["s3:GetObject"])
        allow(role, "ListLanding", actions=["s3:ListBucket"], resources=[landing.bucket_arn])
        allow(role, "ListTables", actions=["s3:ListBucket"], resources=[warehouse.bucket_arn])
        if lakehouse.databases:
            folders = [
                folder
                for name in lakehouse.databases
                for folder in (f"{name}/*", f"{WAREHOUSE_PREFIX}{name}.db/*")
            ]
            allow_objects(role, "ReadTables", warehouse, folders, ["s3:GetObject"])
            allow_tables(role, "CatalogTables", lakehouse.databases, LIST_TABLES)
    if cluster:
        folder = f"{COORDINATION_PREFIX}{cluster}/"
        allow_objects(role, "SeeCluster", configuration, f"{folder}*", ["s3:GetObject"])
        requests = [f"{folder}{what}" for what in _REQUESTS]
        allow_objects(role, "AskCluster", configuration, requests, changed)
    if captures:
        asked = [f"{name}/{_ASKED}/*" for name in captures]
        allow_objects(role, "AskCaptures", landing, asked, changed)
