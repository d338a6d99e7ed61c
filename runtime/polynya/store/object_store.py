"""The object store as a port: paths with `/`, whole-object writes, one conditional write.

Paths are relative to the root of the store. `checked_path` is the only place that decides what a
path may look like, and `LocalObjectStore.resolve` the only place that turns one into a file: no
`..`, no symbolic link leads out of the root.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from polynya.model.errors import OperationError

_TEMPORARY_PREFIX = ".polynya-tmp-"


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing. `size` is in bytes."""

    path: str
    size: int


class ObjectStore(Protocol):
    """Bytes under paths."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix` ("" is the root), in path order."""
        ...

    def size(self, path: str) -> int:
        """Size in bytes. Raises FileNotFoundError."""
        ...

    def open(self, path: str) -> BinaryIO:
        """A seekable reader. Raises FileNotFoundError."""
        ...

    def get(self, path: str) -> bytes:
        """The whole object. Raises FileNotFoundError."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write the object, whole or not at all; replaces."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the object unless it exists. True when this call created it."""
        ...

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is no error."""
        ...


def checked_path(path: str) -> PurePosixPath:
    """The path, when it stays below its root. Raises OperationError POLYNYA-STO-001."""
    pure = PurePosixPath(path)
    bad = (
        not path
        or pure.is_absolute()
        or "\\" in path
        or "\0" in path
        or any(part in {"", ".", ".."} for part in path.split("/"))
    )
    if bad:
        raise _escape(path)
    return pure


def _escape(path: str) -> OperationError:
    return OperationError(
        "POLYNYA-STO-001",
        f"path {path!r} leaves the folder it belongs to",
        where=path,
        state="nothing was read or written",
        fix="use a relative path without '..', and no symbolic link that points outside",
    )


class LocalObjectStore:
    """An object store in a local folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def resolve(self, path: str) -> Path:
        """The file of `path`. Raises OperationError when it lies outside, also through links."""
        target = self.root.joinpath(checked_path(path))
        if not target.resolve().is_relative_to(self.root):
            raise _escape(path)
        return target

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix`; linked folders are not entered."""
        folder = self.resolve(prefix) if prefix else self.root
        found: list[ObjectInfo] = []
        for directory, _, names in os.walk(folder, followlinks=False):
            for name in names:
                if name.startswith(_TEMPORARY_PREFIX):
                    continue
                file = Path(directory) / name
                try:
                    size = file.stat().st_size
                except OSError:
                    # A dangling link or a file that has just gone: reading it will say so by name.
                    size = 0
                found.append(ObjectInfo(file.relative_to(self.root).as_posix(), size))
        yield from sorted(found, key=lambda info: info.path)

    def size(self, path: str) -> int:
        """Size in bytes."""
        return self.resolve(path).stat().st_size

    def open(self, path: str) -> BinaryIO:
        """A seekable reader."""
        return self.resolve(path).open("rb")

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self.resolve(path).read_bytes()

    def put(self, path: str, data: bytes) -> None:
        """Write a temporary file, then rename: a reader sees the old object or the new one."""
        target = self.resolve(path)
        temporary = self._written_beside(target, data)
        temporary.replace(target)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Link a finished temporary file to the name: the file system lets one writer win."""
        target = self.resolve(path)
        temporary = self._written_beside(target, data)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def delete(self, path: str) -> None:
        """Remove the object."""
        self.resolve(path).unlink(missing_ok=True)

    def _written_beside(self, target: Path, data: bytes) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=target.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return Path(name)
