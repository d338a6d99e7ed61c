"""Data and delete files as the engine sees them, and what stays known of them between snapshots.

Planning a scan reads manifests and costs several calls into the JVM for each file. So each
partition of a snapshot is planned once, and an own commit moves what is known on to its snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from polynya.model.contract.headers import Partition


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file, staged or live: the Java object and the figures that decisions need."""

    java: Any = field(repr=False, compare=False)
    path: str
    partition: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """One file of position deletes, staged or live.

    `touched` are the data files that a staged one refers to. It is empty for one that was found in
    the table: those are in the file (`position_deletes.py`).
    """

    java: Any = field(repr=False, compare=False)
    path: str
    touched: tuple[str, ...] = ()


def data_file(java: Any, partition: str) -> DataFile:
    """A data file of Iceberg with its figures."""
    return DataFile(
        java=java,
        path=str(java.location()),
        partition=partition,
        rows=int(java.recordCount()),
        size_bytes=int(java.fileSizeInBytes()),
    )


def listed(collection: Any) -> list[Any]:
    """The members of a `java.util.Collection`.

    Its iterator would end with an exception in the JVM, which PySpark takes fifty calls to explain.
    """
    array = collection.toArray()
    return [array[index] for index in range(len(array))]


class KnownFiles:
    """Live files by partition, of one snapshot at a time."""

    def __init__(self, plan: Callable[[Partition, int], Sequence[DataFile]]) -> None:
        self._plan = plan
        self._snapshot: int | None = None
        self._known: dict[str, tuple[DataFile, ...]] = {}

    def of(self, partition: Partition, snapshot: int) -> tuple[DataFile, ...]:
        """Files of one partition in a snapshot."""
        if snapshot != self._snapshot:
            self._snapshot, self._known = snapshot, {}
        if partition not in self._known:
            self._known[partition] = tuple(self._plan(partition, snapshot))
        return self._known[partition]

    def moved_on(
        self, base: int | None, snapshot: int, add: Iterable[DataFile], remove: Iterable[DataFile]
    ) -> None:
        """Take over what `snapshot`, the child of `base`, has added and removed."""
        if base is None or base != self._snapshot:
            return
        gone, new = {file.path for file in remove}, list(add)
        self._snapshot = snapshot
        self._known = {
            partition: (
                *(file for file in files if file.path not in gone),
                *(file for file in new if file.partition == partition),
            )
            for partition, files in self._known.items()
        }
