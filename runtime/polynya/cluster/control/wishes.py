"""What a person asks of a cluster. Each wish is an object; the nodes follow it when they see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from polynya.cluster.coordination import documents, paths
from polynya.cluster.coordination.documents import Document, UnitWish
from polynya.cluster.coordination.register import Register
from polynya.cluster.unit import JobKey
from polynya.model.errors import ConflictError

#: Somebody else writing the same wish is rare: after so many tries something is wrong.
_TRIES: Final = 5


class Wishes:
    """The wishes for one cluster.

    Args:
        register: the documents of the cluster.
        by: who asks.
        now: the wall clock, for people to read.
    """

    def __init__(self, register: Register, by: str, now: Callable[[], datetime]) -> None:
        self._register, self._by, self._now = register, by, now

    def drain(self, node: str, reason: str) -> None:
        """Let a node have nothing, until `undrain`."""
        wish = documents.DrainWish(by=self._by, reason=reason, since=self._now())
        self._write(paths.drain_path(node), wish)

    def undrain(self, node: str, *, own: bool = False) -> bool:
        """Let a node have units again; `own`: only if the wish is of who asks now.

        False when there was no such wish.
        """
        found = self._register.read(documents.DrainWish, paths.drain_path(node))
        if own and (found is None or found.document.by != self._by):
            return False
        return self._withdraw(documents.DrainWish, paths.drain_path(node))

    def freeze(self, reason: str) -> None:
        """Let nothing move, until `unfreeze`; work goes on."""
        wish = documents.Freeze(by=self._by, reason=reason, since=self._now())
        self._write(paths.FREEZE, wish)

    def unfreeze(self) -> bool:
        """Let units move again. False when nothing was frozen."""
        return self._withdraw(documents.Freeze, paths.FREEZE)

    def move(self, unit: JobKey, to: str, reason: str) -> None:
        """Let a unit be on the node `to`, until `unmove`."""
        wish = documents.MoveWish(to=to, by=self._by, reason=reason, since=self._now())
        self._write(paths.move_path(unit), wish)

    def unmove(self, unit: JobKey) -> bool:
        """Let the leader place a unit again. False when nobody had moved it."""
        return self._withdraw(documents.MoveWish, paths.move_path(unit))

    def stop(self, task: str, reason: str) -> None:
        """Let a task stand still on all nodes, until `start`."""
        wish = documents.TaskWish(state="stopped", by=self._by, reason=reason, since=self._now())
        self._write(paths.task_path(task), wish)

    def start(self, task: str) -> bool:
        """Let a task go on. False when nobody had stopped it."""
        found = self._register.read(documents.TaskWish, paths.task_path(task))
        stopped = found is not None and found.document.state == "stopped"
        return self._withdraw(documents.TaskWish, paths.task_path(task)) and stopped

    def resume(self, task: str, reason: str) -> None:
        """Let a task go on, and its suspended jobs be tried again."""
        wish = documents.TaskWish(state="started", by=self._by, reason=reason, since=self._now())
        self._write(paths.task_path(task), wish)

    def refuse_asked(self, units: Iterable[JobKey]) -> None:
        """Raise ConflictError when something is asked of one of them already (POLYNYA-AGT-023)."""
        for unit in units:
            found = self._register.read(UnitWish, paths.wish_path(unit))
            if found is not None:
                raise _asked_before(unit, found.document)

    def ask(self, unit: JobKey, wish: UnitWish) -> str:
        """Let something be done with a unit once; returns the nonce by which it is known.

        Raises:
            ConflictError: something else is asked of it already (POLYNYA-AGT-023).
        """
        path = paths.wish_path(unit)
        own = wish.model_copy(update={"by": self._by, "since": self._now()})
        for _ in range(_TRIES):
            mine = self._register.write(path, own, None)
            found = self._register.read(UnitWish, path)
            if mine and found is not None:
                return found.document.nonce
            if mine:
                # Its owner was faster than we: it is done.
                return ""
            if found is not None:
                raise _asked_before(unit, found.document)
        raise _contended(path)

    def take_back(self, unit: JobKey) -> bool:
        """Let nothing be done with a unit, unless it is done by now. False: nothing was asked."""
        return self._withdraw(UnitWish, paths.wish_path(unit))

    def _write(self, path: str, wish: Document) -> None:
        """Write a wish; fields of the one before that this version does not know stay.

        Raises:
            OperationError: what is there is of a newer version, or damaged (POLYNYA-AGT-012).
            ConflictError: others write it all the time (POLYNYA-AGT-022).
        """
        for _ in range(_TRIES):
            found = self._register.read(type(wish), path)
            unknown = found.document.model_extra if found is not None else None
            version = found.version if found is not None else None
            if self._register.write(path, wish.model_copy(update=unknown or {}), version):
                return
        raise _contended(path)

    def _withdraw(self, kind: type[Document], path: str) -> bool:
        for _ in range(_TRIES):
            found = self._register.read(kind, path)
            if found is None:
                return False
            if self._register.delete(path, found.version):
                return True
        raise _contended(path)


def _asked_before(unit: JobKey, wish: UnitWish) -> ConflictError:
    why = f": {wish.reason}" if wish.reason else ""
    return ConflictError(
        "POLYNYA-AGT-023",
        f"a {wish.kind} of {unit.name} was asked for already, by {wish.by}, "
        f"{wish.since:%Y-%m-%d %H:%M:%S} UTC{why}",
        where=f"{unit.task}/{unit.name}",
        state="that one stays",
        fix="wait for it (`polynya cluster tasks` shows what it waits for), or take it back with "
        "`polynya task withdraw`",
    )


def _contended(path: str) -> ConflictError:
    return ConflictError(
        "POLYNYA-AGT-022",
        "somebody else changes the same object of the cluster all the time",
        where=path,
        state="the wish of the others is in force",
        fix="look at it with `polynya cluster status`, then try again",
    )
