"""Which properties of a Kafka client a task may set: those that name no class and no command.

Whoever writes a task must not get code to run on the node. So this is a list of what is allowed: a
property that a later client adds is refused until somebody has looked at it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from polynya.model.config.aws import is_loopback
from polynya.model.config.streaming.jaas import jaas_problem
from polynya.model.contract.identifiers import shown

JAAS: Final = "sasl.jaas.config"
#: Files that the client opens. They are below the node's folder of secrets.
FILES: Final = frozenset({"ssl.keystore.location", "ssl.truststore.location"})

_NAMES: Final = """
    check.crcs client.dns.lookup client.id client.rack connections.max.idle.ms
    default.api.timeout.ms enable.metrics.push exclude.internal.topics
    fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
    heartbeat.interval.ms isolation.level max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy metrics.num.samples metrics.recording.level metrics.sample.window.ms
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries
    retry.backoff.max.ms retry.backoff.ms
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    security.protocol send.buffer.bytes session.timeout.ms
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.password ssl.keystore.type ssl.protocol ssl.trustmanager.algorithm
    ssl.truststore.certificates ssl.truststore.password ssl.truststore.type
    """
_ALLOWED: Final = FILES | set(_NAMES.split())
#: Classes that login modules need: these and no others.
_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "sasl.client.callback.handler.class": frozenset(
        {"software.amazon.msk.auth.iam.IAMClientCallbackHandler"}
    ),
    "sasl.login.callback.handler.class": frozenset(
        f"org.apache.kafka.common.security.oauthbearer.{package}OAuthBearerLoginCallbackHandler"
        for package in ("", "secured.")
    ),
}
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105
_REFERENCE: Final = re.compile(r"\$\{(?:file|secret):[^}]*\}")


def property_problem(name: str, value: str) -> tuple[str, str] | None:
    """What is wrong with a property of the client and what to do; no text repeats the value."""
    if name == JAAS:
        problem = jaas_problem(value)
        return None if problem is None else (problem, "see `docs/streams.md` for each mechanism")
    if name in _CLASSES:
        if value in _CLASSES[name]:
            return None
        known = ", ".join(f"`{one}`" for one in sorted(_CLASSES[name]))
        return f"{shown(name)} would load a class that is not known", f"write one of: {known}"
    if name == _TOKEN_URL:
        return _token_problem(value)
    if name in FILES:
        return _file_problem(name, value)
    if name in _ALLOWED:
        return None
    return (
        f"the property {shown(name)} is not one that a task may set",
        "leave it out; a task sets limits, timeouts, TLS and the login, and nothing that runs",
    )


def _file_problem(name: str, value: str) -> tuple[str, str] | None:
    if value.startswith("/") and ".." not in value.split("/"):
        return None
    return f"{shown(name)} names no absolute path", "write the path of a file of the node"


def _token_problem(value: str) -> tuple[str, str] | None:
    if _REFERENCE.search(value):
        return f"`{_TOKEN_URL}` holds a reference", "write the address itself; it is no secret"
    try:
        parts = urlsplit(value)
        right = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(value))
        right = right and bool(parts.hostname) and parts.username is None
    except ValueError:
        right = False
    if right:
        return None
    return f"`{_TOKEN_URL}` is no address with https", "write `https://HOST/PATH`"
