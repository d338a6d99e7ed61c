"""Gather the load of a reload, batch by batch, each with its event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from polynya.engine.work.context import EngineContext
from polynya.engine.work.evolution import evolve
from polynya.engine.work.steps import subject_of
from polynya.formats.batch import DatasetBatch, FilePart, FileProgress
from polynya.formats.files.discovery import Discovery
from polynya.lake.copy import reload as lake
from polynya.lake.table import positions
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.suspension import refuse_suspended
from polynya.observe.events import Event

#: what was read so far, by path → what is to be read
Find: TypeAlias = Callable[[Mapping[str, FileProgress]], Discovery]
#: the next batch of these files
Read: TypeAlias = Callable[[Sequence[FilePart]], DatasetBatch]


@dataclass(frozen=True, slots=True)
class Load:
    """The files of a load, and how they are read."""

    find: Find
    read: Read


def gather(context: EngineContext, target: DatasetTable, load: Load) -> str | None:
    """Gather until nothing is left, or until told to stop.

    Returns the path of a file that changed, or left, after a part of it was read: what was gathered
    is of two extracts then, or not all of one.

    Raises SuspendedError or TaskStoppedError when a policy says that a batch may not be taken.
    """
    refuse_suspended(target)
    while not context.stop.is_set():
        done = positions.read(lake.under_way(target).files)
        found = load.find(done)
        if found.changed:
            return found.changed[0].path
        if not found.files:
            return next((path for path, progress in done.items() if not progress.complete), None)
        batch = evolve(context, target, load.read(found.files))
        result = lake.load(target, batch, now=context.clock.now())
        fields = {
            "rows_in": result.rows_in,
            "rows_loaded": result.rows_out,
            "rows_quarantined": result.rows_quarantined,
            "files_left": len(found.files) - sum(p.complete for p in batch.files.values()),
        }
        context.sink(Event("reload.loaded", subject_of(target), fields))
    return None
