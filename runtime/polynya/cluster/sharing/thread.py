"""The member on a thread of its own: the store may take seconds to answer, the agent may not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from polynya.cluster.control.tasks import AskedOfTasks
from polynya.cluster.control.unit_wishes import Settled
from polynya.cluster.coordination.standing import Seen, Standing
from polynya.cluster.gossip.messages import Picture, Report
from polynya.cluster.gossip.port import Gossip
from polynya.cluster.messages import Inbox, SharingEnded, TurnTaken
from polynya.cluster.unit import JobKey
from polynya.engine.errors import as_polynya


class Turns(Protocol):
    """A member of a cluster."""

    def turn(self, seen: Seen) -> Standing:
        """Take one turn. Raises PolynyaError when there can be no other."""
        ...


class Wishes(Protocol):
    """What a person asks of tasks and of their units."""

    def __call__(self) -> AskedOfTasks:
        """What is asked now."""
        ...

    def confirmed(self, asked: AskedOfTasks, grants: Mapping[JobKey, int]) -> AskedOfTasks:
        """What is still asked of these units of this node."""
        ...

    def settle(self, settled: Settled) -> None:
        """Let everybody know what became of a wish."""
        ...


class Leave(Protocol):
    """Gives the work of this node to others, if there are any and somebody prefers that."""

    def prefer(self, reason: str) -> None:
        """Prefer it from now on."""
        ...

    def __call__(self, standing: Standing) -> None:
        """Do what can be done before a turn."""
        ...


class Watcher(Protocol):
    """Is told what comes of each turn, for people."""

    def __call__(self, standing: Standing, own: Report | None, picture: Picture) -> None:
        """Take note. Raises nothing."""
        ...


class MemberThread:
    """Takes turns until the member has left. What it offers to other threads waits for nothing.

    Args:
        member: whose turns they are.
        opened: begins to tell and to hear, once it is known as which incarnation; what it is given
            wakes the member.
        asked: what a person asks.
        leave: asked before each turn but the first.
        inbox: takes what comes of each turn.
        watcher: is told after each turn what this node tells, and what the others told.
    """

    def __init__(
        self,
        member: Turns,
        opened: Callable[[str, Callable[[], None]], Gossip],
        asked: Wishes,
        leave: Leave,
        inbox: Inbox,
        *,
        watcher: Watcher | None = None,
    ) -> None:
        self._watcher = watcher
        self._told: Report | None = None
        self._member, self._opened, self._inbox = member, opened, inbox
        self._asked, self._leave = asked, leave
        self._gossip: Gossip | None = None
        self._known_as = ""
        self._seen = Seen(wanted=None)
        self._early = threading.Event()

    def start(self) -> None:
        """Begin. A process that is told to end waits for nobody."""
        threading.Thread(target=self._run, name="member", daemon=True).start()

    def see(self, seen: Seen) -> None:
        """Let the next turns know this; the next one is taken at once when it matters."""
        before, self._seen = self._seen, seen
        if _is_urgent(before, seen):
            self._early.set()

    def tell(self, report: Report) -> None:
        """Let the other nodes know this."""
        self._told = report
        if self._gossip is not None:
            self._gossip.tell(report)

    def prefer_to_leave(self, reason: str) -> None:
        """Give the units of this node to others, if there are any."""
        self._leave.prefer(reason)
        self._early.set()

    def settle(self, settled: Settled) -> None:
        """Let everybody know what became of a wish, in a turn at once."""
        self._asked.settle(settled)
        self._early.set()

    def _run(self) -> None:
        standing: Standing | None = None
        while standing is None or not standing.left:
            if standing is not None:
                self._early.wait(standing.next_turn_seconds)
            self._early.clear()
            try:
                standing = self._turn(standing)
            except Exception as error:  # noqa: BLE001 - the edge of a thread
                self._inbox.put(SharingEnded(as_polynya(error)))
                return

    def _turn(self, before: Standing | None) -> Standing:
        if before is not None:
            self._leave(before)
        asked, seen = self._asked(), self._seen
        picture = self._gossip.heard() if self._gossip is not None else Picture()
        fenced = _unresolved(seen.fenced, before)
        loads = {**picture.loads(), **seen.loads}
        standing = self._member.turn(replace(seen, loads=loads, fenced=fenced))
        asked = self._asked.confirmed(asked, standing.grants)
        self._inbox.put(TurnTaken(standing, asked, picture))
        self._hint(standing)
        if self._watcher is not None:
            self._watcher(standing, self._told, picture)
        return standing

    def _hint(self, standing: Standing) -> None:
        if standing.state is None:
            return
        if self._gossip is None or self._known_as != standing.incarnation:
            # Another one after its lease was lost: who told in the name of the one before is done.
            if self._gossip is not None:
                self._gossip.stop()
            self._gossip = self._opened(standing.incarnation, self._early.set)
            self._known_as = standing.incarnation
        done = {one.what for one in standing.decided}
        if "released" in done:
            self._gossip.hint("released")
        if "planned" in done:
            self._gossip.hint("planned")


def _unresolved(fenced: Mapping[JobKey, int], standing: Standing | None) -> Mapping[JobKey, int]:
    """The fenced units without the ones that have a higher epoch already.

    The agent tells of a fence until it has heard of that epoch, so that an answer that fails is
    asked for again.
    """
    grants = standing.grants if standing is not None else {}
    return {unit: epoch for unit, epoch in fenced.items() if grants.get(unit, epoch) <= epoch}


def _is_urgent(before: Seen, seen: Seen) -> bool:
    """Whether others wait for what a member would do about this."""
    return (
        seen.draining != before.draining
        or any(before.fenced.get(unit) != epoch for unit, epoch in seen.fenced.items())
        or (seen.wanted is None) != (before.wanted is None)
        or bool(before.working - seen.working)
    )
