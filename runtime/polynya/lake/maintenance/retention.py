"""`expire_rows` and `expire_changes`: remove rows and applied events that are old enough.

`expire_rows` removes rows of Current and Prior that are older than their retention. By their
statistics, files with only such rows are removed whole; from other files single rows are deleted.
The time before which rows have left is part of the state and never goes back: an apply keeps no
older version, so no late event brings one back (semantics section 13).

`expire_changes` removes whole files of applied events; the versions that these events made join the
base (docs/adr/0022-retained-events-and-retention.md). An apply does the same. The action is for a
dataset that receives no more events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa

from polynya.lake.apply import retention
from polynya.lake.apply.retention import ExpiredEvents
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState
from polynya.model.config.layout import age_refusal
from polynya.model.config.maintenance import ActionName
from polynya.model.errors import ConflictError
from polynya.model.headers import Partition
from polynya.model.types import DATE
from polynya.observe.trace import span

ROWS_ACTION: Final[ActionName] = "expire_rows"
_EXPIRED: Final = (Partition.CURRENT, Partition.PRIOR)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
#: How long an expiry waits for the end of an apply before it is given up.
PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Aged:
    """Data files whose rows have all expired, and files in which some rows may have."""

    whole: tuple[DataFile, ...] = ()
    partly: tuple[DataFile, ...] = ()


def limit_of(target: DatasetTable, now: datetime) -> tuple[str, datetime] | None:
    """The column by which rows leave, and the time before which; None where none do.

    The time never goes back.
    """
    retention, gone = target.dataset.kept.retention, target.state.copy.expired
    kind = None if retention is None else target.known_schema().get(retention.column)
    if retention is None or kind is None or age_refusal(kind) is not None:
        return None
    before = now.astimezone(UTC) - retention.keep
    if gone.get("column") == retention.column:
        before = max(before, datetime.fromisoformat(gone["before"]))
    return retention.column, before


def aged(target: DatasetTable, column: str, before: datetime) -> Aged:
    """What has expired, by the statistics of the data files."""
    snapshot, table = target.state.snapshot, target.table
    if snapshot is None:
        return Aged()
    days = target.known_schema()[column] == DATE
    limit = (before - _EPOCH) // timedelta(microseconds=1)
    if days:
        limit = -(-limit // (24 * 3600 * 10**6))
    whole: list[DataFile] = []
    partly: list[DataFile] = []
    for partition in _EXPIRED:
        nulls = table.nulls(partition, snapshot, column)
        for file, bounds in table.ranges(partition, snapshot, column):
            if bounds is None:
                # A file of NULLs has no bounds.
                if nulls.get(file.path) != file.rows:
                    partly.append(file)
            elif bounds[1] < limit and nulls.get(file.path) == 0:
                whole.append(file)
            elif bounds[0] < limit:
                partly.append(file)
    return Aged(tuple(whole), tuple(partly))


@span("expire rows")
def expire_rows(target: DatasetTable, limits: ActionLimits) -> ActionOutcome:
    """Remove the rows that are older than the retention of the dataset.

    This process has taken the table over. Raises what a commit raises, and ConflictError when
    another process took the table over.
    """
    began = time.monotonic()
    limit = limit_of(target, limits.now)
    if limit is None:
        return ActionOutcome(
            ROWS_ACTION, "the dataset keeps its rows, or does not have the column yet"
        )
    column, before = limit
    if limits.give_way():
        return ActionOutcome(ROWS_ACTION, "it gave way", whole=False)
    with target.between_applies(PATIENCE_SECONDS) as free:
        if not free:
            why = f"an apply was at work for longer than {PATIENCE_SECONDS:.0f} s"
            return ActionOutcome(ROWS_ACTION, why, whole=False)
        try:
            files, rows = _expired_rows(target, column, before)
        except ConflictError as error:
            # Another commit, or a new owner: then this raises.
            target.reload()
            return ActionOutcome(ROWS_ACTION, error.message, whole=False)
    gone = sum(file.rows for file in files)
    if not gone and not rows:
        return ActionOutcome(ROWS_ACTION, f"no row is older than {_shown(before)}")
    return ActionOutcome(
        ROWS_ACTION,
        f"{gone:,} rows went with {len(files):,} files and {rows:,} from others: "
        f"`{column}` before {_shown(before)}",
        commits=bool(files) + bool(rows),
        files_removed=len(files),
        freed_bytes=sum(file.size_bytes for file in files),
        seconds=round(time.monotonic() - began, 3),
    )


def _expired_rows(
    target: DatasetTable, column: str, before: datetime
) -> tuple[Sequence[DataFile], int]:
    """Commit the expiry; return the files that went whole and the number of other rows."""
    aged_rows = aged(target, column, before)
    if aged_rows.whole:
        rows = sum(file.rows for file in aged_rows.whole)
        following = _after(target, column, before, aged_rows.whole)
        target.commit(
            copy=following,
            remove=aged_rows.whole,
            summary={"polynya.step": ROWS_ACTION, "polynya.expired-rows": str(rows)},
        )
    if not aged_rows.partly:
        return aged_rows.whole, 0
    places = _places(target, column, before)
    if places.num_rows:
        target.commit(
            copy=_after(target, column, before, (), places.num_rows),
            removed=places,
            summary={"polynya.step": ROWS_ACTION, "polynya.expired-rows": str(places.num_rows)},
        )
    return aged_rows.whole, places.num_rows


def _places(target: DatasetTable, column: str, before: datetime) -> pa.Table:
    """Where rows are that have expired."""
    shape = replace(target.stored_shape(), expired=(column, before))
    snapshot = target.state.snapshot
    assert snapshot is not None, "files were found in it"
    rows = target.spark.sql(
        "SELECT hdr__partition AS part, _file AS file_path, _pos AS pos "
        f"FROM {target.table.at(snapshot)} WHERE {within(*_EXPIRED)} AND {shape.is_expired()}"
    ).toArrow()
    return rows.select(PLACES.names).cast(PLACES)


def _after(
    target: DatasetTable,
    column: str,
    before: datetime,
    whole: Sequence[DataFile],
    rows: int = 0,
) -> CopyState:
    """The state after rows have left, which its books count where each event is a row."""
    copy = target.state.copy
    totals = dict(copy.books.totals)
    count = rows + sum(file.rows for file in whole)
    totals["rows_expired"] = totals.get("rows_expired", 0) + count
    return replace(
        copy,
        books=replace(copy.books, totals=totals),
        expired={"column": column, "before": before.isoformat()},
    )


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


CHANGES_ACTION: Final[ActionName] = "expire_changes"


@span("expire changes")
def expire_changes(target: DatasetTable, limits: ActionLimits) -> ActionOutcome:
    """Remove the files of applied events that are older than `changes_retention`.

    This process has taken the table over. Raises what a commit raises, and ConflictError when
    another process took the table over.
    """
    began = time.monotonic()
    if target.state.apply.retaining is None:
        return ActionOutcome(CHANGES_ACTION, "no applied events are kept")
    if limits.give_way():
        return ActionOutcome(CHANGES_ACTION, "it gave way", whole=False)
    with target.between_applies(PATIENCE_SECONDS) as free:
        if not free:
            why = f"an apply was at work for longer than {PATIENCE_SECONDS:.0f} s"
            return ActionOutcome(CHANGES_ACTION, why, whole=False)
        try:
            gone = _expired_changes(target, limits)
        except ConflictError as error:
            # Another commit, or a new owner: then this raises.
            target.reload()
            return ActionOutcome(CHANGES_ACTION, error.message, whole=False)
    if gone is None:
        return ActionOutcome(CHANGES_ACTION, "no file has only events that are old enough")
    rows = sum(file.rows for file in gone.files)
    return ActionOutcome(
        CHANGES_ACTION,
        f"{rows:,} events went with {len(gone.files):,} files, applied up to {gone.state.since}",
        commits=1,
        files_removed=len(gone.files),
        freed_bytes=sum(file.size_bytes for file in gone.files),
        seconds=round(time.monotonic() - began, 3),
    )


def _expired_changes(target: DatasetTable, limits: ActionLimits) -> ExpiredEvents | None:
    """Commit the expiry; what has gone, None for nothing."""
    snapshot, state = target.state.snapshot, target.state.apply
    if snapshot is None or state.retaining is None:
        return None
    retained = retention.before(target, target.stored_shape(), limits.now)
    gone = retention.expired(target, snapshot, retained)
    if gone is None:
        return None
    rows = sum(file.rows for file in gone.files)
    target.commit(
        apply=replace(state, retaining=gone.state),
        remove=gone.files,
        summary={"polynya.step": CHANGES_ACTION, "polynya.expired-rows": str(rows)},
    )
    return gone
