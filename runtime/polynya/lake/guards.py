"""What a table refuses, whoever writes: rows of another task, rows with other keys."""

from __future__ import annotations

from polynya.lake.dataset import DatasetTable
from polynya.landing.batch import DatasetBatch
from polynya.model.errors import OperationError


def refuse_second_task(target: DatasetTable) -> None:
    """Two captures may hold tables of one name; only reading them shows it."""
    owner, task = target.state.copy.task, target.dataset.task
    if owner is not None and owner != task:
        raise OperationError(
            "POLYNYA-LAKE-009",
            f"{target.table.name} is filled by the task {owner}, and {task} wants to fill it too",
            where=target.table.name,
            state="nothing of this batch was copied; the table is as it was",
            fix=f"give {task} a `prefix` or another `schema`, or the dataset another `name`",
        )


def agreed_keys(target: DatasetTable, batch: DatasetBatch) -> tuple[str, ...]:
    """Keys of the batch; they may not differ from those that the table was built with."""
    known = tuple(target.state.copy.keys)
    keys = batch.keys or known
    if target.state.copy.totals.get("rows_out") and known != keys:
        raise OperationError(
            "POLYNYA-LAKE-010",
            f"the keys of {target.dataset.name} were {list(known)} and now are {list(keys)}",
            where=target.table.name,
            state="nothing of this batch was copied; the table is as it was",
            fix="set the old keys again, or give the dataset a new name to build a new table",
        )
    return keys
