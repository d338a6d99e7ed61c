"""Fakes that behave like the real ports and hold everything in memory."""

from __future__ import annotations

import io
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import BinaryIO

from polynya.store.object_store import Content, ObjectInfo, checked_path


class MemoryObjectStore:
    """An object store in a dictionary."""

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self._writes: dict[str, int] = {}
        #: When objects were written, in seconds since 1970, of those of which somebody says it.
        self.written: dict[str, float] = {}
        for path, data in (objects or {}).items():
            self.put(path, data)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix`, in the order of their paths."""
        folder = f"{checked_path(prefix)}/" if prefix else ""
        for path in sorted(self.objects):
            if path.startswith(folder):
                yield self._info(path)

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, after another one."""
        # Sorting what is sorted but for its end takes little time.
        paths = sorted(self.objects)
        number = max(bisect_left(paths, start), bisect_right(paths, after))
        for path in takewhile(lambda one: one.startswith(start), paths[number:]):
            yield self._info(path)

    def size(self, path: str) -> int:
        """Size in bytes."""
        return len(self.get(path))

    def open(self, path: str) -> BinaryIO:
        """A seekable reader."""
        return io.BytesIO(self.get(path))

    def get(self, path: str) -> bytes:
        """The whole object."""
        checked_path(path)
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def read(self, path: str, limit: int) -> Content:
        """The first `limit` bytes of the object."""
        return Content(self.get(path)[:limit], self._version(path))

    def put(self, path: str, data: bytes) -> None:
        """Write the object; replaces."""
        checked_path(path)
        self.objects[path] = bytes(data)
        self._writes[path] = self._writes.get(path, 0) + 1

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the object unless it exists. True when this call created it."""
        if path in self.objects:
            return False
        self.put(path, data)
        return True

    def put_file_if_absent(self, path: str, file: BinaryIO) -> bool:
        """Likewise, with what a file holds."""
        file.seek(0)
        return self.put_if_absent(path, file.read())

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """Write the object if it has this version."""
        if path not in self.objects or self._version(path) != version:
            return False
        self.put(path, data)
        return True

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is no error."""
        checked_path(path)
        self.objects.pop(path, None)

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        """Remove the object if it has this version."""
        if path in self.objects and self._version(path) != version:
            return False
        self.delete(path)
        return True

    def _info(self, path: str) -> ObjectInfo:
        size, written = len(self.objects[path]), self.written.get(path)
        stamp = zlib.crc32(self.objects[path]) & 0xFFFFFF or 1
        return ObjectInfo(path, size, self._version(path), written, stamp)

    def _version(self, path: str) -> str:
        return str(self._writes.get(path, 0))


class MemorySourceStore(MemoryObjectStore):
    """A store of others in memory; it counts the requests that S3 would take to list it."""

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self.requests = 0
        super().__init__(objects)

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, in pages of a thousand."""
        self.requests += 1
        for count, info in enumerate(super().beginning(start, after)):
            self.requests += 1 if count and count % 1000 == 0 else 0
            yield info

    def folders(self, start: str) -> Iterator[str]:
        """The folders that begin with `start`, in pages of a thousand."""
        found = {
            path[: path.index("/", len(start)) + 1]
            for path in self.objects
            if path.startswith(start) and "/" in path[len(start) :]
        }
        self.requests += 1 + max(0, len(found) - 1) // 1000
        return iter(sorted(found))


class FakeClock:
    """A clock that moves only when told to; `sleep` moves it at once."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        """The time that was set."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        """Move time forward without waiting."""
        self.advance(timedelta(seconds=seconds))

    def advance(self, by: timedelta) -> None:
        """Move time forward."""
        self._now += by
        self._elapsed += by.total_seconds()
