"""Suspend and resume a dataset, refuse bad records, and find quarantined records for a replay.

A suspension and its end are each one commit of the dataset's state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from polynya.formats.batch import UNPARSED, WHOLE_FILE, DatasetBatch, Rejected
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.spark.api import SparkSession
from polynya.lake.table.books import discounted
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState, Decisions, Suspension
from polynya.model import headers as h
from polynya.model.errors import OperationError, SuspendedError, TaskStoppedError
from polynya.model.headers import Partition

#: What `polynya dataset resume --accept` lets the next batch quarantine once.
CAUSE = "bad_record"

#: By cause, what to do where that is more than a word.
_FIXES: Final = {
    "change_key": "{resume} with `--accept ignore` if the keys of the table still tell all rows "
    "apart; otherwise give the dataset another `name`, with `keys`, which builds a new table",
    "restart_log": "{resume} with `--accept propagate` if the log began again (failover, reset, "
    "restore): what follows then comes after all that was before; `--accept ignore` if it did not",
}


def suspend(
    target: DatasetTable, suspension: Suspension, *, called: str | None = None
) -> SuspendedError:
    """Commit a suspension; the error to raise. `called`: a new name of the source table."""
    target.take_over()
    before = target.state.copy
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
        raise OperationError(
            "POLYNYA-LAKE-019",
            f"{target.table.name} is not suspended",
            where=target.table.name,
            state="nothing was changed",
            fix="`polynya status` shows which datasets are",
        )
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
    return SuspendedError(
        "POLYNYA-LAKE-017",
        f"{dataset.relations.current} is suspended since {suspension.since[:19]}Z: "
        f"{suspension.reason}",
        where=suspension.where,
        state="what was copied before is applied and can be queried; its later files are not read",
        fix=_FIXES.get(suspension.cause, "decide, then {resume}").format(
            resume=f"`polynya dataset resume {dataset.task} {dataset.name}`"
        ),
    )


class BadRecordError(Exception):
    """A batch holds a bad record, and its dataset does not quarantine such records.

    Nothing was committed. Who can copy what the files before `file` hold does that first; then
    `held_at` says what becomes of the dataset.
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
    bad = [(order.get(one.file, 0), one.offset, one) for one in batch.rejected]
    if bad:
        index, _, first = min(bad, key=itemgetter(0, 1))
        if index:
            refuse_bad_records(target, lambda: asdict(first), now)


def held_at(target: DatasetTable, found: BadRecordError) -> OperationError:
    """What becomes of a dataset with a bad record, as its policy says; the error to raise.

    SuspendedError, after a commit that says so, or TaskStoppedError.
    """
    if target.dataset.policies.on_bad_record == "stop":
        return _stopped(target, found.place, found.reason)
    when = found.now.isoformat()
    return suspend(target, Suspension(CAUSE, found.reason, found.place, when))


def _stopped(target: DatasetTable, place: str, reason: str) -> OperationError:
    dataset = target.dataset
    return TaskStoppedError(
        "POLYNYA-LAKE-018",
        f"{dataset.relations.current}: {reason}, and `on_bad_record` is `stop`",
        where=place,
        state="the files before this one were copied; it and later ones stay where they are",
        fix="fix the file, or change `on_bad_record` of the dataset, and run again",
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
    found = rows.orderBy("file", "offset").toArrow()
    records = [
        Rejected(row["file"], row["offset"], row["rule"], row["error"], row["raw"] or b"")
        for row in found.select(["file", "offset", "rule", "error", "raw"]).to_pylist()
    ]
    whole = tuple(record.file for record in records if record.offset == WHOLE_FILE)
    unparsed = sum(one.rule in UNPARSED for one in records)
    return records, Replayed(found.select(PLACES.names), whole, unparsed)
