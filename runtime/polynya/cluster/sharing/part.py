"""This node's part in its cluster, as the agent's own thread knows it.

The member takes its turns on another thread; what it says comes as messages, and what it has to
know goes to it as `Seen`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from polynya.cluster.control.tasks import AskedOfTasks
from polynya.cluster.control.unit_wishes import Asked, Settled
from polynya.cluster.coordination.documents import Freeze
from polynya.cluster.coordination.standing import Decided, Deed, Seen, Standing
from polynya.cluster.gossip.messages import Picture, Report, UnitHeard
from polynya.cluster.messages import LeaveAdvised, TurnTaken
from polynya.cluster.sharing.idle import IdleNodes
from polynya.cluster.sharing.loads import LoadMeter
from polynya.cluster.sharing.rights import Rights, rights
from polynya.cluster.sharing.unowned import LastFigures, Unowned, without_owner
from polynya.cluster.unit import JobKey
from polynya.engine.work.backlog import Waiting
from polynya.observe import sharing as events
from polynya.observe.events import Event, EventSink

#: A node that was not heard of for longer may have nothing any more, in seconds.
_HEARD_SECONDS: Final = 60.0


class Shown(Protocol):
    """What a part has to know of a job; see `Job`."""

    key: JobKey
    wanted: str | None
    running: str | None
    epoch: int | None
    fenced: int | None
    busy_seconds: float
    held: str | None

    @property
    def failures(self) -> Sequence[object]:
        """What went wrong since it last went well."""
        ...

    @property
    def state(self) -> str:
        """Its state, in a word."""
        ...

    @property
    def reason(self) -> str:
        """Why it is in that state."""
        ...

    def waiting(self, now: float) -> Waiting:
        """What waits for it."""
        ...


class Others(Protocol):
    """What goes from the agent to its member and to the other nodes. Nothing waits."""

    def see(self, seen: Seen) -> None:
        """Let the member know this in its next turn."""
        ...

    def tell(self, report: Report) -> None:
        """Let the other nodes know this."""
        ...

    def prefer_to_leave(self, reason: str) -> None:
        """Give the units of this node to others, if there are any."""
        ...

    def settle(self, settled: Settled) -> None:
        """Let everybody know what became of a wish for a unit."""
        ...


class Part:
    """What this node knows of the cluster. `tell` takes what happens.

    `now` is always in monotonic seconds of the member's clock.
    """

    def __init__(
        self, node: str, others: Others, tell: EventSink, now: Callable[[], float]
    ) -> None:
        self._node, self._others, self._tell, self._now = node, others, tell, now
        self._standing: Standing | None = None
        self._asked = AskedOfTasks()
        self._picture = Picture()
        self._reasons: dict[JobKey, str] = {}
        self._troubles: tuple[str, ...] = ()
        self._loads = LoadMeter()
        self._figures, self._idle = LastFigures(), IdleNodes()
        self._wanted: frozenset[JobKey] = frozenset()

    @property
    def left(self) -> bool:
        """Whether all is handed over, so that the process may end."""
        return self._standing is not None and self._standing.left

    def leave(self, advice: LeaveAdvised) -> None:
        """AWS recommends to leave this instance: give the work to others, if there are any."""
        self._others.prefer_to_leave(advice.reason)

    def taken(self, message: TurnTaken) -> frozenset[str]:
        """Take note of a turn of the member; the tasks whose suspended jobs are to be tried again.

        Who has just begun has suspended none.
        """
        before, self._standing = self._standing, message.standing
        asked, self._asked = self._asked, message.asked
        self._picture = message.picture
        for heard in message.picture.nodes.values():
            self._figures.told(heard.heartbeat.units, self._now(), age_seconds=heard.age_seconds)
        for one in message.standing.decided:
            self._remember(one)
        for event in self._news(before, message.standing):
            self._tell(event)
        again = message.asked.resumed.items() - asked.resumed.items()
        return frozenset(task for task, _ in again)

    def rights(self) -> Rights:
        """Which jobs may run here now."""
        owners = {
            one.unit: heard.heartbeat.sender.node
            for heard in self._picture.nodes.values()
            if heard.age_seconds < _HEARD_SECONDS
            for one in heard.heartbeat.units
        }
        return rights(
            self._standing,
            self._now(),
            reasons=self._reasons,
            owners=owners,
            stopped=self._asked.stopped,
        )

    def asked(self) -> Mapping[JobKey, Asked]:
        """What is to be done with units before their work goes on."""
        return self._asked.units

    @property
    def held(self) -> str | None:
        """Why nothing that is asked of units is begun; None when it may be."""
        if self._standing is None or not self._standing.held:
            return None
        frozen = self._standing.frozen is not None
        return "the cluster is frozen" if frozen else "nobody knows whether the cluster is frozen"

    def settle(self, settled: Settled) -> None:
        """Say what became of a wish for a unit."""
        asked = settled.asked
        self._tell(
            events.UnitWishEnded(
                subject=settled.unit.name,
                task=settled.unit.task,
                kind=asked.errand.kind,
                by=asked.by,
                done=settled.done,
                outcome=settled.text,
            )
        )
        self._others.settle(settled)

    def show(self, jobs: Mapping[JobKey, Shown], *, state: str, draining: bool) -> None:
        """Let the member and the other nodes know how the jobs are."""
        now = self._now()
        granted = self.rights().grants
        working = {key: job for key, job in jobs.items() if job.running is not None}
        # What may start any moment counts as working: a unit is released only after the turn that
        # revoked it has arrived here.
        able = {key for key, job in jobs.items() if key in granted and job.wanted is not None}
        loads = self._loads.measured({key: job.busy_seconds for key, job in working.items()}, now)
        self._wanted = _wanted(jobs.values(), self._asked.stopped)
        self._others.see(
            Seen(
                wanted=self._wanted,
                working=frozenset(working) if draining else frozenset(working) | able,
                draining=draining,
                loads=loads,
                heavy=frozenset(key for key in jobs if key.name == key.task),
                fenced={key: job.fenced for key, job in jobs.items() if job.fenced is not None},
            )
        )
        # What is this node's is told of, also while it waits after a failure: it has an owner.
        told = tuple(
            _heard(job, granted.get(key, job.epoch or 0), loads.get(key, 0.0), now)
            for key, job in jobs.items()
            if key in granted or key in working
        )
        self._figures.told(told, now)
        self._others.tell(Report(state, told))

    def report(self) -> dict[str, Any]:
        """What the state of the node says of sharing."""
        standing = self._standing or Standing("")
        frozen = standing.frozen
        return {
            "incarnation": standing.incarnation or None,
            "state": standing.state,
            "leader": standing.leader,
            "leading": standing.leading,
            "frozen": None if frozen is None else _freeze(frozen),
            "units": len(standing.grants),
            "nodes": len([one for one in standing.nodes.values() if not one.dead]),
            "stopped_tasks": dict(sorted(self._asked.stopped.items())),
            "troubles": list(standing.troubles),
            "stream_trouble": self._picture.trouble,
            "unowned": unowned.as_json() if (unowned := self._unowned()) is not None else None,
        }

    def _unowned(self) -> Unowned | None:
        """What waits in units that no node has; None when another node leads, or nobody knows."""
        standing, picture = self._standing, self._picture
        if standing is None or not standing.leading or picture.trouble is not None:
            return None
        me, own = standing.incarnation, standing.grants
        units = without_owner(self._wanted, own, picture, standing.nodes, me)
        self._figures.keep(self._wanted)
        return self._figures.waiting(units, self._now()) if units is not None else None

    def _remember(self, one: Decided) -> None:
        if one.what in ("claimed", "raised", "revoked"):
            self._reasons[one.unit] = one.reason
        elif one.what in ("lost", "released"):
            self._reasons.pop(one.unit, None)

    def _news(self, before: Standing | None, now: Standing) -> Iterable[Event]:
        for one in now.decided:
            yield _DECIDED[one.what](
                subject=one.unit.name,
                task=one.unit.task,
                reason=one.reason,
                epoch=one.epoch,
                node=one.node,
            )
        if now.leader != (before.leader if before is not None else None):
            yield events.LeaderChanged(subject=self._node, leader=now.leader)
        was = before.frozen if before is not None else None
        if (now.frozen is None) != (was is None):
            freeze = now.frozen or was
            reason = f"{freeze.by}: {freeze.reason}" if freeze is not None else ""
            yield events.ClusterFrozen(
                subject=self._node, frozen=now.frozen is not None, reason=reason
            )
        yield from self._trouble_news(now)

    def _trouble_news(self, now: Standing) -> Iterable[Event]:
        stream = self._picture.trouble
        idle = (
            self._idle.trouble(now.nodes, len(self._wanted), self._now()) if now.leading else None
        )
        troubles = (
            *now.troubles,
            *([f"workload stream: {stream}"] if stream else []),
            *([idle] if idle else []),
        )
        for text in troubles:
            # What lasts is said once.
            if text not in self._troubles:
                yield events.SharingTrouble(subject=self._node, message=text)
        if self._troubles and not troubles:
            yield events.SharingRecovered(subject=self._node)
        self._troubles = troubles


def _wanted(jobs: Iterable[Shown], stopped: Mapping[str, str]) -> frozenset[JobKey]:
    return frozenset(
        job.key for job in jobs if job.wanted is not None and job.key.task not in stopped
    )


def _heard(job: Shown, epoch: int, load: float, now: float) -> UnitHeard:
    waiting = job.waiting(now)
    return UnitHeard(
        unit=job.key,
        epoch=epoch,
        load=load,
        lag_seconds=round(waiting.oldest_seconds, 1),
        backlog_seconds=round(waiting.node_seconds, 1),
        state=job.state,
        reason=job.reason if _is_ill(job) else "",
    )


def _is_ill(job: Shown) -> bool:
    """Whether its work waits after a failure, or for somebody; not that it is about to begin."""
    after_failure = bool(job.failures) and job.state == "waiting"
    return after_failure or job.state == "suspended" or job.held is not None


_DECIDED: Final[Mapping[Deed, type[events.UnitDecided]]] = {
    "claimed": events.UnitClaimed,
    "released": events.UnitReleased,
    "revoked": events.UnitRevoked,
    "lost": events.UnitLost,
    "raised": events.UnitRaised,
    "planned": events.UnitPlanned,
    "alarm": events.UnitAlarm,
}


def _freeze(freeze: Freeze) -> dict[str, str]:
    """Who let nothing move, since when and why."""
    return {"by": freeze.by, "since": freeze.since.isoformat(), "reason": freeze.reason}
