"""From the engine to the log: events are cut, masked, collected and landed.

The engine's thread collects events while another thread lands them. A slow put blocks the engine
only when the collected events have no more room, so memory is bounded by twice the size of a batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import compress
from operator import not_
from typing import Any, Protocol

from polynya.capture.landing.log import CaptureLander
from polynya.capture.landing.position import CapturePosition, LogPosition, ResumePoint
from polynya.capture.landing.stream import Cutter, Pending, RollLimits, StreamEvent
from polynya.capture.source import Offset
from polynya.capture.wire import TableError
from polynya.capture.worker.loads import KeylessTables
from polynya.capture.worker.masks import TableMasks
from polynya.model.errors import OperationError


class History(Protocol):
    """Schemas of the past, which some connectors need to read their log."""

    def kept(self, number: int) -> int:
        """Put what has grown since a number; the number that has all of it."""
        ...


class NoHistory:
    """Of connectors whose log describes itself."""

    def kept(self, number: int) -> int:
        """There is nothing to keep."""
        return number


class Changes:
    """Lands what the engine brings."""

    def __init__(
        self,
        cutter: Cutter,
        lander: CaptureLander,
        masks: TableMasks,
        monotonic: Callable[[], float],
        *,
        keyless: KeylessTables,
        roll: RollLimits | None = None,
        history: History | None = None,
        lacking: Collection[str] = (),
        landed: Callable[[], None] = lambda: None,
    ) -> None:
        """Set up; `start` begins.

        Args:
            cutter: what of the stream lands, and the position after it.
            lander: where.
            masks: of the tables.
            monotonic: seconds of a clock.
            keyless: decides of events of tables without key.
            roll: when a batch is complete.
            history: of connectors that need one.
            lacking: tables whose changes do not land.
            landed: is called when something has landed, and when nothing can land any more.
        """
        self.failure: Exception | None = None
        self._cutter, self._lander, self._masks = cutter, lander, masks
        self._keyless, self._lacking = keyless, frozenset(lacking)
        self._monotonic, self._roll, self._landed = monotonic, roll or RollLimits(), landed
        self._history = history or NoHistory()
        self._landed_at = monotonic() - self._roll.seconds
        self._pending, self._landing = Pending(), Pending()
        self._confirmable: Any = None
        self._is_ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="land", daemon=True)

    @property
    def position(self) -> ResumePoint:
        """How far the stream was read, also where nothing was to be landed."""
        return self._cutter.position

    @property
    def waits(self) -> bool:
        """Whether a statement has not landed that lets tables be loaded again."""
        with self._changed:
            return any(batch.replaced or batch.filled for batch in (self._pending, self._landing))

    def start(self) -> None:
        """Begin to land."""
        self._thread.start()

    def take(
        self, events: Sequence[StreamEvent], replaced: Iterable[tuple[str, LogPosition]] = ()
    ) -> Any:
        """Take what the engine has read; from its thread only. Waits while there is no room.

        Args:
            events: in their order.
            replaced: tables that got rows which are not among them, and where.

        Returns:
            The record of which the database may be told that all up to it has landed; None: none
            since it was asked last.

        Raises:
            TableError: a mask does not fit, or a value is too long.
            Exception: what has kept an earlier batch from landing.
        """
        cut = self._cutter.take(events)
        shown = self._masked(self._followed(cut.events))
        apart = self._keyless.are_apart(shown)
        with self._changed:
            self._changed.wait_for(self._has_room)
            if self.failure is not None:
                raise self.failure
            if apart is not None:
                self._pending.set_apart(compress(shown, apart))
                self._pending.add([*compress(shown, map(not_, apart))])
            elif shown:
                self._pending.add(shown)
            self._pending.replaced.update(replaced)
            if shown or cut.last is not None:
                self._pending.position = cut.position
                if cut.last is not None:
                    self._pending.confirmable = cut.last
                self._pending.is_awaited |= any(event.is_awaited for event in events)
                self._changed.notify_all()
            landed, self._confirmable = self._confirmable, None
            return landed

    def begin_at(self, offset: Offset) -> None:
        """The stream continues at an offset; nothing beyond it was taken."""
        with self._changed:
            self._cutter.position = self._pending.position = ResumePoint(offset)

    def has_read_to(self, offset: Offset) -> None:
        """All up to a place in the log was taken: it lands, with what waits."""
        with self._changed:
            self._pending.read_to, self._pending.is_awaited = offset, True
            self._changed.notify_all()

    def finish(self) -> None:
        """Land all that was taken, after the engine has ended. Raises as `take`."""
        self.close()
        if self.failure is not None:
            raise self.failure
        if self._pending.position is not None or self._pending.read_to is not None:
            self._land(self._pending)

    def close(self) -> None:
        """End without another batch; waits for one that lands."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _has_room(self) -> bool:
        return self._is_ending or self.failure is not None or self._pending.size < self._roll.bytes

    def _run(self) -> None:
        try:
            while (batch := self._next()) is not None:
                self._land(batch)
        except Exception as error:  # noqa: BLE001 - whoever watches raises it
            with self._changed:
                self.failure = error
                self._changed.notify_all()
            self._landed()

    def _next(self) -> Pending | None:
        """Wait for the next batch; None: it ends."""
        with self._changed:
            while not self._is_ending:
                since = self._monotonic() - self._landed_at
                wait = self._roll.wait(self._pending, since_landed=since)
                if wait == 0:
                    batch, self._pending = self._pending, Pending()
                    self._landing = batch
                    self._changed.notify_all()
                    return batch
                self._changed.wait(wait)
        return None

    def _land(self, batch: Pending) -> None:
        number = self._history.kept(self._lander.position.history)
        with self._keyless.turn():
            keyless = self._keyless.divide(batch.apart, self._lander.position)
            batch.add(keyless.landing)

            def move(before: CapturePosition) -> CapturePosition:
                stream = batch.position or before.stream
                read_to = batch.read_to or before.read_to
                after = self._keyless.position_after(before, stream, keyless)
                after = replace(after, history=number, read_to=read_to)
                after = after.with_changes(batch.counts).with_filled(batch.filled)
                return after.with_replaced(batch.replaced)

            self._lander.land(batch.lines, batch.events, batch.shapes, move)
            self._keyless.look_again(self._lander.position)
        with self._changed:
            self._landing = Pending()
            self._landed_at = self._monotonic()
            if batch.confirmable is not None:
                self._confirmable = batch.confirmable
        self._landed()

    def _followed(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        if not self._lacking:
            return events
        return [event for event in events if event.table not in self._lacking]

    def _masked(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        if self._masks.is_empty:
            return events
        return [self._shown(event) for event in events]

    def _shown(self, event: StreamEvent) -> StreamEvent:
        if event.table is None or event.shape is None:
            return event
        try:
            masks = self._masks.of_table(event.table, event.shape)
            if masks is None:
                return event
            return replace(event, line=masks.line(event.line[:-1]) + b"\n", shape=masks.schema)
        except OperationError as error:
            raise TableError.of(event.table, error) from None
