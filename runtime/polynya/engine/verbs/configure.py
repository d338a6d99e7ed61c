"""Carry out what a plan can do without reading data: tables, columns, views, recorded settings."""

from __future__ import annotations

from dataclasses import replace

from polynya.engine.plan.project import PlannedDataset
from polynya.engine.work.context import EngineContext
from polynya.engine.work.views import publish
from polynya.lake.read.views import drop_views
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.recorded import recorded


def configure(context: EngineContext, planned: PlannedDataset) -> bool:
    """Bring one dataset in line with its settings, as far as no record has to be read for it.

    The table is taken over: a run that fills it meanwhile is refused at its next step. Returns
    False, and does nothing, when another task of the project owns the table.
    """
    dataset, plan = planned.entry.dataset, planned.plan
    if any(change.kind == "task" and change.action == "decide" for change in plan.changes):
        return False
    target = DatasetTable.open(context.spark, dataset, context.owner)
    target.take_over()
    before = target.state.copy
    settings = recorded(dataset, before.settings, has_rows=bool(before.totals.get("rows_out")))
    target.commit_copy_state(replace(before, task=dataset.task, settings=settings), "configure")
    if before.schema:
        publish(context, target, target.grow(target.known_schema(), tuple(before.keys)))
    drop_views(context.spark, plan.stale_views)
    return True
