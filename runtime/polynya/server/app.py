"""The app: the API below `/api/v1`, the catalog below `/iceberg`, the console `/console`."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI

from polynya import __version__
from polynya.server.console import access as access_pages
from polynya.server.console import actions as action_pages
from polynya.server.console import assets
from polynya.server.console import automations as automation_pages
from polynya.server.console import clusters as cluster_pages
from polynya.server.console import datasets as dataset_pages
from polynya.server.console import documents as document_pages
from polynya.server.console import errors as error_pages
from polynya.server.console import events as event_pages
from polynya.server.console import flows as flow_pages
from polynya.server.console import lineage as lineage_pages
from polynya.server.console import operations as operation_pages
from polynya.server.console import overview as overview_pages
from polynya.server.console import plans as plan_pages
from polynya.server.console import query as query_pages
from polynya.server.console import record as record_pages
from polynya.server.console import sources as source_pages
from polynya.server.console import steps as step_pages
from polynya.server.console import tasks as task_pages
from polynya.server.console import transforms as transform_pages
from polynya.server.console import why as why_pages
from polynya.server.console.html import problem_page
from polynya.server.problems import answer_with_problems
from polynya.server.routes import (
    access,
    actions,
    automation_calls,
    automations,
    captures,
    clusters,
    datasets,
    documents,
    iceberg,
    latency,
    lineage,
    metrics,
    notifications,
    operations,
    plans,
    projects,
    queries,
    records,
    runs,
    streams,
    transforms,
    why,
)
from polynya.server.state import ServerState

#: Each module of `server/routes/` with a `router` below `/api/v1`.
ROUTERS: Final = (
    access.router,
    projects.router,
    datasets.router,
    latency.router,
    plans.router,
    records.router,
    why.router,
    runs.router,
    captures.router,
    streams.router,
    clusters.router,
    documents.router,
    lineage.router,
    metrics.router,
    queries.router,
    transforms.router,
    actions.router,
    automation_calls.router,
    automations.router,
    notifications.router,
    operations.router,
)
#: Each module of `server/console/` with a `router` below `/console`.
PAGES: Final = (
    assets.router,
    overview_pages.router,
    task_pages.router,
    dataset_pages.router,
    source_pages.router,
    event_pages.router,
    error_pages.router,
    action_pages.router,
    document_pages.router,
    lineage_pages.router,
    query_pages.router,
    record_pages.router,
    plan_pages.router,
    transform_pages.router,
    step_pages.router,
    flow_pages.router,
    why_pages.router,
    operation_pages.router,
    automation_pages.router,
    cluster_pages.router,
    access_pages.router,
)
_ABOUT: Final = "Tasks, datasets, documents and queries of one Polynya project."


def app_of(state: ServerState) -> FastAPI:
    """The API of a project, by ASGI. `server/access/guard.py` stands before it."""
    app = FastAPI(
        title="Polynya",
        description=_ABOUT,
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        # The guard makes a span of each request, without its address, which may have keys of rows.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        docs_url=None,
        redoc_url=None,
    )
    app.state.polynya = state
    app.state.problem_page = problem_page
    answer_with_problems(app)
    for router in ROUTERS:
        app.include_router(router, prefix="/api/v1")
    app.include_router(iceberg.router)
    app.include_router(overview_pages.home, include_in_schema=False)
    for router in PAGES:
        app.include_router(router, prefix="/console", include_in_schema=False)
    return app
