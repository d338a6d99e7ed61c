"""What commands ask of captures and of their databases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from polynya.engine.tasks.capturing.settings import Secrets, access_of, access_to
from polynya.gateway.asking import Asking
from polynya.gateway.landing.log import CaptureLog
from polynya.gateway.landing.position import Position
from polynya.gateway.registry import open_database
from polynya.gateway.source import Access, Database, Lag, SourceTable
from polynya.model.config.capture.connected import ConnectedCapture
from polynya.model.config.capture.connection import Connection
from polynya.model.errors import PolynyaError
from polynya.store.object_store import ObjectStore
from polynya.store.vault import vault

#: What the log calls a table whose changes land, and what people do.
_WORDS: Final = {"loaded": "running"}


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


def secrets_of(task: ConnectedCapture) -> Secrets:
    """What opens the secrets of a capture in this process."""
    return Secrets(task.name, os.environ, vault())


@contextmanager
def database_at(connection: Connection, name: str) -> Iterator[Database]:
    """The database that a connection leads to, without a task. Raises as `database_of`."""
    database = open_database(access_to(connection, name, Secrets(name, os.environ, vault())))
    try:
        yield database
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of a capture: its state, the rows that its load has landed, why it is left out."""

    table: str
    state: str
    rows: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """How a capture is, as of its newest landed batch.

    Attributes:
        batches: number of the newest, 0 when nothing has landed.
        written_at: when that was written.
        held: a person has stopped the capture.
        lag: how far the database is beyond it; None where it was not asked.
        lag_error: why the database did not say.
    """

    task: str
    batches: int
    written_at: datetime | None
    held: bool
    tables: tuple[TableStatus, ...] = ()
    lag: Lag | None = None
    lag_error: PolynyaError | None = None

    @property
    def state(self) -> str:
        """`stopped`, else the state of the table that is furthest behind, `new` without one."""
        if self.held:
            return "stopped"
        found = {one.state for one in self.tables}
        order = ("suspended", "queued", "loading", "running")
        return next((state for state in order if state in found), "new")


def capture_status(
    store: ObjectStore, task: ConnectedCapture, *, ask_database: bool
) -> CaptureStatus:
    """How a capture is. Raises OperationError when its newest batch cannot be read."""
    held = Asking(store, task.place).is_held()
    newest = CaptureLog(store, task.place).newest()
    if newest is None:
        return CaptureStatus(task.name, 0, None, held)
    position = Position.of(newest.position)
    tables = tuple(
        TableStatus(name, _WORDS.get(one.state, one.state), one.rows, one.why)
        for name, one in sorted(position.tables.items())
    )
    lag: Lag | None = None
    error: PolynyaError | None = None
    if ask_database and task.update_method == "cdc":
        try:
            with database_of(task) as database:
                lag = database.lag(position.stream.offset)
        except PolynyaError as failure:
            error = failure
    return CaptureStatus(
        task.name, newest.number, newest.written_at, held, tables, lag=lag, lag_error=error
    )


def captured_tables(task: ConnectedCapture) -> tuple[SourceTable, ...]:
    """The tables that the task would capture now. Raises PolynyaError."""
    with database_of(task) as database:
        return database.tables(task.tables.include, task.tables.exclude)
