"""How a REST API is reached, as written in `connections/*.yml` with `type: http`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Duration, Frozen, Name, Size
from polynya.model.config.settings import Url

_MEBIBYTE: Final = 2**20
_MINUTE: Final = timedelta(minutes=1)

#: The name of a header or of a parameter of a URL, as RFC 9110 writes a token.
Token: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~\[\]-]{1,200}$")
]
#: The name or the address of a host, without a port.
ApiHost: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,253}$")]
_AS_REFERENCE: Final = "`${env:NAME}`, `${file:PATH}` or `${secret:NAME#FIELD}`, never in the file"


class BearerAuth(Frozen):
    """A token in the header `Authorization: Bearer`."""

    type: Literal["bearer"] = Field(description="Kind of the authentication.")
    token: SecretStr = Field(description=f"The token: {_AS_REFERENCE}.")


class BasicAuth(Frozen):
    """User and password."""

    type: Literal["basic"] = Field(description="Kind of the authentication.")
    user: SecretStr = Field(description="The user; may be a reference like `password`.")
    password: SecretStr = Field(description=f"The password: {_AS_REFERENCE}.")


class ApiKeyAuth(Frozen):
    """A key in a header or in a parameter of the URL."""

    type: Literal["api_key"] = Field(description="Kind of the authentication.")
    name: Token = Field(
        default="X-API-Key",
        description="Name of the header or the parameter. Default: `X-API-Key`.",
    )
    value: SecretStr = Field(description=f"The key: {_AS_REFERENCE}.")
    within: Literal["header", "query"] = Field(
        default="header",
        alias="in",
        description="Where the key goes. A `query` is logged by many servers and proxies. "
        "Default: `header`.",
    )


class ClientCredentialsAuth(Frozen):
    """An access token of OAuth 2.0 (RFC 6749 section 4.4), which Polynya gets and renews."""

    type: Literal["oauth_client_credentials"] = Field(description="Kind of the authentication.")
    token_url: Url = Field(description="Address of the token endpoint.")
    client_id: SecretStr = Field(description="The client; may be a reference like the secret.")
    client_secret: SecretStr = Field(description=f"Its secret: {_AS_REFERENCE}.")
    scope: str | None = Field(
        default=None, min_length=1, description="Scopes to ask for, separated by spaces."
    )
    client_in: Literal["header", "body"] = Field(
        default="header",
        description="How client and secret are sent to the token endpoint: `header` (HTTP Basic) "
        "or `body`. Default: `header`.",
    )
    parameters: dict[Token, str] = Field(
        default_factory=dict,
        description="More fields of the request for a token, such as `audience`. Default: none.",
    )


Auth: TypeAlias = Annotated[
    BearerAuth | BasicAuth | ApiKeyAuth | ClientCredentialsAuth, Field(discriminator="type")
]


class RateLimit(Frozen):
    """How many requests a process sends at most."""

    requests: int = Field(ge=1, le=100_000, description="Number of requests.")
    per: Duration = Field(
        default=timedelta(seconds=1),
        description="In this time, evenly spread; at least one request a minute. Default: `1s`.",
    )

    @model_validator(mode="after")
    def _is_no_schedule(self) -> Self:
        if self.per / self.requests > _MINUTE:
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {
                    "message": "a limit of less than one request a minute would stop the landing",
                    "fix": "set `every` of the source to read less often",
                },
            )
        return self


class Retries(Frozen):
    """What happens after an answer 429 or 5xx, an error of the connection, or a timeout."""

    attempts: int = Field(
        default=5, ge=1, le=20, description="Most attempts of one request. Default: 5."
    )
    longest_wait: Duration = Field(
        default=timedelta(minutes=5),
        description="Longest time that `run --once` waits when a server says when to come back "
        "(`Retry-After`). An agent does other work meanwhile, and comes back then, "
        "however long it is. Default: `5m`.",
    )


class HttpOverride(Frozen):
    """What is different in one target."""

    url: Url | None = Field(default=None, description="See HttpConnection.")
    auth: Auth | None = Field(default=None, description="See HttpConnection.")
    headers: dict[Token, SecretStr] | None = Field(default=None, description="See HttpConnection.")
    allowed_hosts: tuple[ApiHost, ...] | None = Field(
        default=None, description="See HttpConnection."
    )


class HttpConnection(Frozen):
    """A REST API. The name of the file is the name of the connection."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        default="polynya/v1", description="Version of this file's format. Default: `polynya/v1`."
    )
    kind: Literal["connection"] = Field(
        default="connection", description="Kind of the file. Default: `connection`."
    )
    type: Literal["http"] = Field(description="`http`: a REST API.")
    url: Url = Field(
        description="Base address of the API, such as `https://api.example.com/v2`; paths of "
        "resources are appended to it."
    )
    auth: Auth | None = Field(default=None, description="How Polynya logs in. Default: not.")
    headers: dict[Token, SecretStr] = Field(
        default_factory=dict,
        description="More headers of each request; a value may be, and one that is a secret has "
        "to be, a reference. Default: none.",
    )
    allowed_hosts: tuple[ApiHost, ...] = Field(
        default=(),
        description="Other hosts to which a `next` address or a redirect of the API may lead. A "
        "`next` address there gets the login, a redirect never does. Default: none.",
    )
    allow_unencrypted: bool = Field(
        default=False,
        description="Send the login to an `http://` address on another machine. Default: false.",
    )
    ca: str | None = Field(
        default=None,
        min_length=1,
        description="File with the certificates of the trusted authorities: a `.pem` in "
        "`connections/`, which belongs to the project, or a file below the machine's folder of "
        "secrets. Default: the authorities that this machine trusts.",
    )
    timeout: Duration = Field(
        default=_MINUTE,
        description="Longest time for one answer, from connecting to its last byte. "
        "Default: `60s`.",
    )
    max_response: Size = Field(
        default=64 * _MEBIBYTE,
        ge=1024,
        le=1024 * _MEBIBYTE,
        description="Maximum bytes of one answer, decompressed. Default: `64MB`.",
    )
    rate_limit: RateLimit | None = Field(
        default=None, description="Limit of requests, for each process. Default: none."
    )
    retries: Retries = Field(default_factory=Retries, description="When a request is repeated.")
    targets: dict[Name, HttpOverride] = Field(
        default_factory=dict,
        description="Overrides for a target of the project, by its name.",
    )

    def in_target(self, target: str) -> HttpConnection:
        """The connection as a target has it."""
        there = self.targets.get(target)
        written = (
            {}
            if there is None
            else {name: getattr(there, name) for name in HttpOverride.model_fields}
        )
        different = {name: value for name, value in written.items() if value is not None}
        return self.model_copy(update={**different, "targets": {}})


#: Names of headers whose values are logins.
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|password|cookie|session", re.IGNORECASE)


def is_secret_header(name: str) -> bool:
    """Tell whether the value of a header is a secret, by its name."""
    return _SECRET_HEADER.search(name) is not None


#: Settings of a login that hold a secret, by the name of its type.
SECRETS: Final[Mapping[str, tuple[str, ...]]] = {
    "bearer": ("token",),
    "basic": ("password",),
    "api_key": ("value",),
    "oauth_client_credentials": ("client_secret",),
}
#: Settings of a login that may be references.
REFERENCES: Final = frozenset({"token", "user", "password", "value", "client_id", "client_secret"})
