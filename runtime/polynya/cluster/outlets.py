"""Where an agent reports its status. Nothing that fails here stops a task."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from queue import Full, Queue
from typing import Final, TypeAlias

from polynya.model.errors import PolynyaError
from polynya.store.object_store import LocalObjectStore
from polynya.store.record_stream import RecordStream

STATE_FILE: Final = "state.json"

#: A Kinesis record has at most 1 MiB with its key.
_STREAM_BYTES: Final = 1_000_000

Encode: TypeAlias = Callable[[object], str]
"""A value as one line of JSON."""


class StateFile:
    """The newest report, in the work folder; whole at every moment."""

    def __init__(self, folder: LocalObjectStore, encode: Encode) -> None:
        self._folder, self._encode = folder, encode

    def put(self, report: Mapping[str, object]) -> str | None:
        """Write it; returns what was wrong, if anything."""
        try:
            self._folder.put(STATE_FILE, self._encode(report).encode())
        except OSError as error:
            return f"{STATE_FILE}: {error.strerror}"
        return None


class StreamOutlet:
    """Reports on the workload stream, from a thread of its own: it may be slow to answer.

    While one is on its way the next ones are dropped; the one after that has all they had.
    """

    def __init__(self, stream: RecordStream, node: str, encode: Encode) -> None:
        self._stream, self._node, self._encode = stream, node, encode
        self._queue: Queue[bytes] = Queue(maxsize=1)
        self._wrong: str | None = None
        threading.Thread(target=self._send, name="workload stream", daemon=True).start()

    def put(self, report: Mapping[str, object]) -> str | None:
        """Send it; returns what was wrong with the last one, if anything."""
        data = self._encode(report).encode()
        if len(data) > _STREAM_BYTES:
            data = self._encode({**report, "tasks": {}, "tasks_left_out": True}).encode()
        try:
            self._queue.put_nowait(data)
        except Full:
            return self._wrong or "the workload stream is slow"
        return self._wrong

    def _send(self) -> None:
        while True:
            data = self._queue.get()
            try:
                self._stream.put(self._node, data)
                self._wrong = None
            except PolynyaError as error:
                self._wrong = f"{error.code}: {error}"
            except Exception as error:  # noqa: BLE001 - the edge of the thread
                self._wrong = f"workload stream: {type(error).__name__}: {error}"
