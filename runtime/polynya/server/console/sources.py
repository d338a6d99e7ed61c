"""The pages of what lands by itself: captures of databases, and streams."""

from __future__ import annotations

from typing import Annotated, Final, get_args

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from polynya.engine.commands.captures import CapturedTableState
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.buttons import of_capture, offered
from polynya.server.console.html import render
from polynya.server.console.page import page_router
from polynya.server.pages import Cursor
from polynya.server.routes import captures as captures_api
from polynya.server.routes import streams as streams_api

router = page_router()

_TABLE_STATES: Final = get_args(CapturedTableState)


@router.get("/captures", dependencies=[allowed(Action.VIEW_PROJECT)])
def captures(request: Request, cursor: Cursor = None) -> HTMLResponse:
    """The captures of the project: their states, and how far the databases are ahead."""
    found = captures_api.captures(request, cursor=cursor)
    return render(request, "captures.html", fragment="list", captures=found, cursor=cursor)


@router.get("/captures/{task}", dependencies=[allowed(Action.VIEW_PROJECT)])
def capture(
    request: Request,
    task: str,
    state: Annotated[str, Query(max_length=50)] = "",
    cursor: Cursor = None,
) -> HTMLResponse:
    """One capture with its tables, or those in one state."""
    found = captures_api.capture(request, task)
    chosen = next((one for one in _TABLE_STATES if one == state), None)
    return render(
        request,
        "capture.html",
        fragment="state",
        capture=found,
        buttons=offered(request, of_capture(task, [one.name for one in found.actions])),
        tables=captures_api.captured_tables(request, task, table_state=chosen, cursor=cursor),
        table_state=chosen,
        table_states=_TABLE_STATES,
        cursor=cursor,
    )


@router.get("/streams", dependencies=[allowed(Action.VIEW_PROJECT)])
def streams(
    request: Request,
    task: Annotated[str, Query(max_length=500)] = "",
    cursor: Cursor = None,
) -> HTMLResponse:
    """The streams of the project, or of one task, and how far each is behind its source."""
    found = streams_api.streams(request, task=task or None, cursor=cursor)
    return render(request, "streams.html", fragment="list", streams=found, task=task, cursor=cursor)


@router.get("/streams/{task}/{table}", dependencies=[allowed(Action.VIEW_PROJECT)])
def stream(request: Request, task: str, table: str, cursor: Cursor = None) -> HTMLResponse:
    """One stream with its partitions or shards, and what its source had lost."""
    return render(
        request,
        "stream.html",
        fragment="state",
        stream=streams_api.stream(request, task, table),
        places=streams_api.positions(request, task, table, cursor=cursor),
        cursor=cursor,
    )
