"""Databases of the Glue Data Catalog. Their tables are made by the runtime, never by a stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_glue as glue
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.removal import KEPT

_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,127}")


class LakehouseCatalog(Construct):
    """One Glue database for each name; its tables lie in `NAME/` of the warehouse.

    `databases` maps names to databases.

    Example:
        >>> LakehouseCatalog(stack, "Catalog", warehouse=warehouse, databases=["shop"])
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        warehouse: s3.IBucket,
        databases: Sequence[str],
        removal_policy: cdk.RemovalPolicy = KEPT,
    ) -> None:
        """Create the databases.

        Args:
            scope: the parent.
            id_: unique below the parent. Renaming it replaces the databases.
            warehouse: the bucket of the Iceberg tables.
            databases: their names, unique in the account and region.
            removal_policy: what becomes of them with their stack; default: they are kept.

        Raises:
            ValueError: when a name is not 1 to 128 of a-z 0-9 _, no digit first.
        """
        super().__init__(scope, id_)
        self.databases: dict[str, glue.Database] = {}
        for name in databases:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot name a database: use a-z 0-9 _, no digit first")
            database = glue.Database(
                self,
                name,
                database_name=name,
                location_uri=warehouse.s3_url_for_object(f"{name}/"),
            )
            database.apply_removal_policy(removal_policy)
            self.databases[name] = database
