"""Let datasets begin again: their tables lose all, and the next run reads all that has landed."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.ledger import ledger_dataset
from polynya.lake.read.catalog_views import drop_views
from polynya.lake.table.emptying import empty
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.model.formats.registry import rules_of


def recreate(
    context: EngineContext,
    task: StorageTask,
    datasets: Sequence[ResolvedDataset],
    *,
    whole_task: bool,
) -> None:
    """Empty the tables of datasets; one commit for each, so who was interrupted does it again.

    `whole_task` says that they are all that a task has found by itself: it forgets them, too. Of
    files that feed several tables, a single one of these reads them again beside the others.
    """
    rules = rules_of(task.landing.format)
    shared = rules.finds_tables and rules.shares_files
    for dataset in datasets:
        table = WorkingDataset.open(context, dataset).table
        table.take_over()
        empty(table, behind=shared and not whole_task)
        drop_views(context.spark, _views(dataset))
    if rules.finds_tables and whole_task:
        # Last: without it nobody knows which tables a recreation that was killed has to empty.
        ledger = WorkingDataset.open(context, ledger_dataset(task)).table
        ledger.take_over()
        empty(ledger)


def _views(dataset: ResolvedDataset) -> list[str]:
    """The views that show columns which are gone; the first copy makes them again."""
    names = dataset.relations
    views = [names.view, names.history_view, names.changes_view, names.headers_view]
    return [f"{names.schema}.{view}" for view in views if view is not None]
