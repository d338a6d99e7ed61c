"""Which properties of an Iceberg catalog a project may set: those that name no class and no place.

A property that names a class loads it on the node, and one that names a place sends data there. So
this is a list of what is allowed.
"""

from __future__ import annotations

import re
from typing import Final

from polynya.model.contract.identifiers import shown

#: Of each family: the end of the name.
_FAMILIES: Final = (
    r"cache-enabled|cache\.(case-sensitive|expiration-interval-ms)",
    r"clients|jdbc\.(connectTimeout|loginTimeout|socketTimeout|tcpKeepAlive)",
    r"jdbc\.(schema-version|strict-mode)",
    r"io\.manifest\.cache-enabled",
    r"io\.manifest\.cache\.(expiration-interval-ms|max-content-length|max-total-bytes)",
    r"glue\.(lakeformation-enabled|skip-archive|skip-name-validation)",
    r"http-client\.(apache|urlconnection)\.[a-z-]+(-ms|-enabled|-connections)",
    r"s3\.(acl|checksum-enabled|chunked-encoding-enabled|storage-class|acceleration-enabled)",
    r"s3\.(dualstack-enabled|preload-client-enabled|use-arn-region-enabled)",
    r"s3\.(delete-enabled|delete\.(batch-size|num-threads))",
    r"s3\.(multipart|retry|crt)\.[a-z0-9.-]+",
    r"s3\.connection\.[a-z-]+",
)
_ALLOWED: Final = re.compile("|".join(_FAMILIES))


def catalog_property_problem(name: str) -> tuple[str, str] | None:
    """What is wrong with a property of a catalog, and what to do; None when it may be set."""
    if _ALLOWED.fullmatch(name) is not None:
        return None
    return (
        f"the catalog property {shown(name)} is not one that a project may set",
        "leave it out; a project sets caches, timeouts and how S3 is used, no classes or places",
    )
