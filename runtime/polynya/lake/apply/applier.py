"""Apply: fold pending Changes into Current and Prior in one commit.

What both appliers share. The fast applier probes Current by key and writes only what
changed; the plain one rewrites whole partitions with an ordinary overwrite and is the oracle. They
must leave equal tables (docs/adr/0007-two-appliers.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from polynya.lake.apply.tombstones import Purge
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.gateway import LiveFile
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.copy_state import CopyState
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.replayed import Replayed
from polynya.lake.table.state import ApplyState, Retaining


@dataclass(frozen=True, slots=True)
class CopyParts:
    """A batch that is copied by the same commit that applies it.

    `events` are its good rows and `rejected` its quarantined ones, both in the shape of the
    internal table; `state` is the copy state after it; `summary` goes to the snapshot; `replayed`
    are quarantined records that the batch read again; `consumed` are files that the batch was made
    of and that leave the table with it. `instead`: the batch takes the place of all that the table
    held, history included.
    """

    events: DataFrame
    rejected: DataFrame
    state: CopyState
    summary: Mapping[str, str] = field(default_factory=dict)
    replayed: Replayed | None = None
    consumed: Sequence[LiveFile] = ()
    instead: bool = False


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What one apply did; `rows` are the figures of `versions.figures`."""

    snapshot: int
    reason: str
    seconds: float
    rows: Mapping[str, int]


class Applier(Protocol):
    """Folds all Changes of the current snapshot, and those of `fresh`, into Current and Prior.

    `anew`: derives every version from the kept events and ignores what is stored.
    """

    def apply(
        self,
        target: DatasetTable,
        shape: Shape,
        *,
        reason: str,
        now: datetime,
        fresh: CopyParts | None = None,
        anew: bool = False,
    ) -> ApplyResult:
        """Commit one apply; ConflictError, and no change, when another owner was faster."""
        ...


def next_state(
    target: DatasetTable,
    *,
    now: datetime,
    reason: str,
    seconds: float,
    rows: Mapping[str, int],
    truncates: list[list[Any]],
    purge: Purge,
    retaining: Retaining | None,
    applied_to: str | None,
) -> ApplyState:
    """Apply state after an apply."""
    state = target.state.apply
    totals = Counter(state.totals)
    totals.update(rows)
    reached = [identifier for identifier in (state.applied_to, applied_to) if identifier]
    return replace(
        state,
        ownership=target.ownership(),
        truncates=truncates,
        horizon=purge.horizon,
        oldest_tombstone=purge.oldest_tombstone(rows, now),
        retaining=retaining,
        applied_to=max(reached) if reached else None,
        applied_at=now.isoformat(),
        reason=reason,
        applies=state.applies + 1,
        seconds=round(seconds, 3),
        totals=dict(totals),
    )
