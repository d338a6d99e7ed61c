"""How a target reaches AWS: region, key, and for tests another endpoint."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass, field
from typing import Annotated, Final, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Frozen
from polynya.model.names import shown

_REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d")
_KMS_KEY: Final = re.compile(
    r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key|alias)/[A-Za-z0-9/_-]{1,256}"
)


@dataclass(frozen=True, slots=True)
class AwsAccess:
    """What every client of a target is made with; None is what the AWS SDK finds by itself.

    `access_key_id` and `secret_access_key` are those of a store that is not of AWS.
    """

    region: str | None = None
    endpoint: str | None = None
    kms_key: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)


def _refused(message: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message})


def _region(text: str) -> str:
    if not _REGION.fullmatch(text):
        raise _refused(f"{shown(text)} is not a region such as `eu-central-1`")
    return text


def _kms_key(text: str) -> str:
    if not _KMS_KEY.fullmatch(text):
        raise _refused(f"{shown(text)} is not the ARN of a KMS key: `arn:aws:kms:…:key/…`")
    return text


def _endpoint(text: str) -> str:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        raise _refused(f"{shown(text)} is not an address") from None
    if is_link_local(text):
        raise _refused(f"{shown(text)} is a link-local address, such as the metadata service")
    plain = parts.hostname and not (parts.username or parts.password or parts.query)
    if parts.scheme not in {"http", "https"} or not plain or parts.path.strip("/"):
        raise _refused(f"{shown(text)} is not an address such as `http://127.0.0.1:5000`")
    return text.rstrip("/")


def is_loopback(endpoint: str) -> bool:
    """Whether an address leads to this machine only."""
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


#: The metadata service of an EC2 instance over IPv6, which is no link-local address.
_METADATA: Final = ipaddress.ip_network("fd00:ec2::/32")


def is_link_local(address: str) -> bool:
    """Whether an address is one of the machine's own network, such as its metadata service.

    Names are not resolved. Numbers are read as a connection would read them, so `0xa9fea9fe` is
    169.254.169.254.
    """
    host = (urlsplit(address).hostname or "").partition("%")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        try:
            found = ipaddress.ip_address(socket.inet_aton(host))
        except (OSError, UnicodeError, ValueError):
            return False
    inner = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (inner or found).is_link_local or (found.version == 6 and found in _METADATA)


Region: TypeAlias = Annotated[str, AfterValidator(_region)]
KmsKey: TypeAlias = Annotated[str, AfterValidator(_kms_key)]
Endpoint: TypeAlias = Annotated[str, AfterValidator(_endpoint)]


def _refuse_elsewhere(endpoint: str | None, *, allowed: bool) -> None:
    """Raise for an endpoint on another machine that nobody allowed, or without TLS."""
    if endpoint is None or is_loopback(endpoint):
        return
    if not allowed:
        raise _refused(
            f"endpoint {shown(endpoint)} is on another machine; "
            "if that is meant, set `allow_remote_endpoint: true`"
        )
    if not endpoint.startswith("https:"):
        raise _refused(f"endpoint {shown(endpoint)} is on another machine: use https")


class Aws(Frozen):
    """How a target reaches AWS. Credentials come from where the AWS SDK looks for them."""

    region: Region | None = Field(
        default=None, description="Region. Default: the region of the environment or the profile."
    )
    kms_key: KmsKey | None = Field(
        default=None,
        description="ARN of the KMS key that encrypts written objects. Default: the bucket's "
        "encryption.",
    )
    endpoint: Endpoint | None = Field(
        default=None,
        description="Address of an S3-compatible store, or of a stand-in for S3 and Glue. The "
        "path names the bucket.",
    )
    allow_remote_endpoint: bool = Field(
        default=False,
        description="Allow an `endpoint` on another machine. All data and the signatures of your "
        "credentials go there, so it has to be `https`.",
    )

    @model_validator(mode="after")
    def _stays_here(self) -> Self:
        _refuse_elsewhere(self.endpoint, allowed=self.allow_remote_endpoint)
        return self

    def access(self) -> AwsAccess:
        """The settings that clients are made with."""
        return AwsAccess(self.region, self.endpoint, self.kms_key)


class S3Store(Frozen):
    """An S3-compatible store that is not that of the target."""

    endpoint: Endpoint = Field(
        description="Address of the store. The path of a request names the bucket."
    )
    region: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Region that requests are signed for. Default: `aws.region` of the target.",
    )
    allow_remote_endpoint: bool = Field(
        default=False,
        description="Allow an `endpoint` on another machine, which has to be `https`. "
        "Default: false.",
    )
    access_key_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="Key that requests are signed with; may be a reference. Default: what the AWS "
        "SDK finds.",
    )
    secret_access_key: SecretStr | None = Field(
        default=None,
        description="Its secret, always as `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME#FIELD}`, never in the file.",
    )

    @model_validator(mode="after")
    def _is_meant(self) -> Self:
        _refuse_elsewhere(self.endpoint, allowed=self.allow_remote_endpoint)
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise _refused("`access_key_id` and `secret_access_key` go together: write both")
        return self
