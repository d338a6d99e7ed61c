"""Checks before the first batch: the table must belong to this task and have the same keys."""

from __future__ import annotations

from polynya.formats.batch import AnyBatch
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import contradicted, format_before
from polynya.model.error_catalogue.lake import (
    FORMAT_VERSION_LOWERED,
    KEYS_CHANGED,
    ORDER_CHANGED,
    SECOND_TASK,
)
from polynya.model.error_catalogue.streams import FILLED_DIRECTLY, FILLED_FROM_BATCHES


def enter(target: DatasetTable) -> None:
    """Take the table over for batches of its dataset: what comes before the first one is written.

    Raises OperationError for a dataset of another task or in another order than the rows that the
    table holds, and ConflictError when another owner was faster.
    """
    refuse_second_task(target)
    refuse_other_order(target)
    refuse_older_format(target)
    target.take_over()


def refuse_second_task(target: DatasetTable) -> None:
    """Two captures may hold tables of one name; only reading them shows it."""
    owner, task = target.state.copy.membership.task, target.dataset.task
    if owner is not None and owner != task:
        raise SECOND_TASK(where=target.table.name, table=target.table.name, owner=owner, task=task)


def refuse_other_order(target: DatasetTable) -> None:
    """Rows of two orders cannot be compared, and no row would look wrong."""
    before = target.state.copy.settings
    changed = contradicted(target.dataset, before) if has_rows(target) else []
    if changed:
        name = changed[0]
        raise ORDER_CHANGED(
            where=target.table.name,
            setting=name,
            dataset=target.dataset.name,
            # A table of an earlier version has no elements that were replaced.
            old=before.get(name),
        )


def refuse_older_format(target: DatasetTable) -> None:
    """Iceberg has no way back, and deletes of a later format mean nothing to an older one."""
    before = format_before(target.state.copy.settings)
    wanted = target.dataset.kept.format_version
    if wanted < before:
        raise FORMAT_VERSION_LOWERED(
            where=target.table.name, dataset=target.dataset.name, old=before, new=wanted
        )


def has_rows(target: DatasetTable) -> bool:
    """Whether any record was ever written."""
    return bool(target.state.copy.books.totals.get("rows_out"))


def agreed_keys(target: DatasetTable, batch: AnyBatch) -> tuple[str, ...]:
    """Keys of the batch; they may not differ from those that the table was built with."""
    stored_keys = target.known_keys()
    keys = batch.keys or stored_keys
    if has_rows(target) and stored_keys != keys:
        raise KEYS_CHANGED(
            where=target.table.name,
            dataset=target.dataset.name,
            old=list(stored_keys),
            new=list(keys),
        )
    return keys


def refuse_landed(target: DatasetTable) -> None:
    """A table that was filled from landed batches does not know where they end in the source."""
    position = target.state.copy.position
    if position.stream is None and (position.files or has_rows(target)):
        raise FILLED_FROM_BATCHES(where=f"task {target.dataset.task}", table=target.table.name)


def refuse_direct(target: DatasetTable) -> None:
    """A table that has read its stream itself does not know which landed batches continue there."""
    if target.state.copy.position.stream is not None:
        raise FILLED_DIRECTLY(where=f"task {target.dataset.task}", table=target.table.name)
