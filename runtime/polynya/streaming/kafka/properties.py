"""The properties of a client of Kafka, with their secrets: for Kafka's own code alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from polynya.model.config.streaming.kafka import KafkaSource, holds_secrets
from polynya.store.vault import Vault, vault

#: How long an answer may take, in milliseconds, unless the task's properties say otherwise.
_PATIENCE: Final[Mapping[str, str]] = {
    "default.api.timeout.ms": "20000",
    "request.timeout.ms": "10000",
}
_COMMITTED: Final[Mapping[str, str]] = {"isolation.level": "read_committed"}


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """What a client is made with, and what of it no message may show."""

    values: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def client_properties(source: KafkaSource, secrets: Vault | None = None) -> ClientProperties:
    """The properties as they are now: a secret that was exchanged is taken at the next use.

    Raises DependencyError when a secret cannot be read.
    """
    known = secrets or vault()
    found = {
        name: known.open(value, quoted=holds_secrets(name))
        for name, value in source.plain_properties().items()
    }
    return ClientProperties(
        {
            **_PATIENCE,
            **_COMMITTED,
            **{name: one.text for name, one in found.items()},
            "bootstrap.servers": source.bootstrap_servers,
        },
        (*source.secrets(), *(secret for one in found.values() for secret in one.secrets)),
    )
