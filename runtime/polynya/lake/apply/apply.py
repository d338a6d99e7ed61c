"""Apply: fold pending Changes into Current and Prior in one commit.

`Applier.apply` is the sequence. An applier decides which stored versions it reads and how it writes
the outcome: `fast.py` is the one in use; the reference applier of the tests folds and rewrites
everything. Both must leave equal tables (docs/adr/0009-one-fold-two-appliers.md).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import pyarrow as pa

from polynya.lake.apply import retention
from polynya.lake.apply.collected import Collected
from polynya.lake.apply.folding import (
    folded,
    folded_with_all,
    new_truncates,
    pending_events,
    rebuilt,
)
from polynya.lake.apply.removal import Purge, Removal, find_purge
from polynya.lake.apply.retention import Retention
from polynya.lake.apply.run import ApplyRun, CopyParts, Folded, FoundVersions
from polynya.lake.fold.fold import TruncateEvent, merged
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import within
from polynya.lake.fold.stored import AppliedRows
from polynya.lake.iceberg.files import DataFile
from polynya.lake.spark.api import DataFrame, SparkSession
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import ApplyState
from polynya.model.headers import Partition
from polynya.observe.trace import span

#: Above this number of columns Spark stops compiling whole stages (`spark.sql.codegen.maxFields`).
_MAX_COMPILED_COLUMNS: Final = 300
#: Number of values that take as long to interpret as a query takes to compile.
_MAX_INTERPRETED_VALUES: Final = 200_000_000
_CODEGEN_MODE: Final = "spark.sql.codegen.factoryMode"


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What one apply did."""

    snapshot: int
    reason: str
    seconds: float
    figures: AppliedRows


@dataclass(frozen=True, slots=True)
class ApplyOutcome:
    """All that one apply commits: versions, kept events, tombstones that go, and the new state."""

    versions: Folded | Collected
    keeping: Retention
    purge: Purge
    state: ApplyState

    @property
    def now(self) -> datetime:
        """Engine time of the apply."""
        return self.keeping.now


@dataclass(frozen=True, slots=True)
class StagedApply:
    """Files that were written, and how the rows go that the apply removes."""

    add: Sequence[DataFile] = ()
    removal: Removal = Removal(None)  # noqa: RUF009

    @property
    def paths(self) -> set[str]:
        """Locations of the files."""
        return {one.path for one in self.add} | {one.path for one in self.removal.deletes}


class Applier(ABC):
    """Folds all Changes of the current snapshot, and those of `fresh`, into Current and Prior."""

    @abstractmethod
    def with_stored(
        self, run: ApplyRun, truncates: Sequence[TruncateEvent], now: datetime
    ) -> Folded | Collected:
        """Fold the events of a run with the stored versions that they can change.

        `now` is the engine's time.
        """

    @property
    def folds_in_memory(self) -> bool:
        """Whether it can fold a few events without a query."""
        return False

    def found(
        self,
        run: ApplyRun,  # noqa: ARG002 - for appliers that can
        keys: Sequence[pa.Array],  # noqa: ARG002
        *,
        place: str,  # noqa: ARG002
        now: datetime,  # noqa: ARG002
    ) -> FoundVersions | str:
        """Stored versions of records by their keys, see `in_memory.find_versions`; or why not."""
        return "this applier reads stored versions by queries"

    @abstractmethod
    def stage(self, run: ApplyRun, outcome: ApplyOutcome) -> StagedApply:
        """Write what can be written before the commit."""

    @abstractmethod
    def commit(self, run: ApplyRun, outcome: ApplyOutcome, staged: StagedApply) -> int:
        """Write the outcome in one commit; the id of the new snapshot."""

    def apply(
        self,
        target: DatasetTable,
        shape: Shape | None = None,
        *,
        reason: str,
        now: datetime,
        fresh: CopyParts | None = None,
        rebuild: bool = False,
    ) -> ApplyResult:
        """Commit one apply; ConflictError, and no change, when another owner was faster.

        The same owner may append changes meanwhile: they stay pending. `shape` is that of a batch
        in `fresh`, None for what is pending alone. `rebuild` derives every version from the kept
        events, and does not believe what is stored.
        """
        started = time.monotonic()
        with target.applying():
            target.take_over()
            target.refuse_lost_columns()
            # Not before: no batch changes the columns while an apply is at work.
            with (
                ApplyRun.of(target, shape or target.stored_shape(), fresh) as run,
                interpreted_if_wide(
                    target.spark, columns=len(run.shape.columns), rows=target.table.rows
                ),
            ):
                keeping = retention.plan(run, now)
                versions, truncates = self._versions(run, keeping.now, rebuild=rebuild)
                seen = target.state.snapshot
                purge = find_purge(run, keeping.now, _not_forgotten(run, keeping))
                state = replace(
                    _state_after(run, versions, keeping, purge, truncates),
                    truncates=truncates,
                    reason=reason,
                    seconds=round(time.monotonic() - started, 3),
                )
                outcome = ApplyOutcome(versions, keeping, purge, state)
                staged = self.stage(run, outcome)
                with target.changing:
                    if seen != target.state.snapshot and not _still_holds(run, outcome):
                        target.table.drop_files(staged.paths)
                        outcome = _without_purge(run, outcome)
                        staged = self.stage(run, outcome)
                    snapshot = self.commit(run, outcome, staged)
        seconds = round(time.monotonic() - started, 3)
        return ApplyResult(snapshot, reason, seconds, versions.figures)

    @span("fold")
    def _versions(
        self, run: ApplyRun, now: datetime, *, rebuild: bool
    ) -> tuple[Folded | Collected, list[TruncateEvent]]:
        """The folded versions, and all truncates that are known then."""
        new = new_truncates(run)
        truncates = merged(run.target.state.apply.truncates, new)
        if rebuild:
            return rebuilt(run, truncates), truncates
        if run.fresh is not None and run.fresh.instead:
            return folded(run, pending_events(run), []), []
        if new:
            # A truncate touches every record.
            return folded_with_all(run, pending_events(run), truncates), truncates
        return self.with_stored(run, truncates, now), truncates


@contextmanager
def interpreted_if_wide(
    spark: SparkSession, *, columns: int, rows: Callable[[], int]
) -> Iterator[None]:
    """Let Spark interpret the queries of this thread, if that is faster for this number of values.

    Spark makes and compiles code for every projection, join and exchange of a query. With two
    thousand columns that takes longer than anything else, and only many rows make up for it.

    The mode is a local property, which Spark hands to the tasks of this thread's jobs: queries of
    other tables stay as they are. `rows` is asked of wide tables only: it costs calls of Java.
    """
    if columns <= _MAX_COMPILED_COLUMNS or columns * rows() > _MAX_INTERPRETED_VALUES:
        yield
        return
    context = spark.sparkContext
    context.setLocalProperty(_CODEGEN_MODE, "NO_CODEGEN")
    try:
        yield
    finally:
        context.setLocalProperty(_CODEGEN_MODE, None)  # type: ignore[arg-type]  # it is removed


def _not_forgotten(run: ApplyRun, keeping: Retention) -> DataFrame | None:
    """Events that a tombstone must outlive: kept ones, and those that were copied meanwhile."""
    events, newest = retention.events(run, keeping), run.target.state.snapshot
    if newest is None or newest == run.snapshot:
        return events
    beside = run.sql(
        f"SELECT * FROM {run.target.table.at(newest)} WHERE {within(Partition.CHANGES)}"
    )
    return beside if events is None else events.unionByName(beside, allowMissingColumns=True)


def _state_after(
    run: ApplyRun,
    versions: Folded | Collected,
    keeping: Retention,
    purge: Purge,
    truncates: Sequence[TruncateEvent],
) -> ApplyState:
    """Apply state after the apply, but for what `apply` itself knows."""
    state = run.target.state.apply
    totals = Counter(state.totals)
    totals.update(versions.figures.counts())
    totals["truncates"] += max(0, len(truncates) - len(state.truncates))
    taken = run.target.table.files(Partition.CHANGES, run.snapshot)
    reached = [identifier for identifier in (state.applied_to, versions.applied_to) if identifier]
    return replace(
        state,
        horizon=purge.horizon,
        oldest_tombstone=purge.oldest_tombstone(versions.figures, keeping.now),
        retaining=keeping.following(keeping.count),
        applied_to=max(reached, default=None),
        applied_at=keeping.now.isoformat(),
        counted_since=state.counted_from(keeping.now),
        applies=state.applies + 1,
        totals=dict(totals),
        from_changes=state.from_changes + sum(file.rows for file in taken),
    )


def _still_holds(run: ApplyRun, outcome: ApplyOutcome) -> bool:
    """Whether the tombstones to remove are still too old, given what was copied meanwhile."""
    positions = outcome.purge.positions
    if positions is None:
        return True
    keeping = outcome.keeping
    now = find_purge(run, keeping.now, _not_forgotten(run, keeping)).positions
    return now is not None and now.num_rows == positions.num_rows


def _without_purge(run: ApplyRun, outcome: ApplyOutcome) -> ApplyOutcome:
    """The same, with every tombstone left to the next apply."""
    state = run.target.state.apply
    following = replace(
        outcome.state, horizon=state.horizon, oldest_tombstone=state.oldest_tombstone
    )
    purge = Purge(state.horizon, oldest_kept=state.oldest_tombstone)
    return replace(outcome, purge=purge, state=following)
