"""The row accounting of a dataset: what became of every record, counted from what a commit holds.

rows_in = rows_out + rows_filtered + rows_quarantined, for each batch and since the table was
created (semantics section 10).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from polynya.formats.batch import AnyBatch
from polynya.lake.iceberg.files import DataFile
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import ApplyState, CopyState
from polynya.model.error_catalogue.lake import ROWS_DO_NOT_ADD_UP
from polynya.model.headers import Partition


def rows_by_partition(files: Iterable[DataFile]) -> Counter[str]:
    """Rows of staged files for each value of `hdr__partition`."""
    counts: Counter[str] = Counter()
    for file in files:
        counts[file.partition] += file.rows
    return counts


def booked(
    target: DatasetTable,
    batch: AnyBatch,
    state: CopyState,
    *,
    step: str,
    out: int,
    quarantined: int,
) -> tuple[CopyState, Mapping[str, str]]:
    """Add the figures and counters of the batch; they must add up, or nothing is committed.

    Returns the state to commit, and what the snapshot says of the batch.
    """
    figures = {
        "rows_in": batch.rows_in,
        "rows_out": out,
        "rows_filtered": batch.rows_filtered,
        "rows_quarantined": quarantined,
    }
    if batch.rows_in != out + batch.rows_filtered + quarantined:
        raise ROWS_DO_NOT_ADD_UP(
            where=target.table.name,
            rows_in=batch.rows_in,
            rows_out=out,
            filtered=batch.rows_filtered,
            quarantined=quarantined,
        )
    totals = Counter(state.books.totals)
    totals.update(figures)
    counters = Counter(state.books.counters)
    counters.update(batch.counters)
    unparsed = state.books.unparsed + batch.unparsed
    books = replace(state.books, totals=dict(totals), counters=dict(counters), unparsed=unparsed)
    summary = {f"polynya.{name.replace('_', '-')}": str(rows) for name, rows in figures.items()}
    return replace(state, books=books), {"polynya.step": step, **summary}


def discounted(state: CopyState, records: int, *, unparsed: int) -> CopyState:
    """Take records of the quarantine out of the counters, which a batch that read them counted.

    So many of them could not be parsed.
    """
    totals = Counter(state.books.totals)
    totals.update(rows_in=-records, rows_quarantined=-records)
    # A table may hold some of a version that did not count them.
    left = max(0, state.books.unparsed - unparsed)
    return replace(state, books=replace(state.books, totals=dict(totals), unparsed=left))


def with_changes(target: DatasetTable, state: CopyState, rows: int) -> CopyState:
    """Count `rows` that the next commit writes to the partition Changes.

    A table whose rows were not counted before begins with those that are there.
    """
    before = state.books.to_changes
    if before is None:
        before = target.state.apply.from_changes
        there = target.table.files(Partition.CHANGES, target.state.snapshot)
        before += sum(file.rows for file in there)
    return replace(state, books=replace(state.books, to_changes=before + rows))


def with_inserted(target: DatasetTable, state: CopyState, rows: int, now: datetime) -> CopyState:
    """Count `rows` that the next commit writes to Current without an apply."""
    books, before = state.books, target.state.copy.books
    if before.inserted is None and before.totals.get("rows_out"):
        # A version that did not count them has written to the table.
        books = replace(books, inserted_since=now.isoformat())
    return replace(state, books=replace(books, inserted=(before.inserted or 0) + rows))


def pending_rows(copy: CopyState, apply: ApplyState) -> int | None:
    """Rows that the partition Changes holds by the books; None where they were not counted."""
    if copy.books.to_changes is None:
        return None
    return copy.books.to_changes - apply.from_changes
