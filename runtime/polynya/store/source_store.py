"""Stores that others write: listed by how paths begin, so that nobody lists all they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from polynya.model.config.aws import AwsAccess
from polynya.model.contract.location import Location
from polynya.model.errors import DependencyError
from polynya.store.object_store import LocalObjectStore, ObjectStore


class SourceStore(ObjectStore, Protocol):
    """An object store of which parts are listed."""

    def folders(self, start: str) -> Iterator[str]:
        """Paths of folders that begin with `start` and go on to the next `/`, with it, in order."""
        ...


class LocalSourceStore(LocalObjectStore):
    """A local folder that others write. Linked folders are not entered."""

    def folders(self, start: str) -> Iterator[str]:
        """The folders that begin with `start`."""
        folder, _, _ = start.rpartition("/")
        for path in self._entries(f"{folder}/" if folder else ""):
            if path.endswith("/") and path.startswith(start):
                yield path

    def _entries(self, folder: str, after: str = "") -> Sequence[str]:
        if not self.root.is_dir():
            raise _no_folder(self.root)
        return super()._entries(folder, after)


def _no_folder(root: Path) -> DependencyError:
    return DependencyError(
        "POLYNYA-STR-042",
        "there is no such folder to read files from",
        where=str(root),
        state="nothing was read after the last landed batch",
        fix="make the folder, or mount what it is on; the task goes on by itself",
    )


def source_at(place: Location, access: AwsAccess) -> SourceStore:
    """A local folder, which may be missing, or a place in a bucket."""
    if isinstance(place, Path):
        return LocalSourceStore(place)
    # Start-up time: the AWS SDK takes as long as the rest of a command on local folders.
    from polynya.store.aws.s3_source import S3SourceStore

    return S3SourceStore(place, access)
