"""Runs, the log of their events, and the commits of tables as resources."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, TypeAlias

from fastapi import FastAPI, Query, Request
from pydantic import AwareDatetime, BaseModel, Field

from polynya.automation.state import AutomationStore, RunLog
from polynya.engine.inventory import inventory
from polynya.lake.read.commits import TableCommit, commits, in_words
from polynya.lake.read.committed import committed_tables
from polynya.model.automations import load_automations
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.operations.manager import OperationView
from polynya.server.overview import DatasetOverview, Overview
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.routes.operations import manager_of
from polynya.server.runs import (
    LEVELS,
    MOST_EVENTS,
    EventLevel,
    OperationReader,
    Run,
    RunError,
    RunEvent,
    RunKind,
    RunOutcome,
    RunPhase,
    automation_events,
    automation_run,
    commit_event,
    commit_level,
    commit_type,
    is_run,
    operation_run,
    process_key,
    process_runs,
)
from polynya.server.state import ServerState

router = api_router("runs")

#: What a list of events is sorted by.
_Place: TypeAlias = tuple[list[float], str]
#: An event, or a commit that becomes one, with its place.
_Placed: TypeAlias = tuple[_Place, RunEvent | tuple[DatasetOverview, TableCommit]]

#: Without `since`, so much is looked through.
_WINDOW: Final = timedelta(days=1)
#: Newest runs of each automation that are looked through.
_OF_AUTOMATION: Final = 100


class RunShown(BaseModel):
    """A run: an operation of the API, a run of an automation, or what one process committed."""

    id: str
    kind: RunKind
    name: str
    by: str
    outcome: RunOutcome = Field(
        description="of a process: `owner` while the tables are still its own, else `overtaken`"
    )
    started: str
    ended: str | None = Field(description="of a process: its last commit")
    tasks: list[str]
    datasets: list[str]
    rows: dict[str, int] = Field(description="such as `in`, `out`, `filtered`, `quarantined`")
    phases: list[RunPhase]
    error: RunError | None
    operation: str | None = Field(description="id of its operation, which has the whole output")


class EventShown(BaseModel):
    """One thing that happened; `figures` are its values as `--json` writes them."""

    at: str
    id: str
    type: str
    level: EventLevel
    text: str
    subject: str
    task: str | None
    dataset: str | None
    code: str | None
    run: str | None
    figures: dict[str, Any]


class CommitShown(BaseModel):
    """A commit of a table: its step, why it was made, and what it counted."""

    snapshot: str
    at: str
    step: str
    reason: str
    text: str
    rows: dict[str, int]
    files: dict[str, int]
    owner: str | None
    epoch: int | None


class RunList(ListPage[RunShown]):
    """Runs; `missing` names what could not be read, and why."""

    missing: list[str] = Field(default_factory=list)


class EventList(ListPage[EventShown]):
    """Events; `missing` names what could not be read, and why."""

    missing: list[str] = Field(default_factory=list)


Task = Annotated[str | None, Query(max_length=500, description="only of this task")]
Dataset = Annotated[str | None, Query(max_length=500, description="only of this dataset")]
Since = Annotated[AwareDatetime | None, Query(description="default: a day ago")]
Until = Annotated[AwareDatetime | None, Query(description="default: now")]


@router.get("/runs", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def runs(
    request: Request,
    *,
    task: Task = None,
    dataset: Dataset = None,
    kind: RunKind | None = None,
    outcome: RunOutcome | None = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunList:
    """The runs of a time, the newest first: what was begun, how far it came, how it ended."""
    state = ServerState.of(request)
    begin = since or state.clock.now() - _WINDOW
    missing: list[str] = []
    found = [
        one
        for one in _runs(request.app, state, begin, missing)
        if (task is None or task in one.tasks)
        and (dataset is None or dataset in one.datasets)
        and kind in (None, one.kind)
        and outcome in (None, one.outcome)
        and (one.ended is None or one.ended >= begin)
        and (until is None or one.started <= until)
    ]
    found.sort(key=_place_of_run)
    part = page(found, _place_of_run, limit, cursor)
    items = [_run(one) for one in part.items]
    return RunList(items=items, total=part.total, next=part.next, missing=missing)


@router.get("/runs/{name}", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def run(request: Request, name: str) -> RunShown:
    """One run."""
    state = ServerState.of(request)
    for one in _runs(request.app, state, datetime.min.replace(tzinfo=state.clock.now().tzinfo), []):
        if one.id == name:
            return _run(one)
    raise NO_SUCH_RESOURCE(what=f"run {shown(name)}")


@router.get("/events", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def events(
    request: Request,
    *,
    task: Task = None,
    dataset: Dataset = None,
    level: Annotated[EventLevel, Query(description="this one and those above")] = "note",
    kind: Annotated[str | None, Query(alias="type", max_length=100)] = None,
    code: Annotated[str | None, Query(max_length=100)] = None,
    run: Annotated[str | None, Query(max_length=500)] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> EventList:
    """The events of a time, the newest first; the newest 10,000 that match."""
    state = ServerState.of(request)
    begin = since or state.clock.now() - _WINDOW
    missing: list[str] = []
    levels = frozenset(LEVELS[LEVELS.index(level) :])

    def in_time(at: datetime) -> bool:
        return at >= begin and (until is None or at <= until)

    told: list[_Placed] = [
        (_place_of_event(one), one)
        for one in _events(request.app, state, begin, missing)
        if in_time(one.at)
        and one.level in levels
        and task in (None, one.task)
        and dataset in (None, one.dataset)
        and kind in (None, one.type)
        and code in (None, one.code)
        and run in (None, one.run)
    ]
    committed = (
        (_place(one.at, one.snapshot, f"{table.name}:{one.snapshot}"), (table, one))
        for table, one in _commits(state.overview.newest())
        if in_time(one.at)
        and commit_level(one) in levels
        and task in (None, table.task)
        and dataset in (None, table.name)
        and kind in (None, commit_type(one))
    )
    # Of what may be 100,000 commits only those of the page become events.
    newest: list[_Placed] = [] if code or run else list(itertools.islice(committed, MOST_EVENTS))
    found = sorted([*told, *newest], key=lambda one: one[0])[:MOST_EVENTS]
    part = page(found, lambda one: one[0], limit, cursor)
    events_of_page = [
        one if isinstance(one, RunEvent) else commit_event(*one) for _, one in part.items
    ]
    items = [_event(one) for one in events_of_page]
    return EventList(items=items, total=part.total, next=part.next, missing=missing)


@router.get("/datasets/{name}/commits", dependencies=[allowed(Action.VIEW_PROJECT)])
def table_commits(
    request: Request, name: str, limit: Limit = 100, cursor: Cursor = None
) -> ListPage[CommitShown]:
    """The commits of a dataset's table, the newest first, as far as its snapshots go back."""
    project = ServerState.of(request).known_project()
    tables = committed_tables(project.target)
    entry = next(inventory(project, tables, lambda one: one.relations.current == name), None)
    if entry is None:
        raise NO_SUCH_RESOURCE(what=f"dataset {shown(name)}")
    found = [] if entry.table is None else commits(entry.table.metadata)[::-1]
    shown_commits = [
        CommitShown(
            # As text: its digits are more than the numbers of JavaScript hold.
            snapshot=str(one.snapshot),
            at=one.at.isoformat(),
            step=one.step,
            reason=one.reason,
            text=", ".join(in_words(one)),
            rows=dict(one.rows),
            files=dict(one.files),
            owner=one.owner or None,
            epoch=one.epoch,
        )
        for one in found
    ]
    places = {one.snapshot: number for number, one in enumerate(shown_commits)}
    return page(shown_commits, lambda one: (places[one.snapshot], one.snapshot), limit, cursor)


def _runs(app: FastAPI, state: ServerState, since: datetime, missing: list[str]) -> Iterator[Run]:
    """Every run that had not ended before a moment, as far as they can be read."""
    datasets = state.overview.newest().datasets
    task_of = _task_of(datasets)
    known = set()
    for view, reader in _operations(app, since, missing):
        process = manager_of(app).folder(view.request.id).process()
        if process is not None:
            known.add(process_key(process.pid))
        if is_run(view):
            yield operation_run(view, reader.read(view, task_of))
    for log in _automations(state, since, missing):
        yield automation_run(log)
    yield from process_runs(datasets.values(), frozenset(known))


def _events(
    app: FastAPI, state: ServerState, since: datetime, missing: list[str]
) -> Iterator[RunEvent]:
    datasets = state.overview.newest().datasets
    task_of = _task_of(datasets)
    for view, reader in _operations(app, since, missing):
        yield from reader.read(view, task_of).events
    for log in _automations(state, since, missing):
        yield from automation_events(log)


def _commits(overview: Overview) -> list[tuple[DatasetOverview, TableCommit]]:
    """The commits that are known of all tables, the newest first."""

    def made() -> list[tuple[DatasetOverview, TableCommit]]:
        tables = overview.datasets.values()
        found = [(table, one) for table in tables for one in table.commits]
        found.sort(key=lambda pair: (pair[1].at, pair[1].snapshot), reverse=True)
        return found

    return overview.once("commits", made)


def _operations(
    app: FastAPI, since: datetime, missing: list[str]
) -> Iterator[tuple[OperationView, OperationReader]]:
    """The operations that had not ended before a moment, the newest first."""
    try:
        manager = manager_of(app)
    except PolynyaError as error:
        missing.append(f"operations: {error.message} ({error.code})")
        return
    reader: OperationReader | None = getattr(app.state, "operation_reader", None)
    if reader is None or not reader.reads(manager):
        reader = app.state.operation_reader = OperationReader(manager)
    for view in reader.views(since):
        yield view, reader


def _automations(state: ServerState, since: datetime, missing: list[str]) -> Iterator[RunLog]:
    """The runs of automations that had not ended before a moment."""
    project = state.known_project()
    automations, _ = load_automations(project)
    if not automations:
        return
    store = AutomationStore.of(project.target)
    for automation in automations:
        name = automation.settings.name
        try:
            for number, log in enumerate(store.runs(name)):
                if number >= _OF_AUTOMATION or (log.ended is not None and log.ended < since):
                    break
                yield log
        except (PolynyaError, OSError) as error:
            missing.append(f"automation {name}: {error}")


def _task_of(datasets: Mapping[str, DatasetOverview]) -> Callable[[str], str | None]:
    tasks = {one.task for one in datasets.values()}

    def task_of(subject: str) -> str | None:
        dataset = datasets.get(subject)
        if dataset is not None:
            return dataset.task
        # Tables of captures and streams are `task/table`.
        task = subject.partition("/")[0]
        return task if task in tasks or "/" in subject else None

    return task_of


def _place_of_run(one: Run) -> tuple[float, str]:
    return -one.started.timestamp(), one.id


def _place_of_event(one: RunEvent) -> _Place:
    """By time; of one moment, the last line of an output is the newest."""
    return _place(one.at, int(one.id.rpartition(":")[2]), one.id)


def _place(at: datetime, number: int, name: str) -> _Place:
    return [-at.timestamp(), -number], name


def _run(one: Run) -> RunShown:
    return RunShown(
        id=one.id,
        kind=one.kind,
        name=one.name,
        by=one.by,
        outcome=one.outcome,
        started=one.started.isoformat(),
        ended=None if one.ended is None else one.ended.isoformat(),
        tasks=list(one.tasks),
        datasets=list(one.datasets),
        rows=dict(one.rows),
        phases=list(one.phases),
        error=one.error,
        operation=one.operation,
    )


def _event(one: RunEvent) -> EventShown:
    return EventShown(**{**asdict(one), "at": one.at.isoformat()})
