"""Rebuild one dataset from base, kept and pending events in one commit, and publish its views."""

from __future__ import annotations

from dataclasses import dataclass

from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.lake.fold.figures import RebuildFigures
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import refuse_second_task
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.errors import OperationError


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
    """Write every version that the events make otherwise than it is stored, remove the surplus.

    Raises OperationError, and changes nothing, when the dataset keeps no events, or a reload of it
    is under way.
    """
    working = WorkingDataset.existing(context, dataset)
    _refuse(working.table)
    done = working.apply("rebuild", anew=True)
    working.publish()
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
    """Refuse what cannot be rebuilt; what can be is in our hands."""
    refuse_second_task(table)
    table.take_over()
    if table.dataset.kept.changes_retention is None or table.state.apply.retaining is None:
        raise _nothing_kept(table)
    if table.state.copy.reloading is not None:
        raise OperationError(
            "POLYNYA-LAKE-031",
            f"a reload of {table.table.name} is under way",
            where=table.table.name,
            state="nothing was changed",
            fix="end the reload with `polynya reload`, or give it up with `--abandon`",
        )


def _nothing_kept(table: DatasetTable) -> OperationError:
    if table.dataset.kept.changes_retention is None:
        why, fix = "keeps no events", "set `changes_retention`; events are kept from then on"
    elif table.shape().append_only:
        why, fix = "has no keys, so each of its events is a row", "there is nothing to do"
    else:
        why, fix = "has kept no event yet", "run the task; events are kept once they are applied"
    return OperationError(
        "POLYNYA-LAKE-030",
        f"{table.dataset.relations.current} {why}: there is nothing to derive it from",
        where=table.table.name,
        state="nothing was changed",
        fix=fix,
    )
