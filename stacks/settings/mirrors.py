"""`mirrors` of a cluster in a stage file: what its nodes may use to keep mirrors."""

from __future__ import annotations

from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from polynya.model.config.fields import Frozen
from polynya_constructs.patterns import REDSHIFT_CLUSTER, REDSHIFT_DATABASE, REDSHIFT_WORKGROUP
from stacks.settings.fields import matching, refuse
from stacks.settings.streams.settings import SecretSettings, named

WorkgroupArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            REDSHIFT_WORKGROUP,
            "the ARN of a workgroup: arn:aws:redshift-serverless:REGION:ACCOUNT:workgroup/ID",
        )
    ),
]
ClusterIdentifier: TypeAlias = Annotated[
    str, AfterValidator(matching(REDSHIFT_CLUSTER, "a Redshift cluster: 1 to 63 of a-z 0-9 -"))
]
RedshiftDatabase: TypeAlias = Annotated[
    str, AfterValidator(matching(REDSHIFT_DATABASE, "a database of Redshift: a-z 0-9 _ $"))
]


class RedshiftTargetSettings(Frozen):
    """A workgroup of Redshift Serverless, or a database of a provisioned cluster."""

    workgroup_arn: WorkgroupArn | None = Field(
        default=None,
        description="ARN of the workgroup, such as the output `RedshiftWorkgroupArn`.",
    )
    cluster: ClusterIdentifier | None = Field(
        default=None, description="Or the identifier of a cluster of the account and region."
    )
    database: RedshiftDatabase | None = Field(
        default=None, description="Database of that cluster in which the views are."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.workgroup_arn is None) == (self.cluster is None):
            raise refuse("name either `workgroup_arn` or `cluster`")
        if (self.cluster is None) != (self.database is None):
            raise refuse("`cluster` and `database` belong together")
        return self


class MirrorTargetSettings(Frozen):
    """What the nodes of a cluster may do for mirrors; nothing is granted that is not named."""

    secrets: tuple[Annotated[SecretSettings, BeforeValidator(named)], ...] = Field(
        default=(),
        description="Secrets of the connections to Snowflake and Databricks; a name is short for "
        "`{name: …}`.",
    )
    redshift: tuple[RedshiftTargetSettings, ...] = Field(
        default=(), description="Where they run statements by the Redshift Data API."
    )
