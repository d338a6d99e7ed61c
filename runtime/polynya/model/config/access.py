"""The file `access.yml`: people with their roles, what they may read, and how they log in."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Duration, Frozen

#: Names of the file, of which a project has one.
ACCESS_FILES: Final = ("access.yml", "access.yaml", "access.json")

_MAIL: Final = re.compile(r"[^\s@,;:<>\"]{1,64}@[^\s@,;:<>\"]{1,190}")
_SUBJECT: Final = re.compile(r"(oidc|group):\S(?:[ -~]{0,198}\S)?")
_ARN: Final = re.compile(
    r"aws:arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]{1,512}"
)
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:-]{1,255}")
_LONGEST_SESSION: Final = timedelta(days=7)
_LONGEST_TOKEN: Final = timedelta(days=366)


class Role(StrEnum):
    """A role; those of the tenant are below those of the project."""

    OWNER = "owner"
    CAN_MANAGE = "can_manage"
    CAN_OPERATE = "can_operate"
    CAN_EDIT = "can_edit"
    CAN_CONSUME = "can_consume"
    CAN_VIEW = "can_view"
    DATA_ADMIN = "data_admin"
    DATA_PRODUCT_MANAGER = "data_product_manager"
    PROJECT_CREATOR = "project_creator"
    CONTRIBUTOR = "contributor"


def _refuse(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _subject(text: str) -> str:
    if "@" in text and _MAIL.fullmatch(text):
        return text.lower()
    if _SUBJECT.fullmatch(text) or _ARN.fullmatch(text):
        return text
    raise _refuse(
        "this names neither a person nor a group",
        "write `ann@example.com`, `oidc:SUBJECT`, `group:NAME` or `aws:arn:aws:iam::…:role/NAME`",
    )


Subject: TypeAlias = Annotated[str, AfterValidator(_subject)]
#: Kinds of live views that a grant can name.
ViewKind: TypeAlias = Literal["current", "history", "changes"]


class RoleEntries(Frozen):
    """People and groups by role.

    A person is a mail address that the provider verified, `oidc:` and the subject, or `aws:` and
    the ARN of an IAM role or user; a group is `group:` and its name.
    """

    owner: tuple[Subject, ...] = Field(
        min_length=1, description="May do everything, and alone may change this file."
    )
    can_manage: tuple[Subject, ...] = Field(
        default=(), description="May edit, operate, migrate, reload and read all data."
    )
    can_operate: tuple[Subject, ...] = Field(
        default=(), description="May run, stop, resume and maintain, and operate clusters."
    )
    can_edit: tuple[Subject, ...] = Field(
        default=(), description="May change the documents of the project, validate and plan."
    )
    can_consume: tuple[Subject, ...] = Field(
        default=(), description="May query what `grants` name."
    )
    can_view: tuple[Subject, ...] = Field(
        default=(), description="May see the project, its runs and its metrics, without data."
    )
    data_admin: tuple[Subject, ...] = Field(
        default=(), description="Tenant: may operate clusters, and see roles and the audit log."
    )
    data_product_manager: tuple[Subject, ...] = Field(
        default=(), description="Tenant: may see and plan, and read the rows that `grants` name."
    )
    project_creator: tuple[Subject, ...] = Field(
        default=(), description="Tenant: may see documents, validate and plan."
    )
    contributor: tuple[Subject, ...] = Field(
        default=(), description="Tenant: may log in and see what the project is called."
    )

    def of(self, role: Role) -> tuple[str, ...]:
        """Those that have a role."""
        found: tuple[str, ...] = getattr(self, role.value)
        return found


class Grant(Frozen):
    """What some may read. Grants add up: a column is shown if one of them shows it."""

    to: tuple[Subject, ...] = Field(min_length=1, description="People and groups.")
    datasets: tuple[str, ...] = Field(
        min_length=1, description="Patterns over `schema.dataset`, such as `shop.*`."
    )
    views: tuple[ViewKind, ...] = Field(
        default=("current",), description="Kinds of live views. Default: `current`."
    )
    masked: tuple[str, ...] = Field(
        default=(),
        description="Patterns over columns that queries show as NULL. The REST catalog is "
        "open to those who may read all, because engines read the files themselves. Default: none.",
    )


class AwsLogin(Frozen):
    """IAM identities as logins."""

    server_id: str = Field(
        pattern=r"^[A-Za-z0-9.-]{3,128}$",
        description="Name of this server that the caller signs, so that a request signed for "
        "another server is refused; the host name of the server is a good one.",
    )
    accounts: tuple[Annotated[str, Field(pattern=r"^[0-9]{12}$")], ...] = Field(
        min_length=1, description="Accounts whose identities may log in."
    )
    regions: tuple[Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")], ...] = Field(
        min_length=1, description="Regions whose STS is asked."
    )


class OidcLogin(Frozen):
    """A provider of OpenID Connect."""

    issuer: str = Field(
        pattern=r"^https?://[^\s?#]{3,500}$",
        description="URL of the issuer, below which `/.well-known/openid-configuration` is. "
        "HTTPS, except on this machine.",
    )
    client_id: str = Field(min_length=1, max_length=200, description="Id of the client.")
    client_secret: SecretStr | None = Field(
        default=None,
        description="`${file:PATH}`, `${secret:NAME}` or `${env:NAME}`; none for a public client.",
    )
    groups_claim: str = Field(
        default="groups", max_length=100, description="Claim with the groups. Default: `groups`."
    )
    audience: str | None = Field(
        default=None,
        max_length=300,
        description="What `aud` of bearer tokens of programs has to hold. "
        "Default: none, and bearer tokens of the provider are refused.",
    )
    skew: Duration = Field(
        default=timedelta(seconds=60),
        le=timedelta(minutes=5),
        description="By how much the clocks may differ. Default: `60s`; at most `5m`.",
    )

    @model_validator(mode="after")
    def _tells_tokens_apart(self) -> OidcLogin:
        # An identity token is for the client: as a bearer token it would be a login of anybody who
        # sees one.
        if self.audience == self.client_id:
            raise _refuse(
                "`audience` is that of identity tokens", "name one that only access tokens have"
            )
        return self


class AccessDocument(Frozen):
    """The file `access.yml` of a project. Without it, only this machine reaches the server."""

    api_version: Literal["polynya/v1"] = Field(
        alias="apiVersion", description="Version of the file's format: `polynya/v1`."
    )
    kind: Literal["access"] = Field(description="Kind of the file: `access`.")
    url: str | None = Field(
        default=None,
        description="Address under which people reach the server, such as "
        "`https://polynya.example.com`: no path. Required for a login with `oidc`.",
    )
    oidc: OidcLogin | None = Field(default=None, description="Login of people and programs.")
    aws: AwsLogin | None = Field(default=None, description="Login of programs by IAM.")
    idle: Duration = Field(
        default=timedelta(minutes=30),
        ge=timedelta(minutes=1),
        le=_LONGEST_SESSION,
        description="After so long without a request a session ends. Default: `30m`.",
    )
    longest: Duration = Field(
        default=timedelta(hours=12),
        ge=timedelta(minutes=1),
        le=_LONGEST_SESSION,
        description="After so long a session ends anyway. Default: `12h`; at most `7d`.",
    )
    longest_token: Duration = Field(
        default=timedelta(days=90),
        ge=timedelta(hours=1),
        le=_LONGEST_TOKEN,
        description="Longest life of a token. Default: `90d`; at most `366d`.",
    )
    keep_audit: Duration = Field(
        default=timedelta(days=400),
        ge=timedelta(days=1),
        description="How long lines of the audit log are kept. Default: `400d`.",
    )
    roles: RoleEntries = Field(description="People and groups by role.")
    grants: tuple[Grant, ...] = Field(default=(), description="What `can_consume` may read.")

    @field_validator("url")
    @classmethod
    def _is_origin(cls, value: str | None) -> str | None:
        if value is not None and not _ORIGIN.fullmatch(value):
            raise _refuse("this is not an address", "write it without a path: `https://HOST`")
        return value

    @model_validator(mode="after")
    def _has_address(self) -> AccessDocument:
        if self.oidc is not None and self.url is None:
            raise _refuse("`oidc` needs `url`", "add the address of the server")
        return self
