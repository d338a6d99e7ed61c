"""Snowflake on the lakehouse: the roles of its external volume and of its catalog integration."""

from __future__ import annotations

from typing import Final

from constructs import Construct

from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.query.outside_reader import OutsideTrust, outside_role
from polynya_constructs.query.read_only import deny_changes, grant_catalog, grant_files

# Snowflake, "Configure a catalog integration for AWS Glue" and "… for AWS Glue Iceberg REST".
_GLUE: Final = ("glue:GetTable", "glue:GetTables")
_GLUE_REST: Final = ("glue:GetCatalog", "glue:GetDatabase", "glue:GetDatabases", *_GLUE)


class SnowflakeAccess(Construct):
    """Two roles that only read: one the files of the tables, the other the Glue catalog.

    Snowflake tells its IAM user and the external ids when volume and integration exist, and these
    want the ARNs of the roles. So the roles are made first, trusting nobody, and a second
    deployment names whom they trust. A `DROP TABLE` in a catalog-linked database would drop our
    table; the roles forbid it.

    `volume_role` and `catalog_role` are the roles.

    Example:
        >>> SnowflakeAccess(stack, "Snowflake", name="shop", lakehouse=lakehouse)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        lakehouse: Lakehouse,
        volume_trust: OutsideTrust | None = None,
        catalog_trust: OutsideTrust | None = None,
        iceberg_rest: bool = False,
    ) -> None:
        """Create the roles.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: the roles are called `NAME-snowflake-volume` and `NAME-snowflake-catalog`.
            lakehouse: the tables of its databases can be read, no others.
            volume_trust: the user that `DESCRIBE EXTERNAL VOLUME` shows; default: nobody yet.
            catalog_trust: the user that `DESCRIBE CATALOG INTEGRATION` shows; default: nobody yet.
            iceberg_rest: whether the integration speaks Iceberg REST with Glue, as one of a
                catalog-linked database does, and lists databases.

        Raises:
            ValueError: when the lakehouse lists no database.
        """
        super().__init__(scope, id_)
        if not lakehouse.databases:
            raise ValueError("Snowflake needs a database to read, and the lakehouse lists none")
        self.volume_role = outside_role(
            self,
            "VolumeRole",
            name=f"{name}-snowflake-volume",
            description="Polynya: Snowflake's external volume, read only",
            trust=volume_trust,
        )
        grant_files(self.volume_role, lakehouse)
        self.catalog_role = outside_role(
            self,
            "CatalogRole",
            name=f"{name}-snowflake-catalog",
            description="Polynya: Snowflake's catalog integration, read only",
            trust=catalog_trust,
        )
        grant_catalog(self.catalog_role, lakehouse, _GLUE_REST if iceberg_rest else _GLUE)
        for role in (self.volume_role, self.catalog_role):
            deny_changes(role, lakehouse)
