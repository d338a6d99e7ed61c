"""Who writes a group of files again: the driver, or tasks of Spark; decided with the reason.

The driver begins at once and needs nobody. Tasks take a start, and give what the driver lacks: the
executors of a cluster, or the other cores of this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from polynya.lake.maintenance.rewrite.plan import MEBIBYTE, Group
from polynya.observe.events import counted

#: Groups of fewer bytes are written before a task would have begun.
LARGE_BYTES: Final = 32 * MEBIBYTE
#: Tasks at a time on this machine: fewer are no faster than the driver...
LEAST_HERE: Final = 2
#: ...and each takes memory of its own.
MOST_HERE: Final = 4
#: Tasks at a time on a cluster: what they have written is committed together.
MOST_THERE: Final = 16


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs the tasks of a session: so many cores, of executors or of this machine."""

    cores: int
    on_cluster: bool

    @property
    def at_once(self) -> int:
        """Groups that tasks write at the same time."""
        return min(self.cores, MOST_THERE if self.on_cluster else MOST_HERE)


@dataclass(frozen=True, slots=True)
class Batch:
    """Groups that are written at the same time, and who does: tasks, or else the driver."""

    groups: tuple[Group, ...]
    by_tasks: bool
    reason: str

    @property
    def written_bytes(self) -> int:
        """What is written, about."""
        return sum(one.written_bytes for one in self.groups)


def batches(groups: Sequence[Group], engine: Engine) -> list[Batch]:
    """All groups in batches; each stands where the first of its groups stood."""
    large = [one for one in groups if one.read_bytes >= LARGE_BYTES]
    found: list[Batch] = []
    for group in groups:
        if group.read_bytes < LARGE_BYTES:
            reason = f"{group.read_bytes:,} bytes are written before a task would begin"
            found.append(Batch((group,), by_tasks=False, reason=reason))
        elif group in large:
            found.append(_of_large(large[: max(1, engine.at_once)], engine))
            del large[: len(found[-1].groups)]
    return found


def _of_large(some: Sequence[Group], engine: Engine) -> Batch:
    """The first batch of some large groups."""
    size = sum(one.read_bytes for one in some)
    if engine.on_cluster:
        reason = f"{size:,} bytes are written by {counted(len(some), 'task')} of the cluster"
        return Batch(tuple(some), by_tasks=True, reason=reason)
    if len(some) < LEAST_HERE:
        reason = "a task in another process of this machine would take as long"
        return Batch(tuple(some), by_tasks=False, reason=reason)
    reason = f"{size:,} bytes are shared by {len(some)} cores of this machine"
    return Batch(tuple(some), by_tasks=True, reason=reason)
