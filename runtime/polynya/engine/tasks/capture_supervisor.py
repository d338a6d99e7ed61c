"""The supervisor of one task's capture process: starts it, listens, restarts it after a pause.

The landing zone holds everything that a capture must remember. So a process may die at any moment,
and the next one continues after the newest landed batch.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from polynya.capture.wire import Asking, Mode, Wish
from polynya.engine.tasks.capture_process import CaptureProcess
from polynya.engine.tasks.capture_reports import CaptureReporter
from polynya.model.config.capture import EnvironmentErrors, pause_seconds
from polynya.model.config.schedule import Cron, Recurrence
from polynya.model.errors import (
    ConflictError,
    DependencyError,
    OperationError,
    PolynyaError,
    TaskStoppedError,
)
from polynya.observe.capture import CaptureExpired, CaptureHeld, CaptureRetry
from polynya.observe.events import EventSink
from polynya.store.clock import Clock

#: Starts a process with pending requests. Raises PolynyaError when that is not possible.
Launch: TypeAlias = Callable[[Mode, Sequence[Wish]], CaptureProcess]

#: How often requests for a capture are read, in seconds.
REQUEST_CHECK_SECONDS: Final = 10.0
#: Seconds between two checks for landed batches that are too old.
EXPIRY_CHECK_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class CaptureProgress:
    """How a capture is.

    Attributes:
        landed: something has landed since the last call.
        done: it has nothing left to do: it did what it was to do once, or is held.
        refused: why it waits.
        wait: seconds until there may be something new.
    """

    landed: bool = False
    done: bool = False
    refused: PolynyaError | None = None
    wait: float = 0.0


@dataclass(slots=True)
class ReloadSchedule:
    """When a capture that follows no changes loads everything again.

    `last` returns the time of the last load, None for never; it is called once.
    """

    schedule: Cron | Recurrence
    last: Callable[[], datetime | None]
    _is_known: bool = False
    _next: datetime | None = None

    def wait(self, now: datetime) -> float:
        """Seconds until the next one, 0 when it is due, infinite after the last."""
        if not self._is_known:
            last = self.last()
            self._is_known = True
            self._next = now if last is None else self.schedule.next_after(last)
        return math.inf if self._next is None else max(0.0, (self._next - now).total_seconds())

    def done(self, now: datetime) -> None:
        """It has loaded everything."""
        self._is_known, self._next = True, self.schedule.next_after(now)


class CaptureSupervisor:
    """The capture of one task. One thread may take steps while another one closes it."""

    def __init__(
        self,
        task: str,
        policy: EnvironmentErrors,
        launch: Launch,
        asking: Asking,
        *,
        clock: Clock,
        sink: EventSink,
        reloads: ReloadSchedule | None = None,
        expire: Callable[[datetime], int] = lambda _: 0,
    ) -> None:
        self._task, self._policy, self._launch = task, policy, launch
        self._asking, self._clock, self._sink = asking, clock, sink
        self._reloads, self._expire = reloads, expire
        self._expired_at: float | None = None
        self._telling = CaptureReporter(task, sink)
        self._process: CaptureProcess | None = None
        self._failures = 0
        self._due: float | None = None
        self._refused: PolynyaError | None = None
        self._asked_at: float | None = None
        # Pending requests by the path of their object; paths that the process knows.
        self._wishes: dict[str, Wish] = {}
        self._known: set[str] = set()
        self._held = False
        self._closed = False
        self._lock = threading.Lock()

    def look(self, *, once: bool, patience: float = 0.0) -> CaptureProgress:
        """Listen to the process, which is started if need be.

        Args:
            once: do what there is and end; a temporary failure is an error then.
            patience: seconds that it may take until there is something to say.

        Raises:
            PolynyaError: what ended the capture and will not pass by itself.
            TaskStoppedError: as many failures in a row as the policy allows (POLYNYA-GTW-069).
        """
        with self._lock:
            if self._closed:
                return CaptureProgress(done=True)
            return self._look(once=once, patience=patience)

    def close(self) -> None:
        """End the process, and start no other."""
        with self._lock:
            self._closed = True
            self._end()

    def _look(self, *, once: bool, patience: float) -> CaptureProgress:
        self._look_what_is_asked()
        self._remove_old_batches()
        if self._held:
            self._end()
            return CaptureProgress(done=once, wait=REQUEST_CHECK_SECONDS)
        now = self._clock.monotonic()
        if self._process is None and self._due is not None and now < self._due:
            return CaptureProgress(refused=self._refused, wait=self._due - now)
        if self._process is None and self._reloads is not None and not once:
            wait = self._reloads.wait(self._clock.now())
            if wait and not self._wishes:
                return CaptureProgress(wait=min(wait, REQUEST_CHECK_SECONDS))
        try:
            return self._listen(once=once, patience=patience)
        except (DependencyError, ConflictError) as error:
            if once:
                raise
            return self._interrupted(error)

    def _end(self) -> None:
        """End the process, if there is one, and wait until it has ended."""
        process, self._process = self._process, None
        self._known.clear()
        if process is not None:
            process.end()
            self._telling.over()

    def _listen(self, *, once: bool, patience: float) -> CaptureProgress:
        if self._process is None:
            self._telling.failed = None
            self._process = self._launch(self._mode(once=once), tuple(self._wishes.values()))
            self._known.update(self._wishes)
        self._telling.landed = self._telling.works = self._telling.begun = False
        for message in self._process.take(patience):
            self._telling.take(message)
        if self._telling.begun:
            self._wishes_begun()
        if self._telling.works:
            self._failures, self._due, self._refused = 0, None, None
        code = self._process.code
        if code is None:
            return CaptureProgress(landed=self._telling.landed, refused=self._refused)
        self._end()
        failed = self._telling.failed
        if failed is not None:
            raise failed
        if code == 0 and self._reloads is not None:
            self._reloads.done(self._clock.now())
            return CaptureProgress(landed=self._telling.landed, done=True)
        if code == 0 and once:
            return CaptureProgress(landed=self._telling.landed, done=True)
        raise _ended(self._task, code)

    def _mode(self, *, once: bool) -> Mode:
        if self._reloads is not None:
            return "reload"
        return "once" if once else "follow"

    def _interrupted(self, error: PolynyaError) -> CaptureProgress:
        """A temporary failure has ended the process: it starts again after a pause."""
        self._end()
        self._failures += 1
        pause = pause_seconds(self._policy, self._failures)
        if pause is None:
            raise _given_up(self._task, self._failures, error) from error
        self._refused, self._due = error, self._clock.monotonic() + pause
        self._sink(
            CaptureRetry(
                subject=self._task,
                task=self._task,
                error=error,
                number=self._failures,
                pause_seconds=pause,
            )
        )
        return CaptureProgress(landed=self._telling.landed, refused=error, wait=pause)

    def _remove_old_batches(self) -> None:
        now, last = self._clock.monotonic(), self._expired_at
        if last is not None and now < last + EXPIRY_CHECK_SECONDS:
            return
        self._expired_at = now
        removed = self._expire(self._clock.now())
        if removed:
            self._sink(CaptureExpired(subject=self._task, task=self._task, files=removed))

    def _look_what_is_asked(self) -> None:
        now = self._clock.monotonic()
        if self._asked_at is not None and now < self._asked_at + REQUEST_CHECK_SECONDS:
            return
        self._asked_at = now
        asked = self._asking.look()
        self._wishes = dict(asked.wishes)
        if self._process is not None:
            for path, wish in self._wishes.items():
                if path not in self._known:
                    self._known.add(path)
                    self._process.ask(wish.tables, reload=wish.reload)
        if asked.held != self._held:
            self._held = asked.held
            self._sink(CaptureHeld(subject=self._task, task=self._task, held=asked.held))

    def _wishes_begun(self) -> None:
        """Delete requests that the process has begun; before that a kill must not lose them."""
        for path in self._known & self._wishes.keys():
            self._asking.done(path)
            del self._wishes[path]
        self._known.clear()


def _ended(task: str, code: int) -> DependencyError:
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return DependencyError(
        "POLYNYA-GTW-068",
        f"the capture process ended {how} and did not say why",
        where=task,
        state="what has landed stays; the next process goes on behind it",
        fix=f"look at its log, `log/capture-{task}.log` in the cache folder; if the system ended "
        "it for lack of memory, lower `load.parallel` or `load.chunk_rows`",
    )


def _given_up(task: str, failures: int, error: PolynyaError) -> OperationError:
    return TaskStoppedError(
        "POLYNYA-GTW-069",
        f"the capture failed {failures} times in a row, as often as `errors.environment` allows",
        where=task,
        why=str(error),
        state="what has landed stays; the database keeps its changes as long as it is set to",
        fix="remove the cause, then start the task again",
    )
