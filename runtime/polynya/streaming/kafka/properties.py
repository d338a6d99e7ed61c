"""The properties of a client of Kafka, with their secrets: for Kafka's own code alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from polynya.model.config.streaming.jaas import login
from polynya.model.config.streaming.kafka import KafkaSource, holds_secrets
from polynya.model.config.streaming.kafka_properties import FILES, JAAS, property_problem
from polynya.model.contract.identifiers import shown
from polynya.model.errors import OperationError
from polynya.store.node_folders import SECRETS
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

    Raises:
        DependencyError: a secret cannot be read.
        OperationError: a property is not one that a task may set (POLYNYA-STR-002), or names a
            file that is not among the secrets of the node (POLYNYA-STR-082).
    """
    known = secrets or vault()
    found = {
        name: known.open(_checked(name, value), quoted=holds_secrets(name))
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


def _checked(name: str, value: str) -> str:
    """A property as the client may have it; the login is written again from its fields.

    Settings are checked when they are loaded, too. This holds for those that came another way.
    """
    if wrong := property_problem(name, value):
        problem, fix = wrong
        raise OperationError(
            "POLYNYA-STR-002",
            problem,
            where=f"source.kafka.properties.{shown(name)}",
            state="nothing was read from the stream",
            fix=fix,
        )
    if name == JAAS:
        read = login(value)
        if read.key_tab is not None:
            _among_secrets(name, read.key_tab)
        return read.text()
    if name in FILES:
        return str(_among_secrets(name, value))
    return value


def _among_secrets(name: str, place: str) -> Path:
    found = SECRETS.below(place)
    if found is None:
        raise OperationError(
            "POLYNYA-STR-082",
            f"`{name}` names a file that a task may not read",
            where=place,
            why=SECRETS.outside(),
            state="nothing was read from the stream",
            fix=f"put the file there, or start the process with another `{SECRETS.variable}`",
        )
    return found
