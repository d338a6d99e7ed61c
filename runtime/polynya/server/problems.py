"""Errors as answers of the API: `application/problem+json` (RFC 9457), with codes of Polynya."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from polynya.engine.errors import as_polynya
from polynya.model.error_catalogue.machine import DISK_FULL
from polynya.model.error_catalogue.server import (
    DOCUMENT_CHANGED,
    METHOD_NOT_ALLOWED,
    NO_SUCH_RESOURCE,
    REQUEST_INVALID,
    SERVER_BUSY,
)
from polynya.model.error_catalogue.server_queries import QUERIES_OF_PERSON
from polynya.model.errors import (
    ConfigError,
    ConfigErrors,
    ConflictError,
    DependencyError,
    InternalError,
    OperationError,
    PolynyaError,
    RefusedError,
)
from polynya.model.names import shown

#: The media type of RFC 9457.
PROBLEM: Final = "application/problem+json"
#: Errors whose status does not follow from their class.
_STATUSES: Final = {
    NO_SUCH_RESOURCE.code: 404,
    METHOD_NOT_ALLOWED.code: 405,
    DOCUMENT_CHANGED.code: 412,
    SERVER_BUSY.code: 503,
    DISK_FULL.code: 507,
    QUERIES_OF_PERSON.code: 429,
}


def status_of(error: PolynyaError) -> int:
    """The HTTP status of an error, by whose fault it is."""
    if error.code in _STATUSES:
        return _STATUSES[error.code]
    if isinstance(error, RefusedError):
        return error.status
    if isinstance(error, ConfigError | OperationError):
        # What the request asks for cannot be done; 500 is for our own faults.
        return 422
    if isinstance(error, ConflictError):
        return 409
    if isinstance(error, DependencyError):
        return 503
    return 500


def problem(error: PolynyaError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer that tells of an error.

    The body has `type`, `title`, `status`, and the parts of the error: `code`, `where`, `why`,
    `state` (of the data), `fix`, `retryable`; `errors` where there are several.
    """
    parts = error.as_dict()
    status = status_of(error)
    body: dict[str, object] = {
        "type": f"urn:polynya:error:{error.code}",
        "title": parts.pop("message"),
        "status": status,
        **parts,
    }
    if isinstance(error, ConfigErrors):
        body["errors"] = [one.as_dict() for one in error.errors]
    if isinstance(error, RefusedError):
        headers = {**error.headers, **(headers or {})}
    return JSONResponse(body, status, headers, media_type=PROBLEM)


def answer_to(
    scope: Mapping[str, Any], error: PolynyaError, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer that tells of an error: a page of the console to those who asked for one.

    The app has what makes such a page as `state.problem_page`, because pages stand above this.
    """
    told = problem(error, headers)
    page = getattr(scope["app"].state, "problem_page", None)
    if page is None or not str(scope["path"]).startswith("/console"):
        return told
    kept = {name: text for name, text in told.headers.items() if not name.startswith("content-")}
    made: Response = page(scope, json.loads(bytes(told.body)), told.status_code, kept)
    return made


def answer_with_problems(app: FastAPI) -> None:
    """Have an app answer each error as a problem, also those of the framework and bugs."""

    @app.exception_handler(PolynyaError)
    def known(request: Request, error: PolynyaError) -> Response:
        # For the line of the request in the audit log.
        request.scope["polynya.code"] = error.code
        return answer_to(request.scope, error)

    @app.exception_handler(OSError)
    def of_system(request: Request, error: OSError) -> Response:
        found = as_polynya(error)
        if isinstance(found, InternalError):
            # Of a library, which uses the class for its own errors.
            raise error
        return known(request, found)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or first["loc"][0]
        reason = f"{shown(str(place))}: {first['msg']}"
        return answer_to(request.scope, REQUEST_INVALID(reason=reason))

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        path = shown(request.url.path)
        if error.status_code == 405:
            refusal = METHOD_NOT_ALLOWED(path=path, method=request.method)
            return answer_to(request.scope, refusal, error.headers)
        if error.status_code == 404:
            return answer_to(request.scope, NO_SUCH_RESOURCE(what=path))
        return answer_to(request.scope, REQUEST_INVALID(reason=str(error.detail)))

    @app.exception_handler(Exception)
    def bug(request: Request, error: Exception) -> Response:
        return answer_to(request.scope, as_polynya(error))
