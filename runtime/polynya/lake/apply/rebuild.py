"""Rebuild: derive Current and Prior anew from base, kept and pending events, in one commit."""

from __future__ import annotations

from datetime import datetime

from polynya.lake.apply.applier import Applier, ApplyResult
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import refuse_second_task
from polynya.model.errors import OperationError


def rebuild(target: DatasetTable, applier: Applier, *, now: datetime) -> ApplyResult:
    """Write every version that the events make otherwise than it is stored, remove the surplus.

    Raises OperationError, and changes nothing, when the dataset keeps no events, or a reload of it
    is under way.
    """
    refuse_second_task(target)
    target.take_over()
    if target.dataset.kept.changes_retention is None or target.state.apply.retaining is None:
        raise _nothing_kept(target)
    if target.state.copy.reloading is not None:
        raise OperationError(
            "POLYNYA-LAKE-031",
            f"a reload of {target.table.name} is under way",
            where=target.table.name,
            state="nothing was changed",
            fix="end the reload with `polynya reload`, or give it up with `--abandon`",
        )
    return applier.apply(target, target.shape(), reason="rebuild", now=now, anew=True)


def _nothing_kept(target: DatasetTable) -> OperationError:
    if target.dataset.kept.changes_retention is None:
        why, fix = "keeps no events", "set `changes_retention`; events are kept from then on"
    elif target.shape().append_only:
        why, fix = "has no keys, so each of its events is a row", "there is nothing to do"
    else:
        why, fix = "has kept no event yet", "run the task; events are kept once they are applied"
    return OperationError(
        "POLYNYA-LAKE-030",
        f"{target.dataset.relations.current} {why}: there is nothing to derive it from",
        where=target.table.name,
        state="nothing was changed",
        fix=fix,
    )
