"""A store in memory without faults that counts its requests by second."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import BinaryIO

from polynya.store.object_store import Content, ObjectInfo

#: A listing gives so many objects in one request.
PAGE = 1000


class CountedStore:
    """Objects with versions, sorted by path."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._held: dict[str, tuple[bytes, ObjectInfo]] = {}
        self._paths: list[str] = []
        self._number = 0
        self.writes: Counter[int] = Counter()
        self.reads: Counter[int] = Counter()
        self.by_folder: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below a folder."""
        start = bisect_left(self._paths, f"{prefix}/")
        stop = bisect_left(self._paths, f"{prefix}0")
        found = [self._held[path][1] for path in self._paths[start:stop]]
        pages = max(1, -(-len(found) // PAGE))
        self._count(self.reads, prefix, "list", pages)
        return iter(found)

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, as far as they are asked for."""
        number = max(bisect_left(self._paths, start), bisect_right(self._paths, after))
        self._count(self.reads, start, "list", 1)
        for count, path in enumerate(self._paths[number:]):
            if not path.startswith(start):
                return
            if count and count % PAGE == 0:
                self._count(self.reads, start, "list", 1)
            yield self._held[path][1]

    def size(self, path: str) -> int:
        """Size in bytes."""
        return len(self.get(path))

    def open(self, path: str) -> BinaryIO:
        """A reader."""
        return BytesIO(self.get(path))

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self.read(path, 1 << 40).data

    def read(self, path: str, limit: int) -> Content:
        """The first bytes and the version."""
        self._count(self.reads, path, "read", 1)
        if path not in self._held:
            raise FileNotFoundError(path)
        data, info = self._held[path]
        return Content(data[:limit], info.version)

    def put(self, path: str, data: bytes) -> None:
        """Replace."""
        self._write(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create."""
        if path in self._held:
            self._count(self.writes, path, "refused", 1)
            return False
        self._write(path, data)
        return True

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """Swap."""
        if self._version(path) != version:
            self._count(self.writes, path, "refused", 1)
            return False
        self._write(path, data)
        return True

    def delete(self, path: str) -> None:
        """Remove."""
        self._count(self.writes, path, "delete", 1)
        if self._held.pop(path, None) is not None:
            self._paths.pop(bisect_left(self._paths, path))

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        """Remove this version."""
        if path in self._held and self._version(path) != version:
            return False
        self.delete(path)
        return True

    def _write(self, path: str, data: bytes) -> None:
        self._count(self.writes, path, "write", 1)
        self._number += 1
        if path not in self._held:
            insort(self._paths, path)
        self._held[path] = (data, ObjectInfo(path, len(data), str(self._number)))

    def _version(self, path: str) -> str | None:
        return self._held[path][1].version if path in self._held else None

    def _count(self, by_second: Counter[int], path: str, verb: str, requests: int) -> None:
        by_second[int(self._now())] += requests
        folder = path.split("/")[1] if "/" in path else path
        self.by_folder[folder][verb] += requests
