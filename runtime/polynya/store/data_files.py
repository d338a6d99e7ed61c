"""Data files of tables as a port: written once at a location, never changed, read in ranges.

`LocalFiles` is the adapter for the local file system, `store/aws/data_objects.py` the one for S3.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from typing_extensions import override


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file of a listing: its size in bytes, and when it was last written."""

    location: str
    size: int
    changed: datetime


class ReadableFiles(Protocol):
    """Files under locations as Iceberg's metadata has them."""

    @property
    def readers(self) -> int:
        """How many files are best read at the same time."""
        ...

    def holds(self, location: str) -> bool:
        """Whether a location is one of these."""
        ...

    def open(self, location: str) -> Any:
        """A context with a `pyarrow.NativeFile` for random access. Raises OSError."""
        ...


class DataFiles(ReadableFiles, Protocol):
    """The same, written too. Compared and sent by value."""

    @override
    def __hash__(self) -> int:
        """By value: caches are keyed by the files that they hold."""
        return hash(type(self))

    @property
    def far(self) -> bool:
        """Whether each read is a request over a network."""
        ...

    def refusal(self, location: str) -> str | None:
        """Why this process cannot read a file that exists, None when it can."""
        ...

    def put(self, location: str, data: bytes) -> None:
        """Write a file whole. Raises OSError."""
        ...

    def create(self, location: str) -> Any:
        """A stream, a `pyarrow.NativeFile`, whose file is there once it is closed."""
        ...

    def list(self, folder: str) -> Iterator[ListedFile]:
        """All files below a folder, spelled as the folder is. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles(DataFiles):
    """The local file system."""

    @property
    @override
    def readers(self) -> int:
        """One for each core."""
        return os.cpu_count() or 2

    @property
    @override
    def far(self) -> bool:
        return False

    @override
    def holds(self, location: str) -> bool:
        """Whether a location is an absolute path or a `file:` URI."""
        return location.startswith(("/", "file:"))

    @override
    def refusal(self, location: str) -> str | None:
        """None: opening it raises the reason."""
        del location
        return None

    @override
    @contextmanager
    def open(self, location: str) -> Iterator[Any]:
        with pa.OSFile(local_path(location)) as file:
            yield file

    @override
    def put(self, location: str, data: bytes) -> None:
        with self.create(location) as file:
            file.write(data)

    @override
    def create(self, location: str) -> Any:
        path = _path(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        return pa.OSFile(str(path), "wb")

    @override
    def list(self, folder: str) -> Iterator[ListedFile]:
        """List files; links are neither followed nor listed."""
        top = folder.rstrip("/")
        for inside, _, names in os.walk(_path(top), followlinks=False):
            beyond = Path(inside).relative_to(_path(top)).as_posix()
            at = top if beyond == "." else f"{top}/{beyond}"
            for name in names:
                try:
                    known = os.lstat(f"{inside}/{name}")
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(known.st_mode):
                    changed = datetime.fromtimestamp(known.st_mtime, UTC)
                    yield ListedFile(f"{at}/{name}", known.st_size, changed)


def _path(location: str) -> Path:
    return Path(local_path(location))


def local_path(location: str) -> str:
    """The path of a location that `LocalFiles` holds."""
    # Hadoop takes what follows `file:` literally: `%20` in it is not a blank.
    return f"/{location.removeprefix('file:').lstrip('/')}"
