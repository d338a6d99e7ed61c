"""Suspend and resume a dataset, refuse bad records, and find quarantined records for a replay.

A suspension and its end are each one commit of the dataset's state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, get_args

import pyarrow as pa

from polynya.formats.batch import UNPARSED, WHOLE_FILE, DatasetBatch, Rejected
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.spark.api import SparkSession
from polynya.lake.table.books import discounted
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState, DecidedChange, Decisions, Suspension
from polynya.model import headers as h
from polynya.model.config.evolution import ChangeKind
from polynya.model.error_catalogue.lake import (
    DATASET_SUSPENDED,
    NOT_SUSPENDED,
    TASK_STOPPED_BY_POLICY,
)
from polynya.model.errors import OperationError, SuspendedError
from polynya.model.headers import Partition

#: What `polynya dataset resume --accept` lets the next batch quarantine once.
CAUSE = "bad_record"

#: What to do about a suspension, by its cause, where the entry of the error does not suffice.
_FIX_BY_CAUSE: Final = {
    "change_key": "run {resume} with `--accept ignore` if the keys of the table still identify all "
    "rows; otherwise give the dataset another `name`, with `keys`, to build a new table",
    "restart_log": "run {resume} with `--accept propagate` if the log restarted (failover, reset, "
    "restore): later events then sort after all earlier ones; `--accept ignore` if it did not",
}


def suspend(
    target: DatasetTable, suspension: Suspension, *, called: str | None = None
) -> SuspendedError:
    """Commit a suspension; the error to raise. `called`: a new name of the source table."""
    target.take_over()
    before = target.state.copy
    if suspension.cause in get_args(ChangeKind):
        waits = DecidedChange(suspension.since, suspension.cause, suspension.reason, "suspend")
        before = before.with_shape_changes([waits])
    state = replace(
        before,
        decisions=replace(before.decisions, suspended=suspension),
        position=replace(before.position, behind=True),
        membership=replace(before.membership, called=called or before.membership.called),
    )
    target.commit_copy_state(state, "suspend")
    return suspended_error(target, suspension)


def resume(target: DatasetTable, accepted: Mapping[str, str]) -> Suspension:
    """Commit the end of a suspension and return it.

    `accepted` maps causes to the policy that the next batch may use for them. Raises OperationError
    when the dataset is not suspended.
    """
    target.take_over()
    suspension = target.state.copy.decisions.suspended
    if suspension is None:
        raise NOT_SUSPENDED(where=target.table.name, table=target.table.name)
    decisions = Decisions(suspended=None, accepted=dict(accepted))
    state = replace(target.state.copy, decisions=decisions)
    target.commit_copy_state(state, "resume")
    return suspension


def refuse_suspended(target: DatasetTable) -> None:
    """Raise SuspendedError for a dataset that is suspended."""
    suspension = target.state.copy.decisions.suspended
    if suspension is not None:
        raise suspended_error(target, suspension)


def suspended_error(target: DatasetTable, suspension: Suspension) -> SuspendedError:
    """What a run says of a suspended dataset."""
    dataset = target.dataset
    resume = f"`polynya dataset resume {dataset.task} {dataset.name}`"
    fix = _FIX_BY_CAUSE.get(suspension.cause)
    return DATASET_SUSPENDED(
        where=suspension.where,
        relation=dataset.relations.current,
        since=f"{suspension.since[:19]}Z",
        reason=suspension.reason,
        fix=fix and fix.format(resume=resume),
        resume=resume,
    )


class BadRecordError(Exception):
    """A batch holds a bad record, and its dataset does not quarantine such records.

    Nothing was committed. The caller copies the files before `file`, if there are any; then
    `held_at` decides what becomes of the dataset.
    """

    def __init__(self, file: str, place: str, reason: str, now: datetime) -> None:
        super().__init__(reason)
        self.file = file
        self.place = place
        self.reason = reason
        self.now = now


def refuse_bad_records(
    target: DatasetTable, first: Callable[[], Mapping[str, Any] | None], now: datetime
) -> None:
    """Raise BadRecordError for the first bad record of a batch, unless such are quarantined.

    `first` finds it, as its `hdr__quarantine`; None when there is none.
    """
    policy = target.dataset.policies.on_bad_record
    if policy == "quarantine" or CAUSE in target.state.copy.decisions.accepted:
        return
    record = first()
    if record is None:
        return
    place = record["file"]
    if record["offset"] != WHOLE_FILE:
        # Counted from 1, as `polynya quarantine list` does.
        place += f", record {record['offset'] + 1}"
    raise BadRecordError(record["file"], place, f"{record['rule']}: {record['error']}", now)


def refuse_later_file(target: DatasetTable, batch: DatasetBatch, now: datetime) -> None:
    """Raise BadRecordError for a record that could not be read, unless it is in the first file.

    Such records show before anything is compared with the table.
    """
    order = {path: index for index, path in enumerate(batch.files)}
    bad = [(order.get(record.file, 0), record.offset, record) for record in batch.rejected]
    if bad:
        index, _, first = min(bad, key=itemgetter(0, 1))
        if index:
            refuse_bad_records(target, lambda: asdict(first), now)


def held_at(target: DatasetTable, error: BadRecordError) -> OperationError:
    """What becomes of a dataset with a bad record, as its policy says; the error to raise.

    SuspendedError, after a commit that says so, or TaskStoppedError.
    """
    if target.dataset.policies.on_bad_record == "stop":
        return _stopped(target, error.place, error.reason)
    when = error.now.isoformat()
    return suspend(target, Suspension(CAUSE, error.reason, error.place, when))


def _stopped(target: DatasetTable, place: str, reason: str) -> OperationError:
    dataset = target.dataset
    return TASK_STOPPED_BY_POLICY(
        where=place,
        state="the files before this one were copied; it and later files stay where they are",
        fix="fix the file, or change `on_bad_record` of the dataset, and run again",
        subject=dataset.relations.current,
        reason=reason,
        policy="on_bad_record",
    )


@dataclass(frozen=True, slots=True)
class Replayed:
    """Rows of the quarantine that leave it.

    `places` has the columns `writing.PLACES`, one row a record. `files` are landed files that were
    quarantined whole: the position forgets them, so that the next run reads them again. `unparsed`
    of the records could not be parsed.
    """

    places: pa.Table
    files: tuple[str, ...] = ()
    unparsed: int = 0

    def discounted(self, state: CopyState) -> CopyState:
        """Take the records out of the counters; the batch that reads them counts them again."""
        position = state.position
        files = {path: done for path, done in position.files.items() if path not in self.files}
        state = replace(state, position=replace(position, files=files))
        return discounted(state, self.places.num_rows, unparsed=self.unparsed)


def quarantined(
    spark: SparkSession,
    table: IcebergTable,
    snapshot: int,
    identifiers: Sequence[str] | None,
    *,
    files: Collection[str] | None = None,
) -> tuple[list[Rejected], Replayed]:
    """Read quarantined records: all, or those with the given identifiers and out of these files."""
    rows = spark.sql(
        f"SELECT {h.QUARANTINE}.*, {h.PARTITION} AS part, _file AS file_path, _pos AS pos "
        f"FROM {table.at(snapshot)} WHERE {within(Partition.QUARANTINE)}"
    )
    if identifiers is not None:
        rows = rows.where(rows["id"].isin(list(identifiers)))
    if files is not None:
        rows = rows.where(rows["file"].isin(list(files)))
    rejected = rows.orderBy("file", "offset").toArrow()
    records = [
        Rejected(row["file"], row["offset"], row["rule"], row["error"], row["raw"] or b"")
        for row in rejected.select(["file", "offset", "rule", "error", "raw"]).to_pylist()
    ]
    whole = tuple(record.file for record in records if record.offset == WHOLE_FILE)
    unparsed = sum(record.rule in UNPARSED for record in records)
    return records, Replayed(rejected.select(PLACES.names), whole, unparsed)
