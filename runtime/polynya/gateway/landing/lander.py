"""Landing: the only place where a capture writes. Load and stream take turns.

Each batch carries the whole position after it. So whoever is killed, and wherever, the newest batch
says what has landed of everything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import BinaryIO

from polynya.formats.debezium.captured.batch import (
    CaptureHeader,
    Shape,
    digest_of,
    packed_lines,
)
from polynya.gateway.landing.epochs import in_epoch
from polynya.gateway.landing.log import CaptureLog
from polynya.gateway.landing.position import Position


class Lander:
    """Puts batches one after the other. Usable from many threads."""

    def __init__(
        self,
        log: CaptureLog,
        task: str,
        now: Callable[[], datetime],
        *,
        writer: str = "",
        unsent: str | None = None,
        newest: CaptureHeader | None = None,
        landed: Callable[[int, int, int], None] | None = None,
    ) -> None:
        """Go on after the newest batch.

        Args:
            log: where they are.
            task: name of the landing.
            now: the clock.
            writer: a name that no other capture has: of two that put the same number at the same
                moment each has to know whether it was the one.
            unsent: as in the header of a batch.
            newest: as `log.newest` says; None: nothing has landed.
            landed: is told number, events and bytes of each batch.
        """
        self._log, self._task, self._now, self._landed = log, task, now, landed
        self._writer, self._unsent = writer, unsent
        self._lock = threading.Lock()
        self._failure: Exception | None = None
        self._number = 0 if newest is None else newest.number
        self._digest = "" if newest is None else newest.digest
        self._position: Position | None = None
        if newest is not None:
            self._position = Position.of(newest.position)

    @property
    def position(self) -> Position:
        """After all that has landed. Raises ValueError before the first batch."""
        if self._position is None:
            raise ValueError("nothing has landed yet")
        return self._position

    @property
    def number(self) -> int:
        """Of the newest batch, 0 for none."""
        return self._number

    def begin(self, position: Position) -> None:
        """Land a position without events: the first, or one that a person asked for."""
        self._put(b"", 0, {}, lambda: position)

    def land(
        self,
        lines: bytes,
        events: int,
        shapes: Mapping[str, Sequence[Shape]],
        move: Callable[[Position], Position],
        *,
        epoch: int | None = None,
    ) -> None:
        """Land events, and the position that they move to.

        Args:
            lines: event lines, each with its end.
            events: how many.
            shapes: their schemas.
            move: the position after them from the one before; called when nobody else lands.
            epoch: of the places in them; None: that of the position.

        Raises:
            ConflictError: POLYNYA-GTW-004, another capture was first. Nothing has moved.
            DependencyError: the landing zone cannot be reached. Whether the batch has landed is
                then known to nobody: all that comes after it fails too, and a new capture looks.
        """
        lines = in_epoch(lines, self.position.epoch if epoch is None else epoch)
        # Compressing takes longest, and needs no turn.
        self._put(packed_lines(lines), events, shapes, lambda: move(self.position))

    def land_file(
        self,
        file: BinaryIO,
        events: int,
        shapes: Mapping[str, Sequence[Shape]],
        move: Callable[[Position], Position],
    ) -> None:
        """Land events that wait in a file, compressed; the rest, and what it raises, as `land`."""
        self._put(file, events, shapes, lambda: move(self.position))

    def _put(
        self,
        packed: bytes | BinaryIO,
        events: int,
        shapes: Mapping[str, Sequence[Shape]],
        moved: Callable[[], Position],
    ) -> None:
        with self._lock:
            if self._failure is not None:
                raise self._failure
            position = moved()
            header = CaptureHeader(
                task=self._task,
                number=self._number + 1,
                written_at=self._now(),
                events=events,
                position=position.as_dict(),
                schemas=shapes,
                writer=self._writer,
                unsent=self._unsent,
                follows=self._digest,
            )
            size = self._put_or_stop(header, packed)
            self._number, self._position = header.number, position
            self._digest = digest_of(header.line())
        if self._landed is not None:
            self._landed(header.number, events, size)

    def _put_or_stop(self, header: CaptureHeader, packed: bytes | BinaryIO) -> int:
        try:
            if isinstance(packed, bytes):
                return self._log.put(header, packed)
            return self._log.put_file(header, packed)
        except Exception as error:
            self._failure = error
            raise
