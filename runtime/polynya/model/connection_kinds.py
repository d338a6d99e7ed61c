"""The kinds of connection: one entry of `CONNECTION_KINDS` for each `type`.

A task of `kind: landing` names its database by `connection` at the top. Every other connection is
named where its server would stand: `source: {kafka: {connection: events, topics: […]}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel

from polynya.model.config.connection import Connection, ConnectionType
from polynya.model.config.http_connection import (
    REFERENCES,
    SECRETS,
    HttpConnection,
    is_secret_header,
)
from polynya.model.config.server_connection import (
    DatabricksConnection,
    KafkaConnection,
    KinesisConnection,
    RedshiftConnection,
    RegistryConnection,
    S3Connection,
    SnowflakeConnection,
)
from polynya.model.config.stream_landing import holds_secrets, is_secret
from polynya.model.documents.problems import Problem
from polynya.model.documents.yaml import NodePath
from polynya.model.http_checks import api_problems
from polynya.model.mirror_checks import (
    databricks_problems,
    redshift_problems,
    snowflake_problems,
)
from polynya.model.stream_checks import connection_problems, kafka_problems

#: How a setting holds a secret: it is nothing else, has one at known places among other words, or
#: has one somewhere.
Secrecy: TypeAlias = Literal["whole", "in words", "in part"]
#: A path of keys; `*` stands for any key.
KeyPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConnectionKind:
    """What the loader has to know of one kind of connection.

    Args:
        model: model of the file.
        address: keys that say where the server is; what a login must not be parted from.
        references: keys in which references are read at their use.
        secrecy: how a setting holds a secret, by its path; None for one that does not.
        problems: what is wrong with a connection by itself.
        slot: key of a task that may name the connection instead of its settings, such as `kafka`
            in `source`; None where a task always names one, as a capture does its database.
        inside: key of the slot that takes the settings; None for the slot itself.
        merged: keys whose mappings a stronger layer adds to, instead of replacing them.
        servers: addresses of a connection, `HOST:PORT` or a URL; None where `polynya connection
            test` knows more to check, as for databases.
    """

    model: type[BaseModel]
    address: tuple[str, ...]
    references: tuple[KeyPath, ...] = ()
    secrecy: Callable[[NodePath], Secrecy | None] = lambda _: None
    problems: Callable[[Any], Iterable[Problem]] = lambda _: ()
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


def _password(path: NodePath) -> Secrecy | None:
    return "whole" if path == ("password",) else None


_SNOWFLAKE_LOGIN: Final = (("user",), ("password",), ("private_key",), ("token",))


def _login_secret(path: NodePath) -> Secrecy | None:
    return "whole" if path != ("user",) and path in _SNOWFLAKE_LOGIN else None


_DATABRICKS_LOGIN: Final = (("token",), ("client_id",), ("client_secret",))


def _databricks_secret(path: NodePath) -> Secrecy | None:
    return "whole" if path != ("client_id",) and path in _DATABRICKS_LOGIN else None


def _data_api(connection: RedshiftConnection) -> tuple[str, ...]:
    if connection.endpoint is not None:
        return (connection.endpoint,)
    region = connection.region
    return (f"https://redshift-data.{region}.amazonaws.com",) if region is not None else ()


def _store_secret(path: NodePath) -> Secrecy | None:
    return "whole" if path == ("secret_access_key",) else None


def _property_secret(path: NodePath) -> Secrecy | None:
    if len(path) != 2 or path[0] != "properties":
        return None
    name = str(path[1])
    return "in words" if holds_secrets(name) else "whole" if is_secret(name) else None


_OF_LOGINS: Final = frozenset(name for names in SECRETS.values() for name in names)


def _api_secret(path: NodePath) -> Secrecy | None:
    if len(path) != 2:
        return None
    is_one = path[0] == "auth" and path[1] in _OF_LOGINS
    return (
        "in part" if is_one or (path[0] == "headers" and is_secret_header(str(path[1]))) else None
    )


_DATABASE: Final = ConnectionKind(
    Connection, ("host",), _LOGIN, _password, problems=connection_problems
)
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
        secrecy=_property_secret,
        problems=lambda connection: kafka_problems(connection, ()),
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
        references=_S3_KEYS,
        secrecy=_store_secret,
        slot="files",
        inside="store",
        servers=lambda connection: (connection.endpoint,),
    ),
    "http": ConnectionKind(
        HttpConnection,
        ("url",),
        references=(("headers", "*"), *(("auth", name) for name in sorted(REFERENCES))),
        secrecy=_api_secret,
        problems=api_problems,
    ),
    "snowflake": ConnectionKind(
        SnowflakeConnection,
        ("account", "url"),
        _SNOWFLAKE_LOGIN,
        _login_secret,
        problems=snowflake_problems,
        servers=lambda connection: (connection.address,),
    ),
    "redshift": ConnectionKind(
        RedshiftConnection,
        ("workgroup", "cluster", "region", "endpoint"),
        problems=redshift_problems,
        servers=_data_api,
    ),
    "databricks": ConnectionKind(
        DatabricksConnection,
        ("url",),
        _DATABRICKS_LOGIN,
        _databricks_secret,
        problems=databricks_problems,
        servers=lambda connection: (connection.url,),
    ),
    "schema_registry": ConnectionKind(
        RegistryConnection,
        ("url",),
        _LOGIN,
        _password,
        slot="schema_registry",
        servers=lambda connection: (connection.url,),
    ),
}

#: The models of all files, for schemas and reference pages.
CONNECTION_MODELS: Final = tuple(dict.fromkeys(kind.model for kind in CONNECTION_KINDS.values()))
#: Where a reference that is read at its use may stand in a connection of any kind.
ALL_REFERENCES: Final = tuple(
    dict.fromkeys(pattern for kind in CONNECTION_KINDS.values() for pattern in kind.references)
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
