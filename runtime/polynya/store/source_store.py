"""Stores that others write: listed by how paths begin, so that nobody lists all they hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from polynya.model.config.aws import AwsAccess
from polynya.model.contract.location import Location
from polynya.model.errors import DependencyError
from polynya.store.object_store import LocalObjectStore, ObjectInfo, ObjectStore


class SourceStore(ObjectStore, Protocol):
    """An object store of which parts are listed."""

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, in path order, as far as they are asked for.

        Args:
            start: any text, "" for all; it need not end with a folder.
            after: only paths after this one.
        """
        ...

    def folders(self, start: str) -> Iterator[str]:
        """Paths of folders that begin with `start` and go on to the next `/`, with it, in order."""
        ...


class LocalSourceStore(LocalObjectStore):
    """A local folder that others write. Linked folders are not entered."""

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The files whose paths begin with `start`; one folder is looked at after the other."""
        folder, _, _ = start.rpartition("/")
        yield from self._walked(f"{folder}/" if folder else "", start, after)

    def folders(self, start: str) -> Iterator[str]:
        """The folders that begin with `start`."""
        folder, _, _ = start.rpartition("/")
        for path in self._entries(f"{folder}/" if folder else ""):
            if path.endswith("/") and path.startswith(start):
                yield path

    def _walked(self, folder: str, start: str, after: str) -> Iterator[ObjectInfo]:
        for path in self._entries(folder):
            # A folder may be where both of them lead to, or lie behind them.
            if path.endswith("/"):
                leads = path.startswith(start) or start.startswith(path)
                if leads and (path > after or after.startswith(path)):
                    yield from self._walked(path, start, after)
            elif path.startswith(start) and path > after:
                yield self.info(path)

    def _entries(self, folder: str) -> list[str]:
        """What is in a folder, in path order; folders end with `/`."""
        place = self.resolve(folder.removesuffix("/")) if folder else self.root
        try:
            with os.scandir(place) as found:
                return sorted(f"{folder}{one.name}{_ending(one)}" for one in found)
        except (FileNotFoundError, NotADirectoryError):
            if not self.root.is_dir():
                raise _no_folder(self.root) from None
            return []


def _ending(entry: os.DirEntry[str]) -> str:
    return "/" if entry.is_dir(follow_symlinks=False) else ""


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
