"""Delete files of a table that nothing reaches, and count what that frees."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from polynya.lake.iceberg.gateway import IcebergTable

#: S3 takes so many names in one request.
_TOGETHER: Final = 1000


@dataclass(frozen=True, slots=True)
class Freed:
    """What was deleted. `size_bytes` counts files whose size is known."""

    files: int = 0
    size_bytes: int = 0


def sizes(table: IcebergTable) -> dict[str, int]:
    """Size in bytes of each file in the table's folder; empty where it cannot be listed."""
    reads = table.reach().reads
    if isinstance(reads, str):
        return {}
    return {one.location: one.size for one in reads.list(str(table.java.location()))}


def delete(
    table: IcebergTable, paths: Sequence[str], known: Mapping[str, int] | None = None
) -> Freed:
    """Delete files by Iceberg's FileIO; one that is not there any more is no error.

    `known` are the sizes of the table's files, None to list them.
    """
    known = sizes(table) if known is None else known
    jvm: Any = table.spark._jvm
    mapper = table.iceberg.util.JsonUtil.mapper()
    texts = mapper.getTypeFactory().constructFromCanonical("java.util.ArrayList<java.lang.String>")
    each, beside = iter(paths), True
    while some := list(islice(each, _TOGETHER)):
        names = mapper.readValue(json.dumps(some), texts)
        jvm.org.apache.iceberg.CatalogUtil.deleteFiles(table.java.io(), names, "unused", beside)
    return Freed(len(paths), sum(known.get(path, 0) for path in paths))
