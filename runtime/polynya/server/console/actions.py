"""The forms of actions: what the API can start, with the equal command to copy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from polynya.server.access.door import allowed
from polynya.server.console.forms import Posted, fields, read, sent, values
from polynya.server.console.html import is_fragment, render
from polynya.server.console.page import page_router
from polynya.server.operations.verbs import VERBS, Verb, arguments
from polynya.server.routes.actions import start_action

router = page_router()


def _form_route(verb: Verb) -> Callable[[Request], HTMLResponse]:
    def form(request: Request) -> HTMLResponse:
        given = sent(request.url.query.encode())
        part = "command" if request.headers.get("hx-target") == "div#command" else "form"
        return render(
            request,
            "action.html",
            fragment=part,
            verb=verb,
            fields=fields(verb.parameters, given),
            command=_command(verb, given),
        )

    return form


def _start_route(verb: Verb) -> Callable[[Request, Posted], Response]:
    def start(request: Request, form: Posted) -> Response:
        operation = start_action(request, verb, read(verb.parameters, form))
        path = f"/console/operations/{operation.id}"
        if is_fragment(request):
            return Response(status_code=204, headers={"HX-Redirect": path})
        return Response(status_code=303, headers={"Location": path})

    return start


def _command(verb: Verb, given: Mapping[str, Sequence[str]]) -> str:
    """The equal command line; only its words where parameters are still missing."""
    try:
        made = verb.parameters.model_validate(values(verb.parameters, given))
    except ValidationError:
        return shlex.join(["polynya", *verb.words])
    return shlex.join(["polynya", *arguments(verb, made)])


for _verb in VERBS.values():
    _path, _door = f"/actions/{_verb.name}", [allowed(_verb.action)]
    router.get(_path, dependencies=_door)(_form_route(_verb))
    router.post(_path, dependencies=_door)(_start_route(_verb))
