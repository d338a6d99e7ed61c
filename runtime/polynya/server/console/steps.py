"""Rows and seconds at each step of a query: of a flow, or of the parts that a `WITH` names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Path, Request
from fastapi.responses import HTMLResponse

from polynya.model.errors import PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, require
from polynya.server.console.html import render
from polynya.server.console.page import SlowPage, is_answer, page_router
from polynya.server.console.query import cells
from polynya.server.console.transforms import drawn, known_rows
from polynya.server.problems import status_of
from polynya.server.routes import transforms as transforms_api
from polynya.server.routes.transforms import FlowStepRows
from polynya.server.state import ServerState

router = page_router(SlowPage)

#: Rows of a preview.
MOST_ROWS: Final = 20
#: Seconds for one step, and for all of a query.
_STEP_SECONDS: Final = 10.0
_ALL_SECONDS: Final = 30.0
StepNumber = Annotated[int, Path(ge=0, lt=10_000)]


@router.get("/transforms/{task}/{dataset}/rows/{step}", dependencies=[allowed(Action.QUERY_DATA)])
def rows_of_step(request: Request, task: str, dataset: str, step: StepNumber) -> HTMLResponse:
    """Some rows of a step of a query as its file has it."""
    return rows_page(
        request,
        step,
        lambda: transforms_api.step_rows(request, task, dataset, step, limit=MOST_ROWS),
        above=dataset,
        above_path=f"/console/transforms/{quote(task)}/{quote(dataset)}",
    )


@router.get("/transforms/{task}/{dataset}/counts", dependencies=[allowed(Action.QUERY_DATA)])
def counted(request: Request, task: str, dataset: str) -> HTMLResponse:
    """The graph of a query with rows and seconds at each step, or why they are not known."""
    require(request, Action.VIEW_DOCUMENTS)
    found = transforms_api.transform(request, task, dataset)
    clock = ServerState.of(request).clock
    until = clock.monotonic() + _ALL_SECONDS
    counts: dict[str, FlowStepRows] = {}
    problems: dict[str, dict[str, Any]] = {}
    for number, step in enumerate(found.steps):
        left = min(_STEP_SECONDS, until - clock.monotonic())
        if left <= 0:
            break
        try:
            counts[step.name] = transforms_api.step_rows(
                request, task, dataset, number, limit=1, seconds=left
            )
        except PolynyaError as error:
            if not is_answer(error):
                raise
            problems.setdefault(error.message, error.as_dict())
    nodes, edges = drawn(found, known_rows(request), counts)
    return render(
        request,
        "transform_counts.html",
        fragment="counts",
        nodes=nodes,
        edges=edges,
        missing=len(found.steps) - len(counts),
        problems=list(problems.values()),
        above=dataset,
        above_path=f"/console/transforms/{quote(task)}/{quote(dataset)}",
    )


def rows_page(
    request: Request,
    step: int,
    ask: Callable[[], FlowStepRows],
    *,
    above: str = "Transforms and marts",
    above_path: str = "/console/transforms",
) -> HTMLResponse:
    """Some rows of a step, or the error that answers instead."""
    facts: dict[str, Any] = {"answer": None, "rows": [], "error": None}
    status = 200
    try:
        answer = ask()
        facts |= {"answer": answer, "rows": cells(answer)}
    except PolynyaError as error:
        if request.method == "GET" and not is_answer(error):
            raise
        facts["error"], status = error.as_dict(), status_of(error)
    return render(
        request,
        "flow_rows.html",
        fragment="rows",
        status=status,
        number=step,
        above=above,
        above_path=above_path,
        **facts,
    )
