"""The pages of one task: its health and datasets, its settings, and what was done with it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from polynya.model.errors import PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.buttons import of_task, offered
from polynya.server.console.charts import Days, Percentile, charts
from polynya.server.console.html import may, render
from polynya.server.console.page import page_router
from polynya.server.health import HealthWord
from polynya.server.pages import Cursor, ListPage
from polynya.server.routes import datasets as datasets_api
from polynya.server.routes import documents as documents_api
from polynya.server.routes import latency as latency_api
from polynya.server.routes import operations as operations_api
from polynya.server.routes import projects as projects_api
from polynya.server.routes.datasets import DatasetOrder, DatasetShown
from polynya.server.routes.projects import TaskShown

router = page_router()

#: Datasets that the button for maintenance names one by one.
_MOST_NAMED: Final = 50
_DATASETS_OF_A_PAGE: Final = 100
#: The newest operations of a server among which those of a task are sought.
_OPERATIONS: Final = 500
_GOOD: Final = frozenset({HealthWord.HEALTHY, HealthWord.NEW})


@router.get("/tasks/{name}", dependencies=[allowed(Action.VIEW_PROJECT)])
async def task(
    request: Request, name: str, sort: DatasetOrder = DatasetOrder.NAME, cursor: Cursor = None
) -> HTMLResponse:
    """How a task is, and its datasets."""
    found = await projects_api.task(request, name)
    datasets = await datasets_api.datasets(
        request, task=name, sort=sort, limit=_DATASETS_OF_A_PAGE, cursor=cursor
    )
    return render(
        request,
        "task.html",
        fragment="state",
        **_frame(request, found),
        buttons=offered(request, of_task(found, await _named(request, datasets))),
        datasets=datasets,
        bad=[one for one in datasets.items if one.health not in _GOOD],
        sort=sort,
        cursor=cursor,
    )


@router.get("/tasks/{name}/latency", dependencies=[allowed(Action.VIEW_PROJECT)])
async def latency(
    request: Request, name: str, days: Days = "30", percentile: Percentile = "95"
) -> HTMLResponse:
    """How long changes of its datasets took over time, and what waited of all of them."""
    found = await projects_api.task(request, name)
    shown = await charts(
        request, partial(latency_api.task_latency, request, name), days, percentile
    )
    return render(
        request,
        "task_latency.html",
        fragment="latency",
        **_frame(request, found),
        **shown,
        command=f"polynya latency --window {days}d",
    )


@router.get("/tasks/{name}/settings", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
async def settings(request: Request, name: str) -> HTMLResponse:
    """The file of a task."""
    found = await projects_api.task(request, name)
    text, problem = "", None
    try:
        read = await run_in_threadpool(documents_api.document, request, found.file)
        text = bytes(read.body).decode("utf-8", errors="backslashreplace")
    except PolynyaError as error:
        problem = error.as_dict()
    return render(
        request, "task_settings.html", **_frame(request, found), text=text, problem=problem
    )


@router.get("/tasks/{name}/operations", dependencies=[allowed(Action.VIEW_OPERATIONS)])
async def operations(request: Request, name: str) -> HTMLResponse:
    """The newest operations on a task or on one of its datasets."""
    found = await projects_api.task(request, name)
    datasets = await datasets_api.datasets(request, task=name, limit=_OPERATIONS)
    called = {name, *(one.name for one in datasets.items)}
    made, problem = [], None
    try:
        newest = await run_in_threadpool(operations_api.operations, request, _OPERATIONS)
        made = [one for one in newest.items if not called.isdisjoint(one.objects)]
    except PolynyaError as error:
        problem = error.as_dict()
    return render(
        request, "task_operations.html", **_frame(request, found), operations=made, problem=problem
    )


async def _named(request: Request, datasets: ListPage[DatasetShown]) -> list[str]:
    """Names or a glob of exactly the datasets of a task, for an action; none where none is so."""
    if datasets.total <= _MOST_NAMED:
        return [one.name for one in datasets.items]
    if not datasets.items:
        return []
    glob = f"{datasets.items[0].name.partition('.')[0]}.*"
    found = await datasets_api.datasets(request, name=glob, limit=1)
    return [glob] if found.total == datasets.total else []


def _frame(request: Request, found: TaskShown) -> dict[str, Any]:
    """What all pages of a task show."""
    base = f"/console/tasks/{found.name}"
    tabs = [(base, "State"), (f"{base}/latency", "Latency and backlog")]
    if may(request, Action.VIEW_DOCUMENTS):
        tabs.append((f"{base}/settings", "Settings"))
    if may(request, Action.VIEW_OPERATIONS):
        tabs.append((f"{base}/operations", "Operations"))
    return {"task": found, "tabs": tabs}
