"""The one door of the API: routes declare actions, and the door lets a person do them or not."""

from __future__ import annotations

from fastapi import Depends, Request
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute

from polynya.server.access.actions import Action


class _Door:
    """Asks for one action."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def __call__(self, request: Request) -> None:
        """Let the request pass: the server listens for this machine's own user alone."""


def allowed(action: Action) -> Dependency:
    """The dependency of a route that asks whether the caller may do this.

    A route is declared as `@router.get("/tasks", dependencies=[allowed(Action.VIEW_PROJECT)])`.
    """
    door: Dependency = Depends(_Door(action))
    return door


def action_of(route: APIRoute) -> Action | None:
    """The action that a route asks for; None for one that asks for none, which is a fault."""
    doors = [one.dependency for one in route.dependencies if isinstance(one.dependency, _Door)]
    return doors[0].action if len(doors) == 1 else None
