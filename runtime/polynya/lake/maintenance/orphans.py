"""`remove_orphan_files`: delete files of a table's folder that no snapshot and no metadata names.

A killed process leaves the files that it had staged. They look like files of a commit under way, so
only old ones are deleted. Paths are compared as the metadata spells them. Before anything is
deleted, each file of the current snapshot must be in the listing: if one is missing, listing and
metadata spell paths differently, and every file would look like an orphan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, Final

from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.snapshots import delete, reached_by
from polynya.lake.table.dataset import DatasetTable
from polynya.model.error_catalogue.operation import FOLDER_LISTED_UNDER_OTHER_NAME
from polynya.observe.trace import span
from polynya.store.data_files import ListedFile

#: Iceberg writes below these two of a table's folder; whatever else lies there is not ours.
_FOLDERS: Final = ("data", "metadata")
_SAME_SCHEMES: Final = ("s3a://", "s3n://")
#: No step takes longer, and no file of an unknown outcome is undecided longer.
LEAST_AGE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Orphans:
    """Files that nothing reaches and that are old enough, as they were listed."""

    files: Sequence[ListedFile]
    listed: int

    @property
    def size_bytes(self) -> int:
        """Of all of them."""
        return sum(file.size for file in self.files)


@span("remove orphan files")
def remove_orphan_files(
    target: DatasetTable, *, limits: ActionLimits, older_than: timedelta = timedelta(days=3)
) -> ActionOutcome:
    """Delete the orphans of a table that nobody has written to for `older_than`.

    Raises ConflictError when another owner has taken the table over, ValueError for an age at which
    a commit may still be under way, and OperationError when the paths of the listing and those of
    the metadata are not spelled alike.
    """
    started = time.monotonic()
    with target.changing:
        target.reload()
    orphans = find_orphans(target.table, now=limits.now, older_than=older_than)
    if isinstance(orphans, str):
        return ActionOutcome("remove_orphan_files", orphans, whole=False)
    paths = [file.location for file in orphans.files]
    why = f"{len(paths):,} of {orphans.listed:,} files are older than {older_than} and unreached"
    if limits.give_way():
        paths, why = [], "a step of the table waits"
    if paths:
        delete(target.table, paths, {file.location: file.size for file in orphans.files})
    return ActionOutcome(
        "remove_orphan_files",
        why,
        whole=len(paths) == len(orphans.files),
        files_removed=len(paths),
        freed_bytes=orphans.size_bytes if paths else 0,
        seconds=round(time.monotonic() - started, 3),
    )


def find_orphans(
    table: IcebergTable, *, now: datetime, older_than: timedelta = timedelta(days=3)
) -> Orphans | str:
    """The orphans of a table, or why they cannot be found. Nothing is changed.

    Raises as `remove_orphan_files`.
    """
    if older_than < LEAST_AGE:
        raise ValueError(f"orphans are older than {LEAST_AGE}, not {older_than}")
    reads = table.reach().reads
    if isinstance(reads, str):
        return f"the files cannot be listed: {reads}"
    root = str(table.java.location()).rstrip("/")
    before = table.metadata()
    # Listed before the metadata is read that says what is used: no later file is in the list.
    listed = [file for name in _FOLDERS for file in reads.list(f"{root}/{name}")]
    old = [file for file in listed if file.changed < now - older_than]
    if not old:
        return Orphans([], len(listed))
    if str(before.get("properties", {}).get("gc.enabled", "true")).lower() == "false":
        return "`gc.enabled` of the table is false: its files may belong to other tables"
    _refuse_other_spelling(table, root, before, {_key(file.location) for file in listed})
    metadata = table.metadata()
    reached = reached_by(table, metadata.get("snapshots", ()))
    own = str(table.java.operations().current().metadataFileLocation())
    used = {_key(path) for path in [*reached.paths, *_of_metadata(metadata, own)]}
    orphans = [
        file for file in old if _key(file.location) not in used and not _is_hint(file.location)
    ]
    return Orphans(orphans, len(listed))


def _refuse_other_spelling(
    table: IcebergTable, root: str, metadata: Mapping[str, Any], listed: set[str]
) -> None:
    """Raise OperationError unless each file of the current snapshot is in the listing."""
    current = metadata.get("current-snapshot-id")
    newest = [
        snapshot for snapshot in metadata.get("snapshots", ()) if snapshot["snapshot-id"] == current
    ]
    missing = {path for path in reached_by(table, newest).paths if _key(path) not in listed}
    if missing:
        raise FOLDER_LISTED_UNDER_OTHER_NAME(
            where=min(missing), why=f"the folder is {root}", count=len(missing), table=table.name
        )


def _of_metadata(metadata: Mapping[str, Any], own: str) -> Iterator[str]:
    """The metadata file itself, those before it, and files of statistics."""
    yield own
    for entry in metadata.get("metadata-log", ()):
        yield str(entry["metadata-file"])
    for name in ("statistics", "partition-statistics"):
        for entry in metadata.get(name, ()):
            yield str(entry["statistics-path"])


def _key(location: str) -> str:
    """What two spellings of one location have in common."""
    for scheme in _SAME_SCHEMES:
        if location.startswith(scheme):
            return f"s3://{location.removeprefix(scheme)}"
    if location.startswith("file:"):
        return f"/{location.removeprefix('file:').lstrip('/')}"
    return location


def _is_hint(location: str) -> bool:
    return PurePosixPath(location).name == "version-hint.text"
