"""Databricks on the lakehouse: the roles of its storage and of its service credential."""

from __future__ import annotations

import re
from typing import Final

from constructs import Construct

from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.patterns import DATABRICKS_ACCOUNT
from polynya_constructs.query.outside_reader import OutsideTrust, outside_role
from polynya_constructs.query.read_only import deny_changes, grant_catalog, grant_files

UNITY_CATALOG: Final = (
    "arn:aws:iam::414351767826:role/unity-catalog-prod-UCMasterRole-14S5ZJVKOTYTL"
)
"""By which Unity Catalog takes roles in the partition `aws` (Databricks, "Create a storage
credential"; `databricks_aws_unity_catalog_assume_role_policy` of its Terraform provider)."""

_GLUE: Final = ("glue:GetDatabase", "glue:GetDatabases", "glue:GetTable", "glue:GetTables")


class DatabricksAccess(Construct):
    """Two roles that only read: of a storage credential the files, of a service credential Glue.

    Databricks shows the external id when a credential exists, and a credential wants the ARN of its
    role: the roles are made first, trusting nobody. Each has to be able to take itself.

    `storage_role` and `catalog_role` are the roles.

    Example:
        >>> DatabricksAccess(stack, "Databricks", name="shop", lakehouse=lakehouse)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        lakehouse: Lakehouse,
        external_id: str | None = None,
        principal_arn: str = UNITY_CATALOG,
    ) -> None:
        """Create the roles.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: the roles are called `NAME-databricks-storage` and `NAME-databricks-catalog`.
            lakehouse: the tables of its databases can be read, no others.
            external_id: the id of the Databricks account, which is that of its credentials;
                default: none yet, and nobody is trusted.
            principal_arn: the role of Unity Catalog; default: that of the partition `aws`.

        Raises:
            ValueError: when the lakehouse lists no database, or the id is not a Databricks account.
        """
        super().__init__(scope, id_)
        if not lakehouse.databases:
            raise ValueError("Databricks needs a database to read, and the lakehouse lists none")
        trust = None
        if external_id is not None:
            if not re.fullmatch(DATABRICKS_ACCOUNT, external_id):
                raise ValueError(f"{external_id!r} is not the id of a Databricks account")
            trust = OutsideTrust(principal_arn=principal_arn, external_id=external_id)
        self.storage_role = outside_role(
            self,
            "StorageRole",
            name=f"{name}-databricks-storage",
            description="Polynya: Databricks' storage credential, read only",
            trust=trust,
            takes_itself=True,
        )
        grant_files(self.storage_role, lakehouse)
        self.catalog_role = outside_role(
            self,
            "CatalogRole",
            name=f"{name}-databricks-catalog",
            description="Polynya: Databricks' service credential for Glue, read only",
            trust=trust,
            takes_itself=True,
        )
        grant_catalog(self.catalog_role, lakehouse, _GLUE)
        for role in (self.storage_role, self.catalog_role):
            deny_changes(role, lakehouse)
