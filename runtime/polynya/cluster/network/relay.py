"""One cluster, served by the network agent: its queue of commands and their execution.

All I/O goes through two ports, the store and the groups. A request without an answer is repeated in
the next turn from the state of store and group, so this process need not remember anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from polynya.cluster.coordination.store import (
    STORE_ERRORS,
    DocumentCache,
    DocumentStore,
    error_line,
)
from polynya.cluster.network.commands import Ask, End, Take, Wait, decide
from polynya.cluster.network.documents import (
    COMMANDS,
    NETWORK_AGENT,
    WAKE,
    AgentReport,
    ClusterCommand,
    GroupReport,
    command_id,
    command_path,
    id_of,
)
from polynya.cluster.network.link import Link
from polynya.cluster.network.prices import PriceWatch
from polynya.cluster.network.sign_of_life import (
    RENEW_SECONDS,
    AgentIdentity,
    SignOfLife,
    seen_group,
)
from polynya.model.error_catalogue.cluster import CLUSTER_OBJECT_CONTENDED
from polynya.model.errors import OperationError
from polynya.observe.cluster import (
    CommandChanged,
    CommandUnreadable,
    NetworkConnected,
    NetworkDisconnected,
)
from polynya.observe.events import EventSink
from polynya.store.clock import Clock
from polynya.store.jobs import GroupFacts, NodeGroups

T = TypeVar("T")

_WRITE_TRIES: Final = 5
#: What became of a command can be looked up for so long.
_COMMANDS_KEPT: Final = timedelta(days=7)


def give(document_store: DocumentStore, command: ClusterCommand) -> str:
    """Put a command into the queue; returns its id.

    Raises:
        DependencyError: it is not known whether it was written.
    """
    name = command_id(command.since, document_store.token())
    document_store.write(command_path(name), command, None)
    return name


def wake(document_store: DocumentStore, by: str, reason: str, now: datetime) -> None:
    """Want a node for work that no other document shows, if the cluster has none.

    Raises:
        ConflictError: another process keeps changing the command (POLYNYA-AGT-022).
        DependencyError: it is not known whether it was written.
    """
    path = command_path(WAKE)
    command = ClusterCommand(kind="wake", by=by, reason=reason, since=now)
    for _ in range(_WRITE_TRIES):
        found = document_store.read(ClusterCommand, path)
        if document_store.overwrite(path, command, found):
            return
    raise CLUSTER_OBJECT_CONTENDED(where=path)


def in_sequence(calls: Sequence[Callable[[], T]], /) -> list[T]:
    """Requests in their order: there are few of them."""
    return [call() for call in calls]


class CommandQueue:
    """The queue of commands as it was read last. Raises what the store raises."""

    def __init__(self, document_store: DocumentStore) -> None:
        self._document_store = document_store
        self._cache = DocumentCache(document_store, ClusterCommand, COMMANDS, in_sequence)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Commands that cannot be understood, and why."""
        return self._cache.troubles

    def refresh(self) -> None:
        """Read what changed."""
        self._cache.refresh(self._document_store.list(COMMANDS), lambda: True)

    def all(self) -> list[tuple[str, ClusterCommand]]:
        """All commands with their ids, the oldest first."""
        return [(id_of(path), one.document) for path, one in sorted(self._cache.documents.items())]

    def get(self, name: str) -> ClusterCommand | None:
        """The command of this id."""
        found = self._cache.documents.get(command_path(name))
        return found.document if found is not None else None

    def open(self) -> list[tuple[str, ClusterCommand]]:
        """Those with something still to do."""
        return [(name, one) for name, one in self.all() if one.is_open]

    def newer(self, name: str) -> ClusterCommand | None:
        """The newest `stop` or `start` after a command that was taken, or done."""
        later = [
            one
            for other, one in self.all()
            if other > name and one.kind in ("stop", "start") and one.state in ("taken", "done")
        ]
        return later[-1] if later else None

    def change(self, name: str, command: ClusterCommand) -> bool:
        """Write what became of a command if it is as it was read, then look again.

        False when another process changed it meanwhile.
        """
        path = command_path(name)
        known = self._cache.documents.get(path)
        written = known is not None and self._document_store.write(path, command, known.version)
        # Its version is known after the next look only.
        self._cache.doubt(path)
        self.refresh()
        return written

    def tidy(self, now: datetime) -> None:
        """Delete what ended long ago."""
        for path, found in list(self._cache.documents.items()):
            ended = found.document.ended_at
            if ended is not None and now - ended > _COMMANDS_KEPT:
                self._document_store.delete(path, found.version)
                self._cache.deleted(path)


#: A command needs a few requests; more than these mean that something undoes them.
_MAX_STEPS: Final = 12


class Relay:
    """Serves one cluster. `link` says whether it can.

    Args:
        cluster: its name, which is that of its group, too.
        document_store: its objects.
        groups: the groups of machines.
        me: this process.
        clock: the time; its wall clock is compared with that of a command's sender.
        tell: takes events.
        prices: what the machines of the group cost.
    """

    def __init__(
        self,
        cluster: str,
        document_store: DocumentStore,
        groups: NodeGroups,
        me: AgentIdentity,
        *,
        clock: Clock,
        tell: EventSink,
        prices: PriceWatch,
    ) -> None:
        self._prices, self._prices_read = prices, False
        self.cluster, self._document_store, self._groups = cluster, document_store, groups
        self._me, self._clock, self._tell = me, clock, tell
        self._queue = CommandQueue(document_store)
        self._sign = SignOfLife(document_store, me, clock)
        self._facts: GroupFacts | None = None
        self._group: GroupReport | None = None
        self._looked = float("-inf")
        self._reported: set[str] = set()
        self.link = Link.at_start(clock.now())

    @property
    def reached(self) -> bool:
        """Whether store and group were reached in the last turn."""
        return self.link.connected and not self.link.reason

    def turn(self, *, update: str = "") -> None:
        """Look once, and do what can be done. Raises nothing that the store or AWS raises.

        `update` is what operators have to know of the version of this process.
        """
        now, trouble = self._clock.now(), _tried(self._serve)
        link = self.link.after(trouble, now)
        unsaid = _tried(lambda: self._renew(link, update))
        if trouble is None and unsaid is not None:
            link = self.link.after(unsaid, now)
        self._settle(link)

    def _renew(self, link: Link, update: str = "") -> None:
        self._sign.renew(link, self._group, update=update, prices=self._prices.report)

    def watch(self) -> None:
        """Look once and do nothing, as a version that is on trial does."""

        def look() -> None:
            self._queue.refresh()
            self._look()

        self._settle(self.link.after(_tried(look), self._clock.now()))

    def leave(self) -> None:
        """Report that this process ends, if the store answers."""
        link = Link(connected=False, since=self._clock.now(), reason="it was told to end")
        unsaid = _tried(lambda: self._renew(link))
        self._report_unread([unsaid] if unsaid is not None else [])

    def _serve(self) -> None:
        self._queue.refresh()
        self._report_unread(self._queue.troubles)
        commands = [name for name, _ in self._queue.open()]
        if commands or self._clock.monotonic() - self._looked >= RENEW_SECONDS:
            self._look()
            self._look_at_prices()
        for name in commands:
            self._carry_on(name)
        self._queue.tidy(self._clock.now())

    def _look_at_prices(self) -> None:
        if not self._prices_read:
            # A restart keeps the answers of the process before, so that it does not ask again.
            found = self._document_store.read(AgentReport, NETWORK_AGENT)
            self._prices.report = None if found is None else found.document.prices
            self._prices_read = True
        if self._facts is not None:
            self._prices.look(self._facts.machines)

    def _look(self) -> None:
        self._facts = self._groups.facts(self.cluster)
        self._group = seen_group(self._facts, self._clock.now())
        self._looked = self._clock.monotonic()

    def _carry_on(self, name: str) -> None:
        """Take a command as far as it goes now."""
        for _ in range(_MAX_STEPS):
            command = self._queue.get(name)
            if command is None or not command.is_open or not self._step(name, command):
                return

    def _step(self, name: str, command: ClusterCommand) -> bool:
        """One step of an open command. True when the next one may be taken at once."""
        now = self._clock.now()
        step = decide(command, self._facts, self._queue.newer(name), now)
        match step:
            case Take():
                taken = {"taken_by": self._me.name, "taken_at": now, "refresh": step.refresh}
                self._change(name, command, {"state": "taken", "outcome": step.reason, **taken})
            case Ask():
                return self._ask(name, command, step)
            case Wait():
                if command.outcome != step.reason:
                    self._change(name, command, {"outcome": step.reason})
            case End():
                self._end(name, command, step)
        return isinstance(step, Take)

    def _ask(self, name: str, command: ClusterCommand, step: Ask) -> bool:
        """Send the request to the group, and look at the result."""
        asked = step.request.value
        try:
            step.send(self._groups, self.cluster)
        except OperationError as error:
            self._end(name, command, End("failed", f"{error.message}: {error.why}"))
            return False
        steps = (*command.steps, asked)
        self._change(name, command, {"steps": steps, "outcome": step.reason}, asked=asked)
        self._look()
        return True

    def _end(self, name: str, command: ClusterCommand, step: End) -> None:
        ended = {"state": step.state, "outcome": step.reason, "ended_at": self._clock.now()}
        self._change(name, command, ended)

    def _change(
        self,
        name: str,
        command: ClusterCommand,
        fields: Mapping[str, object],
        *,
        asked: str | None = None,
    ) -> None:
        """Write the outcome of a command. A concurrent change of it is seen in the next step."""
        changed = command.model_copy(update=fields)
        if self._queue.change(name, changed):
            event = CommandChanged(
                subject=self.cluster,
                id=name,
                command=changed.text(),
                state=changed.state,
                reason=changed.outcome,
                asked=asked,
            )
            self._tell(event)

    def _settle(self, link: Link) -> None:
        before, self.link = self.link, link
        if link.connected and not before.connected:
            outage = link.outage
            after = (outage.until - outage.since).total_seconds() if outage is not None else None
            self._tell(NetworkConnected(subject=self.cluster, after_seconds=after))
        elif before.connected and not link.connected:
            self._tell(NetworkDisconnected(subject=self.cluster, reason=link.reason))

    def _report_unread(self, troubles: Sequence[str]) -> None:
        """Tell once what cannot be understood."""
        for why in troubles:
            if why not in self._reported:
                self._reported.add(why)
                self._tell(CommandUnreadable(subject=self.cluster, reason=why))


def _tried(call: Callable[[], None]) -> str | None:
    """What went wrong with the store or AWS, None when nothing did."""
    try:
        call()
    except STORE_ERRORS as error:
        return error_line(error)
    return None
