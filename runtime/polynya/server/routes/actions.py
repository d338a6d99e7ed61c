"""Actions of the API: each request becomes an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from polynya.model.error_catalogue.server_operations import TASK_UNKNOWN_TO_ACTION
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.roles import decide
from polynya.server.operations.manager import refusal
from polynya.server.operations.verbs import (
    VERBS,
    AutomationParameters,
    NoParameters,
    TaskParameters,
    Verb,
    arguments,
    objects,
)
from polynya.server.routes.automations import automation_of
from polynya.server.routes.operations import (
    IdempotencyKey,
    OperationShown,
    manager_of,
    view_of,
)
from polynya.server.state import ServerState

router = api_router("actions")


class ActionShown(BaseModel):
    """An action that a person may start; `refused` is why this server does not start it."""

    name: str
    command: str
    summary: str
    path: str
    right: Action
    refused: dict[str, Any] | None


@router.get("/actions", dependencies=[allowed(Action.VIEW_PROJECT)])
def actions(request: Request) -> list[ActionShown]:
    """The actions that your roles allow, in the order of their names."""
    person, document = caller(request)
    mine = [one for one in VERBS.values() if decide(person, one.action, document).allowed]
    return [
        ActionShown(
            name=one.name,
            command=f"polynya {' '.join(one.words)}",
            summary=one.summary,
            path=f"/api/v1/actions/{one.name}",
            right=one.action,
            refused=None if (error := refused(request, one)) is None else error.as_dict(),
        )
        for one in sorted(mine, key=lambda one: one.name)
    ]


def refused(request: Request, verb: Verb) -> PolynyaError | None:
    """Why this server leaves an action to other machines; None where it starts it."""
    return refusal(verb, requests_only=ServerState.of(request).requests_only)


def _route_of(verb: Verb) -> Callable[..., OperationShown]:
    def start(
        request: Request,
        response: Response,
        parameters: NoParameters,
        idempotency_key: str | None = None,
    ) -> OperationShown:
        made = start_action(request, verb, parameters, key=idempotency_key)
        response.headers["Location"] = f"/api/v1/operations/{made.id}"
        return made

    start.__annotations__.update(
        request=Request,
        response=Response,
        parameters=verb.parameters,
        idempotency_key=IdempotencyKey,
    )
    start.__annotations__["return"] = OperationShown
    return start


def start_action(
    request: Request, verb: Verb, parameters: NoParameters, *, key: str | None = None
) -> OperationShown:
    """Start an action for the person of a request, or find what the same key has started."""
    if isinstance(parameters, TaskParameters):
        _check_task(request, parameters.task)
    if isinstance(parameters, AutomationParameters):
        automation_of(request, parameters.automation)
    name, _ = manager_of(request.app).submit(
        verb, arguments(verb, parameters), objects(parameters), by=_person(request), key=key
    )
    return OperationShown.of(view_of(request, name))


def _check_task(request: Request, task: str) -> None:
    if task not in ServerState.of(request).project().files:
        raise TASK_UNKNOWN_TO_ACTION(task=shown(task))


def _person(request: Request) -> str:
    """Name of the person whom the guard of the server found; empty without a login."""
    return str(getattr(request.scope.get("polynya.person"), "name", ""))


for _verb in VERBS.values():
    router.post(
        f"/actions/{_verb.name}",
        name=_verb.name,
        operation_id=_verb.name.replace("-", "_"),
        summary=_verb.summary,
        description=f"The equal command: `polynya {' '.join(_verb.words)}`.",
        status_code=202,
        dependencies=[allowed(_verb.action)],
    )(_route_of(_verb))
