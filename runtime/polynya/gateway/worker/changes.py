"""From the stream to the log: what the engine brings is cut, masked and landed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from polynya.gateway.landing.lander import Lander
from polynya.gateway.landing.position import Position, StreamPosition
from polynya.gateway.landing.stream import Cut, Cutter, StreamEvent
from polynya.gateway.worker.masks import TableMasks

_IDLE_SECONDS: Final = 60.0
"""So often a position lands by which only the place in the log moved."""


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
    """Lands what the engine brings. Called from its thread only."""

    def __init__(
        self,
        cutter: Cutter,
        lander: Lander,
        masks: TableMasks,
        monotonic: Callable[[], float],
        history: History | None = None,
    ) -> None:
        self._cutter, self._lander, self._masks = cutter, lander, masks
        self._monotonic = monotonic
        self._history = history or NoHistory()
        self._landed_at = monotonic()
        self._untold: StreamEvent | None = None

    @property
    def position(self) -> StreamPosition:
        """How far the stream was read, also where nothing was to be landed."""
        return self._cutter.position

    def take(self, events: Sequence[StreamEvent]) -> StreamEvent | None:
        """Land events; the one of which the database may be told that all up to it has landed.

        Raises:
            ConflictError: POLYNYA-GTW-004, another capture lands into the same folder.
            DependencyError: the landing zone cannot be reached.
            OperationError: a mask does not fit.
        """
        cut = self._cutter.take(events)
        self._untold = cut.last or self._untold
        is_due = self._monotonic() - self._landed_at >= _IDLE_SECONDS
        if not cut.events and (self._untold is None or not is_due):
            return None
        self._land(replace(cut, events=self._masked(cut.events)))
        told, self._untold = self._untold, None
        return told

    def finish(self) -> None:
        """Land the position when it has moved since; after the engine has ended."""
        if self._untold is not None:
            self._untold = None
            self._land(self._cutter.take(()))

    def _land(self, cut: Cut) -> None:
        number = self._history.kept(self._lander.position.history)

        def move(before: Position) -> Position:
            return replace(before, stream=cut.position, history=number)

        self._lander.land(cut.lines, len(cut.events), cut.shapes(), move)
        self._landed_at = self._monotonic()

    def _masked(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        if not self._masks.given:
            return events
        return [self._shown(event) for event in events]

    def _shown(self, event: StreamEvent) -> StreamEvent:
        if event.table is None or event.shape is None:
            return event
        masks = self._masks.of_table(event.table, event.shape)
        if masks is None:
            return event
        return replace(event, line=masks.line(event.line[:-1]) + b"\n", shape=masks.schema)
