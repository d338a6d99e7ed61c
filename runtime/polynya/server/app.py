"""The app of the API: every route, below `/api/v1`."""

from __future__ import annotations

from fastapi import FastAPI

from polynya import __version__
from polynya.server.problems import answer_with_problems
from polynya.server.routes import projects
from polynya.server.state import ServerState

#: Each module of `server/routes/` that has a `router`.
_ROUTERS = (projects.router,)


def app_of(state: ServerState) -> FastAPI:
    """The API of a project, by ASGI."""
    app = FastAPI(title="Polynya", version=__version__, docs_url=None, redoc_url=None)
    app.state.polynya = state
    answer_with_problems(app)
    for router in _ROUTERS:
        app.include_router(router, prefix="/api/v1")
    return app
