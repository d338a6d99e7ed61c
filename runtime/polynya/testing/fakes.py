"""Fakes that behave like the real ports and hold everything in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

from polynya.store.object_store import ObjectInfo, checked_path


class MemoryObjectStore:
    """An object store in a dictionary."""

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        for path, data in (objects or {}).items():
            self.put(path, data)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix`, in the order of their paths."""
        folder = f"{checked_path(prefix)}/" if prefix else ""
        for path in sorted(self.objects):
            if path.startswith(folder):
                yield ObjectInfo(path, len(self.objects[path]))

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

    def put(self, path: str, data: bytes) -> None:
        """Write the object; replaces."""
        checked_path(path)
        self.objects[path] = bytes(data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the object unless it exists. True when this call created it."""
        if path in self.objects:
            return False
        self.put(path, data)
        return True

    def delete(self, path: str) -> None:
        """Remove the object; a missing one is no error."""
        checked_path(path)
        self.objects.pop(path, None)


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
