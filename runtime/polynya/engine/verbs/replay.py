"""Read quarantined records again, with today's settings, as if they had been good at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from polynya.engine.plan.inventory import Entry
from polynya.engine.tasks.delivered import delivered
from polynya.engine.tasks.members import as_it_is, scope_of
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.formats.batch import WHOLE_FILE, DatasetBatch, Rejected
from polynya.formats.files.discovery import glob_pattern
from polynya.formats.files.folders import NO_FOLDERS, unrouted
from polynya.formats.replay import reparse_all, reparse_debezium_all
from polynya.lake.copy.copy import CopyResult
from polynya.lake.table.replayed import Replayed, quarantined
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import DISCOVERING
from polynya.model.config.sources import dataset_of_source, datasets_of_sources
from polynya.model.datatypes import DataType
from polynya.model.errors import OperationError

#: (records, columns so far) → the batch that they make
Reread: TypeAlias = Callable[[Sequence[Rejected], Mapping[str, DataType]], DatasetBatch]


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What became of the records that were read again. The next run reads `files` again."""

    records: int
    copied: int
    quarantined: int
    files: tuple[str, ...]


def replay(context: EngineContext, entry: Entry, identifiers: Sequence[str] | None) -> ReplayResult:
    """Read the chosen records of one table again (all without a choice); a commit a table."""
    if entry.dataset.landing.extracts is not None:
        raise _of_an_extract(entry.dataset)
    working = WorkingDataset.existing(context, entry.dataset)
    working.table.take_over()
    records, replayed = _chosen(working, identifiers)
    if not records:
        return ReplayResult(0, 0, 0, ())
    if entry.task.landing.format != "debezium":
        parts = _parts(working, entry, {record.file for record in records})
        return _replay_parts(working, identifiers, len(records), parts)
    result = _replay_capture(working, entry, _lines(records), replayed)
    return ReplayResult(len(records), result.rows_out, result.rows_quarantined, replayed.files)


def _chosen(
    working: WorkingDataset, identifiers: Sequence[str] | None, files: set[str] | None = None
) -> tuple[list[Rejected], Replayed]:
    table = working.table
    assert table.state.snapshot is not None
    return quarantined(
        working.context.spark, table.table, table.state.snapshot, identifiers, files=files
    )


def _of_an_extract(dataset: ResolvedDataset) -> OperationError:
    return OperationError(
        "POLYNYA-QUA-002",
        f"records of {dataset.relations.current} belong to full extracts, which are compared "
        "whole: one of them alone cannot be read again",
        where=f"task {dataset.task}",
        state="nothing was changed",
        fix="land a mended extract under a later name; it holds the record",
    )


def _parts(working: WorkingDataset, entry: Entry, files: set[str]) -> list[tuple[set[str], Reread]]:
    """Files whose records can be read as one batch, and how; in the order to read them."""
    task, dataset = entry.task, entry.dataset
    if entry.is_ledger:
        # Nothing but whole files: the next run looks at them again.
        return [(files, lambda _, __: unrouted(NO_FOLDERS, {}))]
    if task.landing.format in DISCOVERING:
        form = delivered(task)
        landing, keys = working.context.landing, working.keys
        kinds = {form.kind_of(file) for file in files}

        def again(records: Sequence[Rejected], known: Mapping[str, DataType]) -> DatasetBatch:
            return form.reparse(landing, dataset, records, known, keys)

        return [({f for f in files if form.kind_of(f) == kind}, again) for kind in sorted(kinds)]
    # Records of the first full load may lack a sequence: they are read apart, and first.
    loaded = {file for file in files if _is_load(dataset, file)}
    return [
        (loaded, lambda records, known: reparse_all(records, dataset, known, load=True)),
        (files - loaded, lambda records, known: reparse_all(records, dataset, known)),
    ]


def _replay_parts(
    working: WorkingDataset,
    identifiers: Sequence[str] | None,
    count: int,
    parts: Sequence[tuple[set[str], Reread]],
) -> ReplayResult:
    results: list[CopyResult] = []
    whole: list[str] = []
    for files, reread in parts:
        if not files:
            continue
        chosen, replayed = _chosen(working, identifiers, files)
        batch = reread(_lines(chosen), working.columns)
        results.append(working.copy(batch, replayed=replayed))
        whole += replayed.files
    return ReplayResult(
        count,
        sum(result.rows_out for result in results),
        sum(result.rows_quarantined for result in results),
        tuple(whole),
    )


def _lines(records: Sequence[Rejected]) -> list[Rejected]:
    return [record for record in records if record.offset != WHOLE_FILE]


def _is_load(dataset: ResolvedDataset, file: str) -> bool:
    if dataset.landing.initial_load is None:
        return False
    path = file.removeprefix(f"{dataset.landing.folder}/")
    return glob_pattern(dataset.landing.initial_load).fullmatch(path) is not None


def _tables_of(working: WorkingDataset, entry: Entry) -> dict[str, WorkingDataset]:
    """By source, the tables that the records of an entry may belong to."""
    if not entry.is_ledger and entry.dataset.landing.source is not None:
        return {entry.dataset.landing.source: working}
    routes, _ = datasets_of_sources(entry.task, working.table.state.copy.membership.members)
    return {
        source: WorkingDataset.open(working.context, dataset) for source, dataset in routes.items()
    }


def _replay_capture(
    working: WorkingDataset, entry: Entry, lines: Sequence[Rejected], replayed: Replayed
) -> CopyResult:
    """Lines of a capture may belong to any dataset of the task once they can be read.

    Other tables are written first: after a crash in between, a replay delivers those events once
    more, and the fold collapses them.
    """
    tables = _tables_of(working, entry)
    known = {source: one.columns for source, one in tables.items()}
    keys = {source: one.keys for source, one in tables.items()}
    scope = as_it_is(scope_of(entry.task), {source: one.table for source, one in tables.items()})
    batch = reparse_debezium_all(lines, scope, known, keys)
    own = batch.unrouted
    copied = 0
    for name, part in batch.datasets.items():
        dataset = dataset_of_source(entry.task, name)
        if dataset.relations.internal_table == entry.dataset.relations.internal_table:
            own = part
            continue
        copied += WorkingDataset.open(working.context, dataset).copy(part).rows_out
    result = working.copy(own, replayed=replayed)
    return replace(result, rows_out=result.rows_out + copied)
