"""The pages of plans: what files change, what that does to the data, and who decided."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from polynya.model.error_catalogue.server import REQUEST_INVALID
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.forms import Posted, last
from polynya.server.console.html import is_fragment, render
from polynya.server.console.page import page_router
from polynya.server.pages import Cursor
from polynya.server.routes import plans as plans_api
from polynya.server.routes.plans import ApplyAsked, DecisionAsked

router = page_router()

#: What a change waits for, in words.
_ACTIONS: Final = {
    "apply": "polynya migrate does it",
    "run": "the next run does it",
    "decide": "a person decides first",
    "nobody": "it happens by itself",
}
#: States of a plan whose command has not ended.
_UNDER_WAY: Final = frozenset({"making", "applying"})


@router.get("/plans", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def plans(request: Request, cursor: Cursor = None) -> HTMLResponse:
    """The plans that were made through this server."""
    found = plans_api.plans(request, cursor=cursor)
    return render(request, "plans.html", fragment="list", plans=found, cursor=cursor)


@router.post("/plans", dependencies=[allowed(Action.PLAN)])
def make(request: Request) -> Response:
    """Make a plan of the files as they are now."""
    found = plans_api.make_plan(request, Response())
    return _to(request, f"/console/plans/{found.id}")


@router.get("/plans/{name}", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def plan(request: Request, name: str, cursor: Cursor = None) -> HTMLResponse:
    """One plan, and what it does to the data."""
    return _shown(request, name, cursor)


@router.get("/plans/{name}/files", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def files(request: Request, name: str, cursor: Cursor = None) -> HTMLResponse:
    """The files that differ from what was applied last."""
    found = plans_api.plan_files(request, name, cursor=cursor)
    return render(request, "plan_files.html", fragment="files", files=found, plan_id=name)


@router.post("/plans/{name}/decide", dependencies=[allowed(Action.APPROVE_PLAN)])
def decide(request: Request, name: str, form: Posted) -> Response:
    """Approve or reject a plan."""
    asked = _decision(last(form, "comment"))
    routes = {"approved": plans_api.approve, "rejected": plans_api.reject}
    route = routes.get(last(form, "decision"))
    if route is None:
        raise REQUEST_INVALID(reason="`decision` is approved or rejected")
    route(request, name, asked)
    return _to(request, f"/console/plans/{name}")


@router.post("/plans/{name}/apply", dependencies=[allowed(Action.MIGRATE)])
def apply(request: Request, name: str, form: Posted) -> Response:
    """Carry out an approved plan."""
    if plans_api.plan(request, name).destructive and last(form, "confirmed") != "yes":
        raise REQUEST_INVALID(reason="the plan removes something; confirm that you have read it")
    try:
        asked = ApplyAsked.model_validate({"command": last(form, "command")})
    except ValidationError:
        raise REQUEST_INVALID(reason="`command` is migrate or run") from None
    found = plans_api.apply(request, Response(), name, asked)
    assert found.applied is not None, "it was noted a moment ago"
    return _to(request, f"/console/operations/{found.applied.operation}")


def _decision(comment: str) -> DecisionAsked:
    try:
        return DecisionAsked(comment=comment.strip() or None)
    except ValidationError:
        raise REQUEST_INVALID(reason="a comment has at most 2,000 characters") from None


def _shown(request: Request, name: str, cursor: str | None) -> HTMLResponse:
    found = plans_api.plan(request, name)
    facts: dict[str, Any] = {"plan": found, "under_way": found.state in _UNDER_WAY}
    effects = plans_api.effects(request, name, cursor=cursor)
    rewritten = [
        change.rewrites
        for effect in effects.items
        for change in effect.changes
        if change.rewrites is not None
    ]
    seconds = [one.seconds for one in rewritten if one.seconds is not None]
    return render(
        request,
        "plan.html",
        fragment="state",
        **facts,
        effects=effects,
        actions=_ACTIONS,
        rows=sum(one.rows for one in rewritten),
        files=sum(one.files for one in rewritten),
        bytes=sum(one.bytes for one in rewritten),
        seconds=sum(seconds) if seconds and len(seconds) == len(rewritten) else None,
        cursor=cursor,
    )


def _to(request: Request, path: str) -> Response:
    if is_fragment(request):
        return Response(status_code=204, headers={"HX-Redirect": path})
    return Response(status_code=303, headers={"Location": path})
