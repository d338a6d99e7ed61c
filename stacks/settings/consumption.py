"""`athena` and `consumption` of a stage file: by which engines the lakehouse is queried and fed."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from polynya.model.config.fields import Frozen
from stacks.settings.fields import (
    DatabaseName,
    EmrRelease,
    LandingFolder,
    PrincipalArn,
    QuickSightArn,
    StreamArn,
    StreamName,
)
from stacks.settings.readers import (
    DatabricksSettings,
    LakeGrantSettings,
    SnowflakeSettings,
    TagName,
)


class AthenaSettings(Frozen):
    """The Athena workgroup of a stage."""

    enabled: bool = Field(default=True, description="Whether there is one; it costs by query.")
    scan_limit_gb: int = Field(
        default=100, ge=1, le=100_000, description="A query that scans more is ended."
    )
    keep_results_days: int = Field(
        default=30, ge=1, le=3650, description="How long results can be fetched."
    )


class LakeFormationSettings(Frozen):
    """Lake Formation in hybrid mode."""

    admins: tuple[PrincipalArn, ...] = Field(
        default=(), description="Users or roles that administer the data lake."
    )
    readers: tuple[PrincipalArn, ...] = Field(
        default=(),
        description="Users or roles that are granted DESCRIBE and SELECT on all databases.",
    )
    grants: tuple[LakeGrantSettings, ...] = Field(
        default=(), description="Narrower grants: a database, a table, columns, rows, tags."
    )
    tags: dict[TagName, dict[TagName, tuple[DatabaseName, ...]]] = Field(
        default_factory=dict,
        description="Tags to make: for each, for each of its values, the databases that get it.",
    )


class RedshiftSettings(Frozen):
    """Redshift Serverless."""

    base_capacity: int = Field(
        default=8, description="Processing units that a query begins with, in steps of 8."
    )
    max_capacity: int = Field(
        default=32, description="At most so many: what bounds the price of an hour."
    )


class EmrServerlessSettings(Frozen):
    """An EMR Serverless application."""

    release: EmrRelease = Field(default="emr-7.10.0", description="Release of EMR.")
    max_vcpu: int = Field(
        default=32, ge=4, le=4000, description="Of all workers together, 4 GB of memory for each."
    )
    idle_minutes: int = Field(
        default=10, ge=1, le=10_080, description="Until an application without a job stops."
    )


ALARM_SECONDS: Final = 240
"""After which an alarm has seen a record: three minutes until the figure is there, and one more."""


class FirehoseSettings(Frozen):
    """A delivery stream into the landing bucket."""

    name: StreamName = Field(description="Its name, unique in the stage.")
    prefix: LandingFolder = Field(description="Folder of the landing bucket; a task reads it.")
    source_arn: StreamArn | None = Field(
        default=None, description="Read this Kinesis stream; default: producers put records."
    )
    buffer_seconds: int = Field(
        default=60, ge=0, le=900, description="How old the first record of a file may become."
    )
    buffer_mb: int = Field(
        default=64, ge=1, le=128, description="How large a file may become before it is packed."
    )


class QuickSightSettings(Frozen):
    """A QuickSight data source on the Athena workgroup."""

    owner: QuickSightArn = Field(description="ARN of the QuickSight user or group that owns it.")


class SageMakerSettings(Frozen):
    """The execution role of SageMaker notebooks; it has no settings."""


class ConsumptionSettings(Frozen):
    """Engines beside Athena; each is off unless it is named."""

    lake_formation: LakeFormationSettings | None = Field(
        default=None, description="Lake Formation in hybrid mode."
    )
    redshift: RedshiftSettings | None = Field(default=None, description="Redshift Serverless.")
    emr_serverless: EmrServerlessSettings | None = Field(
        default=None, description="An EMR Serverless application for Spark."
    )
    firehose: tuple[FirehoseSettings, ...] = Field(
        default=(), description="Delivery streams into the landing bucket."
    )
    quicksight: QuickSightSettings | None = Field(
        default=None, description="A QuickSight data source."
    )
    sagemaker: SageMakerSettings | None = Field(
        default=None, description="A role for SageMaker notebooks."
    )

    snowflake: SnowflakeSettings | None = Field(
        default=None, description="Roles by which Snowflake reads tables."
    )
    databricks: DatabricksSettings | None = Field(
        default=None, description="Roles by which Databricks reads tables."
    )

    @property
    def held_back(self) -> tuple[FirehoseSettings, ...]:
        """The delivery streams that hold records for longer than an alarm is late."""
        return tuple(each for each in self.firehose if each.buffer_seconds > ALARM_SECONDS)

    @property
    def any(self) -> bool:
        """Whether anything is named."""
        return any(getattr(self, name) not in {None, ()} for name in type(self).model_fields)
