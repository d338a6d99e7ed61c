"""The app of the API: every route, below `/api/v1`, and the catalog below `/iceberg`."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI

from polynya import __version__
from polynya.server.problems import answer_with_problems
from polynya.server.routes import (
    access,
    actions,
    automation_calls,
    automations,
    datasets,
    documents,
    iceberg,
    lineage,
    metrics,
    notifications,
    operations,
    projects,
    queries,
)
from polynya.server.state import ServerState

#: Each module of `server/routes/` with a `router` below `/api/v1`.
ROUTERS: Final = (
    access.router,
    projects.router,
    datasets.router,
    documents.router,
    lineage.router,
    metrics.router,
    queries.router,
    actions.router,
    automation_calls.router,
    automations.router,
    notifications.router,
    operations.router,
)
_ABOUT: Final = "Tasks, datasets, documents and queries of one Polynya project."


def app_of(state: ServerState) -> FastAPI:
    """The API of a project, by ASGI. `server/access/guard.py` stands before it."""
    app = FastAPI(
        title="Polynya",
        description=_ABOUT,
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.polynya = state
    answer_with_problems(app)
    for router in ROUTERS:
        app.include_router(router, prefix="/api/v1")
    app.include_router(iceberg.router)
    return app
