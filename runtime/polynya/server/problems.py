"""Errors as answers of the API: `application/problem+json` (RFC 9457), with codes of Polynya."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    PolynyaError,
)

#: The media type of RFC 9457.
PROBLEM = "application/problem+json"


def status_of(error: PolynyaError) -> int:
    """The HTTP status of an error, by whose fault it is."""
    if isinstance(error, ConfigError):
        return 422
    if isinstance(error, ConflictError):
        return 409
    if isinstance(error, DependencyError):
        return 503
    return 500


def problem(error: PolynyaError, status: int | None = None) -> JSONResponse:
    """The answer that tells of an error.

    The body has `type`, `title`, `status`, and the parts of the error: `code`, `where`, `why`,
    `state` (of the data), `fix`, `retryable`.
    """
    parts = error.as_dict()
    status = status or status_of(error)
    body = {
        "type": f"urn:polynya:error:{error.code}",
        "title": parts.pop("message"),
        "status": status,
        **parts,
    }
    return JSONResponse(body, status, media_type=PROBLEM)


def answer_with_problems(app: FastAPI) -> None:
    """Have an app answer each error of Polynya as a problem."""

    @app.exception_handler(PolynyaError)
    def told(_: Request, error: PolynyaError) -> JSONResponse:
        return problem(error)
