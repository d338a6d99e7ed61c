"""Gossip by a record stream: tells, reads, and wakes whoever waits for news."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from polynya.cluster.gossip.host import Busy, Host
from polynya.cluster.gossip.listener import Listener
from polynya.cluster.gossip.messages import HintKind, Picture, Report, Sender
from polynya.cluster.gossip.reader import StreamReader
from polynya.cluster.gossip.teller import Teller
from polynya.store.clock import Clock
from polynya.store.record_stream import RecordStream

#: So many hints wait to be told; more of them say the same.
_MOST_HINTS: Final = 32
#: Longest pause of the thread: `tell` does not interrupt it.
_LONGEST_PAUSE: Final = 1.0


class StreamGossip:
    """See `Gossip`. `turn` does the work, on a thread or where a simulation wants it.

    Args:
        me: who tells.
        stream: where.
        clock: of this machine.
        draw: numbers in [0, 1) that spread what nodes ask.
        wake: called in a turn when the store should be looked at before its time; None for a
            process that only tells and reads nothing.
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
        look: Callable[[], Busy] | None = None,
    ) -> None:
        self._clock, self._wake = clock, wake
        self._teller = Teller(me, stream, clock, draw, look or Host().look)
        self._reader = None if wake is None else StreamReader(stream, clock, draw)
        self._listener = Listener(me)
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._report: Report | None = None
        self._hints: deque[tuple[HintKind, tuple[str, ...]]] = deque(maxlen=_MOST_HINTS)
        self._nodes = 1
        self._broken: str | None = None
        self._stopped = False

    def tell(self, report: Report) -> None:
        """See `Gossip`."""
        self._report = report

    def hint(self, kind: HintKind, to: Iterable[str] = ()) -> None:
        """See `Gossip`."""
        self._hints.append((kind, tuple(to)))
        self._changed.set()

    def heard(self) -> Picture:
        """See `Gossip`."""
        with self._lock:
            nodes = self._listener.heard(self._clock.monotonic())
            skipped = dict(self._listener.skipped)
        return Picture(nodes, skipped, self.trouble)

    @property
    def trouble(self) -> str | None:
        """Why nothing is told or heard at present, None when all is well."""
        unheard = self._reader.trouble if self._reader is not None else None
        return self._broken or self._teller.trouble or unheard

    def turn(self) -> float:
        """Tell and read what is due; returns the seconds until something else is."""
        while self._hints:
            self._teller.hint(*self._hints.popleft())
        report, reader = self._report, self._reader
        if report is not None and self._teller.due(report) <= self._clock.monotonic():
            self._teller.beat(report, self._nodes, reader.shards if reader is not None else 1)
        due = self._teller.due(self._report)
        if reader is not None:
            self._read(reader)
            due = min(due, reader.due)
        return max(due - self._clock.monotonic(), 0.0)

    def _read(self, reader: StreamReader) -> None:
        """Read what is due, and wake who waits when there is a reason to look at the store."""
        news = reader.turn(self._nodes)
        if not news:
            return
        with self._lock:
            woken = [
                self._listener.take(record.data, one.at) for one in news for record in one.records
            ]
            self._nodes = 1 + len(self._listener.heard(self._clock.monotonic()))
        if self._wake is not None and (any(woken) or any(one.gap for one in news)):
            self._wake()

    def start(self) -> None:
        """Take turns on a thread of its own until the process ends."""
        threading.Thread(target=self._go, name="gossip", daemon=True).start()

    def stop(self) -> None:
        """See `Gossip`."""
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
