"""What a process and its descendants use, from /proc; nothing where there is no /proc."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_EVERY = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def processor_seconds(root: int) -> float:
    """Processor time so far of a process and of its descendants that live."""
    stats = _tree(root)
    return sum(int(one[11]) + int(one[12]) for one in stats) / _TICKS


def resident(root: int) -> int:
    """Bytes in memory now, of all of them."""
    return sum(int(one[21]) for one in _tree(root)) * _PAGE


class Peak(threading.Thread):
    """Looks at the memory of a process five times a second until it ends."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._over = threading.Event()
        self.bytes = 0

    def run(self) -> None:
        """See the class."""
        while not self._over.wait(_EVERY):
            self.bytes = max(self.bytes, resident(self._root))

    def stop(self) -> None:
        """Look no more."""
        self._over.set()


def _tree(root: int) -> list[list[str]]:
    """Fields of `stat` after the name, from the state on, of each process of the tree."""
    stats = {}
    for entry in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            stats[int(entry.parent.name)] = entry.read_text().rpartition(")")[2].split()
    found, grown = {root} & stats.keys(), True
    while grown:
        children = {pid for pid, one in stats.items() if int(one[1]) in found}
        grown = not children <= found
        found |= children
    return [stats[pid] for pid in found]
