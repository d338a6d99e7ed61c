"""Captures of databases as resources: state, lag, place in the database's log, and their tables.

Everything is as of the newest landed batch; `lag` is the last answer of the database, with its age.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.engine.commands.captures import CapturedTableState, CaptureStatus, TableStatus
from polynya.model.config.capture import slot_name_of
from polynya.model.config.connected import ConnectedCapture
from polynya.model.error_catalogue.codes import ERROR_PAGES
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.observe.events import counted
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.sources import LagSeen
from polynya.server.state import ServerState

router = api_router("captures")

CaptureWord: TypeAlias = Literal["new", "loading", "running", "stopped", "failed", "unknown"]
_BEFORE_RUNNING: Final[frozenset[str]] = frozenset(
    {"queued", "loading", "caching changes", "applying cached changes"}
)


class ErrorShown(BaseModel):
    """An error with its code, what it says, and what to do about it."""

    code: str
    message: str
    fix: str | None


class CaptureLagShown(BaseModel):
    """How far the database was ahead at `asked_at`; what is unknown is null."""

    bytes: int | None = Field(description="of the database's log that have not landed")
    seconds: float | None = Field(description="age of what has not landed")
    log_bytes: int | None = Field(description="of the log that the server keeps for this capture")
    log_limit_bytes: int | None = Field(description="with more of it the server gives it up")
    notes: list[str]
    asked_at: str
    age_seconds: float
    error: ErrorShown | None = Field(description="why the database did not answer")
    silent_since: str | None = Field(description="since when the database has not answered")


class CaptureServer(BaseModel):
    """The source of a capture, and where its log was read up to."""

    connection: str
    kind: str = Field(description="such as `postgresql` or `mariadb`")
    slot: str | None = Field(description="replication slot of PostgreSQL")
    publication: str | None
    place: dict[str, Any] = Field(
        description="in the database's log: `lsn_commit` and `lsn`, or `file` and `pos`"
    )


class CaptureProcessShown(BaseModel):
    """The process of a capture as the agent of this machine reports it at `at`."""

    node: str
    state: str
    reason: str
    retries: int = Field(description="failures in a row")
    lag_bytes: int
    lag_seconds: float
    silent_seconds: float | None = Field(description="since something landed")
    at: str


class ActionLink(BaseModel):
    """An action that can be started: its name, and the path that starts it."""

    name: str
    path: str
    body: dict[str, Any]


class CaptureShown(BaseModel):
    """A capture: one state and why, its lag, its source, and how many tables have each state."""

    task: str
    state: CaptureWord
    reason: str
    since: str | None = Field(description="since when the state is unknown; else null")
    batches: int = Field(description="number of the newest landed batch")
    written_at: str | None
    age_seconds: float | None = Field(description="since the newest batch was written")
    follows: bool = Field(description="it captures changes; else it only loads tables")
    lag: CaptureLagShown | None
    server: CaptureServer
    process: CaptureProcessShown | None
    tables: dict[str, int]
    rows: int = Field(description="rows that loads have landed")
    next_load: str | None
    closed_until: str | None = Field(description="it may not read before")
    error: ErrorShown | None = Field(description="of the first table that was left out")
    actions: list[ActionLink]


class CapturedTableShown(BaseModel):
    """A captured table: its state, how many rows have landed, and why it was left out."""

    table: str
    state: CapturedTableState
    rows: int
    cached_changes: int = Field(description="changes that landed before all rows had")
    loaded_at: str | None = Field(description="begin of its last load, where loads are scheduled")
    error: ErrorShown | None
    inexact: list[str] = Field(description="what becomes of values that are not kept exactly")


@router.get("/captures", dependencies=[allowed(Action.VIEW_PROJECT)])
def captures(request: Request, limit: Limit = 50, cursor: Cursor = None) -> ListPage[CaptureShown]:
    """The captures of the project by name."""
    state = ServerState.of(request)
    project = state.known_project()
    found = sorted(project.captures, key=lambda one: one.name)
    part = page(found, lambda one: (one.name, one.name), limit, cursor)
    items = [_shown(state, project, one) for one in part.items]
    return ListPage(items=items, total=part.total, next=part.next)


@router.get("/captures/{task}", dependencies=[allowed(Action.VIEW_PROJECT)])
def capture(request: Request, task: str) -> CaptureShown:
    """One capture."""
    state = ServerState.of(request)
    project = state.known_project()
    return _shown(state, project, _known(project, task))


@router.get("/captures/{task}/tables", dependencies=[allowed(Action.VIEW_PROJECT)])
def captured_tables(
    request: Request,
    task: str,
    *,
    table_state: Annotated[CapturedTableState | None, Query(alias="state")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ListPage[CapturedTableShown]:
    """The tables of a capture by name, or those in one state."""
    state = ServerState.of(request)
    project = state.known_project()
    found = state.sources.capture(project, _known(project, task))
    tables = [one for one in found.tables if table_state in (None, one.state)]
    part = page(tables, lambda one: (one.table, one.table), limit, cursor)
    return ListPage(items=[_table(one) for one in part.items], total=part.total, next=part.next)


def _known(project: LoadedProject, task: str) -> ConnectedCapture:
    for one in project.captures:
        if one.name == task:
            return one
    raise NO_SUCH_RESOURCE(what=f"capture {shown(task)}")


def _shown(state: ServerState, project: LoadedProject, task: ConnectedCapture) -> CaptureShown:
    now = state.clock.now()
    try:
        found = state.sources.capture(project, task)
        word, reason = _state(found)
        error = next((_of_text(one.why) for one in found.tables if one.why), None)
    except PolynyaError as failure:
        found = CaptureStatus(task.name, 0, None, held=False)
        word, reason, error = "unknown", failure.message, _of_error(failure)
    written = found.written_at
    return CaptureShown(
        task=task.name,
        state=word,
        reason=reason,
        since=_iso(state.sources.failing_since(task.name)),
        batches=found.batches,
        written_at=_iso(written),
        age_seconds=None if written is None else max(0.0, (now - written).total_seconds()),
        follows=task.follows,
        lag=_lag(state.sources.lag(project, task), now),
        server=_server(task, found.place),
        process=_process(state, task.name),
        tables=dict(Counter[str](one.state for one in found.tables)),
        rows=sum(one.rows for one in found.tables),
        next_load=_iso(found.next_load),
        closed_until=_iso(found.closed_until),
        error=error,
        actions=[
            ActionLink(name=name, path=f"/api/v1/actions/{name}", body={"task": task.name})
            for name in _actions(found)
        ],
    )


def _state(found: CaptureStatus) -> tuple[CaptureWord, str]:
    """The state of a capture in one word, and why."""
    if found.held:
        return "stopped", "an operator has stopped it; the database keeps its log meanwhile"
    tables, states = found.tables, Counter[str](one.state for one in found.tables)
    if not found.batches:
        return "new", "nothing has landed yet"
    if states["error"]:
        first = next(one for one in tables if one.state == "error")
        left_out = counted(states["error"], "table")
        return "failed", f"{left_out} of {len(tables)} left out, first {first.table}: {first.why}"
    loading = sum(states[one] for one in _BEFORE_RUNNING)
    if loading:
        return "loading", f"{counted(loading, 'table')} of {len(tables)} not loaded yet"
    if found.never_open:
        return "running", "no window in which it may read opens any more"
    if found.closed_until is not None:
        return "running", f"it may not read until {found.closed_until:%Y-%m-%d %H:%M} UTC"
    return "running", "changes land" if found.follows else "the last load is complete"


def _actions(found: CaptureStatus) -> list[str]:
    return [*([] if found.held else ["landing-stop"]), "landing-resume", "landing-reload"]


def _server(task: ConnectedCapture, place: Mapping[str, Any]) -> CaptureServer:
    kind = str(task.database.type)
    slots = kind == "postgresql" and task.follows
    name = slot_name_of(task.name)
    return CaptureServer(
        connection=task.connection,
        kind=kind,
        slot=(task.slot or name) if slots else None,
        publication=(task.publication or name) if slots else None,
        place=dict(place),
    )


def _lag(seen: LagSeen | None, now: datetime) -> CaptureLagShown | None:
    if seen is None:
        return None
    lag = seen.lag
    return CaptureLagShown(
        bytes=lag and lag.bytes,
        seconds=lag and lag.seconds,
        log_bytes=lag and lag.log_bytes,
        log_limit_bytes=lag and lag.log_limit_bytes,
        notes=list(lag.notes) if lag else [],
        asked_at=seen.at.isoformat(),
        age_seconds=max(0.0, (now - seen.at).total_seconds()),
        error=seen.error and _of_error(seen.error),
        silent_since=None if seen.since is None else seen.since.isoformat(),
    )


def _process(state: ServerState, task: str) -> CaptureProcessShown | None:
    report = state.clusters.agent()
    jobs = report["tasks"].get(task, {}).get("jobs", {}) if report is not None else {}
    for job in jobs.values():
        for figures in job["captures"].values():
            assert report is not None, "its jobs were found in it"
            return CaptureProcessShown(
                node=report["node"],
                state=job["state"],
                reason=job["reason"],
                retries=figures["retries"],
                lag_bytes=figures["lag_bytes"],
                lag_seconds=figures["lag_seconds"],
                silent_seconds=figures["silent_seconds"],
                at=report["at"],
            )
    return None


def _table(one: TableStatus) -> CapturedTableShown:
    return CapturedTableShown(
        table=one.table,
        state=one.state,
        rows=one.rows,
        cached_changes=one.cached_changes,
        loaded_at=one.loaded_at,
        error=_of_text(one.why) if one.why else None,
        inexact=list(one.inexact),
    )


def _of_error(error: PolynyaError) -> ErrorShown:
    return ErrorShown(code=error.code, message=error.message, fix=error.fix)


def _of_text(why: str) -> ErrorShown:
    """The error of a table, which its progress keeps as `CODE: message`."""
    code, _, message = why.partition(": ")
    entry = ERROR_PAGES.get(code)
    fix = None if entry is None else entry.parts()["fix"]
    return ErrorShown(code=code if entry else "", message=message if entry else why, fix=fix)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
