"""The kinds of connection in `connections/*.yml`: one entry of `CONNECTION_KINDS` for each.

A task of `kind: landing` names its database by `connection` at the top. Every other connection is
named where its server would stand: `source: {kafka: {connection: events, topics: […]}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, get_args

from pydantic import BaseModel, Field, SecretStr

from polynya.model.config.aws import Endpoint, S3Store
from polynya.model.config.connection import Connection, ConnectionType
from polynya.model.config.fields import Frozen, Name
from polynya.model.config.settings import RegistryServer, Url
from polynya.model.config.stream_landing import (
    KafkaServer,
    KinesisServer,
    PropertyValue,
    holds_secrets,
    is_secret,
)

_TARGETS: Final = "Overrides for a target of the project, by its name."
_SEE: Final = "See the connection."


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


class AnyConnection(Protocol):
    """What every kind of connection has."""

    @property
    def type(self) -> str:
        """Type as it is written in the file."""
        ...


#: A path of keys; `*` stands for any key.
KeyPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConnectionKind:
    """What the loader has to know of one kind of connection.

    Args:
        model: model of the file.
        address: keys that say where the server is; what a login must not be parted from.
        secrets: keys that hold nothing but a secret, so always a reference.
        references: keys in which references are read at their use; `secrets` are among them.
        slot: key of a task that may name the connection instead of its settings, such as `kafka`
            in `source`; None for databases, which a capture names at the top.
        inside: key of the slot that takes the settings; None for the slot itself.
        merged: keys whose mappings a stronger layer adds to, instead of replacing them.
        servers: addresses of a connection, `HOST:PORT` or a URL; None for databases, which have a
            check of their own.
    """

    model: type[BaseModel]
    address: tuple[str, ...]
    secrets: tuple[KeyPath, ...] = ()
    references: tuple[KeyPath, ...] = ()
    slot: str | None = None
    inside: str | None = None
    merged: tuple[str, ...] = ()
    servers: Callable[[Any], tuple[str, ...]] | None = None


def _brokers(connection: KafkaConnection) -> tuple[str, ...]:
    servers = connection.bootstrap_servers.split(",")
    return tuple(server.strip() for server in servers if server.strip())


def _kinesis_endpoint(connection: KinesisConnection) -> tuple[str, ...]:
    if connection.endpoint is not None:
        return (connection.endpoint,)
    # Without a region it is that of the target, which `polynya doctor` checks.
    region = connection.region
    return (f"https://kinesis.{region}.amazonaws.com",) if region is not None else ()


_LOGIN: Final = (("user",), ("password",))
_DATABASE: Final = ConnectionKind(Connection, ("host",), (("password",),), _LOGIN)
_DATABASES: Final[tuple[ConnectionType, ...]] = (
    "postgresql", "mysql", "mariadb", "sqlserver", "oracle", "db2", "mongodb",
)  # fmt: skip
_S3_KEYS: Final = (("access_key_id",), ("secret_access_key",))

#: Every kind of connection by its `type`.
CONNECTION_KINDS: Final[Mapping[str, ConnectionKind]] = {
    **dict.fromkeys(_DATABASES, _DATABASE),
    "kafka": ConnectionKind(
        KafkaConnection,
        ("bootstrap_servers",),
        references=(("properties", "*"),),
        slot="kafka",
        merged=("properties",),
        servers=_brokers,
    ),
    "kinesis": ConnectionKind(
        KinesisConnection, ("endpoint", "region"), slot="kinesis", servers=_kinesis_endpoint
    ),
    "s3": ConnectionKind(
        S3Connection,
        ("endpoint",),
        secrets=(("secret_access_key",),),
        references=_S3_KEYS,
        slot="files",
        inside="store",
        servers=lambda connection: (connection.endpoint,),
    ),
    "schema_registry": ConnectionKind(
        RegistryConnection,
        ("url",),
        (("password",),),
        _LOGIN,
        slot="schema_registry",
        servers=lambda connection: (connection.url,),
    ),
}

#: The models of all files, for schemas and reference pages.
CONNECTION_MODELS: Final = tuple(dict.fromkeys(kind.model for kind in CONNECTION_KINDS.values()))
#: Where a reference that is read at its use may stand in a connection of any kind.
ALL_REFERENCES: Final = tuple(
    dict.fromkeys(
        pattern
        for kind in CONNECTION_KINDS.values()
        for pattern in (*kind.references, *kind.secrets)
    )
)
#: Keys of the file that are not settings of the server.
HEAD: Final = frozenset({"apiVersion", "kind", "type", "targets"})


def fits(path: tuple[str | int, ...], patterns: tuple[KeyPath, ...]) -> bool:
    """Whether a path is one of the patterns."""
    return any(
        len(path) == len(pattern)
        and all(want in ("*", part) for want, part in zip(pattern, path, strict=True))
        for pattern in patterns
    )


def override_of(kind: ConnectionKind) -> type[BaseModel]:
    """The model of what a target may override."""
    override: type[BaseModel] = get_args(kind.model.model_fields["targets"].annotation)[1]
    return override


def is_secret_key(kind: ConnectionKind, path: tuple[str | int, ...]) -> bool:
    """Whether a value of a connection is a secret, or holds one among other words."""
    if fits(path, kind.secrets):
        return True
    name = str(path[-1]) if path else ""
    is_property = kind.slot == "kafka" and len(path) == 2 and path[0] == "properties"
    return is_property and (is_secret(name) or holds_secrets(name))
