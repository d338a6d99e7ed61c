"""Replay: reread quarantined records with today's settings, as if they had been valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.inventory import ProjectTable
from polynya.formats.base import ReadBatch, RereadRequest
from polynya.formats.batch import WHOLE_FILE, Rejected
from polynya.formats.registry import format_of
from polynya.formats.values.arrow import no_rows
from polynya.lake.copy.copy import CopyResult
from polynya.lake.copy.masks import WITHHELD
from polynya.lake.table.suspension import Replayed, quarantined
from polynya.model.config.derived import DerivedTask
from polynya.model.config.sources import dataset_of_source, datasets_of_sources
from polynya.model.error_catalogue.configuration import RECORD_WITHOUT_TEXT
from polynya.model.error_catalogue.derived import QUERY_ROW_NOT_REPLAYABLE
from polynya.model.error_catalogue.operation import EXTRACT_RECORD_NOT_REPLAYABLE
from polynya.model.formats import rules_of


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What became of the replayed records. The next run rereads `files` as a whole."""

    records: int
    copied: int
    quarantined: int
    files: tuple[str, ...]


def replay(
    context: EngineContext, entry: ProjectTable, identifiers: Sequence[str] | None
) -> ReplayResult:
    """Replay the chosen records of one table (default: all), in one commit per table."""
    if isinstance(entry.task, DerivedTask):
        raise QUERY_ROW_NOT_REPLAYABLE(where=f"task {entry.task.name}", relation=entry.name)
    if entry.dataset.landing.extracts is not None:
        raise EXTRACT_RECORD_NOT_REPLAYABLE(where=f"task {entry.task.name}", relation=entry.name)
    working = WorkingDataset.existing(context, entry.dataset)
    working.table.take_over()
    records, replayed = _chosen(working, identifiers)
    if any(record.raw == WITHHELD and record.offset != WHOLE_FILE for record in records):
        raise RECORD_WITHOUT_TEXT(where=f"task {entry.task.name}", dataset=entry.name)
    groups = _groups(entry, {record.file for record in records})
    results: list[CopyResult] = []
    whole: list[str] = []
    for files in groups:
        chosen = records
        if len(groups) > 1:
            chosen, replayed = _chosen(working, identifiers, files)
        batch = _reread(
            working, entry, [record for record in chosen if record.offset != WHOLE_FILE]
        )
        results.append(_copied(working, entry, batch, replayed))
        whole += replayed.files
    return ReplayResult(
        len(records),
        sum(result.rows_out for result in results),
        sum(result.rows_quarantined for result in results),
        tuple(whole),
    )


def _chosen(
    working: WorkingDataset, identifiers: Sequence[str] | None, files: set[str] | None = None
) -> tuple[list[Rejected], Replayed]:
    table = working.table
    assert table.state.snapshot is not None
    return quarantined(
        working.context.spark, table.table, table.state.snapshot, identifiers, files=files
    )


def _groups(entry: ProjectTable, files: set[str]) -> list[set[str]]:
    """The files whose records one batch can hold, in order."""
    if not files or entry.is_ledger:
        return [files] if files else []
    return format_of(entry.task).reread_groups(files, entry.dataset)


def _reread(working: WorkingDataset, entry: ProjectTable, records: Sequence[Rejected]) -> ReadBatch:
    tables = {source: table.known_table for source, table in _tables_of(working, entry).items()}
    if not tables and not records:
        # Whole files of no table: the next run rereads them.
        return ReadBatch({}, no_rows({}, ()))
    request = RereadRequest(working.context.landing, records, tables)
    return format_of(entry.task).reread(request)


def _tables_of(working: WorkingDataset, entry: ProjectTable) -> Mapping[str, WorkingDataset]:
    """By source, the tables that the records of an entry may belong to."""
    if not entry.is_ledger:
        return {working.known_table.source: working}
    if not rules_of(entry.dataset.landing.format).shares_files:
        return {}
    routes, _ = datasets_of_sources(entry.task, working.table.state.copy.membership.members)
    return {
        source: WorkingDataset.open(working.context, dataset) for source, dataset in routes.items()
    }


def _copied(
    working: WorkingDataset, entry: ProjectTable, batch: ReadBatch, replayed: Replayed
) -> CopyResult:
    """Copy what was read: records of a shared file may belong to any dataset of the task.

    Other tables are written first: after a crash in between, a replay delivers those events once
    more, and the fold collapses them.
    """
    own, copied = batch.unrouted, 0
    for source, part in batch.datasets.items():
        if source == working.known_table.source:
            own = part
            continue
        dataset = dataset_of_source(entry.task, source)
        copied += WorkingDataset.open(working.context, dataset).copy(part).rows_out
    assert own is not None, "there is a batch for the table, or one for what has none"
    result = working.copy(own, replayed=replayed)
    return replace(result, rows_out=result.rows_out + copied)
