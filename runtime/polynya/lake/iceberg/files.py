"""Snapshots and data files as the engine sees them, and a cache of the files between snapshots.

Planning a scan reads manifests and costs several calls into the JVM for each file. So `LiveFiles`
plans each partition of a snapshot once, and carries the result over to the snapshot of an own
commit.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from polynya.lake.iceberg.deletion_vectors import Blob
from polynya.model.headers import Partition

#: The entry of a snapshot's summary that marks a step of the engine.
COMMIT: Final = "polynya.commit"


@dataclass(frozen=True, slots=True)
class FilePartition:
    """A partition of Iceberg: where files may share delete files, and rows a file.

    `partition` is the value of `PARTITION`. `spec` is the id of the partition spec, None for that
    by `PARTITION` alone; `values` are those of all fields of another spec, as Iceberg writes them
    in JSON.
    """

    partition: str
    spec: int | None = None
    values: str | None = None


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file, staged or live, with the figures that decisions need.

    `java` is the Java object of a staged file that has metrics. A live file holds none, since there
    are many. For `spec` and `values` see `FilePartition`. `sort_order` is the id of the table's
    sort order that its rows are in, None for none.
    """

    java: Any = field(repr=False, compare=False)
    path: str
    partition: str
    rows: int
    size_bytes: int
    spec: int | None = field(default=None, compare=False)
    values: str | None = field(default=None, compare=False)
    sort_order: int | None = field(default=None, compare=False)

    @property
    def slot(self) -> FilePartition:
        """The partition of Iceberg that it is in."""
        return FilePartition(self.partition, self.spec, self.values)

    def live(self) -> DataFile:
        """The same once it is committed."""
        return replace(self, java=None)


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """One file of position deletes, or one deletion vector in a file; staged or live.

    `touched` are the data files that it refers to. It is empty for position deletes that were found
    in the table: theirs are in the file (`deletes.deleted_places`). `blob` is where a vector is.
    """

    java: Any = field(repr=False, compare=False)
    path: str
    touched: tuple[str, ...] = ()
    blob: Blob | None = None

    @property
    def place(self) -> tuple[str, int]:
        """What tells it from all others: many vectors share a file."""
        return self.path, 0 if self.blob is None else self.blob.offset


def data_file(java: Any, slot: FilePartition, sort_order: int | None = None) -> DataFile:
    """A data file of Iceberg with its figures and its Java object."""
    return DataFile(
        java=java,
        path=str(java.location()),
        partition=slot.partition,
        rows=int(java.recordCount()),
        size_bytes=int(java.fileSizeInBytes()),
        spec=slot.spec,
        values=slot.values,
        sort_order=sort_order,
    )


def delete_file(java: Any) -> DeleteFile | None:
    """A live delete file of Iceberg; None for equality deletes, and for another file format."""
    kind = str(java.content()), str(java.format())
    path = str(java.location())
    if kind == ("POSITION_DELETES", "PARQUET"):
        return DeleteFile(java, path)
    if kind != ("POSITION_DELETES", "PUFFIN"):
        return None
    data_file = str(java.referencedDataFile())
    offset, size = int(java.contentOffset()), int(java.contentSizeInBytes())
    return DeleteFile(
        java, path, (data_file,), Blob(data_file, offset, size, int(java.recordCount()))
    )


def listed(collection: Any) -> list[Any]:
    """The members of a `java.util.Collection`.

    Its iterator would end with an exception in the JVM, which PySpark takes fifty calls to explain.
    """
    array = collection.toArray()
    return [array[index] for index in range(len(array))]


class LiveFiles:
    """Live files by partition, of the newest snapshot that was asked for and of those in use.

    One thread may ask for a snapshot that it works on while another moves on.
    """

    def __init__(self, plan: Callable[[Partition, int], Sequence[DataFile]]) -> None:
        self._plan = plan
        self._known: dict[int, dict[str, tuple[DataFile, ...]]] = {}
        self._newest: int | None = None
        self._in_use: Counter[int] = Counter()
        self._lock = threading.Lock()

    def of(self, partition: Partition, snapshot: int) -> tuple[DataFile, ...]:
        """Files of one partition in a snapshot."""
        with self._lock:
            files = self._of(snapshot)
        if partition not in files:
            files[partition] = tuple(self._plan(partition, snapshot))
        return files[partition]

    @contextmanager
    def in_use(self, snapshot: int) -> Iterator[None]:
        """Do not forget the files of a snapshot meanwhile."""
        with self._lock:
            self._of(snapshot)
            self._in_use[snapshot] += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_use[snapshot] -= 1

    def used(self) -> frozenset[int]:
        """Snapshots that a step of this process works on."""
        with self._lock:
            return frozenset(snapshot for snapshot, count in self._in_use.items() if count)

    def moved_on(
        self, base: int | None, snapshot: int, add: Iterable[DataFile], remove: Iterable[DataFile]
    ) -> None:
        """Take over what `snapshot`, the child of `base`, has added and removed."""
        with self._lock:
            if base is None or base not in self._known:
                return
            gone, new = {file.path for file in remove}, [file.live() for file in add]
            moved = {
                partition: (
                    *(file for file in files if file.path not in gone),
                    *(file for file in new if file.partition == partition),
                )
                for partition, files in dict(self._known[base]).items()
            }
            self._of(snapshot).update(moved)

    def _of(self, snapshot: int) -> dict[str, tuple[DataFile, ...]]:
        """What is known of a snapshot; of others than those in use it is forgotten."""
        if snapshot not in self._known:
            if not self._in_use[snapshot]:
                self._newest = snapshot
            kept = {number for number, count in self._in_use.items() if count} | {
                self._newest,
                snapshot,
            }
            self._known = {
                snapshot: files for snapshot, files in self._known.items() if snapshot in kept
            }
            self._known[snapshot] = {}
        return self._known[snapshot]


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """Ids of a snapshot, of its parent (None for the first), of the schema that it was made with.

    `commit` is the marker of the step that made it, None when the engine did not. `delete_files`
    are all that it has, as it counts them.
    """

    number: int
    parent: int | None
    schema: int | None
    commit: str | None
    delete_files: int


def snapshot_of(text: str) -> TableSnapshot:
    """A snapshot out of its JSON."""
    values = json.loads(text)
    summary = values.get("summary", {})
    return TableSnapshot(
        number=int(values["snapshot-id"]),
        parent=values.get("parent-snapshot-id"),
        schema=values.get("schema-id"),
        commit=summary.get(COMMIT),
        delete_files=int(summary.get("total-delete-files") or 0),
    )
