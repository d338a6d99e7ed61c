"""`streams` and `captures` of a cluster: sources, folders they land in, how they are reached."""

from __future__ import annotations

from typing import Annotated, Any, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from polynya.model.config.fields import Frozen
from polynya.model.names import shown
from polynya_constructs.patterns import MANAGED_ENTRY, MSK_CLUSTER, SECURITY_GROUP, STREAM, TOPIC
from stacks.settings.fields import BucketName, KeyArn, LandingFolder, Region, matching, refuse
from stacks.settings.streams.networks import reachable_network

KinesisName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(STREAM, "the name of a Kinesis stream: 1 to 128 of a-z A-Z 0-9 _ . -, % for any")
    ),
]
TopicName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(TOPIC, "the name of a topic: 1 to 249 of a-z A-Z 0-9 . _ -, % for any text")
    ),
]
GroupName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(TOPIC, "the name of a consumer group: a-z A-Z 0-9 . _ -, % for any text")
    ),
]
MskClusterArn: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            MSK_CLUSTER, "the ARN of an MSK cluster: arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID"
        )
    ),
]
SecretName: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(
            MANAGED_ENTRY,
            "a secret: its name, or arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-123abc",
        )
    ),
]
SecurityGroupId: TypeAlias = Annotated[
    str,
    AfterValidator(
        matching(SECURITY_GROUP, "a security group such as sg-0a1b2c3d4e5f60718"),
    ),
]


def _prefix(text: str) -> str:
    if text.startswith("/") or text.endswith("/") or any(one in text for one in "*?$\n"):
        raise refuse(f"{shown(text)} is not a prefix such as exports or partner/exports")
    return text


def named(value: Any) -> Any:
    """A name alone is short for `{name: …}`."""
    return {"name": value} if isinstance(value, str) else value


class KinesisSourceSettings(Frozen):
    """A Kinesis stream that nodes read."""

    name: KinesisName = Field(
        description="Its name in the account of the stage; `%` stands for any text."
    )
    region: Region | None = Field(default=None, description="Default: that of the stage.")
    key_arn: KeyArn | None = Field(
        default=None, description="The KMS key that encrypts it; none for that of AWS."
    )


class MskSettings(Frozen):
    """Topics of an MSK cluster whose brokers ask IAM."""

    cluster_arn: MskClusterArn = Field(description="ARN of the cluster.")
    topics: tuple[TopicName, ...] = Field(
        min_length=1, description="Topics that nodes read; `%` stands for any text."
    )
    groups: tuple[GroupName, ...] = Field(
        default=(),
        description="Consumer groups that nodes may describe and join; they join none. Default: "
        "none.",
    )


class SourceBucketSettings(Frozen):
    """A bucket of others from which nodes read files."""

    name: BucketName = Field(description="Its name.")
    prefix: Annotated[str, AfterValidator(_prefix)] = Field(
        default="",
        max_length=512,
        description="Only what lies below is read and listed. Default: the whole bucket.",
    )
    delete: bool = Field(
        default=False,
        strict=True,
        description="Whether nodes may delete files there, for `delete_after_load`.",
    )
    key_arn: KeyArn | None = Field(
        default=None, description="The KMS key that encrypts it; none for SSE-S3."
    )


class SecretSettings(Frozen):
    """An entry of Secrets Manager that tasks name as `${secret:NAME}`."""

    name: SecretName = Field(description="Its name, or its ARN.")
    key_arn: KeyArn | None = Field(
        default=None, description="The KMS key that encrypts it; none for that of AWS."
    )


class BrokerSettings(Frozen):
    """Where nodes may open connections, beside TLS to port 443."""

    security_group: SecurityGroupId | None = Field(
        default=None, description="The security group of the brokers."
    )
    cidr: Annotated[str, AfterValidator(reachable_network)] | None = Field(
        default=None, description="Or their IPv4 network."
    )
    port: int = Field(ge=1, le=65_535, strict=True, description="9098 for MSK with IAM.")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.security_group is None) == (self.cidr is None):
            raise refuse("name either `security_group` or `cidr`")
        return self


class StreamSourceSettings(Frozen):
    """What the nodes of a cluster may do for streams; nothing is granted that is not named."""

    folders: tuple[LandingFolder, ...] = Field(
        default=(),
        description="Folders of the landing bucket in which its landings land: the `folder` of "
        "each, by default the name of the task.",
    )
    kinesis: tuple[Annotated[KinesisSourceSettings, BeforeValidator(named)], ...] = Field(
        default=(), description="Kinesis streams that they read; a name is short for `{name: …}`."
    )
    msk: tuple[MskSettings, ...] = Field(
        default=(), description="Topics of MSK that they read as IAM lets them."
    )
    buckets: tuple[SourceBucketSettings, ...] = Field(
        default=(), description="Buckets from which they read files."
    )
    secrets: tuple[Annotated[SecretSettings, BeforeValidator(named)], ...] = Field(
        default=(), description="Secrets that they read; a name is short for `{name: …}`."
    )
    brokers: tuple[BrokerSettings, ...] = Field(
        default=(), description="Brokers and registries to which they may connect."
    )


class DatabaseSettings(BrokerSettings):
    """A database to which nodes may open connections, beside TLS to port 443."""

    security_group: SecurityGroupId | None = Field(
        default=None, description="The security group of the database."
    )
    port: int = Field(ge=1, le=65_535, strict=True, description="Such as 5432 or 3306.")


class CaptureSourceSettings(Frozen):
    """What the nodes of a cluster may do to capture databases; nothing is granted beside it."""

    folders: tuple[LandingFolder, ...] = Field(
        default=(),
        description="Folders of the landing bucket in which its captures land: the `folder` of "
        "each, by default the name of the task.",
    )
    secrets: tuple[Annotated[SecretSettings, BeforeValidator(named)], ...] = Field(
        default=(),
        description="Secrets that its connections name as `${secret:NAME#FIELD}`; a name is short "
        "for `{name: …}`.",
    )
    databases: tuple[DatabaseSettings, ...] = Field(
        default=(), description="Databases to which they may connect."
    )

    @property
    def as_streams(self) -> StreamSourceSettings:
        """The same, as nodes that read streams are given it."""
        return StreamSourceSettings(
            folders=self.folders, secrets=self.secrets, brokers=self.databases
        )
