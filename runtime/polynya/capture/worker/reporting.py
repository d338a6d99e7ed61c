"""Events of the process as lines, each whole, from any thread."""

from __future__ import annotations

import threading
from typing import Any, BinaryIO, Protocol

from polynya.capture.wire import event_line


class ReportEvent(Protocol):
    """Reports an event."""

    def __call__(self, type_: str, **fields: Any) -> None:
        """Report it. Never raises: a capture does not end because nobody listens."""
        ...


class EventLines:
    """Events as lines of a stream."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def __call__(self, type_: str, **fields: Any) -> None:
        """Write an event."""
        try:
            with self._lock:
                self._out.write(event_line(type_, **fields))
                self._out.flush()
        except (OSError, ValueError):
            pass  # Whoever started the process has gone; its input ends as well.
