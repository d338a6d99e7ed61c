"""Notifications as written in `notifications/*.yml`: rules, and the channels that they use."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, SecretStr, StringConstraints
from pydantic_core import PydanticCustomError

from polynya.model.config.capture import Window
from polynya.model.config.fields import Duration, Frozen, Name
from polynya.model.config.http_connection import ApiHost
from polynya.model.config.settings import Url

#: Why somebody is told something.
Cause: TypeAlias = Literal[
    "failed", "suspended", "quarantine", "stale", "capture", "expectation", "cluster", "deploy"
]
#: From the mildest to the worst.
Severity: TypeAlias = Literal["warning", "error", "critical"]
SEVERITIES: Final[tuple[Severity, ...]] = ("warning", "error", "critical")

_AS_REFERENCE: Final = "`${env:NAME}`, `${file:PATH}` or `${secret:NAME#FIELD}`, never in the file"
_Glob: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=300)]


def _mail_address(text: str) -> str:
    local, at, host = text.rpartition("@")
    printable = text.isascii() and text.isprintable() and not set(text) & set(' ,;<>()[]:\\"')
    if not at or not local or not host or not printable:
        message = "this is not a mail address"
        raise PydanticCustomError(
            "polynya_value",
            "{message}",
            {"message": message, "fix": "write for example `ops@example.com`"},
        )
    return text


MailAddress: TypeAlias = Annotated[
    str, StringConstraints(min_length=3, max_length=254), AfterValidator(_mail_address)
]


def _private_network(text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        message, fix = "this is not a network", "write for example `10.20.0.0/16`"
        raise PydanticCustomError(
            "polynya_value", "{message}", {"message": message, "fix": fix}
        ) from None
    if network.is_loopback or network.is_link_local or network.is_unspecified:
        message = "addresses of this machine and link-local addresses cannot be allowed here"
        fix = "name the host in `POLYNYA_LOCAL_APIS` of the machine that sends"
        raise PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})
    return text


PrivateNetwork: TypeAlias = Annotated[str, AfterValidator(_private_network)]


class MailChannel(Frozen):
    """Mail through an SMTP server."""

    type: Literal["mail"] = Field(description="`mail`: through an SMTP server.")
    host: ApiHost = Field(description="Name or address of the SMTP server.")
    port: int = Field(default=587, ge=1, le=65535, description="Its port. Default: 587.")
    tls: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="`starttls` begins in the clear and refuses to go on without TLS, `tls` begins "
        "with TLS (port 465), `none` is for a server on this machine. Default: `starttls`.",
    )
    user: SecretStr | None = Field(
        default=None, description="User that logs in; may be a reference. Default: no login."
    )
    password: SecretStr | None = Field(default=None, description=f"Its password: {_AS_REFERENCE}.")
    sender: MailAddress = Field(alias="from", description="Address of the sender.")
    to: tuple[MailAddress, ...] = Field(
        min_length=1, max_length=50, description="Addresses of the recipients."
    )
    timeout: Duration = Field(
        default=timedelta(seconds=20), description="Longest wait for each answer. Default: `20s`."
    )


class SnsChannel(Frozen):
    """A topic of Amazon SNS."""

    type: Literal["sns"] = Field(description="`sns`: a topic of Amazon SNS.")
    topic: Annotated[
        str, StringConstraints(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$")
    ] = Field(description="ARN of the topic. The role of the nodes needs `sns:Publish` on it.")


class WebhookChannel(Frozen):
    """JSON, sent to an address and signed."""

    type: Literal["webhook"] = Field(description="`webhook`: JSON in a `POST`.")
    url: Url = Field(description="Address, such as `https://hooks.example.com/polynya`.")
    secret: SecretStr | None = Field(
        default=None,
        description="Key of the signature in `Polynya-Signature`: HMAC-SHA256 of time and body. "
        f"{_AS_REFERENCE}. Default: no signature.",
    )
    token: SecretStr | None = Field(
        default=None,
        description=f"A token in `Authorization: Bearer`: {_AS_REFERENCE}. Default: none.",
    )
    allow_unencrypted: bool = Field(
        default=False,
        description="Send to an `http://` address on another machine. Default: false.",
    )
    allowed_networks: tuple[PrivateNetwork, ...] = Field(
        default=(),
        max_length=50,
        description="Private networks in which the host may be, such as `10.20.0.0/16`. Other "
        "private addresses, link-local ones and this machine are refused. Default: none.",
    )
    timeout: Duration = Field(
        default=timedelta(seconds=10), description="Longest time for one answer. Default: `10s`."
    )


class AppriseChannel(Frozen):
    """Any service that Apprise knows, such as Slack or Teams; needs the extra `notify`."""

    type: Literal["apprise"] = Field(
        description="`apprise`: any service of Apprise; install `polynya[notify]`."
    )
    url: SecretStr = Field(
        description=f"Apprise's URL of the service, which holds its token: {_AS_REFERENCE}."
    )


Channel: TypeAlias = Annotated[
    MailChannel | SnsChannel | WebhookChannel | AppriseChannel, Field(discriminator="type")
]


class NotificationRule(Frozen):
    """Which messages go to which channels, and how often."""

    causes: tuple[Cause, ...] = Field(
        default=(), description="Causes of a message. Default: all of them."
    )
    tasks: tuple[_Glob, ...] = Field(
        default=(),
        description="Globs of tasks. A rule with `tasks` or `datasets` takes no cause that belongs "
        "to no task: `cluster` and `deploy`. Default: all tasks.",
    )
    datasets: tuple[_Glob, ...] = Field(
        default=(),
        description="Globs of datasets, as `schema.dataset`, or `task/table` of a capture. "
        "Default: all datasets.",
    )
    severity: Severity = Field(
        default="warning",
        description="The mildest severity that is sent: `warning`, `error` or `critical`. "
        "Default: `warning`.",
    )
    to: tuple[Name, ...] = Field(
        default=(), description="Names of channels of this file. Default: all of them."
    )
    lasting: Duration = Field(
        default=timedelta(0),
        description="Tell only what has lasted for this time. Default: `0s`.",
    )
    at_most_every: Duration = Field(
        default=timedelta(minutes=5),
        description="Shortest time between two messages of this rule to a channel; what happens "
        "meanwhile stands in the next one. Default: `5m`.",
    )
    remind_every: Duration | None = Field(
        default=None,
        description="Tell again what still lasts, this often. Default: once only.",
    )
    resolved: bool = Field(default=True, description="Also tell when it is over. Default: true.")
    stale_after: Duration = Field(
        default=timedelta(minutes=15),
        description="For the cause `stale`: how long a change may wait at the source, in the "
        "landing zone, or for a mirror. Default: `15m`.",
    )
    quarantined: int = Field(
        default=1,
        ge=1,
        description="For the cause `quarantine`: records that went there since it began to grow. "
        "Default: 1.",
    )
    quiet: tuple[Window, ...] = Field(
        default=(),
        max_length=20,
        description="Times in which nothing is sent; it is sent afterwards. Default: none.",
    )
    breaks_quiet: Severity | None = Field(
        default="critical",
        description="The mildest severity that is sent also in quiet times; null: none is. "
        "Default: `critical`.",
    )

    def takes(self, *, cause: str, severity: str, task: str | None, name: str) -> bool:
        """Whether a rule is about a cause of an object; `task` is None for one of no task."""
        if self.causes and cause not in self.causes:
            return False
        if not at_least(severity, self.severity):
            return False
        if task is None:
            return not self.tasks and not self.datasets
        fits = not self.tasks or any(fnmatchcase(task, glob) for glob in self.tasks)
        return fits and (not self.datasets or any(fnmatchcase(name, one) for one in self.datasets))


def at_least(severity: str, mildest: str | None) -> bool:
    """Whether a severity is as bad as another one; nothing is as bad as None."""
    order: Mapping[str, int] = {name: rank for rank, name in enumerate(SEVERITIES)}
    return mildest is not None and order[severity] >= order[mildest]


class Notification(Frozen):
    """Channels, and the rules that send to them. The name of the file is its name."""

    apiVersion: Literal["polynya/v1"] = Field(  # noqa: N815 - the key in the file
        description="Version of this file's format."
    )
    kind: Literal["notification"] = Field(description="Kind of the file: `notification`.")
    channels: dict[Name, Channel] = Field(
        min_length=1, max_length=50, description="Where messages go, by a name."
    )
    rules: dict[Name, NotificationRule] = Field(
        min_length=1, max_length=100, description="What is sent, by a name."
    )
