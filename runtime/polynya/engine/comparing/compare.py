"""Compares the tables of a capture with the views Current of the tasks that read its landing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from polynya.engine.answers import Answers
from polynya.engine.comparing.current import CurrentView
from polynya.engine.comparing.subjects import NotCompared, subject_of, without_view
from polynya.engine.comparing.waiting import Waiting
from polynya.engine.plan.inventory import Entry, inventory
from polynya.engine.verbs.captured_states import readers_of
from polynya.gateway.compare.comparing import Comparison, Subject, Verdict
from polynya.gateway.compare.source import ComparedDatabase
from polynya.gateway.landing.log import CaptureLog
from polynya.gateway.landing.position import Position
from polynya.gateway.source import Database, SourceTable
from polynya.lake.read import inspect
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.capture.landing import CaptureLanding
from polynya.model.errors import OperationError
from polynya.model.reading.loader import LoadedProject
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore


def compare_capture(
    project: LoadedProject,
    capture: CaptureLanding,
    answers: Answers,
    *,
    landing: ObjectStore,
    database: Database,
    compared: ComparedDatabase,
    chosen: Callable[[str], bool],
    clock: Clock,
    patience: float,
) -> Iterator[Verdict | NotCompared]:
    """What comes of each table, one after the other, all as of one moment of the source.

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
        raise _nothing(capture, "nothing has landed" if newest is None else "there are no tables")
    wait = Waiting(
        project, log, tasks, lambda: python_catalog(project.target), clock, patience=patience,
        follows=capture.update_method == "cdc",
    ).wait  # fmt: skip
    include, exclude = capture.tables.include, capture.tables.exclude
    with closing(compared.moment()) as moment:
        wait(moment)
        tables = [one for one in database.tables(include, exclude) if chosen(one.name)]
        entries = _entries(project, tasks)
        position = _position(log)
        comparison = Comparison(compared, moment, wait)
        for table in tables:
            for entry in entries.get(table.name, ()):
                subject = _subject(capture, table, entry, position)
                if isinstance(subject, Subject):
                    yield comparison.compare(subject, CurrentView(entry, answers))
                else:
                    yield subject
        yield from without_view(tables, entries)


def _entries(project: LoadedProject, tasks: set[str]) -> dict[str, list[Entry]]:
    """Datasets by the name of their table at the source."""
    found: dict[str, list[Entry]] = {}
    for entry in inventory(project, python_catalog(project.target)):
        source = entry.dataset.landing.source
        if entry.task.name in tasks and entry.table is not None and source is not None:
            found.setdefault(source, []).append(entry)
    return found


def _position(log: CaptureLog) -> Position:
    newest = log.newest()
    assert newest is not None, "batches do not go away while they are the newest"
    return Position.of(newest.position)


def _subject(
    capture: CaptureLanding, table: SourceTable, entry: Entry, position: Position
) -> Subject | NotCompared:
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


def _nothing(capture: CaptureLanding, why: str) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-092",
        f"there is nothing to compare: {why}",
        where=capture.name,
        state="nothing was read from the database",
        fix="`polynya run` lands the tables; a storage task with `landing: {format: debezium, "
        "path: …}` of the same folder makes tables of them",
    )
