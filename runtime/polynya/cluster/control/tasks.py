"""What a person asks of tasks: read every few seconds, each object only when it changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from polynya.cluster.control.unit_wishes import Asked, Settled, UnitWishes
from polynya.cluster.coordination import paths
from polynya.cluster.coordination.documents import TaskWish
from polynya.cluster.coordination.register import Register
from polynya.cluster.unit import JobKey
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.clock import Clock

#: A listing costs a request, and a person does not mind this.
_EVERY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class AskedOfTasks:
    """The tasks that stand still, each with why, and those to be tried again, each with a mark.

    The mark is another one each time somebody asks for it. `units` are those with which something
    is to be done before their work goes on.
    """

    stopped: Mapping[str, str] = field(default_factory=dict)
    resumed: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[JobKey, Asked] = field(default_factory=dict)


class WorkWishes:
    """What is asked of tasks and of their units. `node` is the id of this one."""

    def __init__(self, register: Register, node: str, clock: Clock) -> None:
        self._tasks = TaskWishes(register, clock)
        self._units = UnitWishes(register, node, clock)

    def __call__(self) -> AskedOfTasks:
        """What is asked now, of units as it was listed last."""
        return replace(self._tasks(), units=self._units())

    def confirmed(self, asked: AskedOfTasks, grants: Mapping[JobKey, int]) -> AskedOfTasks:
        """The same, of units those that are this node's, and what is asked of them since."""
        return replace(asked, units=self._units.confirmed(grants))

    def settle(self, settled: Settled) -> None:
        """Let everybody know what became of a wish. Usable from any thread."""
        self._units.settle(settled)


class TaskWishes:
    """What is asked, as far as the store answers: what was known stays so."""

    def __init__(self, register: Register, clock: Clock) -> None:
        self._register, self._clock = register, clock
        #: Version and document by path; None for one that cannot be understood.
        self._known: dict[str, tuple[str, TaskWish | None]] = {}
        self._read_at: float | None = None

    def __call__(self) -> AskedOfTasks:
        """What is asked now."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _EVERY_SECONDS:
            # What is wrong with the store the member meets in the same turn, and tells.
            with suppress(PolynyaError, OSError):
                self._read()
                self._read_at = now
        wishes = {
            paths.name_of(path.rpartition("/")[2]): wish
            for path, (_, wish) in self._known.items()
            if wish is not None
        }
        return AskedOfTasks(
            {task: _why(wish) for task, wish in wishes.items() if wish.state == "stopped"},
            {task: wish.nonce for task, wish in wishes.items() if wish.state == "started"},
        )

    def _read(self) -> None:
        found = {path: one.version for path, one in self._register.list(paths.TASKS).items()}
        known = {path: one for path, one in self._known.items() if path in found}
        for path, version in found.items():
            if path not in known or known[path][0] != version:
                known[path] = (version, self._wish(path))
        self._known = known

    def _wish(self, path: str) -> TaskWish | None:
        """The wish of an object. One that no version of this document explains asks nothing."""
        try:
            found = self._register.read(TaskWish, path)
        except OperationError:
            return None
        return found.document if found is not None else None


def _why(wish: TaskWish) -> str:
    return f"stopped by {wish.by}" + (f": {wish.reason}" if wish.reason else "")
