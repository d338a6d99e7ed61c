"""The copy state after a batch: position, columns, freshness. Its books are kept at the commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.fold.unsent import ignored_nulls
from polynya.lake.table.copy_state import CopyState, Position, SourceColumns
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import has_rows
from polynya.model.config.recorded import recorded
from polynya.model.contract.headers import Partition
from polynya.model.formats.registry import rules_of


def state_after(
    target: DatasetTable,
    batch: DatasetBatch,
    keys: tuple[str, ...],
    *,
    now: datetime,
    live_files: Iterable[str] | None,
) -> CopyState:
    """State of a table whose next commit copies the batch; books and owner are set there.

    `live_files` are the landed files that still exist; the position forgets all others.
    """
    before, dataset = target.state.copy, target.dataset
    columns = _columns(before.columns, batch, keys)
    unsent = {*columns.unsent, *ignored_nulls(dataset)}
    called = batch.called or before.membership.called
    return replace(
        before,
        position=_position(target, batch, live_files, now),
        columns=replace(columns, unsent=sorted(unsent)),
        membership=replace(before.membership, task=dataset.task, called=called),
        settings=recorded(dataset, before.settings, has_rows=has_rows(target)),
        decisions=replace(before.decisions, accepted={}),
    )


def _columns(before: SourceColumns, batch: DatasetBatch, keys: tuple[str, ...]) -> SourceColumns:
    return replace(
        before,
        schema={name: str(datatype) for name, datatype in batch.schema.items()},
        keys=list(keys),
        unsent=sorted({*before.unsent, *_unsent(batch)}),
        has_old_keys=before.has_old_keys or _carries(batch),
        declared=before.declared if batch.declared is None else list(batch.declared),
    )


def _position(
    target: DatasetTable, batch: DatasetBatch, live_files: Iterable[str] | None, now: datetime
) -> Position:
    before = target.state.copy.position
    files = {**before.files, **batch.files}
    if live_files is not None:
        live = {*live_files, *batch.files}
        files = {path: progress for path, progress in files.items() if path in live}
    newest = pc.max(batch.rows.column("__ts")).as_py()
    stamp = newest.astimezone(UTC).isoformat() if newest else None
    seen = [t for t in (before.newest_event, stamp) if t]
    copied = [c for c in (before.copied_to, pc.max(batch.rows.column("__ci")).as_py()) if c]
    return replace(
        before,
        files=files,
        newest_event=max(seen, key=datetime.fromisoformat) if seen else None,
        copied_to=max(copied) if copied else None,
        copied_at=now.isoformat(),
        pending_since=_pending_since(target, now),
        load_started=_load_started(target, batch, now),
    )


def _unsent(batch: DatasetBatch) -> set[str]:
    column = batch.rows.column("__unsent")
    if column.null_count == len(column):
        return set()
    return set(pc.unique(pc.list_flatten(column)).to_pylist())


def _carries(batch: DatasetBatch) -> bool:
    old, unsent = batch.rows.column("__old"), batch.rows.column("__unsent")
    return bool(pc.any(pc.and_(pc.is_valid(old), pc.is_valid(unsent))).as_py() or False)


def _load_started(target: DatasetTable, batch: DatasetBatch, now: datetime) -> str | None:
    """Start of the first full load: what the source says of it, else when we began to read it."""
    if target.state.copy.position.load_started is not None:
        return target.state.copy.position.load_started
    loads = batch.rows.filter(pc.equal(batch.rows.column("__op"), "L"))
    if loads.num_rows == 0:
        return None
    told = rules_of(target.dataset.landing.format).tells_load_time
    earliest = pc.min(loads.column("__ts")).as_py() if told else None
    started: datetime = earliest.astimezone(UTC) if earliest is not None else now
    return started.isoformat()


def _pending_since(target: DatasetTable, now: datetime) -> str:
    pending = target.table.files(Partition.CHANGES, target.state.snapshot)
    since = target.state.copy.position.pending_since
    return since if pending and since else now.isoformat()
