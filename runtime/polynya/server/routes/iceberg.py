"""The catalog for other engines, by the read part of Iceberg's REST protocol, below `/iceberg`."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from polynya.model.error_catalogue.access import NOT_READABLE
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, caller
from polynya.server.access.views import reads_whole_project
from polynya.server.state import ServerState

router = APIRouter()

#: Those that any path of the protocol knows.
METHODS: Final = ("DELETE", "GET", "HEAD", "POST", "PUT")


@router.api_route(
    "/iceberg/{path:path}",
    methods=list(METHODS),
    include_in_schema=False,
    dependencies=[allowed(Action.READ_CATALOG)],
)
def iceberg(request: Request, path: str) -> Response:
    """Answer one request of the protocol."""
    # Start-up time: DuckDB and sqlglot.
    from polynya.engine.rest_protocol import RestRequest, answer

    person, document = caller(request)
    if not reads_whole_project(person, document):
        raise NOT_READABLE(view="the catalog of the project", person=person.name)
    del path  # as the client has sent it, still escaped
    target = request.scope["raw_path"].decode("ascii").removeprefix("/iceberg")
    if request.url.query:
        target = f"{target}?{request.url.query}"
    asked = RestRequest(request.method, target, request.headers.get("if-none-match", ""))
    found = answer(asked, ServerState.of(request).catalog)
    body = b"" if request.method == "HEAD" else found.body
    return Response(body, found.status, dict(found.headers), media_type="application/json")
