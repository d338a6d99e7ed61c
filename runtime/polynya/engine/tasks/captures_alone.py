"""Captures run alone, without Spark and tables, as close to their database as possible."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from polynya.engine.errors import as_polynya
from polynya.engine.tasks.capture_supervisor import CaptureSupervisor
from polynya.model.errors import PolynyaError, TaskStoppedError
from polynya.observe.engine import UnitFailed
from polynya.observe.events import EventSink

#: How long a capture waits for messages of its process.
_MESSAGE_WAIT_SECONDS: Final = 0.5
#: Pauses after an error that an operator must fix: the first, and the longest, in seconds.
_FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 300.0


@dataclass(slots=True)
class StandaloneCaptures:
    """Several captures, each in a thread, until they are done or `stop` is set."""

    supervisors: Mapping[str, CaptureSupervisor]
    sink: EventSink
    stop: threading.Event
    failures: dict[str, PolynyaError] = field(default_factory=dict)

    def run(self, *, once: bool) -> Mapping[str, PolynyaError]:
        """Capture; the errors that captures ended with, by task. Ends their processes."""
        threads = [
            threading.Thread(
                target=self._capture, args=(task, supervisor, once), name=f"landing-{task}"
            )
            for task, supervisor in self.supervisors.items()
        ]
        for thread in threads:
            thread.start()
        try:
            _join(threads)
        finally:
            self.stop.set()
            _join(threads)
        return self.failures

    def _capture(self, task: str, supervisor: CaptureSupervisor, once: bool) -> None:  # noqa: FBT001
        pause = 0.0
        try:
            while not self.stop.is_set():
                try:
                    progress = supervisor.step(once=once, patience=_MESSAGE_WAIT_SECONDS)
                except BaseException as error:  # noqa: BLE001 - the edge of a capture
                    failure = as_polynya(error)
                    self.sink(UnitFailed(subject=task, task=task, error=failure, goes_on=not once))
                    if once or isinstance(failure, TaskStoppedError):
                        self.failures[task] = failure
                        return
                    pause = min(_LONGEST_PAUSE_SECONDS, 2 * pause or _FIRST_PAUSE_SECONDS)
                    self.stop.wait(pause)
                    continue
                pause = pause if progress.refused else 0.0
                if progress.done and once:
                    return
                if progress.wait:
                    self.stop.wait(min(progress.wait, _MESSAGE_WAIT_SECONDS))
        finally:
            supervisor.close()


def _join(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        # A wait without an end cannot be interrupted by Ctrl-C everywhere.
        while thread.is_alive():
            thread.join(0.5)
