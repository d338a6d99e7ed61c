"""Rebuild one dataset from the events that it keeps, and bring its views up to date."""

from __future__ import annotations

from dataclasses import dataclass

from polynya.engine.work.context import EngineContext
from polynya.engine.work.steps import tell_applied
from polynya.engine.work.views import publish
from polynya.lake.apply import rebuild as lake
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What a rebuild found and mended.

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
    """Derive a dataset anew; raises OperationError when its events were not kept."""
    target = DatasetTable.existing(context.spark, dataset, context.owner)
    done = lake.rebuild(target, context.applier, now=context.clock.now())
    publish(context, target, target.shape())
    tell_applied(context, target, done)
    retaining = target.state.apply.retaining
    assert retaining is not None, "the rebuild would have been refused"
    return RebuildResult(
        kept=retaining.rows - done.rows["events"],
        pending=done.rows["events"],
        since=retaining.since,
        restored=done.rows["restored"],
        corrected=done.rows["corrected"],
        surplus=done.rows["surplus"],
        seconds=done.seconds,
    )
