"""Run the tasks of a project once, or until stopped. One that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from polynya.engine.errors import as_polynya
from polynya.engine.tasks.capture import CaptureTask
from polynya.engine.tasks.declared import DeclaredDataset
from polynya.engine.tasks.extracts import ExtractsDataset
from polynya.engine.tasks.folders import FolderTask
from polynya.engine.work.context import EngineContext
from polynya.engine.work.threads import THREADS
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import (
    ConflictError,
    PolynyaError,
    SuspendedError,
    TaskStoppedError,
)
from polynya.model.formats.registry import rules_of
from polynya.observe.data import UnitFailed
from polynya.observe.trace import span

#: Pause between two looks at the landing zone when nothing was found.
POLL_SECONDS = 2.0
#: Longest pause, in seconds, before a unit that keeps failing is tried again.
LONGEST_PAUSE = 300.0


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work that fails for itself: a declared dataset, or a task that finds its own."""

    name: str
    task: str
    run: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went: the errors, by unit."""

    failures: dict[str, PolynyaError] = field(default_factory=dict)


def units(context: EngineContext, tasks: Sequence[StorageTask]) -> list[Unit]:
    """The pieces of work of the tasks."""
    found = []
    for task in tasks:
        rules = rules_of(task.landing.format)
        if rules.finds_tables:
            whole = CaptureTask if rules.shares_files else FolderTask
            found.append(Unit(task.name, task.name, whole(context, task).run))
        else:
            found += [_declared(context, task, resolved(task, one)) for one in task.datasets]
    return found


def _declared(context: EngineContext, task: StorageTask, dataset: ResolvedDataset) -> Unit:
    name = dataset.relations.current
    if dataset.landing.extracts is not None:
        whole = ExtractsDataset(context, task, dataset, dataset.landing.extracts)
        return Unit(name, task.name, whole.run)
    return Unit(name, task.name, DeclaredDataset(context, task, dataset).run)


def run_once(context: EngineContext, work: Sequence[Unit], *, goes_on: bool = False) -> Outcome:
    """Process all that has landed and return; `goes_on`: this is one round of many."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        ended = pool.map(lambda unit: (unit.name, _run(context, unit, goes_on=goes_on)), work)
    return Outcome({name: failure for name, failure in ended if failure is not None})


def _run(context: EngineContext, unit: Unit, *, goes_on: bool) -> PolynyaError | None:
    """Run one unit; why it failed, which is told at once."""
    said = f"failed {unit.name}"
    try:
        with span("step", dataset=unit.name):
            unit.run()
    except BaseException as error:  # noqa: BLE001 - the edge of a unit
        failure = as_polynya(error)
    else:
        context.said.pop(said, None)
        return None
    if isinstance(failure, ConflictError):
        context.truce.lost(failure, context.clock.monotonic())
    # What lasts is said once.
    if context.is_news(said, str(failure)):
        context.sink(UnitFailed(subject=unit.name, error=failure, goes_on=goes_on))
    return failure


def run_until_stopped(context: EngineContext, work: Sequence[Unit]) -> Outcome:
    """Process what lands until `context.stop` is set.

    A unit that failed is tried again with a growing pause, one that another process took over when
    that has been silent for a while (`truce.py`). A policy may end a whole task.
    """
    pauses: dict[str, float] = {}
    due: dict[str, float] = {}
    outcome = Outcome()
    left = list(work)
    while left and not context.stop.is_set():
        now = context.clock.monotonic()
        ready = [unit for unit in left if due.get(unit.name, 0.0) <= now]
        latest = run_once(context, ready, goes_on=True)
        for unit in ready:
            failure = latest.failures.get(unit.name)
            if failure is None:
                outcome.failures.pop(unit.name, None)
                pauses.pop(unit.name, None)
                continue
            outcome.failures[unit.name] = failure
            if isinstance(failure, SuspendedError):
                # The other datasets of the unit go on as ever.
                pauses.pop(unit.name, None)
                continue
            if isinstance(failure, TaskStoppedError):
                left = [other for other in left if other.task != unit.task]
            pauses[unit.name] = min(LONGEST_PAUSE, 2 * pauses.get(unit.name, POLL_SECONDS))
            due[unit.name] = now + pauses[unit.name]
        context.stop.wait(POLL_SECONDS)
    return outcome
