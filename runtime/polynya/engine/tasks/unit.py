"""A `landing` task as a unit of work: a process captures, and the unit's turns only listen."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import Position, unloaded
from polynya.capture.wire import Asking, Mode, Wish
from polynya.engine.context import EngineContext
from polynya.engine.tasks.capture import CapturedBatches
from polynya.engine.tasks.capture_process import Process, Secrets, WorkerProcess, worker_settings
from polynya.engine.tasks.supervisor import Reloads, Supervisor
from polynya.engine.unit import Ended, Turn, Unit
from polynya.lake.spark.cache import cache_root
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.target import ResolvedTarget
from polynya.observe.events import EventSink
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore
from polynya.store.vault import vault
from polynya.streams.landed_status import Expiry

#: A run that ends waits in a turn so long for news, and another one looks again after so long.
_PATIENCE: Final = 0.25
_LOOK_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Starting:
    """Starts the capture process of a task."""

    task: ConnectedCapture
    target: ResolvedTarget

    def __call__(self, mode: Mode, wishes: Sequence[Wish]) -> Process:
        """Start it. Raises PolynyaError: a secret cannot be read, a process not started."""
        secrets = Secrets(self.task.name, os.environ, vault())
        settings = worker_settings(self.task, self.target, mode, secrets, wishes)
        log_file = cache_root() / "log" / f"capture-{self.task.name}.log"
        return WorkerProcess(settings, log_file)


class DatabaseLanding:
    """Captures a database as one unit. The process ends when the run stops."""

    def __init__(self, context: EngineContext, supervisor: Supervisor) -> None:
        self._context, self._supervisor = context, supervisor
        self._watched = False

    def step(self, turn: Turn) -> Ended:
        """Listen for a moment. In a run that ends the capture is over when it did all there is."""
        self._end_with_the_run()
        look = self._supervisor.look(once=turn.at_once, patience=_PATIENCE if turn.at_once else 0.0)
        if turn.at_once:
            return Ended(landed=look.landed) if look.done else Ended(more=True, landed=look.landed)
        if look.refused is not None:
            return Ended(refused=look.refused, landed=look.landed)
        return Ended(landed=look.landed, look_again=max(look.wait, _LOOK_SECONDS))

    def _end_with_the_run(self) -> None:
        """A unit has no last turn, so a thread of its own waits for the end."""
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
) -> Supervisor:
    """The supervisor of a task's capture; it has started nothing yet."""
    reloads = None
    if task.update_method == "reload" and task.schedule is not None:
        reloads = Reloads(task.schedule, lambda: last_landed(store, task.place))
    return Supervisor(
        task.name,
        task.errors.environment,
        Starting(task, target),
        Asking(store, task.place),
        clock=clock,
        sink=sink,
        reloads=reloads,
        expire=_expiry(task, store),
    )


def _expiry(task: ConnectedCapture, store: ObjectStore) -> Callable[[datetime], int]:
    keep = task.folder_retention.keep
    if keep == "keep":
        return lambda _: 0
    expiry = Expiry(CapturedBatches(store, task.place), keep)
    return lambda now: expiry.expire(now).batches


def last_landed(store: ObjectStore, folder: str) -> datetime | None:
    """When a capture had loaded everything; None: never, or a load did not come to its end."""
    newest = CaptureLog(store, folder).newest()
    if newest is None or unloaded(Position.of(newest.position)):
        return None
    return newest.written_at


def capture_unit(context: EngineContext, task: ConnectedCapture) -> Unit:
    """The unit of a capture."""
    assert context.target is not None, "a capture is told where its landing zone is"
    supervisor = supervisor_of(
        task, context.target, context.landing, clock=context.clock, sink=context.sink
    )
    landing = DatabaseLanding(context, supervisor)
    return Unit(task.name, task.name, landing.step, lands=True)
