"""Retention of tombstones of datasets without history.

What an apply removes, and the horizon that it leaves. With history, Prior keeps every
delete for ever and there is no horizon (semantics section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from polynya.lake.apply.run import Run
from polynya.lake.fold.figures import Figures
from polynya.lake.fold.fold import TRUNCATED
from polynya.lake.fold.sql import STORED_SEQUENCE, timestamp_literal, within
from polynya.lake.spark.api import DataFrame, functions
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote
from polynya.observe.trace import span

#: An event that is older than a truncate keeps its place: truncates are never forgotten.
_HORIZON = f"IF({h.SOURCE_POSITION} <=> '{TRUNCATED}', NULL, {STORED_SEQUENCE})"


@dataclass(frozen=True, slots=True)
class Purge:
    """Rows to remove (columns part, file_path, pos; None for none) and the horizon after it."""

    horizon: str | None
    positions: pa.Table | None = None
    oldest_kept: str | None = None

    def oldest_tombstone(self, figures: Figures, now: datetime) -> str | None:
        """When the oldest tombstone that stays was written; the apply at `now` may write some."""
        if self.oldest_kept is not None:
            return self.oldest_kept
        return now.isoformat() if figures.prior else None


@span("tombstones")
def find_purge(run: Run, now: datetime, events: DataFrame | None = None) -> Purge:
    """Tombstones that were written longer than `tombstone_retention` ago.

    Age is engine time: a capture of last year must not lose its tombstones while it is being
    loaded. `events` are those that are kept for a while, as rows of the table: a tombstone stays
    while one of them is older, or a rebuild would bring its record back.
    """
    shape, settings, state = run.shape, run.target.dataset.kept, run.target.state.apply
    cutoff = now - settings.tombstone_retention
    oldest = state.oldest_tombstone
    for_ever = shape.history or settings.changes_retention == "keep"
    if for_ever or oldest is None or datetime.fromisoformat(oldest) >= cutoff:
        return Purge(state.horizon, oldest_kept=oldest)
    keys = [f"{quote(key)} AS __k{index}" for index, key in enumerate(shape.keys)]
    rows = run.sql(
        f"SELECT '{Partition.PRIOR}' AS part, _file AS file_path, _pos AS pos, "
        f"{h.WAS_CURRENT_TO} AS written, {STORED_SEQUENCE} AS seq, {_HORIZON} AS horizon, "
        f"{', '.join(keys)} "
        f"FROM {run.table} WHERE {within(Partition.PRIOR)}"
    )
    old = rows.where(f"written < {timestamp_literal(cutoff)}")
    kept = rows.where(f"written >= {timestamp_literal(cutoff)}")
    if events is not None:
        same = " AND ".join(f"o.__k{index} = e.__k{index}" for index in range(len(keys)))
        older = events.selectExpr(*keys, f"{STORED_SEQUENCE} AS seq").alias("e")
        needed = functions.expr(f"{same} AND e.seq <= o.seq")
        kept = kept.unionAll(old.alias("o").join(older, needed, "left_semi"))
        old = old.alias("o").join(older, needed, "left_anti")
    oldest_kept = kept.selectExpr("min(written)").first()
    gone = old.select("part", "file_path", "pos", "horizon").toArrow()
    horizons = [state.horizon, *gone.column("horizon").to_pylist()]
    return Purge(
        horizon=max((value for value in horizons if value is not None), default=None),
        positions=gone.drop_columns(["horizon"]) if gone.num_rows else None,
        oldest_kept=_iso(oldest_kept[0]) if oldest_kept is not None and oldest_kept[0] else None,
    )


def _iso(moment: datetime) -> str:
    return moment.astimezone().isoformat()
