"""The object store as a port: paths with `/`, whole-object writes, and conditional writes.

Paths are relative to the root of the store. `checked_path` alone decides what a path may look like,
and `LocalObjectStore.resolve` alone turns a path into a file: no `..` and no symbolic link leads
out of the root.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol

from typing_extensions import override

from polynya.model.error_catalogue.machine import FILE_UNREADABLE_NOW, PATH_ESCAPES
from polynya.model.errors import DependencyError, OperationError

_TEMPORARY_PREFIX = ".polynya-tmp-"
_PIECE_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 16
#: A prime below 24 bits.
_STAMP_MODULUS = 16_777_213
#: What an error says of a path: there is no such file, or it is none that can be read. Every other
#: error of the system is one of the machine, and says nothing about the content of a file.
OF_THE_FILE = frozenset({
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL,
    errno.ENXIO,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing. `size` is in bytes, `written` in seconds since 1970, if it is told.

    `version` is another one after each write of the object, whatever was written; a store compares
    it and nobody else knows what it means. `stamp` is another one when the content was replaced, 0
    where the store tells nothing of it; it fits 24 bits, since thousands of files are remembered.
    """

    path: str
    size: int
    version: str = field(default="", compare=False)
    written: float | None = field(default=None, compare=False)
    stamp: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Content:
    """What an object held, and in which version."""

    data: bytes
    version: str


class ObjectStore(Protocol):
    """Bytes under paths."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix` ("" is the root), in path order."""
        ...

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, in path order, as far as they are asked for.

        Args:
            start: any text, "" for all; it need not end with a folder.
            after: only paths after this one.
        """
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

    def read(self, path: str, limit: int) -> Content:
        """The first `limit` bytes of the object. Raises FileNotFoundError."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write the object, whole or not at all; replaces."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the object unless it exists. True when this call created it."""
        ...

    def put_file_if_absent(self, path: str, file: BinaryIO) -> bool:
        """Likewise, of a seekable file as a whole, which memory need not hold. At most 5 GB.

        False may also mean that an attempt of this call wrote and its answer was lost.
        """
        ...

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """Write the object if its version is still `version`. True when this call wrote it."""
        ...

    def delete(self, path: str) -> None:
        """Remove the object; a missing object is ignored."""
        ...

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        """Remove the object if its version is still `version`. True when it is gone."""
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


#: How a file is read; tests put one in its place that breaks off.
read_into = io.FileIO.readinto


class _Local(io.FileIO):
    """A local file. A transient error of the machine is not reported as damage of the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path

    @override
    def readinto(self, buffer: Any, /) -> int:
        try:
            return read_into(self, buffer)
        except OSError as error:
            raise _passing(self._path, error) from error

    # In terms of `readinto`; those of `FileIO` would go past it.
    read = io.RawIOBase.read  # type: ignore[assignment]
    readall = io.RawIOBase.readall


def _passing(path: Path, error: OSError) -> Exception:
    """The error itself, or what to raise for one that says nothing of what is in the file."""
    return error if error.errno in {None, *OF_THE_FILE} else not_now(str(path), error)


def _unlisted(error: OSError) -> None:
    """Raise what keeps a folder from being listed, unless it is gone."""
    if error.errno not in OF_THE_FILE:
        raise not_now(str(error.filename), error) from error


def not_now(where: str, error: BaseException) -> DependencyError:
    """The error of a file that cannot be read for a moment."""
    reason = getattr(error, "strerror", None) or str(error) or "there is not enough memory"
    return FILE_UNREADABLE_NOW(where=where, reason=reason)


def _escape(path: str) -> OperationError:
    detail = ": it has a backslash, or a name that is not UTF-8" if "\\" in path else ""
    return PATH_ESCAPES(where=path, path=path, detail=detail)


class LocalObjectStore:
    """An object store in a local folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def resolve(self, path: str) -> Path:
        """The file of `path`.

        Raises:
            OperationError: POLYNYA-STO-001, it lies outside, also through links.
            OSError: a link that leads to itself.
        """
        target = self.root.joinpath(checked_path(path))
        if not self._leads_through_link(path):
            return target
        try:
            real = target.resolve()
        except RuntimeError as error:
            raise OSError(errno.ELOOP, "a link that leads to itself", str(target)) from error
        if not real.is_relative_to(self.root):
            raise _escape(path)
        return target

    def _leads_through_link(self, path: str) -> bool:
        """Whether a part of a checked path is a symbolic link.

        Thousands of files are opened every second, and nearly none is behind a link.
        """
        place = str(self.root)
        for part in path.split("/"):
            place = f"{place}/{part}"
            if os.path.islink(place):  # noqa: PTH114 - see above
                return True
        return False

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix`; linked folders are not entered.

        Raises DependencyError: POLYNYA-STO-003, a folder cannot be read now. It is not empty.
        """
        if prefix:
            self.resolve(prefix)
        found: list[ObjectInfo] = []
        folders = [f"{prefix}/" if prefix else ""]
        while folders:
            folder = folders.pop()
            try:
                # Texts and not `Path`s: thousands of files are listed every second.
                with os.scandir(f"{self.root}/{folder}".removesuffix("/")) as entries:
                    for entry in entries:
                        if _is_folder(entry):
                            if not entry.is_symlink():
                                folders.append(f"{folder}{entry.name}/")
                        elif not entry.name.startswith(_TEMPORARY_PREFIX):
                            found.append(_object(f"{folder}{entry.name}", entry.stat))
            except OSError as error:
                _unlisted(error)
        yield from sorted(found, key=attrgetter("path"))

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The files whose paths begin with `start`; one folder is looked at after the other.

        Linked folders are not entered.
        """
        folder, _, _ = start.rpartition("/")
        yield from self._walked(f"{folder}/" if folder else "", start, after)

    def _walked(self, folder: str, start: str, after: str) -> Iterator[ObjectInfo]:
        for path in self._entries(folder, after):
            # A folder may be where both of them lead to, or lie behind them.
            if path.endswith("/"):
                leads = path.startswith(start) or start.startswith(path)
                if leads and (path > after or after.startswith(path)):
                    yield from self._walked(path, start, after)
            elif path.startswith(start) and path > after and not _is_temporary(path):
                yield self.info(path)

    def _entries(self, folder: str, after: str = "") -> Sequence[str]:
        """What is in a folder, in path order; folders end with `/`.

        What cannot come after a path, or lead to it, may be left out.
        """
        place = self.resolve(folder.removesuffix("/")) if folder else self.root
        rest = after[len(folder) :] if after.startswith(folder) else ""
        try:
            with os.scandir(place) as found:
                return sorted(
                    f"{folder}{one.name}{_ending(one)}"
                    for one in found
                    if one.name >= rest or rest.startswith(one.name)
                )
        except OSError as error:
            _unlisted(error)
            return []

    def info(self, path: str) -> ObjectInfo:
        """One entry of a listing."""
        return _object(path, lambda: os.stat(f"{self.root}/{path}"))  # noqa: PTH116 - see `list`

    def size(self, path: str) -> int:
        """Size in bytes."""
        return self.resolve(path).stat().st_size

    def open(self, path: str) -> BinaryIO:
        """A seekable reader.

        Raises:
            OSError: the file does not exist, or is not a regular file, such as a named pipe.
            DependencyError: POLYNYA-STO-003, the machine cannot read it now; reading raises it too.
        """
        target = self.resolve(path)
        try:
            is_file = stat.S_ISREG(target.stat().st_mode)
            found = io.BufferedReader(_Local(target), _BUFFER_BYTES) if is_file else None
        except OSError as error:
            raise _passing(target, error) from error
        if found is None:
            raise OSError(errno.EINVAL, "no regular file", str(target))
        return found

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self.resolve(path).read_bytes()

    def read(self, path: str, limit: int) -> Content:
        """The first `limit` bytes; anything but a file, such as a named pipe, counts as missing."""
        target = self.resolve(path)
        if not target.is_file():
            raise FileNotFoundError(str(target))
        with target.open("rb") as file:
            return Content(file.read(limit), _version(os.fstat(file.fileno())))

    def put(self, path: str, data: bytes) -> None:
        """Write a temporary file, then rename: a reader sees the old object or the new one."""
        target = self.resolve(path)
        temporary = self._written_beside(target, io.BytesIO(data))
        temporary.replace(target)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Link a finished temporary file to the name: the file system lets one writer win."""
        return self.put_file_if_absent(path, io.BytesIO(data))

    def put_file_if_absent(self, path: str, file: BinaryIO) -> bool:
        """Likewise, with what a file holds."""
        target = self.resolve(path)
        temporary = self._written_beside(target, file)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """Compare and rename under a lock: of several processes that do this one wins."""
        target = self.resolve(path)
        with self._alone():
            if not target.is_file() or _version(target.stat()) != version:
                return False
            self._written_beside(target, io.BytesIO(data)).replace(target)
            return True

    def delete(self, path: str) -> None:
        """Remove the object."""
        self.resolve(path).unlink(missing_ok=True)

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        """Remove the object if it has this version."""
        target = self.resolve(path)
        with self._alone():
            if target.is_file() and _version(target.stat()) != version:
                return False
            target.unlink(missing_ok=True)
            return True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else compares and writes in this folder meanwhile."""
        with (self.root / f"{_TEMPORARY_PREFIX}lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _written_beside(self, target: Path, content: BinaryIO) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=target.parent)
        content.seek(0)
        with os.fdopen(descriptor, "wb") as file:
            shutil.copyfileobj(content, file, _PIECE_BYTES)
            file.flush()
            os.fsync(file.fileno())
        return Path(name)


def _object(path: str, look: Callable[[], os.stat_result]) -> ObjectInfo:
    try:
        known = look()
    except OSError:
        # A dangling link or a file that has just gone: reading it will say so by name.
        return ObjectInfo(_as_text(path), 0, "")
    return ObjectInfo(_as_text(path), known.st_size, _version(known), known.st_mtime, _stamp(known))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        # Such as a link that leads to itself.
        return False


def _version(known: os.stat_result) -> str:
    return f"{known.st_ino}.{known.st_mtime_ns}.{known.st_size}"


def _stamp(known: os.stat_result) -> int:
    """A number for the time of the last write. The inode has no say: a copied folder has others."""
    return known.st_mtime_ns % _STAMP_MODULUS + 1


def _as_text(path: str) -> str:
    """A path without bytes that are not UTF-8: these become a backslash, which no path may have."""
    if path.isascii():
        return path
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    return path


def _ending(entry: os.DirEntry[str]) -> str:
    return "/" if entry.is_dir(follow_symlinks=False) else ""


def _is_temporary(path: str) -> bool:
    """Whether a file is one that is written and not renamed yet."""
    return path.rpartition("/")[2].startswith(_TEMPORARY_PREFIX)
