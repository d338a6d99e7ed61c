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
    views,
    why,
)
from polynya.server.state import ServerState

#: Each module of `server/routes/` but that of the catalog.
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
    views.router,
    transforms.router,
    actions.router,
    automation_calls.router,
    automations.router,
    notifications.router,
    operations.router,
)
#: Each module of `server/console/` with pages.
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
        lifespan=operations.while_served,
    )
    app.state.polynya = state
    app.state.problem_page = problem_page
    answer_with_problems(app)
    # A router that is included has its routes built a second time, and is searched twice.
    for router in (*ROUTERS, iceberg.router, overview_pages.home, *PAGES):
        app.router.routes.extend(router.routes)
    return app
