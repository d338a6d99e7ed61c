"""The one door of the API: routes declare actions, and the door lets a person do them or not."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from polynya.model.config.access import AccessDocument
from polynya.model.error_catalogue.access import NOT_ALLOWED, NOT_LOGGED_IN
from polynya.server.access.actions import Action
from polynya.server.access.roles import LOCAL, NOBODY, Person, decide

#: Below these paths are the routes of the API, and the pages of the console.
API: Final = "/api/v1"
CONSOLE: Final = "/console"
#: The client that FastAPI's own test client shows; no address of a connection looks like it.
_TEST_CLIENT = "testclient"


def api_router(tag: str) -> APIRouter:
    """The router of a module of the API, with the tag of its routes in the OpenAPI document."""
    return APIRouter(prefix=API, tags=[tag])


def allowed(action: Action) -> Dependency:
    """The dependency of a route that asks whether the caller may do this.

    A route is declared as `@router.get("/tasks", dependencies=[allowed(Action.VIEW_PROJECT)])`.
    """
    found: Dependency = Depends(_Asked(action))
    return found


class _Asked:
    """Asks for one action; the generated test of all routes finds it by this class."""

    def __init__(self, action: Action) -> None:
        self.action = action

    async def __call__(self, request: Request) -> None:
        """Let the request pass, or raise RefusedError POLYNYA-ACC-001 or 002."""
        # Not in a thread: to get one takes longer than the decision.
        request.scope["polynya.action"] = self.action
        require(request, self.action)


def require(request: Request, action: Action) -> None:
    """Let a request pass whose caller may do this too; raise RefusedError POLYNYA-ACC-001 or 002.

    For what a route needs besides the action that it declares.
    """
    person, document = caller(request)
    decision = decide(person, action, document)
    if decision.allowed:
        return
    if person.proof == "none":
        raise NOT_LOGGED_IN().by(401, WWW_Authenticate='Bearer realm="polynya"')
    raise NOT_ALLOWED(person=person.name, action=action.value, reason=decision.reason).by(403)


def caller(request: Request) -> tuple[Person, AccessDocument | None]:
    """The person of a request, and the access document that decides about them.

    An app without a guard answers this machine only.
    """
    found = request.scope.get("polynya.person")
    if isinstance(found, Person):
        return found, request.scope.get("polynya.access")
    host = request.client.host if request.client is not None else ""
    return (LOCAL if host == _TEST_CLIENT or _is_loopback(host) else NOBODY), None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def action_of(route: APIRoute) -> Action | None:
    """The action that a route asks for; None for one that asks for none or several: a fault."""
    asked = [one.call for one in route.dependant.dependencies]
    found = [one.action for one in asked if isinstance(one, _Asked)]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class RouteAction:
    """A route of the API: its methods, its path, and the action that it asks for, if any."""

    methods: tuple[str, ...]
    path: str
    action: Action | None


def route_actions(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[RouteAction]:
    """Every route of an app with its action, those of included routers and mounted apps, too."""
    for route in routes:
        path = f"{prefix}{getattr(route, 'path', None) or ''}"
        inner: Any = getattr(route, "original_router", None)
        if inner is not None:
            context: Any = getattr(route, "include_context", None)
            yield from route_actions(inner.routes, f"{prefix}{getattr(context, 'prefix', '')}")
        elif isinstance(route, APIRoute):
            yield RouteAction(tuple(sorted(route.methods or ())), path, action_of(route))
        elif mounted := getattr(route, "routes", None):
            yield from route_actions(mounted, path)
        else:
            methods = tuple(sorted(getattr(route, "methods", None) or ("*",)))
            yield RouteAction(methods, path, None)


#: Routes without an action: what the API looks like, which is public with the program.
PUBLIC_PATHS = frozenset({"/openapi.json", "/api/v1/openapi.json"})


def unguarded(routes: Iterable[BaseRoute]) -> list[str]:
    """The routes that name no action, or several, and are not public, as `GET /path`."""
    return [
        f"{' '.join(one.methods)} {one.path}"
        for one in route_actions(routes)
        if one.action is None and one.path not in PUBLIC_PATHS
    ]
