"""When scheduled loads are due next, from settings and stored state. Pure.

A load that is due may begin; a cluster without nodes needs one for it. A moment in the past is due
now. Moments that passed while nothing ran are due once: the load that follows makes up for all.
"""

from __future__ import annotations

from datetime import datetime

from polynya.capture.landing.position import CapturePosition, unloaded
from polynya.lake.table.state import CopyState
from polynya.model.config.capture import CaptureLanding
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.schedule import AT_ONCE


def due_of_capture(
    task: CaptureLanding,
    position: CapturePosition | None,
    written_at: datetime | None,
    *,
    now: datetime,
) -> datetime | None:
    """When a capture has a scheduled load to do, inside its windows, in UTC.

    Args:
        task: the capture.
        position: of its newest landed batch (`CaptureLog.newest`); None: nothing has landed.
        written_at: when that batch was written.
        now: the time, with its zone.

    Returns:
        The moment, in the past when it is due now. None: no load is scheduled, or no window opens
        any more. A capture that follows changes has work at any time besides.
    """
    due = _due_of_loads(task, position, written_at)
    if due is None:
        return None
    opens = task.reading_times.waits_until(max(due, now))
    if opens is None:
        return None
    return due if opens <= now else opens


def _due_of_loads(
    task: CaptureLanding, position: CapturePosition | None, written_at: datetime | None
) -> datetime | None:
    if task.loads is not None:
        if position is None or written_at is None or unloaded(position):
            return AT_ONCE
        return task.loads.next_after(written_at)
    if task.reload is None or position is None:
        return None
    return due_of_tables(task, position)


def due_of_tables(task: CaptureLanding, position: CapturePosition) -> datetime | None:
    """When the first table of a capture is to be compared with a new load of it; None: never."""
    if task.reload is None:
        return None
    schedule = task.reload.schedule
    moments = [
        progress.reload_due(schedule)
        for name, progress in position.tables.items()
        if task.reload.takes(name)
    ]
    return min((moment for moment in moments if moment is not None), default=None)


def due_of_dataset(dataset: ResolvedDataset, state: CopyState | None) -> datetime | None:
    """When a dataset reads its full load again, in UTC; in the past when that is due now.

    Args:
        dataset: with its settings.
        state: of its table; None: there is none yet.

    Returns:
        None: no reload is scheduled, or its first load comes first.
    """
    return (state or CopyState()).reload_due(dataset)
