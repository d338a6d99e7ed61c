"""Passwords on ways that others may read: refused unless a setting says that it is meant so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.model.config.capture.connection import is_this_machine
from polynya.model.config.project import Catalog, Project
from polynya.model.config.streaming.kafka import KafkaSource
from polynya.model.contract.identifiers import shown
from polynya.model.contract.postgresql import POSTGRESQL, postgres_address
from polynya.model.documents.problems import Problem

CODE: Final = "POLYNYA-CFG-044"
_VERIFIED: Final = "verify-full"


def unsecured_catalogs(project: Project) -> Iterator[Problem]:
    """Yield the catalogs on other machines of which nobody checks whether they are the right one.

    An address that cannot be read is the error of another check.
    """
    for name, target in project.targets.items():
        catalog = target.catalog
        host = _unverified_host(catalog)
        if host is not None and not catalog.allow_unverified:
            yield Problem(
                ("targets", name, "catalog", "uri"),
                CODE,
                f"{shown(host)} is on another machine, and nothing checks whether it is the right "
                "one: who answers in its place gets the password and writes the catalog",
                "add `?sslmode=verify-full` to the address, or write `allow_unverified: true`",
            )


def _unverified_host(catalog: Catalog) -> str | None:
    if catalog.type != "jdbc" or not (catalog.uri or "").startswith(POSTGRESQL):
        return None
    try:
        address = postgres_address(catalog.uri or "")
    except ValueError:
        return None
    safe = address.tls == _VERIFIED or is_this_machine(address.host)
    return None if safe else address.host


def unsecured_login(source: KafkaSource) -> Iterator[Problem]:
    """Yield a login to brokers on other machines that is sent without TLS."""
    protocol = source.properties.get("security.protocol")
    if protocol is None or protocol.get_secret_value().upper() != "SASL_PLAINTEXT":
        return
    hosts = [one.strip().rpartition(":")[0] for one in source.bootstrap_servers.split(",")]
    far = [one for one in hosts if one and not is_this_machine(one)]
    if far and not source.allow_unencrypted:
        yield Problem(
            ("source", "kafka", "properties", "security.protocol"),
            CODE,
            f"{shown(far[0])} is on another machine, and the login would go over the network "
            "without TLS",
            "write `SASL_SSL`, or `allow_unencrypted: true` beside `bootstrap_servers`",
        )
