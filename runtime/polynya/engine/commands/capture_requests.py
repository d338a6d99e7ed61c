"""Requests of commands to captures and their databases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import Position, unloaded
from polynya.capture.source import Access, Database, Finding, Lag, SourceTable, open_database
from polynya.capture.wire import Asking
from polynya.engine.commands.captures import (
    WORST_FIRST,
    CapturedTableState,
    captured_table_state,
    copied_batches,
)
from polynya.engine.tasks.capture_process import CaptureSecrets, access_of, access_to
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.connection import Connection
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.store.object_store import ObjectStore
from polynya.store.vault import vault


def access_for(task: ConnectedCapture) -> Access:
    """How the database of a capture is reached. Raises PolynyaError for a secret."""
    return access_of(task, secrets_of(task))


@contextmanager
def database_of(task: ConnectedCapture) -> Iterator[Database]:
    """The database of a capture, closed at the end. Raises as `access_for`."""
    database = open_database(access_for(task))
    try:
        yield database
    finally:
        database.close()


def secrets_of(task: ConnectedCapture) -> CaptureSecrets:
    """What opens the secrets of a capture in this process."""
    return CaptureSecrets(task.name, os.environ, vault())


@contextmanager
def database_at(connection: Connection, name: str) -> Iterator[Database]:
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
        rows: that its load has landed.
        cached_changes: changes that landed before its load had ended.
        why: it is left out.
    """

    table: str
    state: CapturedTableState
    rows: int
    cached_changes: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """How a capture is, as of its newest landed batch.

    Attributes:
        batches: number of the newest, 0 when nothing has landed.
        written_at: when that was written.
        held: an operator has stopped the capture.
        lag: how far the database is ahead of it; None where it was not queried.
        lag_error: why the lag is unknown.
        next_load: when a capture that follows no changes loads everything again.
    """

    task: str
    batches: int
    written_at: datetime | None
    held: bool
    tables: tuple[TableStatus, ...] = ()
    lag: Lag | None = None
    lag_error: PolynyaError | None = None
    next_load: datetime | None = None

    @property
    def state(self) -> str:
        """`stopped`, else the state of the table that is furthest behind, `new` without one."""
        if self.held:
            return "stopped"
        states = {table.state for table in self.tables}
        return next((state for state in WORST_FIRST if state in states), "new")


def capture_status(
    project: LoadedProject, store: ObjectStore, task: ConnectedCapture, *, ask_database: bool
) -> CaptureStatus:
    """How a capture is. Raises OperationError when its newest batch cannot be read."""
    held, log = Asking(store, task.place).is_held(), CaptureLog(store, task.place)
    newest = log.newest()
    if newest is None:
        return CaptureStatus(task.name, 0, None, held)
    position = Position.of(newest.position)
    copied = copied_batches(project, task, log)
    tables = tuple(
        TableStatus(
            name,
            captured_table_state(progress, task, copied),
            progress.rows,
            progress.changes,
            progress.why,
        )
        for name, progress in sorted(position.tables.items())
    )
    due = None
    if task.schedule is not None and not unloaded(position):
        due = task.schedule.next_after(newest.written_at)
    lag: Lag | None = None
    error: PolynyaError | None = None
    if ask_database and task.update_method == "cdc":
        try:
            with database_of(task) as database:
                lag = database.lag(position.stream.offset)
        except PolynyaError as failure:
            error = failure
    return CaptureStatus(
        task.name, newest.number, newest.written_at, held, tables,
        lag=lag, lag_error=error, next_load=due,
    )  # fmt: skip


def captured_tables(task: ConnectedCapture) -> tuple[SourceTable, ...]:
    """The tables that the task would capture now. Raises PolynyaError."""
    with database_of(task) as database:
        return database.tables(task.tables.include, task.tables.exclude)


def capture_findings(project: LoadedProject, name: str) -> list[Finding]:
    """Findings for and against capturing over a connection, without duplicates.

    Raises PolynyaError. They concern what its tasks need: publication and slot of those that follow
    changes, and less where all only load. Without a task changes are to be followed.
    """
    tasks = [capture for capture in project.captures if capture.connection == name]
    chosen = [task for task in tasks if task.update_method == "cdc"] or tasks[:1]
    opening = [database_of(task) for task in chosen]
    findings: list[Finding] = []
    for opened in opening or [database_at(project.connections[name], name)]:
        with opened as database:
            findings += database.findings()
    return list(dict.fromkeys(findings))
