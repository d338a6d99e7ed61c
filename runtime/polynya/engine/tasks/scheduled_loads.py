"""Loads that a capture lands on a schedule: gathered chunk by chunk, then compared with the table.

Such a load is a reload that starts by itself (docs/adr/0021-reloads-and-extracts.md). Its chunks
are numbered without gaps, so that a load of which one is missing is told from a complete one: it is
discarded, and the table stays as it was until the next load.

Everything that says how far a load is gathered is in the state of its table, in the same commit as
the rows. So a killed run continues where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import pyarrow.compute as pc

from polynya.engine.dataset import WorkingDataset
from polynya.engine.tasks.full_loads import finish_reload
from polynya.formats.batch import DatasetBatch, LoadPart
from polynya.lake.copy import reload as lake
from polynya.lake.table.state import Reloading, ScheduledLoad
from polynya.lake.table.suspension import refuse_suspended
from polynya.model.config.dataset import KEEPING, Incomplete
from polynya.model.config.settings import ApplyPolicy
from polynya.observe.engine import LoadCompared, LoadDiscarded, ReloadLoaded

#: Why rows of a landed batch are not copied: nobody can tell what the rest of their load held.
_INCOMPLETE = "incomplete_load"
_END = "end_of_load"


def copy_or_gather(
    table: WorkingDataset,
    batch: DatasetBatch,
    *,
    began: float,
    live_files: Collection[str],
    before: Callable[[str], DatasetBatch | None],
    policy: ApplyPolicy | None = None,
) -> None:
    """Copy the events of one table, or gather the rows of a scheduled load; see `copy`.

    A table without keys copies a load like events: the last one of them empties it.
    """
    part = batch.part
    if part is None or not (table.keys or batch.keys):
        table.copy(batch, began=began, live_files=live_files, before=before, policy=policy)
        return
    table.table.take_over()
    refuse_suspended(table.table)
    finish_gathered(table)
    if not _continues(table, part):
        _leave_out(table, batch, part, began, live_files)
        return
    _gather(table, batch, part)
    finish_gathered(table, live_files)


def finish_gathered(table: WorkingDataset, live_files: Collection[str] | None = None) -> None:
    """Compare a scheduled load with the table once all of it is gathered."""
    begun = table.reloading
    if begun is None or begun.scheduled is None or not begun.scheduled.is_complete:
        return
    _compare(table, begun, live_files)


def _compare(
    table: WorkingDataset, begun: Reloading, live_files: Collection[str] | None = None
) -> None:
    # The database has said that the load is whole, also where it holds no row.
    incomplete: Incomplete = "keep" if begun.quarantined else "accept"
    applied = finish_reload(table, incomplete=incomplete, live_files=live_files)
    table.tell(
        LoadCompared(
            subject=table.name,
            time=begun.started,
            rows_loaded=begun.rows,
            rows_quarantined=begun.quarantined,
        )
    )
    table.tell_applied(applied)


def _continues(table: WorkingDataset, part: LoadPart) -> bool:
    """Whether a part follows what is gathered of its load; discards what it has left behind.

    A load that keeps what it lacks is right in parts: what is gathered of one that was killed is
    compared, and a part is taken whatever came before it. An extraction lands such loads, and goes
    on behind the rows that have landed.
    """
    begun = table.reloading
    gathered = None if begun is None else begun.scheduled
    if gathered is not None and gathered.load == part.load:
        return part.mode == KEEPING or part.first == gathered.chunks + 1
    if begun is not None and gathered is not None and begun.mode == KEEPING:
        _compare(table, begun)
        begun = None
    if part.first != 1 and part.mode != KEEPING:
        return False
    if begun is not None:
        # A killed `polynya reload` of a captured table begins again, from a later view.
        lake.abandon(table.table)
        table.tell(
            LoadDiscarded(
                subject=table.name, rows=begun.rows, reason="a later load of the table has landed"
            )
        )
    return True


def _gather(table: WorkingDataset, batch: DatasetBatch, part: LoadPart) -> None:
    target, clock = table.table, table.context.clock
    if table.reloading is None:
        if target.has_pending:
            table.apply("a scheduled load begins")
        now, told = clock.now(), batch.facts.newest
        lake.begin(
            target,
            part.mode,
            # The clock of a database may be wrong.
            now=now if told is None else min(told, now),
            place=_place(table, batch),
            scheduled=ScheduledLoad(part.load),
            keys=batch.keys,
        )
    mapped = table.apply_schema_changes(table.map_columns(_without_end(batch)))
    gathered = ScheduledLoad(part.load, part.complete, part.is_complete)
    with table.views_following():
        result = lake.load(target, mapped, now=clock.now(), scheduled=gathered)
    table.tell(
        ReloadLoaded(
            subject=table.name,
            rows_in=result.rows_in,
            rows_loaded=result.rows_out,
            rows_quarantined=result.rows_quarantined,
            files_left=0,
        )
    )


def _leave_out(
    table: WorkingDataset,
    batch: DatasetBatch,
    part: LoadPart,
    began: float,
    live_files: Collection[str],
) -> None:
    """Remember that a part was read which no complete load has, and copy nothing of it."""
    table.copy(
        replace(
            batch,
            rows=batch.rows.slice(0, 0),
            rejected=(),
            rows_filtered=batch.rows_in,
            counters={**batch.counters, _INCOMPLETE: batch.rows_in - batch.rows_filtered},
        ),
        began=began,
        live_files=live_files,
    )
    if table.context.is_news(f"{table.name} leaves out a load", str(part.load)):
        reason = f"the chunk before its chunk {part.first} was not loaded"
        table.tell(LoadDiscarded(subject=table.name, rows=batch.rows_in, reason=reason))


def _place(table: WorkingDataset, batch: DatasetBatch) -> str | None:
    """The position of the load in the order of changes; None: after all that was copied."""
    if table.table.dataset.events.sequence_by:
        return None
    columns = (batch.rows.column(name).to_pylist() for name in ("__ci", "__tail"))
    places = (f"{identifier}{tail or ''}" for identifier, tail in zip(*columns, strict=True))
    return max(places, default=None)


def _without_end(batch: DatasetBatch) -> DatasetBatch:
    """The rows of a load, without the event that empties tables which cannot compare them."""
    is_row = pc.not_equal(batch.rows.column("__op"), "T")
    # A filter that leaves no row leaves no chunk either, which Spark does not take.
    rows = batch.rows.filter(is_row) if pc.any(is_row).as_py() else batch.rows.slice(0, 0)
    ends = batch.rows.num_rows - rows.num_rows
    filtered, counters = batch.rows_filtered + ends, {**batch.counters, _END: ends}
    return replace(batch, rows=rows, rows_filtered=filtered, counters=counters) if ends else batch
