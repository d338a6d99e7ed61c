"""The supervisor of one task's capture process: starts it, listens, restarts it after a pause.

The landing zone holds everything that a capture must remember. So a process may die at any moment,
and the next one continues after the newest landed batch.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeAlias

from polynya.capture.wire import CaptureRequest, Mode, RequestFolder
from polynya.engine.backlog import CaptureFigures
from polynya.engine.tasks.capture_process import CaptureProcess
from polynya.engine.tasks.capture_reports import CaptureReporter
from polynya.model.config.capture import EnvironmentErrors, pause_seconds
from polynya.model.config.schedule import ReadingTimes, Schedules
from polynya.model.error_catalogue.capture import (
    CAPTURE_PROCESS_DIED,
    CAPTURE_RETRIES_EXHAUSTED,
)
from polynya.model.errors import ConflictError, DependencyError, PolynyaError
from polynya.observe.capture import (
    CaptureExpired,
    CaptureHeld,
    CaptureRetry,
    CaptureWindow,
)
from polynya.observe.events import EventSink
from polynya.store.clock import Clock

#: Starts a process with pending requests. Raises PolynyaError when that is not possible.
Launch: TypeAlias = Callable[[Mode, Sequence[CaptureRequest]], CaptureProcess]

_ALWAYS: Final = ReadingTimes()
_NEVER: Final = datetime.max.replace(tzinfo=UTC)

#: How often requests for a capture are read, in seconds.
REQUEST_CHECK_SECONDS: Final = 10.0
#: Without an answer of the database for so long its capture counts as behind, in seconds. A process
#: starts within ten, and asks the database every five how far it is behind.
_UNANSWERED_SECONDS: Final = 60.0
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

    schedule: Schedules
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
        request_folder: RequestFolder,
        *,
        clock: Clock,
        sink: EventSink,
        reloads: ReloadSchedule | None = None,
        times: ReadingTimes = _ALWAYS,
        expire: Callable[[datetime], int] = lambda _: 0,
    ) -> None:
        self._task, self._policy, self._launch = task, policy, launch
        self._request_folder, self._clock, self._sink = request_folder, clock, sink
        self._reloads, self._times, self._expire = reloads, times, expire
        # Until when the task may not read, and what was reported of that.
        self._closed_until: datetime | None = None
        self._is_closed = False
        self._expired_at: float | None = None
        self._reporter = CaptureReporter(task, sink)
        self._process: CaptureProcess | None = None
        self._failures = 0
        # When the database answered last, and when something landed, in monotonic seconds.
        self._answered_at = clock.monotonic()
        self._landed_at: float | None = None
        self._due: float | None = None
        self._last_error: PolynyaError | None = None
        self._requests_read_at: float | None = None
        # Pending requests by the path of their object; paths that the process knows.
        self._requests: dict[str, CaptureRequest] = {}
        self._known_requests: set[str] = set()
        self._is_held = False
        self._closed = False
        self._lock = threading.Lock()

    def step(self, *, once: bool, patience: float = 0.0) -> CaptureProgress:
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
            return self._take_step(once=once, patience=patience)

    def figures(self) -> CaptureFigures:
        """How the capture is now."""
        now, known = self._clock.monotonic(), self._reporter.figures
        unanswered = now - self._answered_at
        waits = (
            self._is_held or self._is_closed or (self._reloads is not None and not self._failures)
        )
        lag = 0.0 if waits else known.lag_seconds
        if not waits and (self._failures or unanswered > _UNANSWERED_SECONDS):
            lag += unanswered
        return replace(
            known,
            lag_seconds=lag,
            silent_seconds=None if self._landed_at is None else now - self._landed_at,
            retries=self._failures,
            held=self._is_held,
        )

    def close(self) -> None:
        """End the process, and start no other."""
        with self._lock:
            self._closed = True
            self._end()

    def _take_step(self, *, once: bool, patience: float) -> CaptureProgress:
        self._read_requests()
        self._remove_old_batches()
        if self._is_held:
            self._end()
            return CaptureProgress(done=once, wait=REQUEST_CHECK_SECONDS)
        wait = self._closed_for(self._clock.now())
        if wait:
            self._end()
            return CaptureProgress(done=once, wait=min(wait, REQUEST_CHECK_SECONDS))
        now = self._clock.monotonic()
        if self._process is None and self._due is not None and now < self._due:
            return CaptureProgress(refused=self._last_error, wait=self._due - now)
        if self._process is None and self._reloads is not None and not once:
            wait = self._reloads.wait(self._clock.now())
            if wait and not self._requests:
                return CaptureProgress(wait=min(wait, REQUEST_CHECK_SECONDS))
        try:
            return self._listen(once=once, patience=patience)
        except (DependencyError, ConflictError) as error:
            if once:
                raise
            return self._interrupted(error)

    def _closed_for(self, now: datetime) -> float:
        """Seconds until the task may read again, 0 when it may; reports when that changes."""
        if self._closed_until is None or now >= self._closed_until:
            opens = self._times.waits_until(now)
            # Windows that are over never open again.
            self._closed_until = _NEVER if opens is None else opens
            is_closed = self._closed_until > now
            if is_closed != self._is_closed:
                self._is_closed = is_closed
                until = opens.isoformat() if is_closed and opens is not None else None
                self._sink(
                    CaptureWindow(
                        subject=self._task, task=self._task, open=not is_closed, until=until
                    )
                )
        return max(0.0, (self._closed_until - now).total_seconds())

    def _end(self) -> None:
        """End the process, if there is one, and wait until it has ended."""
        process, self._process = self._process, None
        self._known_requests.clear()
        if process is not None:
            process.end()
            self._reporter.over()

    def _listen(self, *, once: bool, patience: float) -> CaptureProgress:
        if self._process is None:
            self._reporter.failed = None
            self._process = self._launch(self._mode(once=once), tuple(self._requests.values()))
            self._known_requests.update(self._requests)
        self._reporter.landed = self._reporter.works = self._reporter.begun = False
        self._reporter.answered = False
        for message in self._process.take(patience):
            self._reporter.take(message)
        if self._reporter.answered:
            self._answered_at = self._clock.monotonic()
        if self._reporter.landed:
            self._landed_at = self._clock.monotonic()
        if self._reporter.begun:
            self._delete_begun_requests()
        if self._reporter.works:
            self._failures, self._due, self._last_error = 0, None, None
        code = self._process.code
        if code is None:
            return CaptureProgress(landed=self._reporter.landed, refused=self._last_error)
        self._end()
        failed = self._reporter.failed
        if failed is not None:
            raise failed
        if code == 0 and self._reloads is not None:
            self._reloads.done(self._clock.now())
            return CaptureProgress(landed=self._reporter.landed, done=True)
        if code == 0 and once:
            return CaptureProgress(landed=self._reporter.landed, done=True)
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        raise CAPTURE_PROCESS_DIED(where=self._task, how=how, task=self._task)

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
            raise CAPTURE_RETRIES_EXHAUSTED(
                where=self._task, why=str(error), failures=self._failures
            ) from error
        self._last_error, self._due = error, self._clock.monotonic() + pause
        self._sink(
            CaptureRetry(
                subject=self._task,
                task=self._task,
                error=error,
                number=self._failures,
                pause_seconds=pause,
            )
        )
        return CaptureProgress(landed=self._reporter.landed, refused=error, wait=pause)

    def _remove_old_batches(self) -> None:
        now, last = self._clock.monotonic(), self._expired_at
        if last is not None and now < last + EXPIRY_CHECK_SECONDS:
            return
        self._expired_at = now
        removed = self._expire(self._clock.now())
        if removed:
            self._sink(CaptureExpired(subject=self._task, task=self._task, files=removed))

    def _read_requests(self) -> None:
        now = self._clock.monotonic()
        if (
            self._requests_read_at is not None
            and now < self._requests_read_at + REQUEST_CHECK_SECONDS
        ):
            return
        self._requests_read_at = now
        pending = self._request_folder.pending()
        self._requests = dict(pending.requests)
        if self._process is not None:
            for path, request in self._requests.items():
                if path not in self._known_requests:
                    self._known_requests.add(path)
                    self._process.ask(request.tables, reload=request.reload)
        if pending.held != self._is_held:
            self._is_held = pending.held
            self._sink(CaptureHeld(subject=self._task, task=self._task, held=pending.held))

    def _delete_begun_requests(self) -> None:
        """Delete requests that the process has begun; before that a kill must not lose them."""
        for path in self._known_requests & self._requests.keys():
            self._request_folder.remove(path)
            del self._requests[path]
        self._known_requests.clear()
