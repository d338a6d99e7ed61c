"""Allowed properties of Kafka clients and Debezium connectors, and Kafka logins.

A user with the right to write a task must not get code to run on the node. So properties are an
allow list: those that name no class and no command. A property that a later client adds is refused
until a developer has reviewed it.

A Kafka client loads the class that `sasl.jaas.config` names and passes the options to it. So that
text never reaches the client: it is parsed, and rewritten from a known module with known
options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from polynya.model.config.aws import is_loopback
from polynya.model.names import shown

_KAFKA: Final = "org.apache.kafka.common.security"
_KERBEROS: Final = "com.sun.security.auth.module.Krb5LoginModule"
KEY_TAB: Final = "keyTab"
#: The modules that may be named, and the options that each of them takes.
MODULES: Final[Mapping[str, frozenset[str]]] = {
    f"{_KAFKA}.plain.PlainLoginModule": frozenset({"username", "password"}),
    f"{_KAFKA}.scram.ScramLoginModule": frozenset({"username", "password", "tokenauth"}),
    f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule": frozenset(
        {"clientId", "clientSecret", "scope"}
    ),
    _KERBEROS: frozenset(
        {
            "doNotPrompt",
            KEY_TAB,
            "principal",
            "refreshKrb5Config",
            "renewTGT",
            "serviceName",
            "storeKey",
            "useKeyTab",
        }
    ),
    "software.amazon.msk.auth.iam.IAMLoginModule": frozenset(
        {
            "awsMaxRetries",
            "awsProfileName",
            "awsRoleArn",
            "awsRoleSessionName",
            "awsStsRegion",
        }
    ),
}
_EXTENSION: Final = re.compile(r"extension_[A-Za-z]+")
_TOKEN: Final = re.compile(
    r"""\s*(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|([^\s"';=]+)|([=;]))""", re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_QUOTED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Login:
    """A login module and its options; the values may hold references."""

    module: str
    options: tuple[tuple[str, str], ...]

    @property
    def key_tab(self) -> str | None:
        """The file of keys that the module opens."""
        return dict(self.options).get(KEY_TAB)

    def text(self) -> str:
        """As the client reads it: each value in double quotes."""
        words = [self.module, "required"]
        for name, value in self.options:
            words.append(f'{name}="{"".join(_QUOTED.get(one, one) for one in value)}"')
        return " ".join(words) + ";"


def jaas_problem(text: str) -> str | None:
    """What is wrong with a login, without the values of its options; None if it is valid."""
    try:
        login(text)
    except ValueError as error:
        return str(error)
    return None


def login(text: str) -> Login:
    """Read a login.

    Raises:
        ValueError: it is more or less than one entry, or names an unknown module or option. The
            message repeats no value.
    """
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise ValueError("`sasl.jaas.config` is not `MODULE required NAME=VALUE …;`")
    (_, module), (_, flag), *rest = tokens[:-1]
    if module not in MODULES:
        known = ", ".join(sorted(one.rpartition(".")[2] for one in MODULES))
        raise ValueError(f"{shown(module)} is not a login module that is known: {known}")
    if flag != "required":
        raise ValueError("the login module of `sasl.jaas.config` must be `required`")
    if len(rest) % 3:
        raise ValueError("an option of `sasl.jaas.config` is not `NAME=VALUE`")
    options: dict[str, str] = {}
    for (kind, name), equals, (valued, value) in zip(
        rest[::3], rest[1::3], rest[2::3], strict=True
    ):
        if kind != "word" or equals != ("sign", "=") or valued == "sign":
            raise ValueError("an option of `sasl.jaas.config` is not `NAME=VALUE`")
        if name not in MODULES[module] and not _extends(module, name):
            raise ValueError(f"the login module has no option {shown(name)} that a task may set")
        if name in options:
            raise ValueError(f"`sasl.jaas.config` has the option {shown(name)} twice")
        options[name] = value
    return Login(module, tuple(options.items()))


def _extends(module: str, option: str) -> bool:
    return "oauthbearer" in module and _EXTENSION.fullmatch(option) is not None


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position, text = 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("`sasl.jaas.config` has a quote without its end")
        double, single, word, sign = match.groups()
        if sign is not None:
            tokens.append(("sign", sign))
        elif word is not None:
            tokens.append(("word", word))
        else:
            quoted = double if double is not None else single
            tokens.append(("text", _ESCAPED.sub(_unescaped, quoted)))
        position = match.end()
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    return _CONTROLS.get(match[1], match[1])


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
_ALLOWED_KAFKA: Final = FILES | set(_NAMES.split())
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
    if name in _ALLOWED_KAFKA:
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
        return f"`{_TOKEN_URL}` holds a reference", "write the address itself; it is not a secret"
    try:
        parts = urlsplit(value)
        right = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(value))
        right = right and bool(parts.hostname) and parts.username is None
    except ValueError:
        right = False
    if right:
        return None
    return f"`{_TOKEN_URL}` is not an https address", "write `https://HOST/PATH`"


_FAMILIES: Final = (
    # Snapshots, batches, pauses.
    r"snapshot\.(mode|isolation\.mode|fetch\.size|delay\.ms|lock\.timeout\.ms)",
    r"snapshot\.(locking\.mode|max\.threads|include\.collection\.list|tables\.order.*)",
    r"incremental\.snapshot\.(chunk\.size|watermarking\.strategy)",
    r"signal\.(data\.collection|poll\.interval\.ms)",
    r"max\.(batch\.size|queue\.size(\.in\.bytes)?|iteration\.transactions)",
    r"(poll|heartbeat)\.interval\.ms|(query|streaming)\.fetch\.size|streaming\.delay\.ms",
    r"errors\.max\.retries|retriable\.restart\.connector\.wait\.ms",
    # SQL Server.
    r"database\.(instance|names|applicationIntent)|data\.query\.mode",
    r"driver\.(applicationIntent|applicationName|encrypt|hostNameInCertificate)",
    r"driver\.(loginTimeout|multiSubnetFailover|packetSize|socketTimeout|trustStore)",
    r"driver\.(trustServerCertificate|trustStorePassword|trustStoreType)",
    # Oracle.
    r"database\.(pdb\.name|connection\.adapter|url)|rac\.nodes|lob\.enabled",
    r"log\.mining\.(?!buffer\.)[a-z.]+|archive\.[a-z.]+",
    r"driver\.oracle\.net\.(CONNECT_TIMEOUT|encryption_[a-z_]+|crypto_[a-z_]+)",
    r"driver\.oracle\.net\.(ssl_[a-z_]+|wallet_location|authentication_services)",
    r"driver\.oracle\.jdbc\.ReadTimeout|driver\.javax\.net\.ssl\.[A-Za-z]+",
    # Db2.
    r"db2\.platform|cdc\.(change\.tables|control)\.schema",
    r"driver\.(sslConnection|sslTrustStoreLocation|sslTrustStorePassword)",
    r"driver\.(sslCertLocation|sslVersion|blockingReadConnectionTimeout)",
    # MongoDB.
    r"mongodb\.(connection\.string|authsource|ssl\.[a-z.]+)",
    r"mongodb\.(connect|socket|server\.selection|poll)\.(timeout|interval)\.ms",
    r"capture\.(mode|scope|target)|cursor\.[a-z.]+",
)
_ALLOWED_CONNECTOR: Final = re.compile("|".join(_FAMILIES))
#: Of Oracle: a server by its name. `ldap:` and the like look a place up and load what it says.
_URL: Final = re.compile(r"jdbc:oracle:thin:@(?://|tcps?://|\()?[^\s?]*", re.IGNORECASE)
_LOOKED_UP: Final = re.compile(r"ldaps?:|jndi|config-|[?&]", re.IGNORECASE)


def connector_property_problem(name: str, value: str) -> tuple[str, str] | None:
    """What is wrong with a setting of the connector, and what to do; no text repeats the value."""
    if _ALLOWED_CONNECTOR.fullmatch(name) is None:
        return (
            f"the setting {shown(name)} of the connector is not one that a connection may have",
            "leave it out; a connection sets snapshots, batches, timeouts and TLS, no classes",
        )
    if name == "database.url" and (_URL.fullmatch(value) is None or _LOOKED_UP.search(value)):
        return (
            "`database.url` is not the address of an Oracle server",
            "write `jdbc:oracle:thin:@//HOST:PORT/SERVICE` or `@(DESCRIPTION=…)`",
        )
    return None


def connector_problems(properties: Mapping[str, str]) -> list[tuple[str, tuple[str, str]]]:
    """Each setting that a connection may not have, with what is wrong and what to do."""
    problems = []
    for name, value in properties.items():
        if wrong := connector_property_problem(name, value):
            problems.append((name, wrong))
    return problems
