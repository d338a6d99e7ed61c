"""An apply of few events: one query, its result as Arrow, the files written without Spark.

The cost of a small apply is not its rows but plans and jobs: a checkpoint of the folded versions, a
write and a query for the removed rows take three of each. A few thousand rows fit into memory, and
a single query returns everything about them (docs/adr/0012-small-steps-in-arrow.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.run import ApplyRun
from polynya.lake.fold import fold as versions
from polynya.lake.fold.columns import EVENT_HEADERS
from polynya.lake.fold.fold import TruncateEvent, as_sql, fold, with_clause
from polynya.lake.fold.sql import timestamp_literal
from polynya.lake.fold.stored import ApplyFigures, apply_conditions
from polynya.lake.iceberg.deletes import Deleted
from polynya.lake.iceberg.writing import PLACES
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote

#: In the summary of a step that changed rows of the live views: each record that it changed is
#: among the rows that it wrote. Then nobody has to look at those that it took out.
WRITES_ALL_KEYS: Final = "polynya.writes-all-keys"
#: Pending events that are few, and the size of their files in bytes, which are compressed.
FEW_EVENTS = 20_000
FEW_BYTES = 8 * 1024 * 1024
#: Up to so many rows of Current are scanned and folded by one task: without a shuffle between, two
#: stages and their tasks are saved. A larger table is worth all cores.
ONE_TASK_ROWS = 200_000
_PLACED = {
    "write": "__write",
    "drop": "__drop",
    "late": "__stored.late",
    "part": "__stored.part",
    "file_path": "__stored.file",
    "pos": "__stored.pos",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """The same as `Folded`, in memory.

    `rows` are the versions that are written, with columns of the internal table; `places`, with the
    columns of `writing.PLACES`, are those of the versions that are removed. `deleted` are rows that
    were so before, where that was read. `writes_all_keys`: no version is removed whose record is
    not among `rows`.
    """

    rows: pa.Table
    places: pa.Table
    figures: ApplyFigures
    applied_to: str | None
    late: int
    deleted: Deleted | None = None
    writes_all_keys: bool = False


def are_few(run: ApplyRun, limit: int) -> bool:
    """Whether the pending events of a run are so few that they, and what they touch, fit here."""
    if run.fresh is not None:
        return False
    pending = run.target.table.files(Partition.CHANGES, run.snapshot)
    return (
        sum(file.rows for file in pending) <= limit
        and sum(file.size_bytes for file in pending) <= FEW_BYTES
    )


def collected(
    run: ApplyRun, stored: str, events: str, truncates: Sequence[TruncateEvent], now: datetime
) -> Collected:
    """Fold `events`, a view, with the versions of the query `stored`, and bring the result here."""
    shape = run.shape
    names = ", ".join([*map(quote, shape.data), *EVENT_HEADERS, "__stored"])
    both = f"{stored} UNION ALL SELECT {names} FROM {events}"
    current = run.target.table.files(Partition.CURRENT, run.snapshot)
    in_one_task = sum(file.rows for file in current) <= ONE_TASK_ROWS
    steps = [
        ("both", f"SELECT /*+ COALESCE(1) */ * FROM ({both})" if in_one_task else both),
        *fold(shape, "both", truncates=as_sql(truncates)),
        ("placed", versions.placed(shape)),
    ]
    conditions = apply_conditions(shape)
    fields = ", ".join(f"'{name}', {value}" for name, value in {**_PLACED, **conditions}.items())
    found = run.sql(
        f"{with_clause(steps)} SELECT {versions.table_rows(shape, '__now')}, "
        f"named_struct({fields}) AS __placed FROM placed "
        # Spark writes a plain literal into the code that it generates, and each step would compile
        # a class of its own.
        f"LATERAL VIEW explode(array({timestamp_literal(now)})) AS __now"
    ).toArrow()
    rows = found.drop_columns(["__placed"])
    placed = pa.Table.from_struct_array(found.column("__placed"))
    counted = {name: _count(placed, name) for name in conditions}
    newest = pc.max(rows.column(h.CHANGE_IDENTIFIER)).as_py()
    places = placed.filter(placed.column("drop")).select(PLACES.names)
    written = rows.filter(placed.column("write"))
    return Collected(written, places, ApplyFigures.of(counted), newest, _count(placed, "late"))


def _count(placed: pa.Table, name: str) -> int:
    return pc.sum(placed.column(name)).as_py() or 0
