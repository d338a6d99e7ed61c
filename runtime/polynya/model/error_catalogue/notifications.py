"""Errors of notifications: their files, and their channels."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, DependencyError, OperationError

NOTIFICATION_CHANNEL_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-NTF-001",
    title="a rule names an unknown channel",
    message="no channel of this file is called {channel}",
    page="`to` of a rule names channels of the same file. Without `to` the rule sends to all of "
    "them.",
)
NOTIFICATION_UNPROTECTED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-NTF-002",
    title="messages would be sent without TLS",
    page="A message names tasks and tables, and a channel may log in. A server on another machine "
    "has to be reached over TLS: `https://` for a webhook, `tls: starttls` or `tls: tls` for mail. "
    "`allow_unencrypted: true` of a webhook is for a network that you trust.",
)
APPRISE_MISSING: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-NTF-003",
    title="Apprise is not installed",
    state="nothing was sent through this channel; data is not affected",
    fix="pip install 'polynya[notify]'",
    page="A channel with `type: apprise` needs the package Apprise, which comes with the extra "
    "`notify`. Mail, SNS and webhooks need no extra.",
)
NOTIFICATION_NOT_SENT: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-NTF-004",
    title="a message was not sent",
    message="the channel {channel} did not take a message",
    state="the message is sent again, with growing pauses; data is not affected",
    fix="polynya notification test {channel}",
    page="The server of a channel did not answer, refused the login, or refused the message. Each "
    "message is tried ten times, with pauses that grow from 30 seconds to 30 minutes, for two "
    "hours in total; then it is given up, which is an event. Meanwhile `polynya status` shows the "
    "channel. Other channels and all data work go on.",
)
NOTIFICATION_REFUSED_ADDRESS: Final = ErrorEntry(
    OperationError,
    "POLYNYA-NTF-005",
    title="the address of a channel is refused",
    message="the channel {channel} leads to an address that is refused",
    state="nothing was sent there; data is not affected",
    fix="name the network in `allowed_networks` of the channel if it is right",
    page="Whoever edits a project could otherwise reach any server that its node reaches. A "
    "webhook may therefore not lead to a private address, unless `allowed_networks` holds it; to "
    "a link-local one, such as that of the metadata service; or to the machine itself, unless "
    "`POLYNYA_LOCAL_APIS` of that machine names the host. The address is checked after the name "
    "was resolved, and again on the connection. Mail may not go to a link-local address.",
)
NOTIFICATION_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-NTF-006",
    title="no such notification",
    message="no channel or rule is called {name}",
    page="`polynya notification list` shows all of them, as `FILE.NAME`.",
)
LATENCY_NOT_KEPT: Final = ErrorEntry(
    OperationError,
    "POLYNYA-NTF-007",
    title="latencies cannot be kept in this catalog",
    message="latencies cannot be written to a catalog on PostgreSQL",
    state="they are not kept; data is not affected",
    fix="remove `latency` from the project, or keep the tables in a catalog on Glue, SQLite or "
    "behind REST",
    page="`latency` of a project is written by PyIceberg, without a JVM. It reads a catalog on "
    "PostgreSQL from a copy, and cannot commit to it.",
)
