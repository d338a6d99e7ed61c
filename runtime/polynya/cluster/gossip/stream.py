"""Gossip over a record stream: heartbeats and hints, sent and received.

`Listener` builds the picture of the other nodes from messages that may be late, duplicated, out of
order or lost. It belongs to one thread and uses the monotonic seconds of this process, never a
sender's.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from typing_extensions import override

from polynya.cluster.gossip.machine import Busy, Host
from polynya.cluster.gossip.messages import (
    Heartbeat,
    Hint,
    HintKind,
    LandedHint,
    NodeReport,
    Picture,
    ReceivedHeartbeat,
    Sender,
    UnitReport,
)
from polynya.cluster.gossip.reader import StreamReader, beat_wait
from polynya.cluster.gossip.records import (
    OtherClusterRecord,
    Skipped,
    heartbeat_records,
    hint_record,
    read_record,
)
from polynya.cluster.unit import JobKey
from polynya.model.errors import PolynyaError
from polynya.store.clock import Clock
from polynya.store.streams import RecordStream, ThrottledError

#: A process that sent nothing for this long is no longer in the picture.
FORGET_SECONDS: Final = 600.0
#: Most processes that are remembered, of this cluster and of all others, so that forged records
#: cannot fill the memory.
MOST_PROCESSES: Final = 2000
#: Numbers of hints that are remembered per process, to tell hints apart.
_MOST_HINTS_KEPT: Final = 64


@dataclass(slots=True)
class _Process:
    """The reports of one process.

    Attributes:
        newest: the part of its newest heartbeat that was received last; received `at`.
        before: number of the heartbeat before that one.
        parts: those of the newest one that were received.
        units: with the number of the heartbeat that named them last.
        whole: all that is known, None until it is asked for.
    """

    newest: Heartbeat
    at: float
    before: int = 0
    parts: set[int] = field(default_factory=set)
    units: dict[JobKey, tuple[int, UnitReport]] = field(default_factory=dict)
    whole: Heartbeat | None = None

    def add(self, heartbeat: Heartbeat, at: float) -> Skipped | None:
        """Take in a part of a heartbeat; returns why not."""
        if heartbeat.seq < self.newest.seq:
            return Skipped.LATE
        if heartbeat.seq == self.newest.seq and heartbeat.part in self.parts:
            return Skipped.REPEATED
        if heartbeat.seq > self.newest.seq:
            self.before, self.parts = self.newest.seq, set()
        self.newest, self.at, self.whole = heartbeat, at, None
        self.parts.add(heartbeat.part)
        self.units.update((unit.unit, (heartbeat.seq, unit)) for unit in heartbeat.units)
        # What a missing part would say is as the heartbeat before had it.
        complete = len(self.parts) == heartbeat.parts
        oldest = heartbeat.seq if complete else self.before
        self.units = {key: report for key, report in self.units.items() if report[0] >= oldest}
        return None

    def received(self, now: float) -> ReceivedHeartbeat:
        """The newest heartbeat, put together from its parts."""
        if self.whole is None:
            units = tuple(unit for _, unit in self.units.values())
            self.whole = replace(self.newest, units=units, part=1, parts=1)
        return ReceivedHeartbeat(self.whole, max(now - self.at, 0.0))


class Listener:
    """Takes records of a stream for a process of a cluster.

    All clusters of a stage use the same stream, and a shard has one limit for all its readers. So
    processes of other clusters count as `readers`, and nothing else of their records is used.
    """

    def __init__(self, me: Sender) -> None:
        self._me = me
        self._processes: dict[str, _Process] = {}
        #: When a record of each process of another cluster was received last.
        self._other_clusters: dict[Sender, float] = {}
        self._hints: dict[str, list[int]] = {}
        self.skipped: Counter[str] = Counter()

    def take(self, data: bytes, at: float) -> Hint | LandedHint | None:
        """Take in a record, put at this moment; returns a hint that this process follows."""
        message = read_record(data, self._me.cluster)
        if isinstance(message, Skipped):
            self.skipped[message.value] += 1
            return None
        if isinstance(message, OtherClusterRecord):
            self.skipped[Skipped.CLUSTER.value] += 1
            self._take_other_cluster(message.sender, at)
            return None
        if message.sender.incarnation == self._me.incarnation:
            return None
        if isinstance(message, Heartbeat):
            why, hint = self._take_heartbeat(message, at), None
        else:
            why, hint = self._take_hint(message), message
        if why is not None:
            self.skipped[why.value] += 1
            return None
        if isinstance(hint, Hint) and hint.to and self._me.incarnation not in hint.to:
            return None
        return hint

    def received(self, now: float) -> dict[str, ReceivedHeartbeat]:
        """The newest heartbeat of each process, without processes that were silent for long."""
        for name, process in list(self._processes.items()):
            if now - process.at > FORGET_SECONDS:
                del self._processes[name]
                self._hints.pop(name, None)
        return {name: process.received(now) for name, process in self._processes.items()}

    def readers(self, now: float) -> int:
        """How many processes share the stream, this one included; without silent ones."""
        self._other_clusters = {
            sender: at for sender, at in self._other_clusters.items() if now - at <= FORGET_SECONDS
        }
        return 1 + len(self.received(now)) + len(self._other_clusters)

    def _take_other_cluster(self, sender: Sender, at: float) -> None:
        if sender in self._other_clusters or len(self._other_clusters) < MOST_PROCESSES:
            self._other_clusters[sender] = max(at, self._other_clusters.get(sender, at))

    def _take_heartbeat(self, heartbeat: Heartbeat, at: float) -> Skipped | None:
        name = heartbeat.sender.incarnation
        known = self._processes.get(name)
        if known is None:
            if len(self._processes) >= MOST_PROCESSES:
                return Skipped.CROWDED
            known = self._processes[name] = _Process(replace(heartbeat, seq=0), at)
        return known.add(heartbeat, at)

    def _take_hint(self, hint: Hint | LandedHint) -> Skipped | None:
        name = hint.sender.incarnation
        if name not in self._hints and len(self._hints) >= MOST_PROCESSES:
            # All that is lost: old hints look like new ones.
            self._hints.clear()
        numbers = self._hints.setdefault(name, [])
        if hint.seq in numbers:
            return Skipped.REPEATED
        if len(numbers) >= _MOST_HINTS_KEPT and hint.seq < numbers[0]:
            return Skipped.LATE
        numbers.append(hint.seq)
        numbers.sort()
        del numbers[:-_MOST_HINTS_KEPT]
        return None


#: Failures in a row after which they are reported.
_FAILURES_BEFORE_TROUBLE: Final = 3
#: Least wait before a heartbeat out of turn, of a node whose state has changed.
_NEWS_SECONDS: Final = 1.0


class HeartbeatSender:
    """Sends the heartbeats and hints of one process; lives in one thread.

    `trouble` is why nothing is sent at present, None when all is well. `look` says how busy the
    machine is.
    """

    def __init__(
        self,
        me: Sender,
        stream: RecordStream,
        clock: Clock,
        draw: Callable[[], float],
        look: Callable[[], Busy],
    ) -> None:
        self._me, self._stream, self._clock, self._draw = me, stream, clock, draw
        self._look = look
        self._numbers = itertools.count(1)
        self._sent: NodeReport | None = None
        self._sent_at = float("-inf")
        self._wait = 0.0
        self._failures = 0
        self.trouble: str | None = None

    def due(self, report: NodeReport | None) -> float:
        """When the next heartbeat is, in monotonic seconds."""
        if report is None:
            return float("inf")
        news = self._sent is not None and self._sent.state != report.state
        return self._sent_at + (min(_NEWS_SECONDS, self._wait) if news else self._wait)

    def beat(self, report: NodeReport, nodes: int, shards: int) -> None:
        """Put a heartbeat; `nodes` of all clusters share the stream, this one included."""
        busy = self._look()
        heartbeat = Heartbeat(
            sender=self._me,
            seq=next(self._numbers),
            at=self._clock.now(),
            state=report.state,
            cpu=busy.cpu,
            memory=busy.memory,
            units=report.units,
        )
        records = heartbeat_records(heartbeat)
        self._put(records)
        self._sent, self._sent_at = report, self._clock.monotonic()
        size = sum(map(len, records))
        self._wait = beat_wait(nodes, shards, size, self._failures, self._draw()).seconds

    def hint(self, kind: HintKind, to: Iterable[str]) -> None:
        """Put a hint; one that is lost is not sent again."""
        hint = Hint(kind, self._me, next(self._numbers), self._clock.now(), tuple(to))
        self._put([hint_record(hint)])

    def _put(self, records: Iterable[bytes]) -> None:
        try:
            for record in records:
                self._stream.put(self._me.incarnation, record)
        except PolynyaError as error:
            self._failures += 1
            # One refusal among many writers is not trouble.
            if not isinstance(error, ThrottledError) or self._failures >= _FAILURES_BEFORE_TROUBLE:
                self.trouble = f"{error.code}: {error.message}"
            return
        self._failures, self.trouble = 0, None


class Gossip(Protocol):
    """What a node publishes to the others and receives from them.

    Usable from many threads; nothing waits.
    """

    def publish(self, report: NodeReport) -> None:
        """Send this from now on, with every heartbeat."""
        ...

    def hint(self, kind: HintKind, to: Iterable[str] = ()) -> None:
        """Let these incarnations read the store soon; all of them when none is named."""
        ...

    def picture(self) -> Picture:
        """What is known of the others now."""
        ...

    def stop(self) -> None:
        """Send and receive nothing from now on."""
        ...


#: Most hints that wait to be sent; more of them say the same.
_MOST_HINTS_SENT: Final = 32
#: Longest pause of the thread, in seconds: `publish` does not interrupt it.
_LONGEST_PAUSE: Final = 1.0


class StreamGossip(Gossip):
    """Gossip over a stream. `turn` does the work, on a thread or where a simulation wants it.

    Args:
        me: the sender.
        stream: where.
        clock: of this machine.
        draw: numbers in [0, 1) that spread what nodes ask.
        wake: called in a turn when the store should be looked at before its time; None for a
            process that only sends.
        landed: called in a turn with how the keys of objects begin that landed; None for a process
            that lists no landing folders.
        look: how busy the machine is, by default its own figures.
    """

    def __init__(
        self,
        me: Sender,
        stream: RecordStream,
        *,
        clock: Clock,
        draw: Callable[[], float],
        wake: Callable[[], None] | None,
        landed: Callable[[frozenset[str]], None] | None = None,
        look: Callable[[], Busy] | None = None,
    ) -> None:
        self._clock, self._wake, self._landed = clock, wake, landed
        self._sender = HeartbeatSender(me, stream, clock, draw, look or Host().look)
        self._reader = None if wake is None else StreamReader(stream, clock, draw)
        self._listener = Listener(me)
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._report: NodeReport | None = None
        self._hints: deque[tuple[HintKind, tuple[str, ...]]] = deque(maxlen=_MOST_HINTS_SENT)
        self._readers = 1
        self._broken: str | None = None
        self._stopped = False

    @override
    def publish(self, report: NodeReport) -> None:
        self._report = report

    @override
    def hint(self, kind: HintKind, to: Iterable[str] = ()) -> None:
        self._hints.append((kind, tuple(to)))
        self._changed.set()

    @override
    def picture(self) -> Picture:
        with self._lock:
            nodes = self._listener.received(self._clock.monotonic())
            skipped = dict(self._listener.skipped)
        return Picture(nodes, skipped, self.trouble, self._readers)

    @property
    def trouble(self) -> str | None:
        """Why nothing is sent or received at present, None when all is well."""
        unread = self._reader.trouble if self._reader is not None else None
        return self._broken or self._sender.trouble or unread

    def turn(self) -> float:
        """Send and read what is due; returns the seconds until something else is."""
        while self._hints:
            self._sender.hint(*self._hints.popleft())
        report, reader = self._report, self._reader
        if report is not None and self._sender.due(report) <= self._clock.monotonic():
            self._sender.beat(report, self._readers, reader.shards if reader is not None else 1)
        due = self._sender.due(self._report)
        if reader is not None:
            self._read(reader)
            due = min(due, reader.due)
        return max(due - self._clock.monotonic(), 0.0)

    def _read(self, reader: StreamReader) -> None:
        """Read due shards, and follow the hints: once for all records of a turn."""
        news = reader.turn(self._readers)
        if not news:
            return
        with self._lock:
            hints = [
                self._listener.take(record.data, read.at)
                for read in news
                for record in read.records
            ]
            self._readers = self._listener.readers(self._clock.monotonic())
        woken = any(isinstance(hint, Hint) for hint in hints) or any(read.gap for read in news)
        if self._wake is not None and woken:
            self._wake()
        landed = [hint.starts for hint in hints if isinstance(hint, LandedHint)]
        if self._landed is not None and landed:
            self._landed(frozenset().union(*landed))

    def start(self) -> None:
        """Take turns on a thread of its own until the process ends."""
        threading.Thread(target=self._go, name="gossip", daemon=True).start()

    @override
    def stop(self) -> None:
        self._stopped = True
        self._changed.set()

    def _go(self) -> None:
        while not self._stopped:
            self._changed.clear()
            try:
                pause = self.turn()
                self._broken = None
            except Exception as error:  # noqa: BLE001 - the edge of the thread
                pause, self._broken = _LONGEST_PAUSE, f"{type(error).__name__}: {error}"
            self._changed.wait(min(pause, _LONGEST_PAUSE))


class NoGossip(Gossip):
    """A node without a stream: it sends and receives nothing."""

    @override
    def publish(self, report: NodeReport) -> None:
        pass

    @override
    def hint(self, kind: HintKind, to: Iterable[str] = ()) -> None:
        pass

    @override
    def picture(self) -> Picture:
        return Picture()

    @override
    def stop(self) -> None:
        pass
