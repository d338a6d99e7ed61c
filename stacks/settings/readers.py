"""Readers of a stage: engines outside of the account, and grants of Lake Formation."""

from __future__ import annotations

from typing import Annotated, Any, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from polynya.model.config.fields import Frozen
from polynya_constructs.patterns import DATABRICKS_ACCOUNT, EXTERNAL_ID, TABLE
from stacks.settings.fields import DatabaseName, PrincipalArn, matching, refuse

ExternalId: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(EXTERNAL_ID, "an external id: 8 to 1224 of a-z A-Z 0-9 _ + = , . @ : / -")
    ),
]
DatabricksAccount: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(DATABRICKS_ACCOUNT, "the id of a Databricks account, which its credentials show")
    ),
]
TableName: TypeAlias = Annotated[
    str, AfterValidator(matching(TABLE, "a table of the Glue catalog: 1 to 255 of a-z 0-9 _"))
]
ColumnName: TypeAlias = Annotated[
    str, AfterValidator(matching(r"[^\s\"'`;,]{1,255}", "the name of a column"))
]
TagName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(r"[a-z0-9_+=./-]{1,50}", "a tag or value: 1 to 50 of a-z 0-9 _ + = . / -")
    ),
]


class OutsideTrustSettings(Frozen):
    """The user by which Snowflake takes a role, as it tells when the object exists."""

    user_arn: PrincipalArn = Field(description="ARN of Snowflake's IAM user.")
    external_id: ExternalId = Field(description="The external id that it says with it.")


class SnowflakeSettings(Frozen):
    """The roles of Snowflake's external volume and catalog integration; both only read."""

    databases: tuple[DatabaseName, ...] | None = Field(
        default=None,
        description="Databases of the stage whose tables it may read, internal ones with them. "
        "Default: all.",
    )
    catalog_linked: bool = Field(
        default=False,
        description="Whether the integration is of a catalog-linked database, which lists the "
        "databases of Glue by Iceberg REST.",
    )
    volume: OutsideTrustSettings | None = Field(
        default=None,
        description="Who takes the role of the volume; default: nobody, until the volume exists.",
    )
    catalog: OutsideTrustSettings | None = Field(
        default=None,
        description="Who takes the role of the integration; default: nobody, until it exists.",
    )


class DatabricksSettings(Frozen):
    """The roles of Databricks' storage credential and service credential; both only read."""

    databases: tuple[DatabaseName, ...] | None = Field(
        default=None,
        description="Databases of the stage whose tables it may read, internal ones with them. "
        "Default: all.",
    )
    external_id: DatabricksAccount | None = Field(
        default=None,
        description="External id of the credentials, the id of the Databricks account; default: "
        "nobody takes the roles, until the credentials exist.",
    )
    principal_arn: PrincipalArn | None = Field(
        default=None,
        description="The role of Unity Catalog; default: that of Databricks on AWS outside of "
        "GovCloud.",
    )


class LakeGrantSettings(Frozen):
    """What one user or role is granted: always DESCRIBE and SELECT, and nothing else."""

    reader: PrincipalArn = Field(description="The user or role.")
    database: DatabaseName | None = Field(
        default=None, description="A database of the stage, or its internal one."
    )
    table: TableName | None = Field(
        default=None,
        description="Only this table of it, which has to be there when the grant is deployed.",
    )
    columns: tuple[ColumnName, ...] = Field(
        default=(), description="Only these columns of the table; default: all."
    )
    rows: str | None = Field(
        default=None,
        min_length=1,
        max_length=2048,
        description="Only rows of the table for which this condition holds, in PartiQL.",
    )
    tags: dict[TagName, tuple[TagName, ...]] | None = Field(
        default=None, description="In place of a database: values of each tag that it reads."
    )

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if (self.database is None) == (not self.tags):
            raise refuse("name either `database` or `tags`")
        if self.table is None and (self.columns or self.rows):
            raise refuse("`columns` and `rows` are those of a `table`; name it")
        if self.tags and self.table:
            raise refuse("`tags` stand alone; remove `table`")
        return self

    def as_arguments(self) -> dict[str, Any]:
        """The arguments of the construct's grant."""
        return self.model_dump()
