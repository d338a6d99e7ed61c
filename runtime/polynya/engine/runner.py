"""Runs the tasks of a project once, or until stopped. One that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.engine.context import EngineContext
from polynya.engine.landing import listing_of
from polynya.engine.listing import SharedListing
from polynya.engine.scheduler import POLL_SECONDS, Scheduler, TaskGroup
from polynya.engine.tasks.capture import capture_unit
from polynya.engine.tasks.derived import DerivedUnit
from polynya.engine.tasks.direct import DirectUnit
from polynya.engine.tasks.query_views import QueryViewUnit
from polynya.engine.tasks.shared_files import SharedFilesTask
from polynya.engine.tasks.storage import DeclaredDataset, ExtractsDataset, FolderTask
from polynya.engine.tasks.streams import LandingTask
from polynya.engine.unit import RunOutcome, StepResult, Unit
from polynya.formats.files import start_of
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task
from polynya.model.errors import FencedError
from polynya.model.formats import rules_of


def units(context: EngineContext, tasks: Sequence[Task]) -> list[Unit]:
    """The units of the tasks."""
    work = []
    for task in tasks:
        if isinstance(task, StreamingLanding):
            landing = LandingTask(context, task)
            work.append(Unit(task.name, task.name, landing.step, lands=True))
            continue
        if isinstance(task, ConnectedCapture):
            work.append(capture_unit(context, task))
            continue
        if isinstance(task, ConnectedMirror):
            assert context.target is not None, "a mirror needs a target"
            # Start-up time: sqlglot, which only mirrors need.
            from polynya.engine.tasks.mirror import MirrorWork, mirror_unit

            mirror = MirrorWork(task, context.target, clock=context.clock, sink=context.sink)
            work.append(mirror_unit(mirror, context))
            continue
        if isinstance(task, DerivedTask):
            for dataset in (resolved(task, declared) for declared in task.datasets):
                derived = DerivedUnit(context, task, dataset)
                name = dataset.relations.current
                stage = task.stage_of(dataset.name)
                work.append(Unit(name, task.name, derived.step, stage=stage))
            for view in task.query_views:
                step = QueryViewUnit(context, task, view).step
                work.append(Unit(task.view_of(view), task.name, step, stage=task.depth))
            continue
        if isinstance(task, DirectTask):
            for dataset in (resolved(task, declared) for declared in task.datasets):
                whole = DirectUnit(context, task, dataset)
                work.append(Unit(dataset.relations.current, task.name, whole.step))
            continue
        rules = rules_of(task.landing.format)
        if rules.finds_tables:
            kind = SharedFilesTask if rules.shares_files else FolderTask
            # What a capture lands are events of Debezium.
            follows = task.landing.format == "debezium"
            work.append(Unit(task.name, task.name, kind(context, task).step, follows=follows))
        else:
            datasets = [resolved(task, dataset) for dataset in task.datasets]
            looked_at = [dataset for dataset in datasets if dataset.landing.extracts is None]
            starts = [start for dataset in looked_at for start in _starts(dataset)]
            listing = listing_of(context, task, starts)
            work += [_declared(context, task, dataset, listing) for dataset in datasets]
    return work


def _starts(dataset: ResolvedDataset) -> list[str]:
    """How the paths of the files of a dataset begin."""
    landing = dataset.landing
    globs = [landing.glob, *([landing.initial_load] if landing.initial_load else [])]
    return [start_of(landing.folder, glob) for glob in globs]


def _declared(
    context: EngineContext, task: StorageTask, dataset: ResolvedDataset, listing: SharedListing
) -> Unit:
    name = dataset.relations.current
    if dataset.landing.extracts is not None:
        whole = ExtractsDataset(context, task, dataset, dataset.landing.extracts)
        return Unit(name, task.name, whole.step)
    step = DeclaredDataset(context, task, dataset, listing).step
    return Unit(name, task.name, step, follows=task.landing.format == "stream")


def run_once(context: EngineContext, work: Sequence[Unit]) -> RunOutcome:
    """Land what the streams hold, process all that has landed, and return."""
    outcome = RunOutcome()
    for stage in sorted({unit.stage for unit in work}):
        if not context.stop.is_set():
            part = [unit for unit in work if unit.stage == stage]
            _run(context, part, Scheduler(context.clock), outcome, goes_on=False)
    return outcome


def run_until_stopped(
    context: EngineContext, work: Sequence[Unit], *, poll_seconds: float = POLL_SECONDS
) -> RunOutcome:
    """Process what lands until `context.stop` is set.

    A unit that failed is retried with a growing pause. A unit whose table another process took over
    is retried when that process has been silent for a while (`TakeoverBackoff`). A policy may end a
    whole task.
    """
    scheduler = Scheduler(context.clock, poll_seconds=poll_seconds)
    outcome = RunOutcome()
    _run(context, work, scheduler, outcome, goes_on=True)
    return outcome


def _run(
    context: EngineContext,
    work: Sequence[Unit],
    scheduler: Scheduler,
    outcome: RunOutcome,
    *,
    goes_on: bool,
) -> None:
    def report(unit: Unit, result: StepResult) -> None:
        outcome.take(unit, result)
        context.hooks.on_round(unit.name, unit.task, result.error)
        if isinstance(result.failure, FencedError) and context.epoch is not None:
            # Another node has the work; the process that granted the epoch finds out which.
            context.stop.set()

    landing: list[TaskGroup] = []
    # Those that land first: others follow them.
    for task in {unit.task: None for unit in sorted(work, key=lambda unit: not unit.lands)}:
        own = [unit for unit in work if unit.task == task]
        follows = any(unit.follows for unit in own)
        group = TaskGroup(context, goes_on, report, follows=tuple(landing) if follows else ())
        if any(unit.lands for unit in own):
            landing.append(group)
        scheduler.add(group, own)
    scheduler.finish()
