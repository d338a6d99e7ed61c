"""The pages of clusters: nodes, units of work, and the reasons for their places."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import asked, page_router
from polynya.server.pages import Cursor
from polynya.server.routes import clusters as clusters_api

router = page_router()

_MOST_NODES: Final = 500


@router.get("/clusters", dependencies=[allowed(Action.VIEW_CLUSTER)])
def clusters(request: Request, cursor: Cursor = None) -> HTMLResponse:
    """The clusters of the project."""
    found = clusters_api.clusters(request, cursor=cursor)
    return render(request, "clusters.html", fragment="list", clusters=found, cursor=cursor)


@router.get("/clusters/{name}", dependencies=[allowed(Action.VIEW_CLUSTER)])
async def cluster(
    request: Request,
    name: str,
    *,
    node: Annotated[str, Query(max_length=300)] = "",
    cursor: Cursor = None,
) -> HTMLResponse:
    """A cluster with its nodes and units; with `node` only the units of that one."""
    found = await run_in_threadpool(clusters_api.cluster, request, name)
    nodes, problem = await asked(
        request,
        "nodes and units are there",
        lambda: run_in_threadpool(clusters_api.nodes, request, name, limit=_MOST_NODES),
    )
    units = None
    if nodes is not None:
        units = await run_in_threadpool(
            clusters_api.units, request, name, node=node or None, cursor=cursor
        )
    return render(
        request,
        "cluster.html",
        fragment="state",
        cluster=found,
        nodes=nodes,
        units=units,
        problem=problem,
        node=node,
        cursor=cursor,
    )
