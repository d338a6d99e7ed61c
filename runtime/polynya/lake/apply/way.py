"""A way to fold pending events with stored versions, and what those ways that query start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from polynya.lake.apply.collected import Collected
from polynya.lake.apply.folding import pending_events
from polynya.lake.apply.run import Folded, Run
from polynya.lake.fold import stored
from polynya.lake.fold.truncates import Truncate
from polynya.lake.spark.api import DataFrame
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote
from polynya.model.datatypes import Primitive

#: From this many rows in Current on, files are skipped by the range of the touched keys.
LARGE_ROWS = 500_000
#: Key types whose range is a pair of plain literals.
RANGED = (Primitive("int"), Primitive("bigint"))


class Way(Protocol):
    """One way. The ways of an applier are tried in order, the cheapest first."""

    def fold(
        self, run: Run, truncates: Sequence[Truncate], now: datetime
    ) -> Folded | Collected | None:
        """Fold events with stored versions; None where that takes more than this way reads."""
        ...


@dataclass(frozen=True, slots=True)
class Touched:
    """Pending events, and which records they touch.

    `view` names the events, `keys` is a relation of `stored.touched_keys`, and `condition` on the
    key columns lets Iceberg skip files of stored versions.
    """

    events: DataFrame
    view: str
    keys: str
    condition: str

    @classmethod
    def by(cls, run: Run, *, in_one_task: bool = False) -> Touched:
        """What the pending events of a run touch; few of them are read by one task."""
        events = pending_events(run)
        view = run.view(events.coalesce(1) if in_one_task else events)
        keys = f"({stored.touched_keys(run.shape, view)})"
        return cls(events, view, keys, _key_condition(run))


def _key_condition(run: Run) -> str:
    """A range of the first key column, for tables so large that skipping files pays.

    Only where all events lie in Changes does the metadata of its files bound their keys.
    """
    key = run.shape.keys[0]
    if run.fresh is not None or run.shape.columns[key] not in RANGED:
        return "true"
    current = run.target.table.files(Partition.CURRENT, run.snapshot)
    if sum(file.rows for file in current) < LARGE_ROWS:
        return "true"
    bounds = run.target.table.bounds(Partition.CHANGES, run.snapshot, key)
    return f"{quote(key)} BETWEEN {bounds[0]} AND {bounds[1]}" if bounds is not None else "true"
