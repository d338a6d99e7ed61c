"""The previews of a project, or of one file for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from polynya.engine.commands.preview import preview_of
from polynya.engine.commands.preview_file import FileConsumer, preview_file
from polynya.engine.commands.preview_fold import DatasetPreview
from polynya.engine.commands.preview_messages import (
    OpenSource,
    lost_in_words,
    source_opener,
    with_small_batches,
)
from polynya.engine.commands.preview_records import (
    IsWanted,
    NextRecords,
    PreviewReader,
    PreviewTable,
)
from polynya.formats.batch import BatchLimits
from polynya.lake.copy.values import Session
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.derived import DerivedTask
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import PolynyaError
from polynya.model.formats import rules_of
from polynya.model.loader import LoadedProject
from polynya.model.names import Location
from polynya.store.clock import SystemClock
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.store.places import store_at
from polynya.streams.direct import DirectReader, streams_of

#: Records read of a dataset to infer its types, unless more are shown.
RECORDS_READ: Final = 10_000


def previews(
    project: LoadedProject,
    wanted: IsWanted,
    session: Session,
    *,
    limit: int,
    file: Path | None = None,
    may_read: Callable[[StorageTask], bool] = lambda _: True,
    opens: OpenSource | None = None,
) -> Iterator[DatasetPreview | PolynyaError]:
    """Preview the wanted datasets of all tasks, task by task; an error where one cannot be read.

    `limit` is how many records, rows and refusals are shown; `session` is started where
    something takes SQL. With a `file` it is that one for the
    dataset that reads it; `may_read` selects the tasks that discover their tables. `opens`
    opens the sources of tables that read their streams themselves, by default as settings say.

    Raises ConfigError when no task reads the file, and what the catalog raises.
    """
    target = project.target
    catalog = python_catalog(target) if has_tables(target) else None
    reader = PreviewReader(landing_zone(project), catalog, BatchLimits(), wanted)
    tasks = project.tasks
    if file is not None:
        landed = preview_file(_readers(project, wanted, may_read), file, target.landing)
        chosen = landed.reader.dataset
        reader = replace(reader, landing=landed.store, only=landed.files)
        if chosen is not None:
            reader = replace(reader, wanted=lambda _, dataset: dataset.name == chosen.name)
        tasks = (landed.task,)
    for task in tasks:
        if isinstance(task, DerivedTask):
            # Nothing lands for it.
            continue
        if isinstance(task, DirectTask):
            yield from _direct(
                reader,
                task,
                opens or source_opener(session, target.aws, SystemClock()),
                session,
                limit,
            )
            continue
        most = min(task.batch.max_rows, max(RECORDS_READ, limit))
        limits = BatchLimits(most, task.batch.max_bytes)
        try:
            for records in replace(reader, limits=limits).next_records(task):
                seen = preview_of(records, session, limit)
                yield replace(seen, notes=(*seen.notes, *_advice(reader.landing, records)))
        except PolynyaError as error:
            yield error


def _advice(landing: ObjectStore, records: NextRecords) -> list[str]:
    """Which other settings would fit the files of which records are rejected."""
    if records.batch is None or not records.batch.rejected or records.is_rest:
        return []
    # Start-up time: DuckDB.
    from polynya.proposal.misfits import advice_of

    return advice_of(landing, records.batch, records.table.dataset)


def _direct(
    reader: PreviewReader, task: DirectTask, opens: OpenSource, session: Session, limit: int
) -> Iterator[DatasetPreview | PolynyaError]:
    """Preview a table that reads its stream itself."""
    for dataset in (resolved(task, dataset) for dataset in task.datasets):
        if not reader.wanted(task, dataset):
            continue
        try:
            records = direct_records(
                task, reader.preview_table(dataset), opens, limit, SystemClock().now()
            )
            yield preview_of(records, session, limit)
        except PolynyaError as error:
            yield error


def direct_records(
    task: DirectTask, table: PreviewTable, opens: OpenSource, limit: int, now: datetime
) -> NextRecords:
    """Read what comes after the position of the table, or where it would begin.

    `limit` is how many records shall be shown. Raises what sources and decoders raise, and
    OperationError where a run would refuse the position.
    """
    if table.copy.reloading is not None:
        note = "a reload is under way, and the stream is left to it"
        return NextRecords(task, table, None, notes=(note,))
    small_task = task.model_copy(update={"reads": with_small_batches(task.reads, limit)})
    source = opens(small_task.reads)
    reader = DirectReader(small_task, source)
    position = table.copy.position.stream
    reader.refuse_other(position)
    streams = streams_of(small_task, source, position)
    if not streams.taken and streams.refused is not None:
        raise streams.refused
    notes = [] if streams.refused is None else [str(streams.refused)]
    wanted = reader.decide(streams.taken, position, once=True)
    notes += lost_in_words(wanted.next.lost)
    if not wanted.next.records:
        return NextRecords(task, table, None, notes=tuple(notes))
    read = reader.read(wanted, table.table, now)
    behind = f"{read.behind:,} more messages are behind these" if read.behind else ""
    return NextRecords(task, table, read.batch, 1, notes=(*notes, *filter(None, (behind,))))


def landing_zone(project: LoadedProject) -> ObjectStore:
    """The landing zone of a project, to be read."""
    landing: Location = project.target.landing
    # A folder that is not there is not made: a preview writes nothing.
    if isinstance(landing, Path):
        return LocalObjectStore(landing)
    return store_at(landing, project.target.aws)


def _readers(
    project: LoadedProject, wanted: IsWanted, may_read: Callable[[StorageTask], bool]
) -> list[FileConsumer]:
    """Who may read a file: declared datasets, and tasks that find their tables."""
    consumers = []
    for task in project.tasks:
        if isinstance(task, DirectTask | DerivedTask):
            continue
        if rules_of(task.landing.format).finds_tables:
            consumers += [FileConsumer(task)] if may_read(task) else []
        else:
            datasets = (resolved(task, dataset) for dataset in task.datasets)
            consumers += [
                FileConsumer(task, dataset) for dataset in datasets if wanted(task, dataset)
            ]
    return consumers
