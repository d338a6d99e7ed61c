"""Carry out what a plan can do without landed records: tables, columns, views, settings."""

from __future__ import annotations

from dataclasses import replace

from polynya.engine.plan.project import PlannedDataset
from polynya.engine.plan.types import rewritten
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.lake.read.catalog_views import drop_views
from polynya.lake.table.guards import has_rows
from polynya.model.config.recorded import recorded


def configure(context: EngineContext, planned: PlannedDataset) -> bool:
    """Bring one dataset in line with its settings, as far as no record has to be read for it.

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
    # First: it may be refused, and then nothing is to be changed.
    working.retype(rewritten(dataset, table.state.copy))
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
