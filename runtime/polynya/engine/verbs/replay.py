"""Read quarantined records again, with today's settings, as if they had been good at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from polynya.engine.plan.inventory import Entry
from polynya.engine.tasks.delivered import delivered
from polynya.engine.tasks.members import as_it_is, scope_of
from polynya.engine.work.context import EngineContext
from polynya.engine.work.steps import copy_step
from polynya.formats.batch import WHOLE_FILE, DatasetBatch, Rejected
from polynya.formats.files.discovery import glob_pattern
from polynya.formats.files.folders import NO_FOLDERS, unrouted
from polynya.formats.replay import reparse_all, reparse_debezium_all
from polynya.lake.copy.copy import CopyResult
from polynya.lake.table.dataset import DatasetTable
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
    target = DatasetTable.existing(context.spark, entry.dataset, context.owner)
    target.take_over()
    assert target.state.snapshot is not None
    records, replayed = quarantined(context.spark, target.table, target.state.snapshot, identifiers)
    if not records:
        return ReplayResult(0, 0, 0, ())
    if entry.task.landing.format != "debezium":
        parts = _parts(context, entry, target, {record.file for record in records})
        return _replay_parts(context, target, identifiers, len(records), parts)
    result = _replay_capture(context, entry, target, _lines(records), replayed)
    return ReplayResult(len(records), result.rows_out, result.rows_quarantined, replayed.files)


def _of_an_extract(dataset: ResolvedDataset) -> OperationError:
    return OperationError(
        "POLYNYA-QUA-002",
        f"records of {dataset.relations.current} belong to full extracts, which are compared "
        "whole: one of them alone cannot be read again",
        where=f"task {dataset.task}",
        state="nothing was changed",
        fix="land a mended extract under a later name; it holds the record",
    )


def _parts(
    context: EngineContext, entry: Entry, target: DatasetTable, files: set[str]
) -> list[tuple[set[str], Reread]]:
    """Files whose records can be read as one batch, and how; in the order to read them."""
    task, dataset = entry.task, entry.dataset
    if entry.is_ledger:
        # Nothing but whole files: the next run looks at them again.
        return [(files, lambda _, __: unrouted(NO_FOLDERS, {}))]
    if task.landing.format in DISCOVERING:
        form = delivered(task)
        keys = tuple(target.state.copy.keys)
        kinds = {form.kind_of(file) for file in files}

        def again(records: Sequence[Rejected], known: Mapping[str, DataType]) -> DatasetBatch:
            return form.reparse(context.landing, dataset, records, known, keys)

        return [({f for f in files if form.kind_of(f) == kind}, again) for kind in sorted(kinds)]
    # Records of the first full load may lack a sequence: they are read apart, and first.
    loaded = {file for file in files if _is_load(dataset, file)}
    return [
        (loaded, lambda records, known: reparse_all(records, dataset, known, load=True)),
        (files - loaded, lambda records, known: reparse_all(records, dataset, known)),
    ]


def _replay_parts(
    context: EngineContext,
    target: DatasetTable,
    identifiers: Sequence[str] | None,
    count: int,
    parts: Sequence[tuple[set[str], Reread]],
) -> ReplayResult:
    results: list[CopyResult] = []
    whole: list[str] = []
    for files, reread in parts:
        if not files:
            continue
        snapshot = target.state.snapshot
        assert snapshot is not None
        chosen, replayed = quarantined(
            context.spark, target.table, snapshot, identifiers, files=files
        )
        batch = reread(_lines(chosen), target.known_schema())
        results.append(copy_step(context, target, batch, replayed=replayed))
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


def _tables_of(
    context: EngineContext, entry: Entry, target: DatasetTable
) -> dict[str, DatasetTable]:
    """By source, the tables that the records of an entry may belong to."""
    if not entry.is_ledger and entry.dataset.landing.source is not None:
        return {entry.dataset.landing.source: target}
    routes, _ = datasets_of_sources(entry.task, target.state.copy.members)
    return {
        source: DatasetTable.open(context.spark, dataset, context.owner)
        for source, dataset in routes.items()
    }


def _replay_capture(
    context: EngineContext,
    entry: Entry,
    target: DatasetTable,
    lines: Sequence[Rejected],
    replayed: Replayed,
) -> CopyResult:
    """Lines of a capture may belong to any dataset of the task once they can be read.

    Other tables are written first: after a crash in between, a replay delivers those events once
    more, and the fold collapses them.
    """
    targets = _tables_of(context, entry, target)
    known = {source: table.known_schema() for source, table in targets.items()}
    keys = {source: tuple(table.state.copy.keys) for source, table in targets.items()}
    batch = reparse_debezium_all(lines, as_it_is(scope_of(entry.task), targets), known, keys)
    own = batch.unrouted
    copied = 0
    for name, part in batch.datasets.items():
        dataset = dataset_of_source(entry.task, name)
        if dataset.relations.internal_table == entry.dataset.relations.internal_table:
            own = part
            continue
        other = DatasetTable.open(context.spark, dataset, context.owner)
        copied += copy_step(context, other, part).rows_out
    result = copy_step(context, target, own, replayed=replayed)
    return CopyResult(
        result.rows_in,
        result.rows_out + copied,
        result.rows_filtered,
        result.rows_quarantined,
        result.snapshot,
    )
