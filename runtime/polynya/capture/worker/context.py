"""What all parts of a capture at work share: where it reads, where it lands, who ends it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import LogPosition
from polynya.capture.source import SourceDatabase
from polynya.capture.wire import CaptureRequest, WorkerSettings
from polynya.capture.worker.engines import StreamEngines
from polynya.capture.worker.reporting import ReportEvent
from polynya.formats.debezium.envelope import placeholder_of


@dataclass(slots=True)
class CaptureContext:
    """One capture, and what can be asked of it.

    Attributes:
        writer: a name that no other capture has.
        stop: ends it, cleanly.
        wake: is set whenever something happened that it has to look at.
        patience: so many seconds are waited for somebody to ask for a load of all tables, where
            nothing else helps: what was asked before the start is told only after it.
        understood: places of statements that Debezium got in other words.
    """

    settings: WorkerSettings
    database: SourceDatabase
    log: CaptureLog
    engines: StreamEngines
    report: ReportEvent
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    writer: str = ""
    stop: threading.Event = field(default_factory=threading.Event)
    wake: threading.Event = field(default_factory=threading.Event)
    requests: queue.SimpleQueue[CaptureRequest] = field(default_factory=queue.SimpleQueue)
    patience: float = 15.0
    understood: set[LogPosition] = field(default_factory=set)

    @property
    def unsent(self) -> str:
        """The text by which its events say that a column was not sent; empty: all are."""
        return placeholder_of(self.database.connector, self.writer)

    def ask(self, request: CaptureRequest) -> None:
        """Take a request, from whichever thread."""
        self.requests.put(request)
        self.wake.set()

    def taken_requests(self) -> list[CaptureRequest]:
        """The requests that have come so far, each once."""
        requests = []
        while not self.requests.empty():
            requests.append(self.requests.get())
        return requests

    def end(self) -> None:
        """End cleanly, asked from whichever thread."""
        self.stop.set()
        self.wake.set()
