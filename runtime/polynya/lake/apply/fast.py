"""The fast applier: probe Current by key, stage only the rows that changed, commit one `RowDelta`.

No shuffle of Current, no equality delete, and a row that did not change is written again only where
much of its file is deleted (`rewriting.py`). Figures are in docs/performance.md.

Nearly every batch is in order: then the newest version of each touched record is all that matters,
and one pass reads it, folds it and counts whether that was right: in memory, or by one query. Only
when an event turns out to be late is the work done again with what it needs besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from polynya.lake.apply.applier import Applier, Outcome, Staged
from polynya.lake.apply.collected import FEW_EVENTS, Collected
from polynya.lake.apply.late import fold_late
from polynya.lake.apply.local.keys.indexes import KeyIndexes
from polynya.lake.apply.local.way import LOCAL_EVENTS, InMemory
from polynya.lake.apply.newest import Newest
from polynya.lake.apply.removal import Removal, plan_removal
from polynya.lake.apply.rewriting import REWRITING, Rewriting
from polynya.lake.apply.run import Folded, Run
from polynya.lake.apply.way import Way
from polynya.lake.fold import versions
from polynya.lake.fold.sql import timestamp_literal
from polynya.lake.fold.truncates import Truncate
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.staging import PLACES, stage
from polynya.model.contract.headers import Partition

#: One task writes this many changed rows: more tasks would make more, smaller files.
ONE_TASK_ROWS = 50_000


def ways(indexes: KeyIndexes | None = None) -> tuple[Way, ...]:
    """The ways to fold, the cheapest first; keys of large files are looked up in `indexes`."""
    return (InMemory(LOCAL_EVENTS, indexes), Newest(FEW_EVENTS))


WAYS = ways()


class FastApplier(Applier):
    """See the module. Needs a classic SparkSession and Iceberg 1.10 or newer (`removeRows`)."""

    def __init__(
        self,
        ways: Sequence[Way] = WAYS,
        *,
        rewriting: Rewriting = REWRITING,
    ) -> None:
        self._ways = ways
        self._rewriting = rewriting

    def with_stored(
        self, run: Run, truncates: Sequence[Truncate], now: datetime
    ) -> Folded | Collected:
        """Fold events the first way that suffices, and with all that late ones need else."""
        for way in self._ways:
            found = way.fold(run, truncates, now)
            if found is not None:
                return found
        return fold_late(run, truncates)

    def stage(self, run: Run, outcome: Outcome) -> Staged:
        """Write all files of the apply, and find how the rows go that it removes."""
        known = outcome.versions.deleted if isinstance(outcome.versions, Collected) else None
        removal = plan_removal(run, _removed(run, outcome), known, self._rewriting)
        add = _stage(run, outcome, removal)
        if run.fresh is not None:
            add += stage(run.target.table, run.fresh.rejected, laid_out=False)
        return Staged(add, removal)

    def commit(self, run: Run, outcome: Outcome, staged: Staged) -> int:
        """Commit what was staged as one step."""
        target, fresh, state = run.target, run.fresh, outcome.state
        summary = {
            f"polynya.{name.replace('_', '-')}": str(value)
            for name, value in outcome.versions.figures.counts().items()
        }
        summary |= {"polynya.step": "apply", "polynya.reason": state.reason or ""}
        summary |= staged.removal.counts
        if fresh is not None:
            summary |= fresh.summary
        return target.commit(
            copy=fresh.state if fresh is not None else None,
            apply=state,
            add=staged.add,
            remove=[*_consumed(run), *outcome.keeping.remove, *staged.removal.files],
            removed=staged.removal.places,
            drop=staged.removal.drop,
            summary=summary,
            since=run.snapshot,
        )


def _consumed(run: Run) -> list[DataFile]:
    """Files whose rows this apply takes in, or takes the place of."""
    partitions = [Partition.CHANGES]
    if run.fresh is not None and run.fresh.instead:
        partitions += [Partition.CURRENT, Partition.PRIOR]
    files = [file for one in partitions for file in run.target.table.files(one, run.snapshot)]
    return [*files, *(run.fresh.consumed if run.fresh is not None else ())]


def _stage(run: Run, outcome: Outcome, removal: Removal) -> list[DataFile]:
    """Files of the versions that changed, of those that are written again, and of kept events."""
    table, keeping, changed = run.target.table, outcome.keeping, outcome.versions
    staged: list[DataFile] = []
    in_memory = changed.rows if isinstance(changed, Collected) else None
    if in_memory is not None or removal.again:
        staged += removal.stage(table, in_memory)
    if isinstance(changed, Folded) and changed.figures.written:
        columns = versions.table_rows(run.shape, timestamp_literal(outcome.now))
        rows = run.sql(f"SELECT {columns} FROM {run.view(changed.rows)} WHERE __write")
        tasks = 1 + changed.figures.written // ONE_TASK_ROWS
        staged += stage(table, rows.coalesce(tasks), laid_out=True)
    if keeping.add is not None:
        tasks = 1 + keeping.count // ONE_TASK_ROWS
        staged += stage(table, keeping.add.coalesce(tasks), laid_out=False)
    return staged


def _removed(run: Run, outcome: Outcome) -> pa.Table | None:
    """Places of all rows that go, None for none."""
    found = [outcome.purge.positions]
    if outcome.versions.figures.removed:
        found.append(_places(outcome.versions))
    if run.fresh is not None and run.fresh.replayed is not None:
        found.append(run.fresh.replayed.places)
    places = [places for places in found if places is not None]
    if not places:
        return None
    # A version that is replaced may be a tombstone that is too old.
    together = pa.concat_tables([one.select(PLACES.names).cast(PLACES) for one in places])
    return together.group_by(PLACES.names).aggregate([])


def _places(changed: Folded | Collected) -> pa.Table:
    """Where the versions that are removed are stored: `part`, `file_path` string, `pos` int64."""
    if isinstance(changed, Collected):
        return changed.places
    return (
        changed.rows.where("__drop")
        .selectExpr("__stored.part AS part", "__stored.file AS file_path", "__stored.pos AS pos")
        .toArrow()
    )
