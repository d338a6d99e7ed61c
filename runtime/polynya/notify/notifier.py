"""The notifier of a process: takes events, rounds and reports, and sends what is due.

One thread decides every few seconds, and each delivery has a thread of its own: a server that never
answers keeps one route from being used, and nothing else. Nothing here raises into the work on
data: what fails is an event, and the channel is shown in `polynya status`.

In a cluster each node tells of the units that it owns, and the leader of the cluster itself: the
owner of a unit knows its errors first-hand, also while no leader is elected or the workload stream
is down, and a unit has one owner. What was told of a unit is kept in the warehouse, so its next
owner neither repeats nor forgets it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from polynya.engine.errors import as_polynya
from polynya.model.config.aws import AwsAccess
from polynya.model.config.notification import Channel
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.notifications import LoadedNotification
from polynya.notify.conditions import (
    Conditions,
    Key,
    TaskOf,
    after_event,
    after_report,
    after_round,
    expired,
    seconds_behind,
    speaks,
)
from polynya.notify.decide import (
    Facts,
    Notice,
    NotificationDecision,
    ObjectLag,
    Route,
    RouteState,
    Told,
    after_delivery,
    after_sent,
    decide,
    is_given_up,
    routes_of,
)
from polynya.notify.history import (
    MOST_ENTRIES,
    Change,
    Held,
    NoticeResult,
    NotificationHistory,
    changes_of,
)
from polynya.notify.memory import NotificationStore, merged
from polynya.notify.message import MOST_NOTICES, message_of
from polynya.observe.events import Event, EventSink
from polynya.observe.notifications import (
    NotificationFailed,
    NotificationGivenUp,
    NotificationMemoryFailed,
    NotificationSent,
)
from polynya.store.clock import Clock
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.notify.channels import Send

log = logging.getLogger(__name__)

#: Seconds between two decisions.
EVERY_SECONDS: Final = 5.0
#: Longest time that a process that ends waits for its deliveries.
LAST_SECONDS: Final = 20.0
#: A unit that has worked for so long has looked for what waits for it.
_FIRST_LOOK: Final = timedelta(minutes=1)
#: Facts that are kept until the memory was read.
_MOST_EARLY: Final = 10_000

#: Units by task and name; None and "" for what belongs to no task.
_Units: TypeAlias = frozenset[tuple[str | None, str]]
#: Makes what sends through a channel; see `channels.sender`.
SenderOf: TypeAlias = Callable[[str, Any, AwsAccess], "Send"]


def _sender(name: str, channel: Channel, access: AwsAccess) -> Send:
    # Start-up time: HTTP and mail.
    from polynya.notify.channels import sender

    return sender(name, channel, access)


@dataclass(slots=True)
class _Delivery:
    """A message on its way: what it is about, and how it ended."""

    decision: NotificationDecision
    thread: threading.Thread
    error: PolynyaError | None = None


@dataclass(slots=True)
class _Seen:
    """What the process has seen; changed under a lock."""

    conditions: Conditions = field(default_factory=dict)
    lags: dict[str, ObjectLag] = field(default_factory=dict)
    #: Facts from before the memory was read; None since then.
    early: list[Callable[[Conditions], Conditions]] | None = field(default_factory=list)


class Notifier:
    """Notifies for one process.

    Args:
        project: its notifications, tasks and target.
        clock: of all decisions.
        tell: takes events about the deliveries.
        name: of the process, for `polynya status`.
        tasks: names of the tasks that this process runs; None: reports tell which it owns.
        look: measures how far objects are behind, before each decision; None: reports tell it.
        store: what outlasts the process; default: below the warehouse of the project.
        task_of: finds the task of an object that an event names; default: by the project's tables.
        sender_of: makes senders.
    """

    def __init__(
        self,
        project: LoadedProject,
        *,
        clock: Clock,
        tell: EventSink,
        name: str,
        tasks: Iterable[str] | None = None,
        look: Callable[[], Mapping[str, ObjectLag]] | None = None,
        store: NotificationStore | None = None,
        task_of: TaskOf | None = None,
        sender_of: SenderOf = _sender,
    ) -> None:
        target = project.target
        self._clock, self._tell, self._name = clock, tell, name
        self._store = store or NotificationStore(lambda: store_at(target.warehouse, target.aws))
        self._history = NotificationHistory(self._store.opened)
        self._held: Held = {}
        #: What happened and is not in the history yet.
        self._happened: list[Change] = []
        self._sender_of = sender_of
        self._given_task_of = task_of
        self._lock = threading.Lock()
        self._seen = _Seen()
        self._memory: dict[str, dict[Key, Told]] = {}
        self._states: dict[str, RouteState] = {}
        self._failing_since: dict[str, datetime] = {}
        self._deliveries: dict[str, _Delivery] = {}
        self._reported: dict[str, str] = {}
        #: See `look` of the arguments; a run knows it when its engine has started.
        self.look = look
        self._running_since: dict[tuple[str, str], datetime] = {}
        self._shown: set[str] = set()
        # A run is no node of a cluster: what belongs to no task is its own, too.
        self._units: _Units | None = None
        if tasks is not None:
            self._units = frozenset({*((name, name) for name in tasks), (None, "")})
        self._known: _Units = frozenset()
        self._is_unread = False
        self._read: _Units = frozenset()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._notifications: tuple[LoadedNotification, ...] = ()
        self.configure(project)

    def configure(self, project: LoadedProject) -> None:
        """Take the notifications of a project; a broken file stays as it was when it was valid."""
        names = {one.name for one in project.notifications}
        broken = [error.where or "" for error in project.errors]
        kept = [
            one
            for one in self._notifications
            if one.name not in names and any(where.startswith(f"{one.file}:") for where in broken)
        ]
        self._project = project
        self._notifications = (*project.notifications, *kept)
        self.task_of = self._given_task_of or _tasks_by_table(project)
        self._routes = routes_of(self._notifications)
        self._channels = {
            f"{one.name}.{name}": channel
            for one in self._notifications
            for name, channel in one.settings.channels.items()
        }

    @property
    def is_needed(self) -> bool:
        """Whether the project has notifications, or had some that still have to be told."""
        return bool(self._routes or self._memory)

    def take(self, event: Event) -> None:
        """Learn of an event, from any thread."""
        now, task_of = self._clock.now(), self.task_of
        self._learn(lambda before: after_event(before, event, now, task_of))

    def ended(self, name: str, task: str, error: PolynyaError | None) -> None:
        """Learn how a round of a unit ended, from any thread."""
        now = self._clock.now()
        self._learn(lambda before: after_round(before, name=name, task=task, error=error, at=now))

    def _learn(self, change: Callable[[Conditions], Conditions]) -> None:
        """Take a fact. Until the memory was read it is kept, to be applied to that, too."""
        if not self._routes:
            return
        with self._lock:
            self._seen.conditions = change(self._seen.conditions)
            if self._seen.early is not None and len(self._seen.early) < _MOST_EARLY:
                self._seen.early.append(change)

    def put(self, report: Mapping[str, Any]) -> str | None:
        """Learn from a report of this node; an outlet of the agent, which never fails."""
        if report["state"] == "starting":
            return None
        jobs = {
            (task, name): job
            for task, one in report["tasks"].items()
            for name, job in one["jobs"].items()
        }
        own = {key for key, job in jobs.items() if job["state"] != "elsewhere"}
        units: _Units = frozenset(own)
        if speaks(report):
            units |= {(None, "")}
        lags = {
            name: ObjectLag(task, seconds)
            for task, name in own
            if (seconds := self._behind((task, name), jobs[task, name], report["at"])) is not None
        }
        self._learn(lambda before: after_report(before, report, report["at"]))
        with self._lock:
            self._seen.lags = lags
            self._units, self._known = units, frozenset({*jobs, (None, "")})
        return None

    def _behind(self, unit: tuple[str, str], job: Mapping[str, Any], at: datetime) -> float | None:
        """For how long the oldest change of a job waits; None before it has looked."""
        if job["state"] != "running":
            self._running_since.pop(unit, None)
        since = self._running_since.setdefault(unit, at) if job["state"] == "running" else at
        seconds = seconds_behind(job)
        return seconds if seconds or at - since >= _FIRST_LOOK else None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Notify until the block ends, if the project has anything to tell."""
        if not self.is_needed:
            yield
            return
        self.start()
        try:
            yield
        finally:
            self.finish()

    def start(self) -> None:
        """Decide every few seconds from now on, on a thread that no process waits for."""
        self._thread = threading.Thread(target=self._work, name="notifier", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Decide once more, wait a little for deliveries, and end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2 * EVERY_SECONDS)
        self.turn()
        self._await(LAST_SECONDS)
        self._collect()
        self._keep()

    def _work(self) -> None:
        while not self._stop.is_set():
            self.turn()
            self._stop.wait(EVERY_SECONDS)

    def turn(self) -> list[NotificationDecision]:
        """Decide once, and begin the deliveries; returns what was decided."""
        try:
            return self._turn()
        except Exception as error:  # noqa: BLE001 - the edge of the thread: data work goes on
            self._trouble("turn", as_polynya(error))
            return []

    def _turn(self) -> list[NotificationDecision]:
        self._collect()
        units = self._units
        if not self.is_needed or units is None:
            # Before the first report it is not known what was told of the units here.
            return []
        self._catch_up(units)
        now, lags = self._clock.now(), self.look() if self.look is not None else {}
        with self._lock:
            self._seen.lags.update(lags)
            self._seen.conditions = expired(self._seen.conditions, now)
            facts = self._facts()
        self._forget_routes()
        # What begins is kept before it is told: a process that is killed now forgets nothing.
        self._keep()
        decisions = decide(self._routes, facts, self._memory, self._states, now)
        changes, self._held = changes_of(self._held, decisions, self._is_failing, now)
        self._happened += changes
        for one in decisions:
            told = self._memory.get(one.route.id, {})
            if one.forgotten and not one.notices:
                self._happened += [
                    (now, one.route.id, "dropped", "`resolved: false`", None, Notice(
                        "resolved", told[key].condition, "it is over"
                    ))
                    for key in one.forgotten
                ]  # fmt: skip
                self._memory[one.route.id] = after_sent(told, one, now)
            if one.notices and one.route.id not in self._deliveries:
                self._deliver(one, now)
        self._await(EVERY_SECONDS)
        self._collect()
        self._keep()
        return decisions

    def _is_failing(self, route: str) -> bool:
        return self._states.get(route, RouteState()).failures > 0

    def _facts(self) -> Facts:
        """What is known of the units whose memory was read."""
        return Facts(
            {
                key: one
                for key, one in self._seen.conditions.items()
                if _is_of(self._read, one.task, key.name)
            },
            {
                name: lag
                for name, lag in self._seen.lags.items()
                if _is_of(self._read, lag.task, name)
            },
        )

    def _catch_up(self, units: _Units) -> None:
        """Read what was told of units that are new here, and leave those that are not any more.

        While the store does not answer, it is better to tell something again than not at all.
        """
        new = units if self._is_unread else units - self._read
        gone, self._read = self._read - units, units
        if new:
            self._remember(new)
        if gone:
            self._leave(gone, units)

    def _remember(self, new: _Units) -> None:
        try:
            conditions, memory = self._store.read(partial(_is_of, new))
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            self._is_unread = True
            self._trouble("memory", as_polynya(error))
            return
        self._is_unread = False
        with self._lock:
            # What this process has seen by itself is newer.
            known: Conditions = {**conditions, **self._seen.conditions}
            if self._seen.early is not None:
                known = conditions
                for change in self._seen.early:
                    known = change(known)
            self._seen.conditions, self._seen.early = known, None
        self._memory = merged(self._memory, memory)

    def _leave(self, gone: _Units, units: _Units) -> None:
        """Other nodes have these units now, or the configuration has them no longer.

        The conditions of those that moved are not over; what was told of the others is forgotten.
        """

        def is_gone(task: str | None, name: str) -> bool:
            return _is_of(gone, task, name) and not _is_of(units, task, name)

        with self._lock:
            conditions = self._seen.conditions
            left = [key for key, one in conditions.items() if is_gone(one.task, key.name)]
            self._seen.conditions = {k: one for k, one in conditions.items() if k not in left}
        places = {(conditions[key].task, key.name) for key in left}
        for route, entries in self._memory.items():
            for key, told in list(entries.items()):
                if is_gone(told.condition.task, key.name):
                    places.add((told.condition.task, key.name))
                    del self._memory[route][key]
        self._store.leave({one for one in places if _is_of(self._known, *one)})

    def _forget_routes(self) -> None:
        """A route that no file has any more tells nothing."""
        ids = {route.id for route in self._routes}
        for id_ in [one for one in self._memory if one not in ids]:
            del self._memory[id_]

    def _keep(self) -> None:
        with self._lock:
            conditions = self._seen.conditions
        try:
            self._store.write(conditions, self._memory)
            self._history.write(self._name, self._happened, self._clock.now())
            self._happened = []
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            self._trouble("memory", as_polynya(error))
            self._happened = self._happened[-MOST_ENTRIES:]
        else:
            self._reported.pop("memory", None)

    def _trouble(self, what: str, error: PolynyaError) -> None:
        """Report once that what was told cannot be kept."""
        if self._reported.get(what) != str(error):
            self._reported[what] = str(error)
            self._tell(NotificationMemoryFailed(subject=self._name, error=error))

    def _deliver(self, decision: NotificationDecision, now: datetime) -> None:
        route = decision.route
        name = f"{route.file}.{route.channel}"
        message = message_of(
            route,
            decision.notices,
            self._memory.get(route.id, {}),
            project=self._project.project.name,
            target=self._project.target.name,
            now=now,
        )
        send = self._sender_of(name, self._channels[name], self._project.target.aws)

        def work() -> None:
            try:
                send(message, now)
            except Exception as error:  # noqa: BLE001 - the edge of the thread
                delivery.error = as_polynya(error)

        thread = threading.Thread(target=work, name=f"notify-{name}", daemon=True)
        delivery = _Delivery(decision, thread)
        self._deliveries[route.id] = delivery
        thread.start()

    def _await(self, seconds: float) -> None:
        deadline = self._clock.monotonic() + seconds
        for delivery in list(self._deliveries.values()):
            delivery.thread.join(max(0.0, deadline - self._clock.monotonic()))

    def _collect(self) -> None:
        """Take note of deliveries that have ended. One that hangs keeps its route from others."""
        for id_, delivery in list(self._deliveries.items()):
            if not delivery.thread.is_alive():
                del self._deliveries[id_]
                self._delivered(delivery.decision, delivery.error)

    def _delivered(self, decision: NotificationDecision, error: PolynyaError | None) -> None:
        route, now = decision.route, self._clock.now()
        before = self._states.get(route.id, RouteState())
        why = None if error is None else f"{error.code}: {error.why or error.message}"
        state = self._states[route.id] = after_delivery(before, why=why, now=now)
        told = self._memory.get(route.id, {})
        result: NoticeResult = "sent"
        if error is None:
            self._memory[route.id] = after_sent(told, decision, now)
            kinds = Counter(notice.kind for notice in decision.notices)
            self._tell(NotificationSent(subject=route.id, notices=dict(sorted(kinds.items()))))
        else:
            result = "failed"
            if before.why != why:
                self._tell(NotificationFailed(subject=route.id, error=error))
            if is_given_up(state):
                result = "given_up"
                # It would keep what happens from then on from being told.
                self._memory[route.id] = after_sent(told, decision, now)
                names = tuple(notice.condition.key.name for notice in decision.notices)
                lost = NotificationGivenUp(subject=route.id, names=names[:MOST_NOTICES])
                self._tell(lost)
        if result != "failed" or before.why != why:
            # An attempt that fails as the one before it says nothing new.
            self._happened += [
                (now, route.id, result, why or notice.reason, None, notice)
                for notice in decision.notices
            ]
        if before.failures or state.failures or route.id not in self._shown:
            self._show(route, state, now)

    def _show(self, route: Route, state: RouteState, now: datetime) -> None:
        # An earlier process may have left it as failing.
        self._shown.add(route.id)
        since = self._failing_since.setdefault(route.id, now)
        if not state.failures:
            del self._failing_since[route.id]
        try:
            self._store.failing(route.id, self._name, state, since)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way
            self._trouble("memory", as_polynya(error))


def _is_of(units: _Units, task: str | None, name: str) -> bool:
    """Whether an object belongs to one of some units. One called like its task has all of it."""
    if task is None:
        return (None, "") in units
    return (task, name) in units or (task, task) in units


def _tasks_by_table(project: LoadedProject) -> TaskOf:
    """Finds the task of `schema.dataset`, `task/table` or a task."""
    tasks = {task.name for task in project.works}
    tables = {dataset.relations.current: dataset.task for dataset in project.datasets()}
    schemas = {task.schema_: task.name for task in project.tasks if not task.datasets}

    def task_of(name: str) -> str | None:
        if name in tables:
            return tables[name]
        first = name.partition("/")[0]
        if first in tasks:
            return first
        return schemas.get(name.partition(".")[0])

    return task_of
