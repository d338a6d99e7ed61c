"""The copy state after a batch: position, columns, freshness. Its books are kept at the commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime

from polynya.formats.batch import Accounted, Facts, FileProgress
from polynya.formats.files.discovery import newest_only
from polynya.formats.files.ordered import still_told
from polynya.formats.files.read_files import ReadFiles
from polynya.formats.landed.batch import is_landed_batch
from polynya.formats.landed.reached import before_copy
from polynya.lake.fold.unsent import ignored_nulls
from polynya.lake.table.copy_state import CopyState, Position, SourceColumns
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.guards import has_rows
from polynya.model.config.recorded import recorded
from polynya.model.contract.headers import Partition
from polynya.model.contract.landed_position import Gone, Reached, after_copy, gone
from polynya.model.formats.registry import rules_of
from polynya.transform.named_columns import named_columns


def state_after(
    target: DatasetTable,
    batch: Accounted,
    keys: tuple[str, ...],
    *,
    now: datetime,
    live_files: Iterable[str] | None,
) -> CopyState:
    """State of a table whose next commit copies the batch; books and owner are set there.

    `live_files` are the landed files that still exist; the position forgets all others.
    """
    before, dataset = target.state.copy, target.dataset
    facts = batch.facts
    columns = _columns(before.columns, batch, facts, keys)
    named = named_after(target, batch)
    unsent = {*columns.unsent, *ignored_nulls(dataset)}
    called = batch.called or before.membership.called
    settings = recorded(dataset, before.settings, has_rows=has_rows(target))
    return replace(
        before.with_settings(settings),
        position=_position(target, batch, facts, live_files, now),
        columns=replace(columns, unsent=sorted(unsent), named=named),
        membership=replace(before.membership, task=dataset.task, called=called),
        decisions=replace(before.decisions, accepted={}),
    )


def named_after(target: DatasetTable, batch: Accounted) -> list[str] | None:
    """The columns whose names in the settings are taken as right once a batch is copied."""
    before = target.state.copy.columns.named
    if batch.met is not None and not batch.met:
        # Nothing could be read, so nothing was looked at.
        return before
    # Nobody looked at the names in tables of older versions; what they hold came by them.
    is_old = before is None and has_rows(target)
    of_load = batch.of_load and target.dataset.landing.extracts is None and not is_old
    named = (one.column for one in named_columns(target.dataset, of_load=of_load))
    return sorted({*(before or ()), *named})


def _columns(
    before: SourceColumns, batch: Accounted, facts: Facts, keys: tuple[str, ...]
) -> SourceColumns:
    of_source = batch.of_source
    return replace(
        before,
        schema={name: str(datatype) for name, datatype in batch.schema.items()},
        keys=list(keys),
        unsent=sorted({*before.unsent, *facts.unsent}),
        has_old_keys=before.has_old_keys or facts.has_old_keys,
        declared=before.declared if batch.declared is None else list(batch.declared),
        source=source_after(batch),
        key_names=before.key_names if of_source is None else [list(n) for n in of_source.key_names],
    )


def source_after(batch: Accounted) -> dict[str, str] | None:
    """The columns of the source, where they are not those of the table."""
    return None if batch.source is None else {n: str(kind) for n, kind in batch.source.items()}


def _position(
    target: DatasetTable,
    batch: Accounted,
    facts: Facts,
    live_files: Iterable[str] | None,
    now: datetime,
) -> Position:
    before = target.state.copy.position
    files = before.files
    if batch.stream is None:
        files = remembered(target, before.files, batch.files, live_files)
    stamp = facts.newest.astimezone(UTC).isoformat() if facts.newest else None
    seen = [t for t in (before.newest_event, stamp) if t]
    copied = [c for c in (before.copied_to, facts.copied_to) if c]
    return replace(
        before,
        files=files,
        newest_event=max(seen, key=datetime.fromisoformat) if seen else None,
        copied_to=max(copied) if copied else None,
        copied_at=now.isoformat(),
        pending_since=_pending_since(target, now),
        load_started=_load_started(target, facts, now),
        stream=batch.stream or before.stream,
        landed=_reached(before, batch),
        eras=before.eras if batch.of_source is None else list(batch.of_source.eras),
    )


def missing(before: Position, batch: Accounted) -> tuple[Gone, ...]:
    """Landed batches that were gone before a table with this position copied them."""
    span = batch.landed
    if span is None:
        return ()
    return gone(before_copy(before.landed, before.files, span.folder), span)


def _reached(before: Position, batch: Accounted) -> Reached | None:
    span = batch.landed
    if span is None:
        return before.landed
    known = before_copy(before.landed, before.files, span.folder)
    return after_copy(known, before.landed, span)


def remembered(
    target: DatasetTable,
    before: Mapping[str, FileProgress],
    now: Mapping[str, FileProgress],
    live_files: Iterable[str] | None,
) -> dict[str, FileProgress]:
    """The files whose progress is remembered: those that exist, the newest where that says all.

    `live_files` are the landed files that still exist, None where nobody has looked.
    """
    rules = rules_of(target.dataset.landing.format)
    if rules.in_order:
        return newest_only(before, now)
    live = live_files if live_files is None or isinstance(live_files, Set) else set(live_files)
    if rules.shares_files:
        return still_told(before, now, live, is_landed_batch)
    return ReadFiles.of(before).after(now, live)


def _load_started(target: DatasetTable, facts: Facts, now: datetime) -> str | None:
    """Start of the first full load: what the source says of it, else when we began to read it."""
    if target.state.copy.position.load_started is not None:
        return target.state.copy.position.load_started
    if not facts.loads:
        return None
    told = rules_of(target.dataset.landing.format).tells_load_time
    earliest = facts.loaded_from if told else None
    started: datetime = earliest.astimezone(UTC) if earliest is not None else now
    return started.isoformat()


def _pending_since(target: DatasetTable, now: datetime) -> str:
    pending = target.table.files(Partition.CHANGES, target.state.snapshot)
    since = target.state.copy.position.pending_since
    return since if pending and since else now.isoformat()
