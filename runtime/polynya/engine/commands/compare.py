"""Compares the tables of a capture with the Current views that read its landing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from polynya.capture.compare.compare import (
    ComparedDatabase,
    ComparedTable,
    ComparisonResult,
    SourceMoment,
    TableComparison,
)
from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition
from polynya.capture.source import SourceDatabase, SourceTable
from polynya.engine.answers import Answers, stream_embedded
from polynya.engine.commands.captures import readers_of
from polynya.engine.inventory import ProjectTable, inventory
from polynya.lake.fold.live_views import columns_of
from polynya.lake.read import inspect
from polynya.lake.read.inspect import shape
from polynya.lake.read.query import Statement
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.lake.warehouse.tables import Tables
from polynya.model.config.capture import CaptureLanding, matches
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.capture import NOTHING_TO_COMPARE, TABLES_BEHIND_SOURCE
from polynya.model.loader import LoadedProject
from polynya.model.names import quote, quote_path
from polynya.model.types import DataType
from polynya.query.translate import NotEmbeddedError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

#: Seconds between two listings of landed batches at first...
_POLL_SECONDS: Final = 0.5
#: ...and later, after this many seconds.
_LATER_POLL_SECONDS: Final = 2.0
_FAST_POLLING_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A table that is not compared, and why; `fails`: it should have been."""

    table: str
    view: str | None
    why: str
    fails: bool = False


def compare_capture(
    project: LoadedProject,
    capture: CaptureLanding,
    answers: Answers,
    *,
    landing: ObjectStore,
    database: SourceDatabase,
    compared: ComparedDatabase,
    chosen: Callable[[str], bool],
    clock: Clock,
    patience: float,
) -> Iterator[ComparisonResult | NotCompared]:
    """Compare each table as of one moment of the source, one after the other.

    Args:
        project: with the tasks that read the landing.
        capture: the landing.
        answers: reads the views.
        landing: the landing zone.
        database: names the tables.
        compared: the same database, for its rows.
        chosen: whether a table is compared, by its name at the source.
        clock: measures `patience`.
        patience: seconds that the tables have each time to get what the source has.

    Raises:
        OperationError: POLYNYA-GTW-091, they did not get it; -092, nothing was captured yet, or no
            task makes tables of it.
        PolynyaError: what the database, the landing zone and the tables raise.
    """
    log = CaptureLog(landing, capture.place)
    tasks = {task.name for task in readers_of(project, capture)}
    newest = log.newest()
    if newest is None or not tasks or not has_tables(project.target):
        reason = "nothing has landed" if newest is None else "there are no tables"
        raise NOTHING_TO_COMPARE(where=capture.name, reason=reason)
    wait = CopyWaiter(
        project, log, tasks, lambda: python_catalog(project.target), clock, patience=patience,
        follows=capture.follows,
    ).wait  # fmt: skip
    include, exclude = capture.tables.include, capture.tables.exclude
    with closing(compared.moment()) as moment:
        wait(moment)
        tables = [table for table in database.tables(include, exclude) if chosen(table.name)]
        entries = _entries(project, tasks)
        position = _position(log)
        comparison = TableComparison(compared, moment, wait)
        for table in tables:
            for entry in entries.get(table.name, ()):
                subject = _subject(capture, table, entry, position)
                if isinstance(subject, ComparedTable):
                    yield comparison.compare(subject, CurrentView(entry, answers))
                else:
                    yield subject
        yield from without_view(tables, entries)


def _entries(project: LoadedProject, tasks: set[str]) -> dict[str, list[ProjectTable]]:
    """Datasets by the name of their table at the source."""
    entries: dict[str, list[ProjectTable]] = {}
    for entry in inventory(project, python_catalog(project.target)):
        source = entry.dataset.landing.source
        if entry.task.name in tasks and entry.table is not None and source is not None:
            entries.setdefault(source, []).append(entry)
    return entries


def _position(log: CaptureLog) -> CapturePosition:
    newest = log.newest()
    assert newest is not None, "batches do not go away while they are the newest"
    return CapturePosition.of(newest.position)


def _subject(
    capture: CaptureLanding, table: SourceTable, entry: ProjectTable, position: CapturePosition
) -> ComparedTable | NotCompared:
    assert entry.table is not None, "datasets without a table were left out"
    copied = inspect.states(entry.table)[0]
    progress = position.tables.get(table.name)
    return subject_of(
        capture,
        table,
        entry.dataset,
        state=None if progress is None else progress.state,
        suspended=copied.decisions.suspended is not None or copied.position.behind,
    )


def subject_of(
    capture: CaptureLanding,
    table: SourceTable,
    dataset: ResolvedDataset,
    *,
    state: str | None,
    suspended: bool,
) -> ComparedTable | NotCompared:
    """What to compare of a table and its dataset.

    Args:
        capture: the landing.
        table: as the source has it now.
        dataset: what became of it.
        state: of its load, as the newest batch has it; None: it is not captured.
        suspended: the dataset waits for a decision.
    """
    view = dataset.relations.current

    def not_compared(why: str, *, fails: bool = False) -> NotCompared:
        return NotCompared(table.name, view, why, fails)

    if state != "loaded":
        shown = "not captured" if state is None else state
        return not_compared(f"its load is not complete: {shown}", fails=True)
    if suspended:
        return not_compared("the dataset is suspended", fails=True)
    if dataset.mapping.is_set:
        return not_compared("its columns are mapped: the view is not the table")
    if dataset.kept.retention is not None:
        return not_compared("its rows leave by their age")
    if dataset.kept.mode == "append_only" and table.key:
        return not_compared("it is append-only: the view has every event, not the newest rows")
    if _condition_for(capture.load.filter, table.name) is not None:
        return not_compared("only a part of it was loaded (`load.filter`)")
    named = None if capture.incremental is None else capture.incremental.tables.get(table.name)
    return ComparedTable(
        table.name,
        view,
        # Rows of a view are compared whole: keys of the settings are not those of the database.
        () if named is not None and named.keys else table.key,
        masked=frozenset(_masked(capture, table.name)),
        where=_condition_for(capture.rows, table.name),
    )


def without_view(tables: Iterable[SourceTable], sources: Iterable[str]) -> list[NotCompared]:
    """Captured tables that no storage task has."""
    known_sources = set(sources)
    return [
        NotCompared(table.name, None, "no storage task has made a table of it", fails=True)
        for table in tables
        if table.name not in known_sources
    ]


def _condition_for(conditions: Mapping[str, str], table: str) -> str | None:
    return next((text for name, text in conditions.items() if matches(name, table)), None)


def _masked(capture: CaptureLanding, table: str) -> list[str]:
    return [
        column
        for name, columns in capture.mask.items()
        if matches(name, table)
        for column in columns
    ]


class CurrentView:
    """See `polynya.capture.compare.compare.CurrentTable`."""

    def __init__(self, entry: ProjectTable, answers: Answers) -> None:
        self._entry, self._answers = entry, answers

    def columns(self) -> Mapping[str, DataType]:
        """Names and types of its columns."""
        entry = self._entry
        assert entry.table is not None, "only a dataset with a table is compared"
        current = shape(entry.table, entry.dataset)
        types = columns_of(entry.dataset, current, entry.dataset.relations.view) or {}
        return {name: kind for name, kind in types.items() if not name.startswith("hdr__")}

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Its rows as of the newest commit. Raises what `Answers.answer` raises."""
        relations = self._entry.dataset.relations
        names = ", ".join(quote(column) for column in columns)
        text = f"SELECT {names} FROM {quote_path(relations.schema, relations.view)}"
        if self._entry.dataset.kept.delete_mode == "soft":
            text += " WHERE NOT hdr__deleted"
        rows = stream_embedded(self._answers.project, text)
        try:
            first = next(rows, None)
        except NotEmbeddedError:
            self._answers.see_newest()
            yield from self._answers.answer(Statement(text)).batches
            return
        if first is not None:
            yield first
            yield from rows


class CopyWaiter:
    """Waits until a capture has landed, and its storage tasks have copied, up to a moment."""

    def __init__(
        self,
        project: LoadedProject,
        log: CaptureLog,
        tasks: Collection[str],
        catalog: Callable[[], Tables],
        clock: Clock,
        *,
        patience: float,
        follows: bool = True,
    ) -> None:
        """Wait for the storage tasks of these names, each time at most `patience` seconds.

        A capture that does not follow changes is complete when it has loaded.
        """
        self._project, self._log, self._tasks = project, log, tasks
        self._catalog, self._clock, self._patience = catalog, clock, patience
        self._follows = follows

    def wait(self, moment: SourceMoment) -> None:
        """Return when everything is copied. Raises OperationError, POLYNYA-GTW-091."""
        began = self._clock.monotonic()
        number: int | None = None
        while True:
            number = number or self._landed(moment)
            if number is not None and self._is_copied(number):
                return
            waited = self._clock.monotonic() - began
            if waited >= self._patience:
                raise TABLES_BEHIND_SOURCE(
                    where=self._log.folder,
                    position=moment.position,
                    step="landed" if number is None else "copied into the tables",
                    seconds=self._patience,
                )
            self._clock.sleep(
                _POLL_SECONDS if waited < _FAST_POLLING_SECONDS else _LATER_POLL_SECONDS
            )

    def _landed(self, moment: SourceMoment) -> int | None:
        """The number of a batch with which everything has landed; None: not yet."""
        newest = self._log.newest()
        if newest is None:
            return None
        places = (newest.position["stream"]["offset"], newest.position.get("read_to"))
        there = not self._follows or any(moment.is_reached(place) for place in places if place)
        return newest.number if there else None

    def _is_copied(self, number: int) -> bool:
        """Whether all batches up to one of them were read for all tables."""
        paths = {self._log.path(batch) for batch in self._log.numbers() if batch <= number}
        ledgers = [
            entry
            for entry in inventory(self._project, self._catalog())
            if entry.is_ledger and entry.task.name in self._tasks
        ]
        for entry in ledgers:
            if entry.table is None:
                return False
            files = inspect.states(entry.table)[0].position.files
            if not all(path in files and files[path].complete for path in paths):
                return False
        return True
