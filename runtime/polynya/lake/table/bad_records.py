"""Datasets that may not go on past a bad record: suspend them, or stop their task."""

from __future__ import annotations

from datetime import datetime

from polynya.formats.batch import WHOLE_FILE
from polynya.lake.fold.sql import within
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.copy_state import Suspension
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.suspension import suspend
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.errors import OperationError, TaskStoppedError

#: What `polynya dataset resume --accept` lets the next batch quarantine once.
CAUSE = "bad_record"


def refuse_bad_records(target: DatasetTable, derived: DataFrame, now: datetime) -> None:
    """Raise for the first bad record of a batch, unless the dataset quarantines such records.

    Raises SuspendedError, after a commit that says so, or TaskStoppedError.
    """
    policy = target.dataset.policies.on_bad_record
    if policy == "quarantine" or CAUSE in target.state.copy.decisions.accepted:
        return
    rejected = derived.where(within(Partition.QUARANTINE))
    row = rejected.selectExpr(f"{h.QUARANTINE}.*").orderBy("file", "offset").first()
    if row is None:
        return
    place = row["file"]
    if row["offset"] != WHOLE_FILE:
        # Counted from 1, as `polynya quarantine list` does.
        place += f", record {row['offset'] + 1}"
    if policy == "suspend":
        reason = f"{row['rule']}: {row['error']}"
        raise suspend(target, Suspension(CAUSE, reason, place, now.isoformat()))
    raise _stopped(target, place, f"{row['rule']}: {row['error']}")


def _stopped(target: DatasetTable, place: str, reason: str) -> OperationError:
    dataset = target.dataset
    return TaskStoppedError(
        "POLYNYA-LAKE-018",
        f"{dataset.relations.current}: {reason}, and `on_bad_record` is `stop`",
        where=place,
        state="nothing of this batch was copied; its files stay where they are",
        fix="fix the file, or change `on_bad_record` of the dataset, and run again",
    )
