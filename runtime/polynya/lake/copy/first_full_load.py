"""The first full load of a table: gathered rows that go to Current as they are.

A fold of all rows by themselves takes Spark several times as long as writing them. Where each key
was loaded once, and the table has nothing else, the fold would change nothing.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime
from typing import Final

from polynya.lake.apply.apply import ApplyResult
from polynya.lake.copy.compared_load import has_only_inserts
from polynya.lake.copy.first_rows import figures_of, holds_no_versions, written
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import timestamp_literal, within
from polynya.lake.table.books import with_inserted
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState, Reloading
from polynya.model import headers as h
from polynya.model.headers import Partition

log = logging.getLogger(__name__)

#: The end of the tail of loaded rows that replace all others: behind that of their truncate.
OF_ROWS: Final = "b"


def goes_to_current(target: DatasetTable, shape: Shape, reloading: Reloading) -> bool:
    """Whether a load that replaces nothing goes to Current as it is: each key once, no delete."""
    apply, snapshot = target.state.apply, target.state.snapshot
    if reloading.mode != "drop_and_create" or apply.applies or apply.truncates:
        return False
    if not reloading.rows or shape.partial or shape.replaces or not holds_no_versions(target):
        return False
    assert snapshot is not None, "a reload has begun"
    found = has_only_inserts(target, shape, snapshot)
    if not isinstance(found, str):
        return found
    log.debug("keys of the load of %s are counted by Spark: %s", target.table.name, found)
    others = target.spark.sql(
        f"SELECT 1 FROM {target.table.at(snapshot)} WHERE {within(Partition.RELOAD)} "
        f"GROUP BY {shape.key_list()} "
        f"HAVING count(*) > 1 OR count_if({h.OPERATION} <> 'L') > 0 LIMIT 1"
    )
    return others.isEmpty()


def commit_first_load(
    target: DatasetTable,
    shape: Shape,
    reloading: Reloading,
    following: CopyState,
    *,
    now: datetime,
) -> ApplyResult:
    """Commit the loaded rows of a table that held none, and end the reload."""
    assert target.state.snapshot is not None, "a reload has begun"
    began = time.monotonic()
    rows = target.spark.sql(
        f"SELECT * FROM {target.table.at(target.state.snapshot)} WHERE {within(Partition.RELOAD)}"
    )
    since = f"coalesce({h.TIMESTAMP}, {timestamp_literal(reloading.started_at)})"
    files = written(target, shape, rows, reloading, now, operation="L", since=since, suffix=OF_ROWS)
    figures = figures_of(files)
    snapshot = target.commit(
        copy=with_inserted(target, following, figures.current, now),
        add=files,
        remove=target.table.files(Partition.RELOAD, target.state.snapshot),
        summary={
            "polynya.step": "reload",
            "polynya.reload": reloading.mode,
            "polynya.rows-loaded": str(reloading.rows),
        },
    )
    seconds = round(time.monotonic() - began, 3)
    return ApplyResult(snapshot, f"reload: {reloading.mode}", seconds, figures)
