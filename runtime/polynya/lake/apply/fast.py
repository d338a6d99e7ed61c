"""The fast applier: probe Current by key, stage only changed rows, commit one `RowDelta`.

No shuffle of Current, no equality delete, and a row that did not change is written again only where
much of its file is deleted (`removal.py`). Figures are in docs/performance.md.

Nearly every batch is in order: then the newest version of each touched record is all that matters,
and one pass reads it, folds it and counts whether that was right: in memory, or by one query. Only
when an event turns out to be late is the work done again with what it needs besides.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa

from polynya.lake.apply.apply import Applier, ApplyOutcome, StagedApply
from polynya.lake.apply.collected import (
    FEW_EVENTS,
    WRITES_ALL_KEYS,
    Collected,
    are_few,
    collected,
)
from polynya.lake.apply.folding import folded, linked_keys, pending_events
from polynya.lake.apply.in_memory import find_versions, fold_in_memory
from polynya.lake.apply.key_index import KeyIndexes
from polynya.lake.apply.removal import (
    REWRITING,
    Removal,
    RemovedFacts,
    Rewriting,
    plan_removal,
    removed_by,
)
from polynya.lake.apply.run import ApplyLaterError, ApplyRun, Folded, FoundVersions
from polynya.lake.fold import fold, stored
from polynya.lake.fold.fold import TruncateEvent
from polynya.lake.fold.sql import timestamp_literal
from polynya.lake.iceberg.deletes_by_tasks import DeletesByTasks
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.writing import PLACES, UnreadRowsError, stage
from polynya.lake.spark.api import DataFrame
from polynya.lake.spark.session import heap_bytes, is_local
from polynya.model.headers import Partition
from polynya.model.names import quote
from polynya.model.types import Primitive

log = logging.getLogger(__name__)

#: One task writes this many changed rows: more tasks would make more, smaller files.
ONE_TASK_ROWS: Final = 50_000
#: From this many rows in Current on, files are skipped by the range of the touched keys.
LARGE_ROWS: Final = 500_000
#: Key types whose range is a pair of plain literals.
RANGED: Final = (Primitive("int"), Primitive("bigint"))


class FastApplier(Applier):
    """See the module. Needs a classic SparkSession and Iceberg 1.10 or newer (`removeRows`).

    Keys of large files are looked up in `indexes`. `in_memory`: events in order are folded without
    a query where that is possible. The result of a query for up to `few_events` comes to the
    driver, which writes it without Spark.
    """

    def __init__(
        self,
        indexes: KeyIndexes | None = None,
        *,
        in_memory: bool = True,
        few_events: int = FEW_EVENTS,
        rewriting: Rewriting = REWRITING,
    ) -> None:
        self._indexes = indexes
        self._in_memory = in_memory
        self._few_events = few_events
        self._rewriting = rewriting

    def with_stored(
        self, run: ApplyRun, truncates: Sequence[TruncateEvent], now: datetime
    ) -> Folded | Collected:
        """Fold events with the newest versions or, where that does not suffice, with more."""
        versions: Folded | Collected | None = None
        if self._in_memory:
            versions = fold_in_memory(run, truncates, now, self._indexes)
        if versions is None and run.fresh is not None and run.fresh.may_wait:
            raise ApplyLaterError("it takes a query")
        if versions is None and not run.shape.links:
            versions = _fold_newest(run, truncates, now, self._few_events)
        return _fold_late(run, truncates) if versions is None else versions

    @property
    def folds_in_memory(self) -> bool:
        """Unless tests ask for queries."""
        return self._in_memory

    def found(
        self, run: ApplyRun, keys: Sequence[pa.Array], *, place: str, now: datetime
    ) -> FoundVersions | str:
        """Find them by Arrow."""
        if not self._in_memory:
            return "applies take queries"
        try:
            return find_versions(run, keys, place=place, now=now, indexes=self._indexes)
        except (OSError, pa.ArrowInvalid) as error:
            run.target.table.forget_deletes()
            return f"a file was not read: {error}"

    def stage(self, run: ApplyRun, outcome: ApplyOutcome) -> StagedApply:
        """Write all files of the apply, and find how the rows go that it removes."""
        removal, add = _removal_by_tasks(run, outcome), []
        if removal is not None:
            add = _stage(run, outcome, removal)
        else:
            deleted = outcome.versions.deleted if isinstance(outcome.versions, Collected) else None
            places = _removed(run, outcome)
            removal = plan_removal(run, places, deleted, self._rewriting)
            _refuse_rewriting_beside_copy(run, removal)
            try:
                add = _stage(run, outcome, removal)
            except UnreadRowsError as error:
                # A later apply can rewrite them. `remove_orphan_files` deletes what is staged.
                log.debug("position deletes in %s: %s", run.target.table.name, error)
                removal = Removal(places)
                add = _stage(run, outcome, removal)
        if run.fresh is not None and run.fresh.rejected is not None:
            add += stage(run.target.table, run.fresh.rejected, laid_out=False)
        return StagedApply(add, removal)

    def commit(self, run: ApplyRun, outcome: ApplyOutcome, staged: StagedApply) -> int:
        """Commit what was staged as one step."""
        target, fresh, state = run.target, run.fresh, outcome.state
        # Each line of the summary is a call into the JVM.
        summary = {
            f"polynya.{name.replace('_', '-')}": str(value)
            for name, value in outcome.versions.figures.counts().items()
            if value
        }
        summary |= {"polynya.step": "apply", "polynya.reason": state.reason or ""}
        summary |= staged.removal.counts
        if fresh is not None:
            summary |= fresh.summary
            if isinstance(outcome.versions, Collected) and outcome.versions.writes_all_keys:
                summary[WRITES_ALL_KEYS] = "true"
        return target.commit(
            copy=fresh.state if fresh is not None else None,
            apply=state,
            add=staged.add,
            remove=[*_consumed(run), *outcome.keeping.remove, *staged.removal.files],
            removed=staged.removal.places,
            deletes=staged.removal.deletes,
            drop=staged.removal.drop,
            summary=summary,
            since=run.snapshot,
        )


def _refuse_rewriting_beside_copy(run: ApplyRun, removal: Removal) -> None:
    """Raise ApplyLaterError where a batch that may wait would come with many rewritten rows.

    Readers of changed keys leave applies out. With events in the same commit, the rows of rewritten
    files count as changed.
    """
    again = sum(file.rows for file in removal.files)
    if run.fresh is not None and run.fresh.may_wait and again > FEW_EVENTS:
        raise ApplyLaterError(f"the apply would rewrite {again:,} rows")


def _fold_newest(
    run: ApplyRun, truncates: Sequence[TruncateEvent], now: datetime, few_events: int
) -> Folded | Collected | None:
    """Fold events with the newest versions by one query; None where an event is late.

    Without history all that is kept of a record counts as its newest version.
    """
    few = are_few(run, few_events)
    if not few and not _has_versions(run):
        # Nothing is touched. All keys of a first large apply may not fit into a broadcast.
        return folded(run, pending_events(run), truncates)
    touched = _Touched.by(run, in_one_task=few)
    query = _newest(run, touched.keys, touched.condition)
    result: Folded | Collected
    if few:
        result = collected(run, query, touched.view, truncates, now)
    else:
        result = folded(run, run.sql(query).unionByName(touched.events), truncates)
    return result if _needs_only_newest(run) or not result.late else None


def _has_versions(run: ApplyRun) -> bool:
    """Whether any version is stored."""
    partitions = (Partition.CURRENT, Partition.PRIOR)
    return any(run.target.table.files(partition, run.snapshot) for partition in partitions)


@dataclass(frozen=True, slots=True)
class _Touched:
    """Pending events, and which records they touch.

    `view` names the events, `keys` is a relation of `stored.touched_keys`, and `condition` on the
    key columns lets Iceberg skip files of stored versions.
    """

    events: DataFrame
    view: str
    keys: str
    condition: str

    @classmethod
    def by(cls, run: ApplyRun, *, in_one_task: bool = False) -> _Touched:
        """What the pending events of a run touch; few of them are read by one task."""
        events = pending_events(run)
        view = run.view(events.coalesce(1) if in_one_task else events)
        keys = f"({stored.touched_keys(run.shape, view)})"
        return cls(events, view, keys, _key_condition(run))


def _key_condition(run: ApplyRun) -> str:
    """A range of the first key column, for tables so large that skipping files pays.

    Only where all events lie in Changes does the metadata of its files bound their keys.
    """
    key = run.shape.touching[0]
    if run.fresh is not None or run.shape.columns[key] not in RANGED:
        return "true"
    current = run.target.table.files(Partition.CURRENT, run.snapshot)
    if sum(file.rows for file in current) < LARGE_ROWS:
        return "true"
    bounds = run.target.table.bounds(Partition.CHANGES, run.snapshot, key)
    return f"{quote(key)} BETWEEN {bounds[0]} AND {bounds[1]}" if bounds is not None else "true"


def _newest(run: ApplyRun, touched: str, condition: str, *, oldest: bool = False) -> str:
    """Query of newest versions; keys and headers only where a replaced one leaves nothing behind.

    `touched` is a relation of `stored.touched_keys`, whose `__oldest` is selected on request.
    """
    return stored.newest(
        run.shape,
        run.table,
        touched,
        values=run.shape.fills_deletes,
        condition=condition,
        oldest=oldest,
    )


def _needs_only_newest(run: ApplyRun) -> bool:
    """Whether the newest version of a record is all that is kept of it."""
    return run.shape.fills_deletes and not run.shape.history


def _fold_late(run: ApplyRun, truncates: Sequence[TruncateEvent]) -> Folded:
    """Fold pending events, some of them late or with carried values, with all that they need."""
    touched = _Touched.by(run)
    return folded(run, _with_late(run, touched).unionByName(touched.events), truncates)


def _with_late(run: ApplyRun, touched: _Touched) -> DataFrame:
    """The newest versions, and for the records that have a late event all that they need.

    With history these are the older versions, without it the values of the stored version, which
    may stay. Changes of key that carry values touch other records too.
    """
    shape = run.shape
    keys, condition = run.view(run.settle(run.sql(f"SELECT * FROM {touched.keys}"))), "true"
    if shape.links:
        keys = run.view(run.settle(linked_keys(run, touched=keys, events=touched.view)))
    else:
        condition = touched.condition
    settled = run.settle(run.sql(_newest(run, keys, condition, oldest=True)))
    if _needs_only_newest(run):
        return settled.drop("__oldest")
    view = run.view(settled)
    late = run.view(run.settle(run.sql(stored.late_keys(shape, view))))
    if shape.history:
        return settled.drop("__oldest").unionByName(run.sql(stored.older(shape, run.table, late)))
    others = run.sql(
        f"SELECT n.* FROM {view} n LEFT ANTI JOIN {late} k ON {shape.touching_match('n', 'k')}"
    )
    wide = run.sql(stored.newest(shape, run.table, late, condition=condition))
    return others.drop("__oldest").unionByName(wide)


def _removal_by_tasks(run: ApplyRun, outcome: ApplyOutcome) -> Removal | None:
    """The deletes of an apply whose places would not fit into the driver; None when they do."""
    changed = outcome.versions
    if not isinstance(changed, Folded) or (run.fresh is not None and run.fresh.instead):
        return None
    spark = run.target.spark
    on_cluster = not is_local(spark)
    heap = heap_bytes(spark) if on_cluster else 0
    by = removed_by(RemovedFacts(changed.figures.removed, heap, on_cluster))
    writing = DeletesByTasks.of(run.target.table, run.snapshot) if by.tasks else by.reason
    if isinstance(writing, str):
        log.debug("the driver writes the deletes in %s: %s", run.target.table.name, writing)
        return None
    log.debug("tasks write the deletes in %s: %s", run.target.table.name, by.reason)
    places = changed.rows.where("__drop").selectExpr(*_PLACE_OF_STORED)
    others = _other_places(run, outcome)
    if others:
        # A version that is replaced may be a tombstone that is too old.
        more = pa.concat_tables(others)
        places = places.unionByName(spark.createDataFrame(more)).distinct()
    deletes, drop = writing.write(places, changed.figures.removed)
    return Removal(None, deletes=deletes, drop=drop)


def _removed(run: ApplyRun, outcome: ApplyOutcome) -> pa.Table | None:
    """Places of all rows that go, None for none."""
    places = _other_places(run, outcome)
    if outcome.versions.figures.removed:
        places.append(_places(outcome.versions).select(PLACES.names).cast(PLACES))
    if not places:
        return None
    # A version that is replaced may be a tombstone that is too old.
    return pa.concat_tables(places).group_by(PLACES.names).aggregate([])


def _other_places(run: ApplyRun, outcome: ApplyOutcome) -> list[pa.Table]:
    """Places of rows that go and are no replaced versions."""
    removed = [outcome.purge.positions]
    if run.fresh is not None and run.fresh.replayed is not None:
        removed.append(run.fresh.replayed.places)
    return [places.select(PLACES.names).cast(PLACES) for places in removed if places is not None]


_PLACE_OF_STORED: Final = (
    "__stored.part AS part", "__stored.file AS file_path", "__stored.pos AS pos",
)  # fmt: skip


def _places(changed: Folded | Collected) -> pa.Table:
    """Where the versions that are removed are stored: `part`, `file_path` string, `pos` int64."""
    if isinstance(changed, Collected):
        return changed.places
    return changed.rows.where("__drop").selectExpr(*_PLACE_OF_STORED).toArrow()


def _stage(run: ApplyRun, outcome: ApplyOutcome, removal: Removal) -> list[DataFile]:
    """Files of the versions that changed, of those that are written again, and of kept events."""
    table, keeping, changed = run.target.table, outcome.keeping, outcome.versions
    staged: list[DataFile] = []
    in_memory = changed.rows if isinstance(changed, Collected) else None
    if in_memory is not None or removal.again:
        staged += removal.stage(table, in_memory)
    if isinstance(changed, Folded) and changed.figures.written:
        columns = fold.table_rows(run.shape, timestamp_literal(outcome.now))
        rows = run.sql(f"SELECT {columns} FROM {run.view(changed.rows)} WHERE __write")
        tasks = 1 + changed.figures.written // ONE_TASK_ROWS
        staged += stage(table, rows.coalesce(tasks), laid_out=True)
    if keeping.add is not None:
        tasks = 1 + keeping.count // ONE_TASK_ROWS
        staged += stage(table, keeping.add.coalesce(tasks), laid_out=False)
    return staged


def _consumed(run: ApplyRun) -> list[DataFile]:
    """Files whose rows this apply takes in, or takes the place of."""
    partitions = [Partition.CHANGES]
    if run.fresh is not None and run.fresh.instead:
        partitions += [Partition.CURRENT, Partition.PRIOR]
    files = [
        file for partition in partitions for file in run.target.table.files(partition, run.snapshot)
    ]
    return [*files, *(run.fresh.consumed if run.fresh is not None else ())]
