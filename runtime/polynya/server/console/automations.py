"""The pages of automations and notifications: what runs when, what ran, and who was told."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import page_router
from polynya.server.pages import Cursor
from polynya.server.routes import automations as automations_api
from polynya.server.routes import notifications as notifications_api
from polynya.server.routes.notifications import TestAsked

router = page_router()

_MOMENTS: Final = 5
_NOTICES: Final = 50


@router.get("/automations", dependencies=[allowed(Action.VIEW_AUTOMATIONS)])
def automations(request: Request, cursor: Cursor = None) -> HTMLResponse:
    """The automations with their next moments and their last runs."""
    found = automations_api.automations(request, cursor=cursor)
    return render(request, "automations.html", fragment="list", automations=found, cursor=cursor)


@router.get("/automations/{name}", dependencies=[allowed(Action.VIEW_AUTOMATIONS)])
def automation(request: Request, name: str, cursor: Cursor = None) -> HTMLResponse:
    """One automation: when it runs next, its definition, and its runs with each step."""
    return _shown(request, name, cursor)


@router.post("/automations/{name}/pause", dependencies=[allowed(Action.PAUSE_AUTOMATION)])
def pause(request: Request, name: str) -> HTMLResponse:
    """Pause an automation."""
    automations_api.pause(request, name)
    return _shown(request, name, None)


@router.post("/automations/{name}/resume", dependencies=[allowed(Action.PAUSE_AUTOMATION)])
def resume(request: Request, name: str) -> HTMLResponse:
    """Resume a paused automation."""
    automations_api.resume(request, name)
    return _shown(request, name, None)


def _shown(request: Request, name: str, cursor: str | None) -> HTMLResponse:
    return render(
        request,
        "automation.html",
        fragment="state",
        automation=automations_api.automation(request, name, moments=_MOMENTS),
        runs=automations_api.runs(request, name, cursor=cursor),
        cursor=cursor,
        path=f"/console/automations/{name}",
    )


@router.get("/notifications", dependencies=[allowed(Action.VIEW_NOTIFICATIONS)])
def notifications(
    request: Request, cursor: Annotated[str | None, Query(max_length=100)] = None
) -> HTMLResponse:
    """What is wrong now and who was told, the rules, and what was sent or held back."""
    return render(
        request,
        "notifications.html",
        fragment="list",
        opened=notifications_api.open_(request),
        rules=notifications_api.rules(request),
        notices=notifications_api.history(request, limit=_NOTICES, cursor=cursor),
        cursor=cursor,
    )


@router.post("/notifications/{route}/test", dependencies=[allowed(Action.TEST_NOTIFICATION)])
def test(request: Request, route: str) -> HTMLResponse:
    """Send a test message on a route, given as `FILE.CHANNEL`."""
    tried = notifications_api.test(request, TestAsked(name=route))
    return render(request, "notification_test.html", fragment="tried", tried=tried)
