"""Which files snapshots reach: lists of manifests, manifests, data and delete files.

Read from Iceberg's Avro files as its specification writes them, without Spark and without a call
for each file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import fastavro

from polynya.lake.iceberg.gateway import IcebergTable, ThroughJava
from polynya.lake.iceberg.reading import each_read
from polynya.store.data_files import ReadFiles

_GONE: Final = 2


@dataclass(frozen=True, slots=True)
class Reached:
    """Locations as the metadata spells them."""

    lists: frozenset[str] = frozenset()
    manifests: frozenset[str] = frozenset()
    content: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[str]:
        """All of them."""
        return self.lists | self.manifests | self.content


def reached_by(table: IcebergTable, snapshots: Iterable[Mapping[str, Any]]) -> Reached:
    """What the snapshots reach, each given as the table's metadata has it. Raises OSError."""
    reads = table.reach().reads
    files: ReadFiles = ThroughJava(table) if isinstance(reads, str) else reads
    lists = {str(one["manifest-list"]) for one in snapshots if one.get("manifest-list")}
    manifests = set().union(*each_read(files, lambda path: _manifests(files, path), sorted(lists)))
    content = set().union(*each_read(files, lambda path: _content(files, path), sorted(manifests)))
    return Reached(frozenset(lists), frozenset(manifests), frozenset(content))


def _manifests(files: ReadFiles, location: str) -> set[str]:
    return {str(one["manifest_path"]) for one in _records(files, location)}


def _content(files: ReadFiles, location: str) -> set[str]:
    """Data or delete files of a manifest; those that it names as gone are not among them."""
    return {
        str(one["data_file"]["file_path"])
        for one in _records(files, location)
        if one["status"] != _GONE
    }


def _records(files: ReadFiles, location: str) -> list[dict[str, Any]]:
    with files.open(location) as source:
        return [one for one in fastavro.reader(source) if isinstance(one, dict)]
