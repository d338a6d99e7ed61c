"""Captures as operators see them: their databases, their status, and the state of each table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from polynya.capture.inexact import EXPLAINED
from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import (
    PLACE_NAMES,
    CapturePosition,
    TableProgress,
    unloaded,
)
from polynya.capture.source import (
    Access,
    ConnectionFinding,
    GrowingColumn,
    Lag,
    SourceDatabase,
    SourceTable,
    open_database,
)
from polynya.capture.wire import RequestFolder
from polynya.engine.due import due_of_capture
from polynya.engine.ledger import ledger_dataset
from polynya.engine.tasks.capture_process import CaptureSecrets, access_of, access_to, growing_of
from polynya.lake.read import inspect
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.lake.warehouse.readers import reading
from polynya.lake.warehouse.tables import Tables
from polynya.model.config.capture import CaptureLanding
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.connection import Connection
from polynya.model.config.task import StorageTask
from polynya.model.errors import OperationError, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.store.object_store import ObjectStore
from polynya.store.vault import vault

CapturedTableState: TypeAlias = Literal[
    "queued", "loading", "caching changes", "applying cached changes", "running", "loaded", "error"
]
#: The state of a capture is the first of these that one of its tables has.
WORST_FIRST: Final[tuple[CapturedTableState, ...]] = (
    "error", "queued", "loading", "caching changes", "applying cached changes", "running", "loaded"
)  # fmt: skip


def access_for(task: ConnectedCapture) -> Access:
    """How the database of a capture is reached. Raises PolynyaError for a secret."""
    return access_of(task, secrets_of(task))


@contextmanager
def database_of(task: ConnectedCapture) -> Iterator[SourceDatabase]:
    """The database of a capture, closed at the end. Raises as `access_for`."""
    database = open_database(access_for(task))
    try:
        yield database
    finally:
        database.close()


def secrets_of(task: ConnectedCapture) -> CaptureSecrets:
    """The secrets of a capture, as this process reads them."""
    return CaptureSecrets(task.name, os.environ, vault())


@contextmanager
def database_at(connection: Connection, name: str) -> Iterator[SourceDatabase]:
    """The database that a connection leads to, without a task. Raises as `database_of`."""
    database = open_database(access_to(connection, name, CaptureSecrets(name, os.environ, vault())))
    try:
        yield database
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of a capture.

    Attributes:
        rows: number of rows that its load has landed.
        cached_changes: changes that landed before its load had ended.
        why: it is left out.
        inexact: what becomes of values that its columns do not keep exactly, as sentences.
        loaded_at: when its last load of all rows began, where such loads are scheduled.
    """

    table: str
    state: CapturedTableState
    rows: int
    cached_changes: int = 0
    why: str | None = None
    inexact: tuple[str, ...] = ()
    loaded_at: str | None = None


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """The status of a capture, as of its newest landed batch.

    Attributes:
        batches: number of the newest, 0 when nothing has landed.
        written_at: when that was written.
        held: an operator has stopped the capture.
        lag: how far the database is ahead of it; None where it was not queried.
        lag_error: why the lag is unknown.
        next_load: when the next scheduled load begins, in the past when that is now.
        closed_until: when it may read again, where a window is closed now.
        never_open: no window of it opens any more.
        follows: it captures changes from the log of the database.
        place: in that log, up to which changes have landed: `lsn_commit` and `lsn`, or `file` and
            `pos`; empty of other databases, and where nothing is followed.
    """

    task: str
    batches: int
    written_at: datetime | None
    held: bool
    tables: tuple[TableStatus, ...] = ()
    lag: Lag | None = None
    lag_error: PolynyaError | None = None
    next_load: datetime | None = None
    closed_until: datetime | None = None
    never_open: bool = False
    follows: bool = True
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """`stopped`, else the state of the table that is furthest behind, `new` without one."""
        if self.held:
            return "stopped"
        states = {table.state for table in self.tables}
        return next((state for state in WORST_FIRST if state in states), "new")


def capture_status(
    project: LoadedProject,
    store: ObjectStore,
    task: ConnectedCapture,
    now: datetime,
    *,
    ask_database: bool,
) -> CaptureStatus:
    """The status of a capture as of `now`.

    Raises OperationError when its newest batch is unreadable.
    """
    held, log = RequestFolder(store, task.place).is_held(), CaptureLog(store, task.place)
    newest = log.newest()
    if newest is None:
        return CaptureStatus(task.name, 0, None, held)
    position = CapturePosition.of(newest.position)
    copied = copied_batches(project, task, log)
    tables = tuple(
        TableStatus(
            name,
            captured_table_state(progress, task, copied),
            progress.rows,
            progress.changes,
            progress.why,
            tuple(EXPLAINED.get(word, word) for word in progress.inexact),
            progress.loaded_at,
        )
        for name, progress in sorted(position.tables.items())
    )
    due = None if unloaded(position) else due_of_capture(task, position, newest.written_at, now=now)
    opens = task.reading_times.waits_until(now)
    offset = position.stream.offset
    lag: Lag | None = None
    error: PolynyaError | None = None
    if ask_database and task.follows:
        try:
            with database_of(task) as database:
                lag = database.lag(offset)
        except PolynyaError as failure:
            error = failure
    return CaptureStatus(
        task.name, newest.number, newest.written_at, held, tables,
        lag=lag, lag_error=error, next_load=due, follows=task.follows,
        closed_until=opens if opens is not None and opens > now else None,
        never_open=opens is None,
        place={name: offset[name] for name in PLACE_NAMES if name in offset},
    )  # fmt: skip


def captured_tables(task: ConnectedCapture) -> tuple[SourceTable, ...]:
    """The tables that the task would capture now. Raises PolynyaError."""
    with database_of(task) as database:
        return database.tables(task.tables.include, task.tables.exclude)


def extraction_of(
    task: ConnectedCapture, table: SourceTable
) -> GrowingColumn | OperationError | None:
    """How the new rows of a table are found, or why they cannot be; None: not by a column."""
    settings = growing_of(task)
    if not settings:
        return None
    # Start-up time: what a capture writes with.
    from polynya.capture.worker.extraction import growing_column

    try:
        return growing_column(task.name, table, settings)
    except OperationError as error:
        return error


def capture_findings(project: LoadedProject, name: str) -> list[ConnectionFinding]:
    """Findings for and against capturing over a connection, without duplicates.

    Raises PolynyaError. They concern what its tasks need: publication and slot of those that follow
    changes, and less where all only load. Without a task, changes are followed.
    """
    tasks = [capture for capture in project.captures if capture.connection == name]
    chosen = [task for task in tasks if task.follows] or tasks[:1]
    opening = [database_of(task) for task in chosen]
    findings: list[ConnectionFinding] = []
    connection = project.connections[name]
    assert isinstance(connection, Connection), "other connections have no findings"
    for opened in opening or [database_at(connection, name)]:
        with opened as database:
            findings += database.findings()
    return list(dict.fromkeys(findings))


def readers_of(project: LoadedProject, capture: CaptureLanding) -> list[StorageTask]:
    """The storage tasks that read the landed batches of a capture."""
    return [
        task
        for task in project.tasks
        if task.landing.format == "debezium" and task.landing.path.strip("/") == capture.place
    ]


def captured_table_state(
    progress: TableProgress, capture: CaptureLanding, copied: int | None
) -> CapturedTableState:
    """The state of a table.

    Args:
        progress: how far it is loaded.
        capture: its task.
        copied: number of the batch up to which all landed ones are in the tables; None: there are
            no tables of them, or it is unknown.
    """
    match progress.state:
        case "suspended":
            return "error"
        case "queued":
            return "queued"
        case "loading":
            return "caching changes" if progress.changes else "loading"
    if copied is not None and progress.ended is not None and copied < progress.ended:
        return "applying cached changes"
    return "running" if capture.follows else "loaded"


def copied_batches(project: LoadedProject, capture: CaptureLanding, log: CaptureLog) -> int | None:
    """Number of the batch up to which every landed one is in the tables; None: unknown."""
    readers = readers_of(project, capture)
    if not readers:
        return None
    try:
        with reading(project):
            if not has_tables(project.target):
                return 0
            catalog = python_catalog(project.target)
            return min(_copied(catalog, task, log) for task in readers)
    except PolynyaError:
        # A capture near its database may be unable to reach the tables.
        return None


def _copied(catalog: Tables, task: StorageTask, log: CaptureLog) -> int:
    table = inspect.load(catalog, ledger_dataset(task))
    if table is None:
        return 0
    files = inspect.states(table)[0].position.files
    # Batches that expired were copied, or are lost in any case.
    copied = 0
    for number in log.numbers():
        path = log.path(number)
        if path not in files or not files[path].complete:
            return copied or number - 1
        copied = number
    return copied
