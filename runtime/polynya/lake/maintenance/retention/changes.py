"""`expire_changes`: kept events leave when they were applied longer ago than they are kept.

An apply lets go of them, too. This is for a dataset that no event comes for any more: the same
whole files go, and the versions that their events made join the base
(docs/adr/0022-retained-events-and-retention.md).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from polynya.lake.apply import retention
from polynya.lake.apply.retention import Expired
from polynya.lake.maintenance.base import ActionName, Limits, Outcome
from polynya.lake.maintenance.retention.expire import PATIENCE_SECONDS
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import ConflictError
from polynya.observe.trace import span

ACTION: Final[ActionName] = "expire_changes"


@span("expire changes")
def expire_changes(target: DatasetTable, limits: Limits) -> Outcome:
    """Remove the files of applied events that are older than `changes_retention`.

    This process has taken the table over. Raises what a commit raises, and ConflictError when
    somebody else took the table over.
    """
    began = time.monotonic()
    if target.state.apply.retaining is None:
        return Outcome(ACTION, "no applied events are kept")
    if limits.give_way():
        return Outcome(ACTION, "it gave way", whole=False)
    with target.between_applies(PATIENCE_SECONDS) as free:
        if not free:
            why = f"an apply was at work for longer than {PATIENCE_SECONDS:.0f} s"
            return Outcome(ACTION, why, whole=False)
        try:
            gone = _expired(target, limits)
        except ConflictError as error:
            # Somebody else's commit, or a new owner: then this raises.
            target.reload()
            return Outcome(ACTION, error.message, whole=False)
    if gone is None:
        return Outcome(ACTION, "no file has only events that are old enough")
    rows = sum(file.rows for file in gone.files)
    return Outcome(
        ACTION,
        f"{rows:,} events went with {len(gone.files):,} files, applied up to {gone.state.since}",
        commits=1,
        files_removed=len(gone.files),
        freed_bytes=sum(file.size_bytes for file in gone.files),
        seconds=round(time.monotonic() - began, 3),
    )


def _expired(target: DatasetTable, limits: Limits) -> Expired | None:
    """Commit the expiry; what has gone, None for nothing."""
    snapshot, state = target.state.snapshot, target.state.apply
    if snapshot is None or state.retaining is None:
        return None
    known = retention.before(target, target.stored_shape(), limits.now)
    gone = retention.expired(target, snapshot, known)
    if gone is None:
        return None
    rows = sum(file.rows for file in gone.files)
    target.commit(
        apply=replace(state, retaining=gone.state),
        remove=gone.files,
        summary={"polynya.step": ACTION, "polynya.expired-rows": str(rows)},
    )
    return gone
