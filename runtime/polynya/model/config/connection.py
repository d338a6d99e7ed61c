"""A connection to a database as written in `connections/*.yml`."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Frozen, Name
from polynya.model.config.masks import SecretSetting
from polynya.model.names import shown

ConnectionType: TypeAlias = Literal[
    "postgresql", "mysql", "mariadb", "sqlserver", "oracle", "db2", "mongodb"
]
TlsMode: TypeAlias = Literal["verify", "require", "disable"]

_PORTS: Final[Mapping[ConnectionType, int]] = {
    "postgresql": 5432,
    "mysql": 3306,
    "mariadb": 3306,
    "sqlserver": 1433,
    "oracle": 1521,
    "db2": 50000,
    "mongodb": 27017,
}
#: Types that Debezium alone loads and follows.
GENERIC: Final[frozenset[ConnectionType]] = frozenset({"sqlserver", "oracle", "db2", "mongodb"})


def _host(text: str) -> str:
    if not text.isprintable() or any(sign in text for sign in " /@?#,;"):
        raise PydanticCustomError(
            "polynya_value",
            "{message}",
            {
                "message": f"{shown(text)} is not the name or the address of a host",
                "fix": "write for example `db.example.com`; the port has a key of its own",
            },
        )
    return text


Host: TypeAlias = Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_host)]
Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=255)]


class ProjectFile(str):
    """The absolute place of a file that came with the project."""

    __slots__ = ()


class Tls(Frozen):
    """Encryption of the way to the database."""

    mode: TlsMode = Field(
        default="verify",
        description="`verify`: encrypted, and certificate and host are verified. `require`: "
        "encrypted, without verifying the server. `disable`: plain text, on this "
        "machine only. Default: `verify`.",
    )
    allow_unverified: bool = Field(
        default=False,
        description="Allow `require` for a database on another machine. Default: false.",
    )
    ca: str | None = Field(
        default=None,
        min_length=1,
        description="File with the certificates of the trusted authorities: a `.pem` in "
        "`connections/`, which belongs to the project, or a file below the machine's "
        "folder of secrets: `/etc/polynya/secrets`, or the folder in "
        "`POLYNYA_SECRETS`. Default: the authorities that this machine trusts.",
    )


class EngineSettings(Frozen):
    """What Debezium needs for a database that has no code of its own here."""

    jars: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=(),
        description="Jars, or folders of jars, with Debezium's connector and the driver of the "
        "database, below the machine's folder of connectors: "
        "`/opt/polynya/connectors`, or the folder in `POLYNYA_CONNECTORS`. Default: "
        "none.",
    )
    properties: dict[str, str] = Field(
        default_factory=dict,
        description="More settings of the connector for snapshots, batches, TLS and timeouts. "
        "Settings that name a class, and secrets, are refused. Default: none.",
    )


class ConnectionOverride(Frozen):
    """What is different in one target."""

    host: Host | None = Field(default=None, description="See Connection.")
    port: Port | None = Field(default=None, description="See Connection.")
    database: Text | None = Field(default=None, description="See Connection.")
    user: Text | None = Field(default=None, description="See Connection.")
    password: SecretSetting | None = Field(default=None, description="See Connection.")
    tls: Tls | None = Field(default=None, description="See Connection; replaces all of `tls`.")


class Connection(Frozen):
    """How a database is reached. The name of the file is the name of the connection."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        default="polynya/v1", description="Version of this file's format. Default: `polynya/v1`."
    )
    kind: Literal["connection"] = Field(
        default="connection", description="Kind of the file. Default: `connection`."
    )
    type: ConnectionType = Field(description="Type of the database.")
    host: Host = Field(description="Host of the server: a name or an address.")
    port: Port | None = Field(
        default=None,
        description="Port of the server. Default: the usual port of the type, such as 5432 or "
        "3306.",
    )
    database: Text | None = Field(
        default=None,
        description="Database to connect to. PostgreSQL captures the tables of this database; "
        "MySQL and MariaDB need it only if the user may connect to no other.",
    )
    user: Text = Field(
        description="User that logs in; may be `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME#FIELD}`."
    )
    password: SecretSetting | None = Field(
        default=None,
        description="The password: `{env: NAME}`, read when the capture starts, `${env:NAME}`, "
        "`${file:PATH}` or `${secret:NAME#FIELD}`; never in the file. Default: none.",
    )
    tls: Tls = Field(default_factory=Tls, description="How the connection is secured.")
    engine: EngineSettings = Field(
        default_factory=EngineSettings,
        description="For `sqlserver`, `oracle`, `db2` and `mongodb` only.",
    )
    targets: dict[Name, ConnectionOverride] = Field(
        default_factory=dict,
        description="Overrides for a target of the project, by its name.",
    )

    @property
    def port_number(self) -> int:
        """The port, that of the type where none is set."""
        return self.port or _PORTS[self.type]

    def in_target(self, target: str) -> Connection:
        """The connection as a target has it."""
        there = self.targets.get(target)
        if there is None:
            return self.model_copy(update={"targets": {}})
        written = {name: getattr(there, name) for name in there.model_fields_set}
        different = {name: value for name, value in written.items() if value is not None}
        return self.model_copy(update={**different, "targets": {}})


def is_this_machine(host: str) -> bool:
    """Whether a host is the loopback of this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
