"""The folder of all key indexes of a user on a machine, and how much they may take.

Several processes share it. A file in it may be deleted at any time, also while it is used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polynya.lake.apply.local.keys.index_file import SCRATCH, SUFFIX, is_private

#: An index that was used in these seconds is not given up for another one.
IN_USE_SECONDS: Final = 15 * 60
#: What a process that died has left.
ABANDONED_SECONDS: Final = 60 * 60
#: Of the disk, the share that stays free.
FREE_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: its name, its bytes, when it was used last, in seconds since 1970."""

    name: str
    size_bytes: int
    used: float


def to_remove(
    entries: Sequence[Entry], needed: int, *, limit: int, free: int, disk: int, now: float
) -> list[str] | str:
    """Which files make room for `needed` bytes, the least recently used first, or why none do.

    All may take `limit` bytes. `free` bytes are left of a disk of `disk` bytes.
    """
    gone = [one for one in entries if _is_abandoned(one, now)]
    kept = [one for one in entries if not _is_abandoned(one, now)]
    over = max(
        sum(one.size_bytes for one in kept) + needed - limit,
        needed + int(disk * FREE_SHARE) - free - sum(one.size_bytes for one in gone),
    )
    idle = [one for one in kept if now - one.used > IN_USE_SECONDS]
    for one in sorted(idle, key=lambda one: one.used):
        if over <= 0:
            break
        gone.append(one)
        over -= one.size_bytes
    if over > 0:
        return f"{over:,} bytes are missing for it: indexes in use, or the disk, are in the way"
    return [one.name for one in gone]


def _is_abandoned(entry: Entry, now: float) -> bool:
    return entry.name.startswith(SCRATCH) and now - entry.used > ABANDONED_SECONDS


@dataclass(frozen=True, slots=True)
class Folder:
    """Where indexes lie, and the bytes that all of them may take."""

    path: Path
    limit: int

    def make_room(self, needed: int, now: float) -> str | None:
        """Make the folder, and room in it; None, or why there is none. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        if not is_private(self.path.stat()):
            return f"others can change what is in {self.path}"
        disk = shutil.disk_usage(self.path)
        removed = to_remove(
            self._entries(), needed, limit=self.limit, free=disk.free, disk=disk.total, now=now
        )
        if isinstance(removed, str):
            return removed
        for name in removed:
            self.remove(name)
        return None

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return (self.path / name).is_file()

    def use(self, name: str, now: float) -> None:
        """Note that a file was used, where all processes see it."""
        path = self.path / name
        with suppress(OSError):
            # The time of its change stays: it says that the content is the one that was checked.
            os.utime(path, ns=(int(now * 1e9), path.stat().st_mtime_ns))

    def remove(self, name: str) -> None:
        """Delete a file; another process may have done it."""
        with suppress(OSError):
            (self.path / name).unlink()

    def _entries(self) -> list[Entry]:
        found = []
        with os.scandir(self.path) as files:
            for file in files:
                if file.name.endswith(SUFFIX) or file.name.startswith(SCRATCH):
                    with suppress(FileNotFoundError):
                        status = file.stat(follow_symlinks=False)
                        used = max(status.st_atime, status.st_mtime)
                        found.append(Entry(file.name, status.st_size, used))
        return found
