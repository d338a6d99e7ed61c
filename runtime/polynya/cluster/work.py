"""Jobs on threads, in the one Spark session of the process.

Each works round after round until it fails or is told to stop, which takes effect between two
steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from polynya.cluster.messages import Inbox, JobKey, Observed, RoundEnded, RunEnded
from polynya.engine.errors import as_polynya
from polynya.engine.runner import POLL_SECONDS, Unit, run_once, units
from polynya.engine.work.backlog import Backlog
from polynya.engine.work.context import EngineContext
from polynya.engine.work.threads import THREADS
from polynya.lake.spark.session import is_alive
from polynya.model.config.task import StorageTask
from polynya.model.errors import PolynyaError, SuspendedError

#: How often a job that waits for its turn looks whether it was told to stop, in seconds.
_TURN_SECONDS: Final = 0.2

Round: TypeAlias = Callable[[], PolynyaError | None]
"""One round of work; gives the error if it failed."""


class JobThread:
    """One run of a job. `turns` bounds how many of them work at the same time."""

    def __init__(self, job: JobKey, run: int, inbox: Inbox, turns: threading.Semaphore) -> None:
        self.stopping = threading.Event()
        self._job, self._run, self._inbox, self._turns = job, run, inbox, turns

    def stop(self) -> None:
        """Ask it to end after the step that is running; returns at once."""
        self.stopping.set()

    def start(self, work: Round, poll_seconds: float = POLL_SECONDS) -> None:
        """Begin. Between two rounds there is a pause of `poll_seconds`."""
        name = f"{self._job.task}/{self._job.name}"
        # A daemon: a process that is told to end at once waits for nobody.
        threading.Thread(
            target=self._all_rounds, args=(work, poll_seconds), name=name, daemon=True
        ).start()

    def _all_rounds(self, work: Round, poll_seconds: float) -> None:
        try:
            error = self._rounds(work, poll_seconds)
        except BaseException as failure:  # noqa: BLE001 - the edge of the thread
            error = as_polynya(failure)
        self._inbox.put(RunEnded(self._job, self._run, error))

    def _rounds(self, work: Round, poll_seconds: float) -> PolynyaError | None:
        while not self.stopping.is_set():
            if not self._turns.acquire(timeout=_TURN_SECONDS):
                continue
            try:
                error = work()
            finally:
                self._turns.release()
            if error is not None and not isinstance(error, SuspendedError):
                return error
            held = None if error is None else str(error)
            self._inbox.put(RoundEnded(self._job, self._run, held))
            self.stopping.wait(poll_seconds)
        return None


class EngineWorkers:
    """Jobs of the engine; as many at a time as `polynya run` has, for each holds a batch."""

    def __init__(self, engine: EngineContext, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox
        self._turns = threading.Semaphore(THREADS)

    def jobs(self, task: StorageTask) -> list[str]:
        """Names of the pieces of work of a task."""
        return [unit.name for unit in units(self._engine, [task])]

    def start(self, job: JobKey, task: StorageTask, run: int, backlog: Backlog) -> JobThread:
        """Start a job with a stop, a backlog and a voice of its own."""
        thread = JobThread(job, run, self._inbox, self._turns)
        context = replace(
            self._engine,
            stop=thread.stopping,
            backlog=backlog,
            sink=lambda event: self._inbox.put(Observed(job, event)),
        )
        work: list[Unit] = []

        def one_round() -> PolynyaError | None:
            # Here and not before: whatever goes wrong is a failure of this job alone.
            work[:] = work or [unit for unit in units(context, [task]) if unit.name == job.name]
            return run_once(context, work, goes_on=True).failures.get(job.name)

        thread.start(one_round)
        return thread

    def alive(self) -> bool:
        """Whether the driver is."""
        return is_alive(self._engine.spark)
