"""Which settings of a Debezium connector a connection may have: those that name no class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from polynya.model.contract.identifiers import shown

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
_ALLOWED: Final = re.compile("|".join(_FAMILIES))
#: Of Oracle: a server by its name. `ldap:` and the like look a place up and load what it says.
_URL: Final = re.compile(r"jdbc:oracle:thin:@(?://|tcps?://|\()?[^\s?]*", re.IGNORECASE)
_LOOKED_UP: Final = re.compile(r"ldaps?:|jndi|config-|[?&]", re.IGNORECASE)


def connector_property_problem(name: str, value: str) -> tuple[str, str] | None:
    """What is wrong with a setting of the connector, and what to do; no text repeats the value."""
    if _ALLOWED.fullmatch(name) is None:
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
    found = []
    for name, value in properties.items():
        if wrong := connector_property_problem(name, value):
            found.append((name, wrong))
    return found
