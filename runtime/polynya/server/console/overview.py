"""The pages that say how the whole project is: the overview, and the lists below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from polynya.model.errors import PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import page_router
from polynya.server.health import HealthWord
from polynya.server.pages import Cursor
from polynya.server.routes import datasets as datasets_api
from polynya.server.routes import operations as operations_api
from polynya.server.routes import projects as projects_api
from polynya.server.routes.datasets import DatasetOrder
from polynya.server.state import ServerState

router = page_router()
home = APIRouter(include_in_schema=False)

_MOST_NEEDS: Final = 20
_TASKS_OF_A_PAGE: Final = 100
#: Datasets whose newest event is the oldest, and operations, that the overview lists.
_MOST_OLD: Final = 10
_LATEST: Final = 5
_GOOD: Final = frozenset({HealthWord.HEALTHY, HealthWord.NEW})


@home.get("/", dependencies=[allowed(Action.LOG_IN)], status_code=307)
def start() -> RedirectResponse:
    """The address of the server leads to its console."""
    return RedirectResponse("/console")


@router.get("", dependencies=[allowed(Action.VIEW_PROJECT)])
async def overview(request: Request) -> HTMLResponse:
    """How the project is, what needs a person, and its tasks."""
    project = await projects_api.project(request)
    newest, _ = await ServerState.of(request).newest()
    known = newest.datasets.values()
    bad = sorted((one for one in known if one.health not in _GOOD), key=lambda one: one.name)
    statuses = [one.status for one in known if one.status is not None]
    return render(
        request,
        "overview.html",
        fragment="state",
        project=project,
        counts=project.datasets,
        counts_text=", ".join(_counted(project.datasets)),
        pending=sum(one.pending_rows for one in statuses),
        quarantined=sum(one.rows_quarantined for one in statuses),
        needs=bad[:_MOST_NEEDS],
        more_needs=len(bad) > _MOST_NEEDS,
        tasks=await projects_api.tasks(request, limit=_TASKS_OF_A_PAGE),
        changes=await projects_api.changes(request),
        oldest=await datasets_api.datasets(request, sort=DatasetOrder.FRESHNESS, limit=_MOST_OLD),
    )


@router.get("/latest-operations", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def latest_operations(request: Request) -> HTMLResponse:
    """What was started last: a part of the overview for those who may see it."""
    made, problem = [], None
    try:
        made = operations_api.operations(request, limit=_LATEST).items
    except PolynyaError as error:
        problem = error.as_dict()
    return render(
        request, "latest_operations.html", fragment="latest", operations=made, problem=problem
    )


@router.get("/tasks", dependencies=[allowed(Action.VIEW_PROJECT)])
async def tasks(request: Request, cursor: Cursor = None) -> HTMLResponse:
    """The tasks of the project."""
    found = await projects_api.tasks(request, limit=_TASKS_OF_A_PAGE, cursor=cursor)
    return render(request, "tasks.html", fragment="list", tasks=found, cursor=cursor)


@router.get("/datasets", dependencies=[allowed(Action.VIEW_PROJECT)])
async def datasets(
    request: Request,
    *,
    find: Annotated[str, Query(max_length=300)] = "",
    task: Annotated[str, Query(max_length=300)] = "",
    health: Annotated[str, Query(max_length=20)] = "",
    sort: DatasetOrder = DatasetOrder.NAME,
    cursor: Cursor = None,
) -> HTMLResponse:
    """The datasets of the project: those whose name has a text, or matches a glob."""
    glob = find if any(sign in find for sign in "*?[") else f"*{find}*"
    word = next((one for one in HealthWord if one == health), None)
    found = await datasets_api.datasets(
        request, name=glob, task=task or None, health=word, sort=sort, cursor=cursor
    )
    return render(
        request,
        "datasets.html",
        fragment="list",
        datasets=found,
        find=find,
        task=task,
        health=word,
        sort=sort,
        words=list(HealthWord),
        cursor=cursor,
    )


def _counted(words: Mapping[str, int]) -> Iterator[str]:
    """Words with their counts, but for those that none has."""
    return (f"{count:,} {word}" for word, count in words.items() if count)
