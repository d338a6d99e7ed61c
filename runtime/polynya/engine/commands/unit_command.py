"""A command of an operator for one unit: run, maintain or reload it, or empty and reread it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from polynya.engine.commands.rebuild import recreate
from polynya.engine.commands.reload import ReloadRequest, ReloadResult, abandon_begun, reload
from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.ledger import ledger_dataset
from polynya.engine.maintenance import maintain
from polynya.engine.policy import ApplyMode
from polynya.engine.runner import run_once, units
from polynya.formats.registry import format_of
from polynya.model.config.dataset import ReloadMode, ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.maintenance import ActionName
from polynya.model.config.sources import named_datasets
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task
from polynya.model.error_catalogue.cluster import UNIT_REQUEST_REFUSED
from polynya.model.errors import PolynyaError
from polynya.model.formats import rules_of

UnitCommandType: TypeAlias = Literal[
    "run", "maintain", "reload", "reload-from-source", "abandon", "recreate"
]


@dataclass(frozen=True, slots=True)
class UnitCommand:
    """What to do. `dataset` is one dataset of a unit that discovers several; None: all of them.

    `apply` belongs to `run`, `actions` to `maintain`, the other fields to `ReloadRequest`.
    """

    kind: UnitCommandType
    dataset: str | None = None
    mode: ReloadMode = "compare_and_apply_with_deleted_rows"
    files: str | None = None
    as_of: datetime | None = None
    accept_incomplete: bool = False
    apply: ApplyMode = "policy"
    actions: tuple[ActionName, ...] = ()


def execute(context: EngineContext, task: Task, unit: str, command: UnitCommand) -> str | None:
    """Execute a command for a unit, named as in `runner.units`; returns in words what was done.

    None when it was stopped before it was done. A repetition after that, or after a crash,
    completes it.

    Raises what the commands raise, and OperationError when it does not apply to the unit.
    """
    if not isinstance(task, StorageTask):
        raise UNIT_REQUEST_REFUSED(where=unit, why="only tasks of tables have one")
    if command.kind == "run":
        return _run_once(context, task, unit, command.apply)
    datasets = _datasets(context, task, unit, command)
    if not datasets:
        lacks = f"no dataset `{command.dataset}`" if command.dataset else "no dataset yet"
        raise UNIT_REQUEST_REFUSED(where=unit, why=f"it has {lacks}")
    if command.kind == "maintain":
        return _maintained(context, datasets, command.actions)
    if command.kind == "recreate":
        recreate(context, task, datasets, whole_task=command.dataset is None)
        return f"{_names_of(datasets)}: emptied, {_source_of(task)} is reread"
    if isinstance(task, DerivedTask):
        raise UNIT_REQUEST_REFUSED(where=unit, why="a transform follows its inputs by itself")
    if command.kind == "abandon":
        return f"abandoned: {', '.join(abandon_begun(context, datasets))}"
    _refuse_position(context, task, datasets, command.as_of)
    return _reloaded(context, task, datasets, command)


def _run_once(context: EngineContext, task: StorageTask, name: str, mode: ApplyMode) -> str | None:
    """Take in what waits for a unit, as `polynya run --once` does for all of its task."""
    # Its rounds are those of the command and not of the job, which goes on after it.
    own = replace(context, apply_mode=mode, hooks=replace(context.hooks, on_round=_unheard))
    outcome = run_once(own, [unit for unit in units(own, [task]) if unit.name == name])
    for failure in outcome.failures.values():
        raise failure
    return None if context.stop.is_set() else f"{name}: everything that waited is taken in"


def _unheard(_name: str, _task: str, _error: PolynyaError | None) -> None:
    """A round that nobody waits for."""


def _maintained(
    context: EngineContext, datasets: Sequence[ResolvedDataset], actions: Sequence[ActionName]
) -> str | None:
    taken = [
        f"{dataset.relations.current}: {one.outcome.action}: {one.outcome.why}"
        for dataset in datasets
        for one in maintain(context, dataset, actions)
    ]
    if context.stop.is_set():
        return None
    return "; ".join(taken) or f"{_names_of(datasets)}: nothing pays now"


def _source_of(task: StorageTask) -> str:
    """What a task makes its rows of, in words."""
    if isinstance(task, DerivedTask):
        return "what its query returns"
    return "its stream" if isinstance(task, DirectTask) else "what has landed"


def _reloaded(
    context: EngineContext,
    task: StorageTask,
    datasets: Sequence[ResolvedDataset],
    command: UnitCommand,
) -> str | None:
    done = []
    for dataset in datasets:
        result = reload(
            context,
            ReloadRequest(
                task,
                dataset,
                mode=command.mode,
                files=command.files,
                as_of=command.as_of,
                accept_incomplete=command.accept_incomplete,
                from_source=command.kind == "reload-from-source",
            ),
        )
        if result is None:
            return None
        done.append(f"{dataset.relations.current}: {_figures(result)}")
    return "; ".join(done)


def _figures(result: ReloadResult) -> str:
    return (
        f"{result.loaded:,} rows loaded, {result.current:,} written to Current, "
        f"{result.prior:,} to Prior, {result.removed:,} removed, {result.quarantined:,} "
        f"quarantined, in {result.seconds:.1f} s"
    )


def _datasets(
    context: EngineContext, task: StorageTask, unit: str, command: UnitCommand
) -> list[ResolvedDataset]:
    if rules_of(task.landing.format).finds_tables:
        ledger = WorkingDataset.open(context, ledger_dataset(task)).table
        members = ledger.state.copy.membership.members
        datasets = list(named_datasets(task, members).values())
    else:
        datasets = [resolved(task, dataset) for dataset in task.datasets]
        datasets = [dataset for dataset in datasets if dataset.relations.current == unit]
    return [dataset for dataset in datasets if command.dataset in (None, dataset.name)]


def _refuse_position(
    context: EngineContext,
    task: StorageTask,
    datasets: Sequence[ResolvedDataset],
    as_of: datetime | None,
) -> None:
    """Refuse a load whose position in the order is unknown, and `--as-of` where there is none."""
    landing, now = format_of(task), context.clock.now()
    placed = [dataset for dataset in datasets if landing.place_of_load(now, dataset) is not None]
    if as_of is None and placed:
        raise UNIT_REQUEST_REFUSED(
            where=placed[0].relations.current, why="its format needs `--as-of`"
        )
    if as_of is not None and len(placed) < len(datasets):
        raise UNIT_REQUEST_REFUSED(
            where=_names_of(datasets), why="`--as-of` needs changes that are ordered by time"
        )


def _names_of(datasets: Sequence[ResolvedDataset]) -> str:
    return ", ".join(dataset.relations.current for dataset in datasets)
