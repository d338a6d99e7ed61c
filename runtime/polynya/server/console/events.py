"""The pages of what happened: the log of events, and the runs that they belong to."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias, get_args

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import page_router
from polynya.server.pages import Cursor
from polynya.server.routes import runs as runs_api
from polynya.server.runs import LEVELS, EventLevel, RunKind, RunOutcome
from polynya.server.state import ServerState

router = page_router()

_Hours: TypeAlias = Literal["1", "24", "168", "720"]
_WINDOWS: Final = {"1": "hour", "24": "day", "168": "7 days", "720": "30 days"}
_Text = Annotated[str, Query(max_length=500)]


@router.get("/events", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def events(
    request: Request,
    *,
    task: _Text = "",
    dataset: _Text = "",
    level: EventLevel = "note",
    code: _Text = "",
    run: _Text = "",
    hours: _Hours = "24",
    cursor: Cursor = None,
) -> HTMLResponse:
    """What happened, the newest first."""
    now = ServerState.of(request).clock.now()
    found = runs_api.events(
        request,
        task=task or None,
        dataset=dataset or None,
        level=level,
        code=code or None,
        run=run or None,
        since=now - timedelta(hours=int(hours)),
        cursor=cursor,
    )
    return render(
        request,
        "events.html",
        fragment="list",
        events=found,
        task=task,
        dataset=dataset,
        level=level,
        levels=LEVELS,
        code=code,
        run=run,
        hours=hours,
        windows=_WINDOWS,
        cursor=cursor,
    )


@router.get("/runs", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def runs(
    request: Request,
    *,
    task: _Text = "",
    dataset: _Text = "",
    kind: _Text = "",
    outcome: _Text = "",
    hours: _Hours = "24",
    cursor: Cursor = None,
) -> HTMLResponse:
    """What was begun, how far it came, and how it ended."""
    now = ServerState.of(request).clock.now()
    found = runs_api.runs(
        request,
        task=task or None,
        dataset=dataset or None,
        kind=next((one for one in get_args(RunKind) if one == kind), None),
        outcome=next((one for one in get_args(RunOutcome) if one == outcome), None),
        since=now - timedelta(hours=int(hours)),
        cursor=cursor,
    )
    return render(
        request,
        "runs.html",
        fragment="list",
        runs=found,
        task=task,
        dataset=dataset,
        kind=kind,
        kinds=get_args(RunKind),
        outcome=outcome,
        outcomes=get_args(RunOutcome),
        hours=hours,
        windows=_WINDOWS,
        cursor=cursor,
    )


@router.get("/runs/{name}", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def run(request: Request, name: str) -> HTMLResponse:
    """One run: what it did of each kind, and its error."""
    return render(request, "run.html", fragment="state", run=runs_api.run(request, name))
