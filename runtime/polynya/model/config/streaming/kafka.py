"""Where a streaming landing reads Kafka: brokers, topics, properties of the client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, Field, SecretStr, WithJsonSchema

from polynya.model.config.fields import Frozen, Pattern
from polynya.model.contract.wildcards import any_text

#: Stands for any text in the name of a topic.
WILDCARD: Final = "%"

#: Properties of the client that Polynya sets itself, with the reason.
OWN_PROPERTIES: Final[Mapping[str, str]] = {
    "auto.offset.reset": "the landed batches say where to go on; `start_from` says where to begin",
    "bootstrap.servers": "the setting `bootstrap_servers` names the brokers",
    "enable.auto.commit": "the position is in the landed batches and nowhere else",
    "group.id": "the position is in the landed batches and nowhere else",
    "group.instance.id": "partitions are shared out by Polynya",
    "group.protocol": "partitions are shared out by Polynya",
    "interceptor.classes": "records are landed as they came",
    "key.deserializer": "records are landed as they came; `content` says what they are",
    "partition.assignment.strategy": "partitions are shared out by Polynya",
    "value.deserializer": "records are landed as they came; `content` says what they are",
}
_MECHANISM: Final = "sasl.mechanism"
_IAM: Final = "AWS_MSK_IAM"
#: What a client needs beside the mechanism, unless the task says otherwise.
_IAM_PROPERTIES: Final[Mapping[str, str]] = {
    "security.protocol": "SASL_SSL",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}
_SECRET: Final = re.compile(r"(?:password|secret|\.key)$", re.IGNORECASE)
_JAAS: Final = "sasl.jaas.config"
_IN_WORDS: Final = re.compile(
    r"(?:password|secret|token)\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s\"';]+))", re.IGNORECASE
)


def _text(value: object) -> object:
    """`true` and `1000` are texts to a client of Kafka."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


#: The value of a property, which may be a secret: no message, log or dump shows it.
PropertyValue: TypeAlias = Annotated[
    SecretStr,
    BeforeValidator(_text),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


class KafkaSource(Frozen):
    """Topics of an Apache Kafka cluster, or of one that speaks its protocol."""

    bootstrap_servers: str = Field(
        min_length=1, description="Bootstrap brokers: `HOST:PORT`, separated by commas."
    )
    topics: tuple[Pattern, ...] = Field(
        min_length=1,
        description="Topics to land. `%` stands for any text, so `orders-%` also matches later "
        "topics. Case matters.",
    )
    allow_unencrypted: bool = Field(
        default=False,
        description="Log in to brokers on other machines without TLS (`SASL_PLAINTEXT`). "
        "Default: false.",
    )
    properties: dict[str, PropertyValue] = Field(
        default_factory=dict,
        description="Properties of the Kafka client for limits, timeouts, TLS and the login, such"
        " as `security.protocol`. Properties that name a class or a command are "
        "refused. Secrets always as `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME}`.",
    )

    @property
    def asks_iam(self) -> bool:
        """Whether the brokers are those of Amazon MSK and let in by IAM."""
        mechanism = self.properties.get(_MECHANISM)
        return mechanism is not None and mechanism.get_secret_value() == _IAM

    def plain_properties(self) -> dict[str, str]:
        """The properties with their secrets, for the client alone."""
        written = {name: value.get_secret_value() for name, value in self.properties.items()}
        return {**_IAM_PROPERTIES, **written} if self.asks_iam else written

    def secrets(self) -> tuple[str, ...]:
        """The secrets among the properties, for those who have to leave them out of a text."""
        found = []
        for name, value in self.plain_properties().items():
            if is_secret(name):
                found.append(value)
            elif holds_secrets(name):
                found += ["".join(parts) for parts in _IN_WORDS.findall(value)]
        return tuple(one for one in found if one)


def is_secret(name: str) -> bool:
    """Tell whether a property of the client holds nothing but a secret."""
    return name != _JAAS and _SECRET.search(name) is not None


def holds_secrets(name: str) -> bool:
    """Tell whether a property of the client holds secrets among other words."""
    return name == _JAAS


def matches(pattern: str, topic: str) -> bool:
    """Tell whether a pattern of `topics` takes a topic."""
    return any_text(pattern, WILDCARD).fullmatch(topic) is not None


def is_named(topics: tuple[str, ...], topic: str) -> bool:
    """Tell whether a topic is listed by its own name, not only met by a wildcard."""
    return topic in topics
