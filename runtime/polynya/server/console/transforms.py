"""The pages of transforms and marts: their queries as graphs, and how steps compute them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse

from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import duration, number, render
from polynya.server.console.page import page_router
from polynya.server.pages import Cursor
from polynya.server.routes import transforms as transforms_api
from polynya.server.routes.transforms import FlowStepRows, FlowStepShown, TransformDetails
from polynya.server.state import ServerState

router = page_router()


@router.get("/transforms", dependencies=[allowed(Action.VIEW_PROJECT)])
async def transforms(request: Request, cursor: Cursor = None) -> HTMLResponse:
    """The tables that queries keep."""
    found = await transforms_api.transforms(request, cursor=cursor)
    overview, _ = await ServerState.of(request).newest()
    return render(
        request,
        "transforms.html",
        fragment="list",
        transforms=found,
        cursor=cursor,
        as_of=overview.at,
    )


@router.get("/transforms/{task}/{dataset}", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def transform(request: Request, task: str, dataset: str) -> HTMLResponse:
    """One table that a query keeps."""
    found = transforms_api.transform(request, task, dataset)
    nodes, edges = drawn(found, known_rows(request), {})
    words = ["flow", "show", dataset] if found.query == "flow" else ["mart", "show", task]
    if found.query == "sql":
        words = ["lineage", dataset]
    return render(
        request,
        "transform.html",
        transform=found,
        nodes=nodes,
        edges=edges,
        command=shlex.join(["polynya", *words]),
        address=f"/console/transforms/{quote(task)}/{quote(dataset)}",
        as_of=ServerState.of(request).overview.newest().at,
    )


def known_rows(request: Request) -> dict[str, int]:
    """The rows of Current of each table that was looked at."""
    datasets = ServerState.of(request).overview.newest().datasets
    return {
        name: one.status.current_rows for name, one in datasets.items() if one.status is not None
    }


def drawn(
    found: TransformDetails, rows: Mapping[str, int], counts: Mapping[str, FlowStepRows]
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """A query as a graph: its inputs with their rows, its steps, and the result.

    Steps that were counted have their rows and seconds, others their columns.
    """
    nodes: list[dict[str, Any]] = [
        {
            "id": name,
            "title": name,
            "says": f"{number(rows[name])} rows" if name in rows else "input",
            "path": f"/console/lineage?{urlencode({'of': name})}",
        }
        for name in found.inputs
    ]
    edges = []
    for place, step in enumerate(found.steps, 1):
        nodes.append(
            {
                "id": f"step {step.name}",
                # A part of a `WITH` is known by its name, a step of a flow by what it does.
                "title": f"{place} {step.name if step.processor == 'with' else step.processor}",
                "says": _of_step(step, counts.get(step.name)),
                "path": f"#step-{place}",
            }
        )
        known = {f"step {one.name}" for one in found.steps[: place - 1]}
        for read in step.reads:
            origin = f"step {read}" if f"step {read}" in known else read
            edges.append({"from": origin, "to": f"step {step.name}"})
    result = f"result {found.dataset}"
    told = [
        *([] if found.rows is None else [f"{number(found.rows)} rows"]),
        *([] if found.last_seconds is None else [duration(found.last_seconds)]),
    ]
    nodes.append(
        {
            "id": result,
            "title": found.dataset,
            "says": ", ".join(told) or "not derived yet",
            "path": f"/console/datasets/{quote(found.dataset)}",
            "word": "subject",
        }
    )
    last = [f"step {found.steps[-1].name}"] if found.steps else found.inputs
    there = {one["id"] for one in nodes}
    edges += [{"from": one, "to": result} for one in last]
    return nodes, [one for one in edges if one["from"] in there]


def _of_step(step: FlowStepShown, counted: FlowStepRows | None) -> str:
    count, word = (len(step.columns), "column") if counted is None else (counted.total, "row")
    said = f"{number(count)} {word}{'' if count == 1 else 's'}"
    return said if counted is None else f"{said}, {duration(counted.seconds)}"
