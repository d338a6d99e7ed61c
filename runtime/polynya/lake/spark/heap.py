"""How much of a machine's memory the JVM of Spark takes as its heap."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_GIB: Final = 1024
_LEAST: Final = 1 * _GIB
_SYSTEM: Final = 2 * _GIB
_MOST_SHARED: Final = 4 * _GIB
# From 32 GiB on, the JVM's references take eight bytes instead of four: less fits into more.
_MOST: Final = 30 * _GIB
_CONTAINER: Final = Path("/sys/fs/cgroup/memory.max")


def driver_heap(machine_mib: int, *, dedicated: bool) -> int:
    """The heap of the driver in MiB, for a machine with so many MiB.

    Everything runs in this one JVM, and beside it the Python process that reads batches, whose
    memory Arrow takes outside of both heaps. A machine that does nothing else (`dedicated`, a
    node) gives the JVM 60 % of what the system leaves: the rest is Python's, and what the JVM
    takes beside its heap for threads, classes and compiled code, at least 1 GiB of it. On a laptop
    somebody works: a quarter, and no more than 4 GiB. Never less than 1 GiB, below which Spark
    does not start, and never so much that references grow.
    """
    if dedicated:
        return max(_LEAST, min((machine_mib - _SYSTEM) * 6 // 10, _MOST))
    return max(_LEAST, min(machine_mib // 4, _MOST_SHARED))


def machine_memory(container: Path = _CONTAINER) -> int:
    """The memory in MiB that this process may use: the machine's, or its container's if less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(container.read_text(encoding="ascii"))
    except (OSError, ValueError):
        limit = machine  # no container, or one without a limit: `max`
    return min(machine, limit) // 2**20
