"""Puts the messages of this process on the stream: hints at once, heartbeats at their pace."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Final

from polynya.cluster.gossip.encode import heartbeat_records, hint_record
from polynya.cluster.gossip.host import Busy
from polynya.cluster.gossip.messages import Heartbeat, Hint, HintKind, Report, Sender
from polynya.cluster.gossip.pace import beat_wait
from polynya.model.errors import PolynyaError
from polynya.store.clock import Clock
from polynya.store.record_stream import RecordStream, ThrottledError

#: A heartbeat out of turn, of a node whose state is another one now, waits so long at least.
_NEWS_SECONDS: Final = 1.0
#: So many refusals in a row are worth a word.
_PATIENCE: Final = 3


class Teller:
    """Tells for one process; lives in one thread.

    `trouble` is why nothing is told at present, None when all is well. `look` says how busy the
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
        self._told: Report | None = None
        self._told_at = float("-inf")
        self._wait = 0.0
        self._failures = 0
        self.trouble: str | None = None

    def due(self, report: Report | None) -> float:
        """When the next heartbeat is, in monotonic seconds."""
        if report is None:
            return float("inf")
        news = self._told is not None and self._told.state != report.state
        return self._told_at + (min(_NEWS_SECONDS, self._wait) if news else self._wait)

    def beat(self, report: Report, nodes: int, shards: int) -> None:
        """Put a heartbeat; `nodes` share the stream, this one included."""
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
        self._told, self._told_at = report, self._clock.monotonic()
        size = sum(map(len, records))
        self._wait = beat_wait(nodes, shards, size, self._failures, self._draw()).seconds

    def hint(self, kind: HintKind, to: Iterable[str]) -> None:
        """Put a hint; one that is lost is not told again."""
        hint = Hint(kind, self._me, next(self._numbers), self._clock.now(), tuple(to))
        self._put([hint_record(hint)])

    def _put(self, records: Iterable[bytes]) -> None:
        try:
            for record in records:
                self._stream.put(self._me.incarnation, record)
        except PolynyaError as error:
            self._failures += 1
            # One refusal among many writers is no trouble.
            if not isinstance(error, ThrottledError) or self._failures >= _PATIENCE:
                self.trouble = f"{error.code}: {error.message}"
            return
        self._failures, self.trouble = 0, None
