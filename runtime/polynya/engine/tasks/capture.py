"""A capture as a unit of work: a process captures, and the unit only reads its messages."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from typing_extensions import override

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition, unloaded
from polynya.capture.wire import CaptureRequest, Mode, RequestFolder
from polynya.engine.context import EngineContext
from polynya.engine.tasks.capture_process import (
    CaptureProcess,
    CaptureSecrets,
    WorkerProcess,
    worker_settings,
)
from polynya.engine.tasks.capture_supervisor import CaptureSupervisor, ReloadSchedule
from polynya.engine.unit import StepResult, TimeSlice, Unit
from polynya.lake.spark.cache import cache_root
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.target import ResolvedTarget
from polynya.observe.events import EventSink
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore
from polynya.store.vault import vault
from polynya.streams.landed_status import Batches, Expiry, Numbered

#: How long a step of a run that ends waits for messages of the process.
_MESSAGE_WAIT_SECONDS: Final = 0.25
#: Pause between two steps of a run that continues.
_POLL_SECONDS: Final = 0.25


def capture_unit(context: EngineContext, task: ConnectedCapture) -> Unit:
    """The unit of a capture."""
    assert context.target is not None, "a capture needs a target"
    supervisor = supervisor_of(
        task, context.target, context.landing, clock=context.clock, sink=context.sink
    )
    landing = CaptureUnit(context, supervisor, task.name)
    return Unit(task.name, task.name, landing.step, lands=True)


class CaptureUnit:
    """Captures a database as one unit. The process ends when the run stops."""

    def __init__(self, context: EngineContext, supervisor: CaptureSupervisor, name: str) -> None:
        self._context, self._supervisor, self._name = context, supervisor, name
        self._watched = False

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Read messages for a moment. In a run that ends, the capture ends when nothing is left."""
        self._end_with_the_run()
        patience = _MESSAGE_WAIT_SECONDS if time_slice.at_once else 0.0
        try:
            progress = self._supervisor.step(once=time_slice.at_once, patience=patience)
        finally:
            now = self._context.clock.monotonic()
            self._context.backlog.captured(self._name, self._supervisor.figures(), now)
        if time_slice.at_once:
            return StepResult(more=not progress.done, landed=progress.landed)
        if progress.refused is not None:
            return StepResult(refused=progress.refused, landed=progress.landed)
        return StepResult(landed=progress.landed, wait_seconds=max(progress.wait, _POLL_SECONDS))

    def _end_with_the_run(self) -> None:
        """A unit has no last step, so a separate thread waits for the end of the run."""
        if self._watched:
            return
        self._watched = True

        def wait() -> None:
            self._context.stop.wait()
            self._supervisor.close()

        threading.Thread(target=wait, name="capture-end", daemon=True).start()


def supervisor_of(
    task: ConnectedCapture,
    target: ResolvedTarget,
    store: ObjectStore,
    *,
    clock: Clock,
    sink: EventSink,
) -> CaptureSupervisor:
    """The supervisor of a task's capture; it has started nothing yet."""
    reloads = None
    if task.loads is not None:
        reloads = ReloadSchedule(task.loads, lambda: last_landed(store, task.place))
    return CaptureSupervisor(
        task.name,
        task.errors.environment,
        CaptureLauncher(task, target),
        RequestFolder(store, task.place),
        clock=clock,
        sink=sink,
        reloads=reloads,
        times=task.reading_times,
        expire=_expiry(task, store),
    )


@dataclass(frozen=True, slots=True)
class CaptureLauncher:
    """Starts the capture process of a task."""

    task: ConnectedCapture
    target: ResolvedTarget

    def __call__(self, mode: Mode, requests: Sequence[CaptureRequest]) -> CaptureProcess:
        """Start it. Raises PolynyaError: a secret cannot be read, a process not started."""
        secrets = CaptureSecrets(self.task.name, os.environ, vault())
        settings = worker_settings(self.task, self.target, mode, secrets, requests)
        log_file = cache_root() / "log" / f"capture-{self.task.name}.log"
        return WorkerProcess(settings, log_file)


def _expiry(task: ConnectedCapture, store: ObjectStore) -> Callable[[datetime], int]:
    keep = task.folder_retention.keep
    if keep == "keep":
        return lambda _: 0
    expiry = Expiry(CapturedBatches(store, task.place), keep)
    return lambda now: expiry.expire(now).batches


class CapturedBatches(Batches):
    """The landed batches of one capture, for their expiry."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self._store, self._log = store, CaptureLog(store, folder)

    @override
    def newest(self) -> Numbered | None:
        return self._log.newest()

    @override
    def numbers(self) -> list[int]:
        return self._log.numbers()

    @override
    def written_at(self, number: int) -> datetime | None:
        """Raises OperationError for a batch that cannot be read."""
        try:
            self._store.size(self._log.path(number))
        except FileNotFoundError:
            return None
        return self._log.header(number).written_at

    @override
    def delete(self, number: int) -> None:
        self._store.delete(self._log.path(number))


def last_landed(store: ObjectStore, folder: str) -> datetime | None:
    """When a capture had loaded everything; None: never, or a load is incomplete."""
    newest = CaptureLog(store, folder).newest()
    if newest is None or unloaded(CapturePosition.of(newest.position)):
        return None
    return newest.written_at
