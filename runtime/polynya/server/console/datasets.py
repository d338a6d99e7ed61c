"""The pages of one dataset: its state, latency, columns, rejected records, commits and files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from polynya.model.config.access import ViewKind
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.errors import PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.access.views import ALL_KINDS
from polynya.server.console.buttons import for_part, of_dataset, offered
from polynya.server.console.charts import Days, Percentile, charts
from polynya.server.console.html import may, render
from polynya.server.console.page import asked, page_router
from polynya.server.pages import Cursor
from polynya.server.routes import datasets as datasets_api
from polynya.server.routes import latency as latency_api
from polynya.server.routes import projects as projects_api
from polynya.server.routes import runs as runs_api
from polynya.server.routes.datasets import DatasetDetails

router = page_router()

#: Signs of a value that the page shows; the API has it whole.
_LONGEST_VALUE: Final = 500
_SNAPSHOTS_OF_A_PAGE: Final = 50


@router.get("/datasets/{name}", dependencies=[allowed(Action.VIEW_PROJECT)])
async def state(request: Request, name: str) -> HTMLResponse:
    """What comes in, what is pending and what was applied, and what is not as it should be."""
    frame = await _frame(request, name)
    found: DatasetDetails = frame["dataset"]
    helps = {one.part: for_part(found, one.part) for one in found.parts}
    return render(
        request,
        "dataset.html",
        fragment="state",
        **frame,
        helps={part: offered(request, [one]) for part, one in helps.items() if one is not None},
    )


@router.get("/datasets/{name}/latency", dependencies=[allowed(Action.VIEW_PROJECT)])
async def latency(
    request: Request, name: str, days: Days = "30", percentile: Percentile = "95"
) -> HTMLResponse:
    """How long changes took over time, part by part, and what waited."""
    frame = await _frame(request, name)
    found = await charts(
        request,
        lambda **window: run_in_threadpool(latency_api.dataset_latency, request, name, **window),
        days,
        percentile,
    )
    return render(
        request,
        "dataset_latency.html",
        fragment="latency",
        **frame,
        **found,
        command=f"polynya latency {shlex.quote(name)} --window {days}d",
    )


@router.get("/datasets/{name}/schema", dependencies=[allowed(Action.VIEW_PROJECT)])
async def schema(request: Request, name: str) -> HTMLResponse:
    """The columns of a dataset, and how the source's shape has changed."""
    frame = await _frame(request, name)
    changes = reversed(list(frame["dataset"].status.get("shape_changes", ())))
    return render(
        request,
        "dataset_schema.html",
        **frame,
        changes=[one if isinstance(one, dict) else asdict(one) for one in changes],
    )


@router.get("/datasets/{name}/quarantine", dependencies=[allowed(Action.VIEW_QUARANTINE)])
async def quarantine(
    request: Request,
    name: str,
    rule: Annotated[str, Query(max_length=200)] = "",
    cursor: Cursor = None,
) -> HTMLResponse:
    """Rejected records as they stood, each with its rule and its error."""
    frame = await _frame(request, name)
    records, problem = await asked(
        request,
        "the quarantine holds",
        lambda: run_in_threadpool(
            datasets_api.quarantined,
            request,
            name,
            rule=rule or None,
            cursor=cursor,
        ),
    )
    return render(
        request,
        "dataset_quarantine.html",
        fragment="list",
        **frame,
        records=records,
        rule=rule,
        cursor=cursor,
        problem=problem,
    )


@router.get("/datasets/{name}/rows", dependencies=[allowed(Action.QUERY_DATA)])
async def rows(request: Request, name: str, view: ViewKind = "current") -> HTMLResponse:
    """Some rows of a view, within the rights of the person who looks."""
    frame = await _frame(request, name)
    found, problem = await asked(
        request, "the view has", lambda: run_in_threadpool(datasets_api.rows, request, name, view)
    )
    keys = frame["dataset"].keys
    return render(
        request,
        "dataset_rows.html",
        fragment="list",
        **frame,
        columns=found.columns if found else {},
        rows=[(_record(name, keys, row), _cells(row)) for row in (found.rows if found else ())],
        more=found is not None and found.more,
        sql=found.sql if found else "",
        view=view,
        views=ALL_KINDS,
        problem=problem,
    )


@router.get("/datasets/{name}/snapshots", dependencies=[allowed(Action.VIEW_PROJECT)])
async def snapshots(request: Request, name: str, cursor: Cursor = None) -> HTMLResponse:
    """The commits of a dataset's table."""
    frame = await _frame(request, name)
    commits, problem = await asked(
        request,
        "was committed",
        lambda: run_in_threadpool(
            runs_api.table_commits,
            request,
            name,
            limit=_SNAPSHOTS_OF_A_PAGE,
            cursor=cursor,
        ),
    )
    oldest_first = commits.items[::-1] if commits else []
    return render(
        request,
        "dataset_snapshots.html",
        fragment="list",
        **frame,
        commits=commits,
        times=[_seconds(one.at) for one in oldest_first],
        series=[
            {"name": title, "values": [one.rows.get(key) for one in oldest_first]}
            for title, key in (
                ("copied", "out"),
                ("applied", "events"),
                ("rejected", "quarantined"),
            )
        ],
        cursor=cursor,
        problem=problem,
    )


@router.get("/datasets/{name}/files", dependencies=[allowed(Action.VIEW_PROJECT)])
async def files(request: Request, name: str) -> HTMLResponse:
    """The files of a dataset's table, and what maintenance will do about them."""
    frame = await _frame(request, name)
    found, problem = await asked(
        request,
        "the table consists of",
        lambda: run_in_threadpool(datasets_api.files, request, name),
    )
    return render(request, "dataset_files.html", **frame, files=found, problem=problem)


async def _frame(request: Request, name: str) -> dict[str, Any]:
    """What all pages of a dataset show."""
    found = await datasets_api.dataset(request, name)
    base = f"/console/datasets/{found.name}"
    tabs = [(base, "State"), (f"{base}/schema", "Schema")]
    if may(request, Action.VIEW_QUARANTINE):
        tabs.append((f"{base}/quarantine", "Quarantine"))
    if may(request, Action.QUERY_DATA):
        tabs.append((f"{base}/rows", "Rows"))
    tabs += [
        (f"{base}/latency", "Latency and backlog"),
        (f"{base}/snapshots", "Snapshots"),
        (f"{base}/files", "Files"),
    ]
    return {
        "dataset": found,
        "base": base,
        "tabs": tabs,
        "buttons": offered(request, of_dataset(found, await _kind(request, found.task))),
    }


async def _kind(request: Request, task: str) -> str:
    try:
        return (await projects_api.task(request, task)).kind
    except PolynyaError as error:
        if error.code != NO_SUCH_RESOURCE.code:
            raise
        # Its file has just gone; the page says what is still known of its tables.
        return ""


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _record(dataset: str, keys: Sequence[str], row: Mapping[str, Any]) -> str | None:
    """The address of the history of a row's record; None where its key is not known or masked."""
    values = [(key, row.get(key)) for key in keys]
    if not values or any(value is None for _, value in values):
        return None
    key = [f"{name}={_cell(value)}" for name, value in values]
    query = urlencode({"dataset": dataset, "key": key}, doseq=True, errors="replace")
    return f"/console/record?{query}"


def _cells(row: Mapping[str, Any]) -> list[str | None]:
    return [None if value is None else _cut(_cell(value)) for value in row.values()]


def _cell(value: Any) -> str:
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
