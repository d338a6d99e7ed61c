"""How much of a machine's memory the JVM of Spark takes as its heap."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from polynya.model.contract.identifiers import shown
from polynya.model.errors import ConfigError

#: The environment variable that names the heap of the driver.
MEMORY_VARIABLE: Final = "POLYNYA_DRIVER_MEMORY"
_GIB: Final = 1024
_LEAST: Final = 1 * _GIB
_SYSTEM: Final = 2 * _GIB
_MOST_SHARED: Final = 4 * _GIB
# From 32 GiB on, the JVM's references take eight bytes instead of four: less fits into more.
_MOST: Final = 30 * _GIB
_CONTAINER: Final = Path("/sys/fs/cgroup/memory.max")
#: Spark refuses a JVM that says it has less than 450 MiB, and a JVM says less than it was given.
_SPARK_LEAST: Final = 512
_SIZE: Final = re.compile(r"(\d{1,12})([kmgtKMGT])[bB]?")
#: Units in KiB.
_KIB: Final = {"k": 1, "m": 1 << 10, "g": 1 << 20, "t": 1 << 30}


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


def asked_heap(text: str, machine_mib: int) -> int:
    """The heap in MiB that somebody asks for, as Spark writes it: `3g`, `800m`.

    Raises ConfigError when it is no size, or one with which the JVM or Spark would not start.
    """
    match = _SIZE.fullmatch(text.strip())
    mib = int(match[1]) * _KIB[match[2].lower()] >> 10 if match else 0
    if match is None:
        raise _no_heap(text, "is no size")
    if mib < _SPARK_LEAST:
        raise _no_heap(text, f"is less than the {_SPARK_LEAST}m that Spark needs to start")
    if mib > machine_mib:
        raise _no_heap(text, f"is more than the {machine_mib}m of this machine")
    return mib


def _no_heap(text: str, why: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-CFG-031",
        f"{MEMORY_VARIABLE} {why}: {shown(text)}",
        where=f"the environment variable {MEMORY_VARIABLE}",
        state="nothing was started",
        fix="for example `2g` or `1500m`; without it a size that fits this machine is taken",
    )
