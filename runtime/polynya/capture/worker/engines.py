"""What reads a stream, as a port: Debezium's engine, or one of a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition
from polynya.capture.landing.stream import TakeEvents
from polynya.capture.source import Offset, SourceDatabase, SourceTable
from polynya.capture.worker.changes import History
from polynya.model.errors import PolynyaError


class StreamEngine(Protocol):
    """What reads the stream, in a thread of its own."""

    @property
    def failure(self) -> PolynyaError | None:
        """Why it ended; None: it was stopped, or runs."""
        ...

    def start(self) -> None:
        """Begin."""
        ...

    def read_to(self) -> Offset | None:
        """A place in the log up to which all was taken, also where no event moved the offset.

        It is asked for again and again; None: not known.
        """
        ...

    def stop(self) -> None:
        """End, after the batch that is landing."""
        ...


class StreamEngines(Protocol):
    """Makes engines."""

    def engine(
        self,
        database: SourceDatabase,
        tables: Sequence[SourceTable],
        position: CapturePosition,
        take: TakeEvents,
        ended: Callable[[], None],
    ) -> StreamEngine:
        """One that reads from a position on."""
        ...

    def history(self, database: SourceDatabase, log: CaptureLog) -> History | None:
        """What its connector needs of the past; None: nothing."""
        ...
