"""The Iceberg catalog of a target, and how one behind Iceberg's REST protocol is reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, SecretStr

from polynya.model.config.aws import is_link_local
from polynya.model.config.connection import is_this_machine
from polynya.model.config.fields import Frozen
from polynya.model.names import shown

#: The settings of a catalog that only one of the type `rest` has.
REST_SETTINGS: Final = (
    "warehouse",
    "prefix",
    "credential",
    "token",
    "scope",
    "oauth2_server_uri",
    "vended_credentials",
    "sigv4",
    "allow_unencrypted",
)


class SigV4(Frozen):
    """Requests that are signed with the credentials of AWS."""

    name: str = Field(
        pattern=r"^[a-z0-9-]{1,40}$",
        description="Name of the service that the signature is for: `glue` or `s3tables`.",
    )
    region: str = Field(
        pattern=r"^[a-z0-9-]{1,40}$", description="Region of AWS that the signature is for."
    )


CatalogType: TypeAlias = Literal["jdbc", "glue", "rest"]


class Catalog(Frozen):
    """The Iceberg catalog of a target."""

    type: CatalogType = Field(
        default="jdbc",
        description="`jdbc`: an Iceberg JDBC catalog, on SQLite for one machine or on PostgreSQL. "
        "`glue`: the AWS Glue Data Catalog. `rest`: a server of Iceberg's REST protocol.",
    )
    uri: str | None = Field(
        default=None,
        min_length=1,
        description="JDBC address of an SQLite file, `jdbc:sqlite:FILE`, or of a PostgreSQL "
        "database, `jdbc:postgresql://HOST:PORT/DATABASE`, with `?sslmode=verify-full` over a "
        "network; with `type: rest` the address of the server, `https://HOST/PATH`. "
        "Default: `catalog.db` inside the warehouse.",
    )
    user: str | None = Field(
        default=None, min_length=1, description="User for PostgreSQL, as `${env:NAME}`."
    )
    password: SecretStr | None = Field(
        default=None,
        description="Password for PostgreSQL, always as `${env:NAME}`, never in the file.",
    )
    allow_unverified: bool = Field(
        default=False,
        description="Log in to PostgreSQL on another machine with an `sslmode` below "
        "`verify-full`. Default: false.",
    )
    id: str | None = Field(
        default=None,
        pattern=r"^\d{12}$",
        description="Account of a Glue catalog. Default: the account of the credentials.",
    )
    warehouse: str | None = Field(
        default=None,
        min_length=1,
        description="Name by which a REST catalog knows the warehouse. Default: the server's own.",
    )
    prefix: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._~%-]+(/[A-Za-z0-9._~%-]+)*$",
        description="Part of the paths of a REST catalog after `v1/`. Default: what the server "
        "says.",
    )
    credential: SecretStr | None = Field(
        default=None,
        description="OAuth2 client of a REST catalog, `ID:SECRET`, always as `${env:NAME}`, never "
        "in the file.",
    )
    token: SecretStr | None = Field(
        default=None,
        description="Bearer token for a REST catalog, always as `${env:NAME}`, never in the file.",
    )
    scope: str | None = Field(
        default=None,
        min_length=1,
        description="OAuth2 scope to ask for with `credential`. Default: `catalog`.",
    )
    oauth2_server_uri: str | None = Field(
        default=None,
        min_length=1,
        description="Address that gives tokens for `credential`, such as "
        "`https://HOST/PATH/v1/oauth/tokens`.",
    )
    vended_credentials: bool = Field(
        default=False,
        description="Read and write files in S3 with the credentials that a REST catalog gives "
        "for each table. Default: false, with those of this process.",
    )
    sigv4: SigV4 | None = Field(
        default=None,
        description="Sign requests to a REST catalog of AWS. Default: not signed.",
    )
    allow_unencrypted: bool = Field(
        default=False,
        description="Talk to a REST catalog on another machine without TLS. Default: false.",
    )
    properties: dict[str, str] = Field(
        default_factory=dict,
        description="More Iceberg catalog properties for caches, timeouts and the use of S3. "
        "Properties that name a class or a location are refused.",
    )


@dataclass(frozen=True, slots=True)
class RestAccess:
    """A REST catalog: `warehouse` and `prefix` are names that the catalog gave, None: none."""

    uri: str
    warehouse: str | None = None
    prefix: str | None = None
    credential: SecretStr | None = field(default=None, repr=False)
    token: SecretStr | None = field(default=None, repr=False)
    scope: str | None = None
    oauth2_server_uri: str | None = None
    vended_credentials: bool = False
    sigv4: SigV4 | None = None
    allow_unencrypted: bool = False

    @property
    def text(self) -> str:
        """Address and warehouse, as messages name it."""
        return self.uri if self.warehouse is None else f"{self.uri} ({self.warehouse})"


def rest_access(catalog: Catalog) -> RestAccess | None:
    """How the catalog of a target is reached, None for one of another type."""
    if catalog.type != "rest" or catalog.uri is None:
        return None
    values = {name: getattr(catalog, name) for name in REST_SETTINGS}
    return RestAccess(uri=catalog.uri.rstrip("/"), **values)


def rest_contradictions(catalog: Catalog, *, on_s3: bool) -> Iterator[tuple[str, str]]:
    """What does not go together in the catalog of a target, each with its fix."""
    if catalog.type != "rest":
        for name in REST_SETTINGS:
            if name in catalog.model_fields_set:
                yield f"`{name}` belongs to a REST catalog", "remove it, or write `type: rest`"
        return
    if catalog.uri is None:
        yield "a REST catalog has no address", "write `uri: https://HOST/PATH`"
        return
    yield from _address("uri", catalog.uri)
    if catalog.oauth2_server_uri is not None:
        yield from _address("oauth2_server_uri", catalog.oauth2_server_uri)
    logins = [name for name in ("credential", "token", "sigv4") if getattr(catalog, name)]
    if len(logins) > 1:
        yield f"the catalog has two logins: {' and '.join(logins)}", "keep one of them"
    if catalog.credential is None:
        for name in ("scope", "oauth2_server_uri"):
            if name in catalog.model_fields_set:
                yield f"`{name}` is for `credential`", "remove it, or add `credential`"
    if catalog.credential is not None and catalog.oauth2_server_uri is None:
        yield (
            "nothing says which server gives tokens for `credential`",
            "write `oauth2_server_uri: https://HOST/PATH`",
        )
    if not on_s3 and (catalog.vended_credentials or catalog.sigv4 is not None):
        name = "vended_credentials" if catalog.vended_credentials else "sigv4"
        yield f"`{name}` is for a warehouse on S3", "remove it, or write `warehouse: s3://…`"


def _address(name: str, uri: str) -> Iterator[tuple[str, str]]:
    try:
        parts = urlsplit(uri)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    fix = f"write `{name}: https://HOST/PATH`"
    if not whole:
        yield f"`{name}` is not an address: {shown(uri.rpartition('@')[2])}", fix
    elif parts.username is not None or parts.password is not None:
        yield f"`{name}` has a login in it", "use `credential` or `token`"
    elif parts.query or parts.fragment:
        yield f"`{name}` has a query", fix
    elif is_link_local(uri):
        yield f"`{name}` is a link-local address, such as the metadata service", fix


def unencrypted_host(catalog: Catalog) -> str | None:
    """The host on another machine that would get secrets or tables without TLS, None: none."""
    if catalog.type != "rest" or catalog.allow_unencrypted:
        return None
    for uri in (catalog.uri, catalog.oauth2_server_uri):
        try:
            parts = urlsplit(uri or "")
            host = parts.hostname
        except ValueError:
            continue
        if parts.scheme == "http" and host and not is_this_machine(host):
            return host
    return None
