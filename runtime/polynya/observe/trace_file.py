"""A file of Chrome trace events, which Perfetto and `chrome://tracing` show.

The format is an array of which a reader needs no end, so that each event is in the file at once: a
process that is killed leaves a shorter trace.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO, TypeAlias

#: One event as the file holds it; times in microseconds since 1970.
TraceEvent: TypeAlias = Mapping[str, Any]


class TraceFile:
    """An open file. `sources` know more events than the spans of this process."""

    def __init__(self, file: TextIO) -> None:
        self.sources: list[Callable[[], Iterable[TraceEvent]]] = []
        self._file = file
        self._lock = threading.Lock()
        self._gathering = threading.Lock()
        self._threads: set[int] = set()
        # Differences of this clock are exact, and the start makes them times of day.
        self._zero = time.time() - time.perf_counter()
        file.write("[\n" + json.dumps(named("process_name", "polynya", os.getpid())))

    def now(self) -> float:
        """Microseconds since 1970."""
        return (self._zero + time.perf_counter()) * 1e6

    def write(self, *events: TraceEvent) -> None:
        """Add events. Raises OSError or ValueError when the file takes no more."""
        with self._lock:
            for event in events:
                self._file.write(",\n" + json.dumps(event, default=str))
            self._file.flush()

    def span(self, name: str, began: float, args: Mapping[str, Any]) -> None:
        """Add a span of this thread that ends now."""
        taken = {"ts": began, "dur": self.now() - began}
        place = {"pid": os.getpid(), "tid": threading.get_native_id()}
        event = {"ph": "X", "name": name, "cat": "polynya", **place, **taken, "args": args}
        if place["tid"] in self._threads:
            self.write(event)
        else:
            self._threads.add(place["tid"])
            self.write(event, named("thread_name", threading.current_thread().name, **place))

    def gather(self) -> None:
        """Add what the sources know by now, unless another thread does so."""
        if self._gathering.acquire(blocking=False):
            try:
                for source in self.sources:
                    self.write(*source())
            finally:
                self._gathering.release()

    def close(self) -> None:
        """End the array and the file."""
        with self._lock, self._file:
            self._file.write("\n]\n")


def named(kind: str, name: str, pid: int, tid: int = 0) -> TraceEvent:
    """The event that names a process (`process_name`) or a thread (`thread_name`)."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
