"""The app of the API: every route, below `/api/v1`, and the catalog below `/iceberg`."""

from __future__ import annotations

from typing import Final

from fastapi import FastAPI
from starlette.middleware.base import RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from polynya import __version__
from polynya.model.error_catalogue.server import BODY_TOO_LARGE, HOST_REFUSED, REQUEST_INVALID
from polynya.model.names import shown
from polynya.server.problems import answer_with_problems, problem
from polynya.server.routes import (
    access,
    actions,
    datasets,
    documents,
    iceberg,
    lineage,
    metrics,
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
    operations.router,
)
#: Bytes of the body of a request.
MOST_BODY_BYTES: Final = 1024 * 1024
_ABOUT: Final = "Tasks, datasets, documents and queries of one Polynya project."
#: Headers of every answer: it is data, never a page, and nothing keeps it.
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def app_of(state: ServerState) -> FastAPI:
    """The API of a project, by ASGI."""
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
    app.middleware("http")(_guarded)
    return app


async def _guarded(request: Request, following: RequestResponseEndpoint) -> Response:
    """Refuse requests for other hosts, of other sites, and large ones, before any route."""
    answer = await _refused(request)
    if answer is None:
        answer = await following(request)
    answer.headers.update(_HEADERS)
    return answer


async def _refused(request: Request) -> Response | None:
    if "polynya.person" in request.scope:
        # The guard of `polynya serve` has looked at all of this, for the server's own names, too.
        return None
    state = ServerState.of(request)
    if (request.url.hostname or "") not in state.names:
        return problem(HOST_REFUSED(host=shown(request.headers.get("host", ""))))
    # A page of another site can send requests from a browser, though it reads no answer.
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{request.url.scheme}://{request.headers.get('host')}":
        return problem(HOST_REFUSED(host=shown(origin)))
    given = request.headers.get("content-length")
    if given is None and "transfer-encoding" in request.headers:
        return problem(REQUEST_INVALID(reason="a body needs the header `Content-Length`"))
    if given is not None and int(given) > MOST_BODY_BYTES:
        return problem(BODY_TOO_LARGE(most=MOST_BODY_BYTES))
    return None
