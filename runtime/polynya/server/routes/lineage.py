"""What columns are made of, and what uses them, as a resource."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel

from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.state import ServerState

router = api_router("lineage")


class LineageShown(BaseModel):
    """The neighbourhood of a subject, as `polynya lineage -o json` writes it."""

    subject: str
    direction: str
    datasets: Any


@router.get("/lineage/{subject}", dependencies=[allowed(Action.VIEW_LINEAGE)])
def lineage(
    request: Request,
    subject: str,
    *,
    impact: Annotated[bool, Query(description="what uses it, not what it is made of")] = False,
    steps: Annotated[
        int | None, Query(ge=1, le=100, description="only datasets so many steps away")
    ] = None,
) -> LineageShown:
    """The lineage of a dataset (`schema.view`) or of a column of it."""
    # Start-up time: sqlglot.
    from polynya.engine.commands.lineage import nodes_of

    graph = ServerState.of(request).lineage()
    starts = nodes_of(graph, subject)
    chosen = graph.downstream(starts) if impact else graph.upstream(starts)
    if steps is not None:
        chosen = chosen.near({name for name, _ in starts}, steps)
    direction = "downstream" if impact else "upstream"
    return LineageShown(subject=subject, direction=direction, datasets=chosen.facts())
