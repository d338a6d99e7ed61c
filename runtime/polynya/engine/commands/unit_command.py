"""An operator's request for one unit: reload it, abandon a reload, or start it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from polynya.engine.commands.rebuild import recreate
from polynya.engine.commands.reload import ReloadRequest, ReloadResult, abandon_begun, reload
from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.ledger import ledger_dataset
from polynya.formats.registry import format_of
from polynya.model.config.dataset import ReloadMode, ResolvedDataset
from polynya.model.config.sources import named_datasets
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import OperationError
from polynya.model.formats import rules_of
from polynya.model.project import Task

UnitCommandType: TypeAlias = Literal["reload", "reload-from-source", "abandon", "recreate"]


@dataclass(frozen=True, slots=True)
class UnitCommand:
    """What is asked. `dataset` names one of a unit that finds several, None: all of them.

    The others are those of a reload, see `reload`.
    """

    kind: UnitCommandType
    dataset: str | None = None
    mode: ReloadMode = "compare_and_apply_with_deleted_rows"
    files: str | None = None
    as_of: datetime | None = None
    accept_incomplete: bool = False


def carry_out(context: EngineContext, task: Task, unit: str, errand: UnitCommand) -> str | None:
    """Carry out a request for a unit, named as in `runner.units`; returns in words what was done.

    None when it was stopped before it was done. A repetition after that, or after a crash,
    completes it.

    Raises what the commands raise, and OperationError when the unit has nothing of that kind.
    """
    if not isinstance(task, StorageTask):
        raise _impossible(unit, "a landing has no table")
    datasets = _datasets(context, task, unit, errand)
    if not datasets:
        lacks = f"no dataset `{errand.dataset}`" if errand.dataset else "no dataset yet"
        raise _impossible(unit, f"it has {lacks}")
    if errand.kind == "recreate":
        recreate(context, task, datasets, whole_task=errand.dataset is None)
        again = "its stream" if isinstance(task, DirectTask) else "what has landed"
        return f"{_named(datasets)}: emptied, {again} is read again"
    if errand.kind == "abandon":
        return f"given up: {', '.join(abandon_begun(context, datasets))}"
    _refuse_place(context, task, datasets, errand.as_of)
    return _reloaded(context, task, datasets, errand)


def _reloaded(
    context: EngineContext,
    task: StorageTask,
    datasets: Sequence[ResolvedDataset],
    errand: UnitCommand,
) -> str | None:
    done = []
    for dataset in datasets:
        result = reload(
            context,
            ReloadRequest(
                task,
                dataset,
                mode=errand.mode,
                files=errand.files,
                as_of=errand.as_of,
                accept_incomplete=errand.accept_incomplete,
                from_source=errand.kind == "reload-from-source",
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
    context: EngineContext, task: StorageTask, unit: str, errand: UnitCommand
) -> list[ResolvedDataset]:
    if rules_of(task.landing.format).finds_tables:
        ledger = WorkingDataset.open(context, ledger_dataset(task)).table
        members = ledger.state.copy.membership.members
        found = list(named_datasets(task, members).values())
    else:
        found = [resolved(task, one) for one in task.datasets]
        found = [one for one in found if one.relations.current == unit]
    return [one for one in found if errand.dataset in (None, one.name)]


def _refuse_place(
    context: EngineContext,
    task: StorageTask,
    datasets: Sequence[ResolvedDataset],
    as_of: datetime | None,
) -> None:
    """Refuse a load whose place in the order nobody knows, and a place where there is none."""
    landing, now = format_of(task), context.clock.now()
    placed = [one for one in datasets if landing.place_of_load(now, one) is not None]
    if as_of is None and placed:
        raise _impossible(placed[0].relations.current, "its format needs `--as-of`")
    if as_of is not None and len(placed) < len(datasets):
        raise _impossible(_named(datasets), "`--as-of` needs changes that are ordered by time")


def _named(datasets: Sequence[ResolvedDataset]) -> str:
    return ", ".join(one.relations.current for one in datasets)


def _impossible(where: str, why: str) -> OperationError:
    return OperationError(
        "POLYNYA-AGT-024",
        "what was asked of a unit of work cannot be done",
        where=where,
        why=why,
        state="nothing was changed; the unit works on",
        fix="ask for something else; `polynya cluster tasks` shows what was asked",
    )
