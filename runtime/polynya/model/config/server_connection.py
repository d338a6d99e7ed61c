"""Connections to servers other than databases as written in `connections/*.yml`."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from pydantic import Field, SecretStr

from polynya.model.config.aws import Endpoint, S3Store
from polynya.model.config.fields import Frozen, Name
from polynya.model.config.settings import RegistryServer, Url
from polynya.model.config.stream_landing import (
    KafkaServer,
    KinesisServer,
    PropertyValue,
)

_TARGETS: Final = "Overrides for a target of the project, by its name."
_SEE: Final = "See the connection."
_REDSHIFT_NAME: Final = r"^[a-z0-9-]{1,64}$"
_ENTRY_ARN: Final = (
    r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+$"
)


class _Headed(Frozen):
    """The first keys of every connection."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        default="polynya/v1", description="Version of this file's format. Default: `polynya/v1`."
    )
    kind: Literal["connection"] = Field(
        default="connection", description="Kind of the file. Default: `connection`."
    )


class KafkaOverride(Frozen):
    """What is different in one target."""

    bootstrap_servers: str | None = Field(default=None, min_length=1, description=_SEE)
    allow_unencrypted: bool | None = Field(default=None, description=_SEE)
    properties: dict[str, PropertyValue] | None = Field(
        default=None, description="Properties that are added, or replace those of the same name."
    )


class KafkaConnection(_Headed, KafkaServer):
    """How an Apache Kafka cluster is reached. The name of the file is that of the connection."""

    type: Literal["kafka"] = Field(description="`kafka`.")
    targets: dict[Name, KafkaOverride] = Field(default_factory=dict, description=_TARGETS)


class KinesisOverride(Frozen):
    """What is different in one target."""

    region: str | None = Field(default=None, min_length=1, description=_SEE)
    endpoint: str | None = Field(default=None, min_length=1, description=_SEE)


class KinesisConnection(_Headed, KinesisServer):
    """How Kinesis is reached. The name of the file is the name of the connection."""

    type: Literal["kinesis"] = Field(description="`kinesis`.")
    targets: dict[Name, KinesisOverride] = Field(default_factory=dict, description=_TARGETS)


class S3Override(Frozen):
    """What is different in one target."""

    endpoint: Endpoint | None = Field(default=None, description=_SEE)
    region: str | None = Field(default=None, min_length=1, max_length=64, description=_SEE)
    allow_remote_endpoint: bool | None = Field(default=None, description=_SEE)
    access_key_id: str | None = Field(default=None, min_length=1, max_length=255, description=_SEE)
    secret_access_key: SecretStr | None = Field(default=None, description=_SEE)


class S3Connection(_Headed, S3Store):
    """How an S3-compatible store is reached. The name of the file is that of the connection."""

    type: Literal["s3"] = Field(description="`s3`.")
    targets: dict[Name, S3Override] = Field(default_factory=dict, description=_TARGETS)


class RegistryOverride(Frozen):
    """What is different in one target."""

    url: Url | None = Field(default=None, description=_SEE)
    allow_unencrypted: bool | None = Field(default=None, description=_SEE)
    user: str | None = Field(default=None, min_length=1, description=_SEE)
    password: SecretStr | None = Field(default=None, description=_SEE)


class RegistryConnection(_Headed, RegistryServer):
    """How a schema registry is reached. The name of the file is the name of the connection."""

    type: Literal["schema_registry"] = Field(description="`schema_registry`.")
    targets: dict[Name, RegistryOverride] = Field(default_factory=dict, description=_TARGETS)


class SnowflakeOverride(Frozen):
    """What is different in one target."""

    account: str | None = Field(default=None, min_length=1, max_length=255, description=_SEE)
    url: Url | None = Field(default=None, description=_SEE)
    user: SecretStr | None = Field(default=None, description=_SEE)
    role: str | None = Field(default=None, min_length=1, max_length=255, description=_SEE)
    password: SecretStr | None = Field(default=None, description=_SEE)
    private_key: SecretStr | None = Field(default=None, description=_SEE)
    token: SecretStr | None = Field(default=None, description=_SEE)


class SnowflakeConnection(_Headed):
    """How a Snowflake account is reached. The name of the file is the name of the connection."""

    type: Literal["snowflake"] = Field(description="`snowflake`.")
    account: str = Field(
        min_length=1,
        max_length=255,
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="Identifier of the account, such as `MYORG-MYACCOUNT`.",
    )
    url: Url | None = Field(
        default=None,
        description="Address of the account where it has another one, such as that of a private "
        "link. Plain `http` only to this machine. Default: "
        "`https://ACCOUNT.snowflakecomputing.com`.",
    )
    user: SecretStr = Field(
        description="User that logs in; may be `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME#FIELD}`."
    )
    role: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="Role of the session. Default: that of the user.",
    )
    password: SecretStr | None = Field(
        default=None, description="The password: a reference like `private_key`. Default: none."
    )
    private_key: SecretStr | None = Field(
        default=None,
        description="The private key in PEM, without a passphrase: `${env:NAME}`, `${file:PATH}` "
        "or `${secret:NAME#FIELD}`, never in the file. Default: none.",
    )
    token: SecretStr | None = Field(
        default=None,
        description="A programmatic access token: a reference like `private_key`. Default: none.",
    )
    targets: dict[Name, SnowflakeOverride] = Field(default_factory=dict, description=_TARGETS)

    @property
    def address(self) -> str:
        """The URL of the account."""
        return self.url or f"https://{self.account}.snowflakecomputing.com"


class RedshiftOverride(Frozen):
    """What is different in one target."""

    workgroup: str | None = Field(default=None, pattern=_REDSHIFT_NAME, description=_SEE)
    cluster: str | None = Field(default=None, pattern=_REDSHIFT_NAME, description=_SEE)
    user: str | None = Field(default=None, min_length=1, max_length=255, description=_SEE)
    secret_arn: str | None = Field(default=None, pattern=_ENTRY_ARN, description=_SEE)
    region: str | None = Field(default=None, min_length=1, max_length=64, description=_SEE)
    endpoint: Url | None = Field(default=None, description=_SEE)


class RedshiftConnection(_Headed):
    """How Redshift is reached, by its Data API with the AWS identity of the process.

    The name of the file is the name of the connection.
    """

    type: Literal["redshift"] = Field(description="`redshift`.")
    workgroup: str | None = Field(
        default=None,
        pattern=_REDSHIFT_NAME,
        description="Name of a workgroup of Redshift Serverless.",
    )
    cluster: str | None = Field(
        default=None,
        pattern=_REDSHIFT_NAME,
        description="Or the identifier of a provisioned cluster.",
    )
    user: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="Database user of a cluster, which needs `redshift:GetClusterCredentials`. "
        "Default: the user that is called as the AWS identity, such as `IAMR:ROLE`.",
    )
    secret_arn: str | None = Field(
        default=None,
        pattern=_ENTRY_ARN,
        description="ARN of the entry of Secrets Manager with the login of a database user. "
        "Redshift reads it; Polynya does not. Default: the user of the AWS identity.",
    )
    region: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Region of Redshift. Default: `aws.region` of the target.",
    )
    endpoint: Url | None = Field(
        default=None,
        description="Another address of the Data API, such as an interface endpoint of a VPC. "
        "Plain `http` only to this machine.",
    )
    targets: dict[Name, RedshiftOverride] = Field(default_factory=dict, description=_TARGETS)


class DatabricksOverride(Frozen):
    """What is different in one target."""

    url: Url | None = Field(default=None, description=_SEE)
    token: SecretStr | None = Field(default=None, description=_SEE)
    client_id: SecretStr | None = Field(default=None, description=_SEE)
    client_secret: SecretStr | None = Field(default=None, description=_SEE)


class DatabricksConnection(_Headed):
    """How a Databricks workspace is reached. The name of the file is that of the connection."""

    type: Literal["databricks"] = Field(description="`databricks`.")
    url: Url = Field(
        description="Address of the workspace, such as `https://dbc-1a2b3c4d.cloud.databricks.com`."
        " Plain `http` only to this machine."
    )
    token: SecretStr | None = Field(
        default=None,
        description="An access token: `${env:NAME}`, `${file:PATH}` or `${secret:NAME#FIELD}`, "
        "never in the file. Default: none.",
    )
    client_id: SecretStr | None = Field(
        default=None,
        description="Application id of a service principal, which logs in by OAuth; may be a "
        "reference. Default: none.",
    )
    client_secret: SecretStr | None = Field(
        default=None,
        description="OAuth secret of the service principal: a reference like `token`. "
        "Default: none.",
    )
    targets: dict[Name, DatabricksOverride] = Field(default_factory=dict, description=_TARGETS)


class AnyConnection(Protocol):
    """What every kind of connection has."""

    @property
    def type(self) -> str:
        """Type as it is written in the file."""
        ...
