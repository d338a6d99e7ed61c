"""The pages of operations: what was started, and how far each one is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse

from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import page_router
from polynya.server.pages import Cursor
from polynya.server.routes import operations as operations_api

router = page_router()

_ENDED: Final = frozenset({"succeeded", "failed", "cancelled", "interrupted"})
#: The newest lines of output that a page shows; the API has them all.
_LINES: Final = 200


@router.get("/operations", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def operations(request: Request, cursor: Cursor = None) -> HTMLResponse:
    """What was started through the server."""
    found = operations_api.operations(request, cursor=cursor)
    return render(request, "operations.html", fragment="list", operations=found, cursor=cursor)


@router.get("/operations/{name}", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def operation(request: Request, name: str) -> HTMLResponse:
    """One operation as it is now; the page follows its events."""
    return _shown(request, name)


@router.post("/operations/{name}/cancel", dependencies=[allowed(Action.CANCEL_OPERATION)])
def cancel(request: Request, name: str) -> HTMLResponse:
    """Ask an operation to end."""
    operations_api.cancel(request, name)
    return _shown(request, name)


def _shown(request: Request, name: str) -> HTMLResponse:
    found = operations_api.operation(request, name)
    lines = operations_api.output(request, name).lines
    return render(
        request,
        "operation.html",
        fragment="state",
        operation=found,
        ended=found.status in _ENDED,
        errors=[line for line in lines if line.get("code")],
        lines=[_line(line) for line in lines[-_LINES:]],
        path=f"/console/operations/{name}",
    )


def _line(line: Mapping[str, Any]) -> dict[str, str]:
    """A line of JSON that a command wrote, as words."""
    kind = str(line.get("type") or ("error" if line.get("code") else "answer"))
    text = line.get("message")
    return {"kind": kind, "text": str(text) if text else "; ".join(_words(line.items()))}


def _words(items: Iterable[tuple[str, Any]]) -> list[str]:
    said = ((name, value) for name, value in items if name != "type" and value not in (None, ""))
    return [f"{name} {value}" for name, value in said]
