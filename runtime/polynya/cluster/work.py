"""Jobs in the process's one Spark session: their units share the threads of the engine.

Each job works round after round until it fails or is stopped, which takes effect between two steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from typing_extensions import override

from polynya.cluster.control.own_landing import starts_within
from polynya.cluster.messages import (
    Inbox,
    JobObserved,
    RoundEnded,
    RunEnded,
    RunHandle,
    UnitCommandEnded,
    Workers,
)
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog
from polynya.engine.commands.unit_command import UnitCommand, execute
from polynya.engine.context import EngineContext
from polynya.engine.errors import as_polynya
from polynya.engine.runner import units
from polynya.engine.scheduler import Scheduler, TaskGroup
from polynya.engine.unit import OVER, TOO_LONG, StepResult, TimeSlice, Unit
from polynya.lake.spark.session import is_alive
from polynya.lake.table.fence import epoch_found
from polynya.model.config.task_kinds import Task
from polynya.model.errors import FencedError, PolynyaError, TaskStoppedError
from polynya.model.names import S3Location
from polynya.observe.latency import DatasetBacklog

#: The units of a job. Its own is called like the job; it may find others.
Units: TypeAlias = Callable[[EngineContext], Sequence[Unit]]


class JobRun(RunHandle):
    """One run of a job.

    It ends when its own unit fails, and when it has a grant and any of its tables has a newer
    owner. Any other failure of a table that its unit found stops nothing else: the table is tried
    again with a growing pause, and the rounds of the job say so.
    """

    def __init__(self, job: JobKey, run: int, inbox: Inbox, context: EngineContext) -> None:
        self.stopping = threading.Event()
        self._job, self._run, self._inbox = job, run, inbox
        self._context = replace(
            context, stop=self.stopping, sink=lambda event: inbox.put(JobObserved(job, event))
        )
        self._held: dict[str, str] = {}
        self._error: PolynyaError | None = None
        self.ended = False

    @override
    def stop(self) -> None:
        self.stopping.set()

    def start(self, scheduler: Scheduler, work: Units, landing: list[TaskGroup]) -> None:
        """Begin: its units have their time slices from now on.

        `landing` are the jobs of the process that land something. This one is among them while it
        does, and if it reads such files it looks for them when one has landed.
        """
        try:
            found = work(self._context)
        except BaseException as failure:  # noqa: BLE001 - the edge of the job
            self.ended = True
            self._inbox.put(RunEnded(self._job, self._run, as_polynya(failure)))
            return
        group = TaskGroup(self._context, goes_on=True, report=self._report)
        group.on_end = partial(self._group_ended, group, landing)
        if any(unit.follows for unit in found):
            group.follows = landing
        if any(unit.lands for unit in found):
            landing.append(group)
        scheduler.add(group, found)

    def _report(self, unit: Unit, result: StepResult) -> None:
        if result.failure is not None and self._is_ended_by(unit, result.failure):
            # Of tables with a newer owner that with the highest epoch: one new grant is enough.
            failures = [one for one in (self._error, result.failure) if one is not None]
            self._error = max(failures, key=epoch_found)
            self.stopping.set()
            return
        self._held.pop(unit.name, None)
        if result.error is not None:
            self._held[unit.name] = str(result.error)
        held = next(iter(list(self._held.values())), None)
        self._inbox.put(RoundEnded(self._job, self._run, held))

    def _is_ended_by(self, unit: Unit, failure: PolynyaError) -> bool:
        if isinstance(failure, FencedError) and self._context.epoch is not None:
            # A node that lost one table may have lost all: another node has the work.
            return True
        if isinstance(failure, TaskStoppedError) or unit.name == self._job.name:
            return True
        return not self._context.hooks.is_alive()

    def _group_ended(self, group: TaskGroup, landing: list[TaskGroup]) -> None:
        if group in landing:
            landing.remove(group)
        self.ended = True
        self._inbox.put(RunEnded(self._job, self._run, self._error))


class EngineWorkers(Workers):
    """Jobs of the engine; as many at a time as `polynya run` has, for each holds a batch."""

    def __init__(self, engine: EngineContext, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox
        self._scheduler = Scheduler(engine.clock)
        self._landing: list[TaskGroup] = []
        self._runs: dict[JobKey, tuple[JobRun, Backlog]] = {}
        self._scheduler.start()

    def waiting(self) -> dict[str, DatasetBacklog]:
        """What waits of each dataset of the jobs that run here."""
        now = self._engine.clock.monotonic()
        return {
            name: one
            for run, backlog in list(self._runs.values())
            if not run.ended
            for name, one in backlog.datasets(now).items()
        }

    @override
    def know(self, tasks: Sequence[Task] | None) -> None:
        # A unit that lands a stream checks which tables read it.
        self._engine.landed_readers.know(tasks)

    @override
    def landed(self, starts: Iterable[str]) -> None:
        target = self._engine.target
        if target is not None and isinstance(target.landing, S3Location):
            self._engine.memory.listings.hint(starts_within(target.landing, starts))

    @override
    def jobs(self, task: Task) -> list[str]:
        return [unit.name for unit in units(self._engine, [task])]

    @override
    def start(
        self, job: JobKey, task: Task, run: int, backlog: Backlog, epoch: int | None
    ) -> JobRun:
        context = replace(self._engine, backlog=backlog, epoch=epoch)
        started = JobRun(job, run, self._inbox, context)
        self._runs[job] = started, backlog

        def own(context: EngineContext) -> Sequence[Unit]:
            return [unit for unit in units(context, [task]) if unit.name == job.name]

        started.start(self._scheduler, own, self._landing)
        return started

    @override
    def send(
        self, job: JobKey, task: Task, run: int, command: UnitCommand, epoch: int | None
    ) -> JobRun:
        started = JobRun(job, run, self._inbox, replace(self._engine, epoch=epoch))

        def once(context: EngineContext) -> Sequence[Unit]:
            def step(time_slice: TimeSlice) -> StepResult:
                if not time_slice.long:
                    return TOO_LONG
                done, text = _carried_out(context, task, job, command)
                if text is not None:
                    self._inbox.put(UnitCommandEnded(job, run, done, text))
                return OVER

            return [Unit(job.name, job.task, step)]

        started.start(self._scheduler, once, [])
        return started

    @override
    def busy_seconds(self) -> float:
        return self._scheduler.busy_seconds

    @override
    def alive(self) -> bool:
        return is_alive(self._engine.spark)


def _carried_out(
    context: EngineContext, task: Task, job: JobKey, command: UnitCommand
) -> tuple[bool, str | None]:
    """Whether it was done, and what or why not; no text when it was stopped.

    Raises what may pass: then it is tried again.
    """
    try:
        return True, execute(context, task, job.name, command)
    except Exception as failure:
        error = as_polynya(failure)
        if error.retryable or not context.hooks.is_alive():
            raise
        return False, f"{error.code}: {error}"
