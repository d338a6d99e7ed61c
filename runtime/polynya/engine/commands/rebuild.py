"""Configure, recreate or rebuild datasets: steps of a plan that read no landed records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from polynya.engine.commands.plan import columns_to_rewrite
from polynya.engine.commands.plan_project import PlannedDataset
from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.ledger import ledger_dataset
from polynya.lake.fold.stored import RebuildFigures
from polynya.lake.read.catalog_views import drop_views
from polynya.lake.table.dataset import DatasetTable, empty
from polynya.lake.table.ownership import has_rows, refuse_second_task
from polynya.model.config.dataset import ResolvedDataset, recorded
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.lake import NO_EVENTS_KEPT, REBUILD_DURING_RELOAD
from polynya.model.errors import OperationError
from polynya.model.formats import rules_of


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What a rebuild found and corrected.

    `kept` events and `pending` ones made the versions; `since` is the time up to which versions are
    the base, None when all events are kept. `restored` versions were missing (those of pending
    events are among them), `corrected` ones were stored otherwise, `surplus` ones had no event.
    """

    kept: int
    pending: int
    since: str | None
    restored: int
    corrected: int
    surplus: int
    seconds: float


def rebuild(context: EngineContext, dataset: ResolvedDataset) -> RebuildResult:
    """Correct every version that differs from what the events make, and remove surplus ones.

    Raises OperationError, and changes nothing, when the dataset keeps no events, or a reload of it
    is under way.
    """
    working = WorkingDataset.existing(context, dataset)
    _refuse(working.table)
    done = working.apply("rebuild", rebuild=True)
    working.publish(settle=True)
    working.tell_applied(done)
    retaining, figures = working.table.state.apply.retaining, done.figures
    assert retaining is not None, "the rebuild would have been refused"
    assert isinstance(figures, RebuildFigures)
    return RebuildResult(
        kept=retaining.rows - figures.events,
        pending=figures.events,
        since=retaining.since,
        restored=figures.restored,
        corrected=figures.corrected,
        surplus=figures.surplus,
        seconds=done.seconds,
    )


def _refuse(table: DatasetTable) -> None:
    """Take the table over, unless it cannot be rebuilt."""
    refuse_second_task(table)
    table.take_over()
    if table.dataset.kept.changes_retention is None or table.state.apply.retaining is None:
        raise _nothing_kept(table)
    if table.state.copy.reloading is not None:
        raise REBUILD_DURING_RELOAD(where=table.table.name, table=table.table.name)


def _nothing_kept(table: DatasetTable) -> OperationError:
    fix = None
    if table.dataset.kept.changes_retention is None:
        reason = "keeps no events"
    elif table.shape().append_only:
        reason, fix = (
            "has no keys, so each of its events is a row",
            "nothing: there is nothing to do",
        )
    else:
        reason = "has kept no event yet"
        fix = "run the task; events are kept once they are applied"
    return NO_EVENTS_KEPT(
        where=table.table.name, fix=fix, relation=table.dataset.relations.current, reason=reason
    )


def recreate(
    context: EngineContext,
    task: StorageTask,
    datasets: Sequence[ResolvedDataset],
    *,
    whole_task: bool,
) -> None:
    """Empty the tables of datasets; one commit for each, so an interrupted command can be repeated.

    `whole_task`: they are all datasets that a task has discovered, and it forgets them, too. Of
    files that feed several tables, a single table rereads them while the others continue.
    """
    rules = rules_of(task.landing.format)
    shared = rules.finds_tables and rules.shares_files
    for dataset in datasets:
        table = WorkingDataset.open(context, dataset).table
        table.take_over()
        empty(table, behind=shared and not whole_task)
        drop_views(context.spark, _views(dataset))
    if rules.finds_tables and whole_task:
        # Last: it is the list of the tables that a killed recreation still has to empty.
        ledger = WorkingDataset.open(context, ledger_dataset(task)).table
        ledger.take_over()
        empty(ledger)


def _views(dataset: ResolvedDataset) -> list[str]:
    """The views that show columns which are gone; the first copy makes them again."""
    return [f"{dataset.relations.schema}.{view}" for view in dataset.relations.views]


def configure(context: EngineContext, planned: PlannedDataset) -> bool:
    """Apply the settings of one dataset, as far as that needs no record.

    The table is taken over: a run that fills it meanwhile is refused at its next step. Returns
    False, and does nothing, when another task of the project owns the table. Raises OperationError,
    and changes nothing, when a column cannot be rewritten in its declared type.
    """
    dataset, plan = planned.entry.dataset, planned.plan
    if any(change.kind == "task" and change.action == "decide" for change in plan.changes):
        return False
    working = WorkingDataset.open(context, dataset)
    table = working.table
    table.take_over()
    # First: it may be refused, and then nothing must be changed.
    working.retype(columns_to_rewrite(dataset, table.state.copy))
    before = table.state.copy
    settings = recorded(dataset, before.settings, has_rows=has_rows(table))
    following = replace(
        before.with_settings(settings),
        membership=replace(before.membership, task=dataset.task),
    )
    table.commit_copy_state(following, "configure")
    if before.columns.schema:
        table.grow(table.known_schema())
        working.publish()
    drop_views(context.spark, plan.stale_views)
    return True
