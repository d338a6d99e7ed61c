"""The ways of a batch into its table: each is a module of its own, the first that suffices counts.

`ordinary.py` makes the rows in Arrow, `queried.py` by SQL for whatever else there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from polynya.formats.batch import DatasetBatch
from polynya.lake.apply.applier import ApplyResult
from polynya.lake.apply.retention import Retention
from polynya.lake.copy.times import Times
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.files import DataFile
from polynya.lake.table.books import booked, rows_by_partition, with_changes
from polynya.lake.table.copy_state import CopyState
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.replayed import Replayed
from polynya.lake.table.suspension import refuse_bad_records
from polynya.model.contract.headers import Partition


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What one batch became. rows_in = rows_out + rows_filtered + rows_quarantined.

    `applied` tells of the apply in the same commit, None when the batch was only copied.
    """

    rows_in: int
    rows_out: int
    rows_filtered: int
    rows_quarantined: int
    snapshot: int
    applied: ApplyResult | None = None


@dataclass(frozen=True, slots=True)
class Copying:
    """A batch on its way into a table.

    Attributes:
        target: the table, which was entered.
        batch: what was read.
        shape: of the table with the columns of the batch.
        following: the state after the batch, but for its books.
        times: of the step.
        at_once: the reason to apply the batch with its copy, None when it can wait as pending
            changes; that the settings make a row a truncate is not looked at yet.
        first_load: loaded rows may go to Current unfolded.
        repeats_load: records of the batch may have been loaded before.
        replayed: quarantined records that the batch read again.
    """

    target: DatasetTable
    batch: DatasetBatch
    shape: Shape
    following: CopyState
    times: Times
    at_once: str | None = None
    first_load: bool = False
    repeats_load: bool = False
    replayed: Replayed | None = None

    def refuse_bad_records(self, first: Callable[[], Mapping[str, Any] | None]) -> None:
        """See `suspension.refuse_bad_records`; records that are read again were let in before."""
        if self.replayed is None:
            refuse_bad_records(self.target, first, self.times.now)

    def append(self, staged: Sequence[DataFile], keeping: Retention | None = None) -> CopyResult:
        """Commit the files of a batch as they are."""
        batch, target = self.batch, self.target
        counts = rows_by_partition(staged)
        quarantined = counts.pop(Partition.QUARANTINE, 0)
        kept = counts.pop(Partition.RETAINED, 0)
        out = sum(counts.values())
        following, summary = booked(
            target, batch, self.following, step="copy", out=out, quarantined=quarantined
        )
        following = with_changes(target, following, counts[Partition.CHANGES])
        apply = None
        if kept and keeping is not None:
            apply = replace(target.state.apply, retaining=keeping.following(kept))
        snapshot = target.commit(
            copy=following,
            apply=apply,
            add=staged,
            removed=self.replayed.places if self.replayed is not None else None,
            summary=summary,
        )
        return CopyResult(batch.rows_in, out, batch.rows_filtered, quarantined, snapshot)


class Way(Protocol):
    """A way to make the rows of a batch and to commit them."""

    def take(self, copying: Copying) -> CopyResult | None:
        """Commit a batch. None, and no change, when it needs another way.

        Raises BadRecordError for a bad record of a dataset that does not quarantine them.
        """
        ...
