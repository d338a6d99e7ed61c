"""The pages of access: the person who looks, people and their roles, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse

from polynya.model.config.access import Role
from polynya.model.error_catalogue.server import REQUEST_INVALID
from polynya.server.access.actions import Action
from polynya.server.access.changes import people_of, with_role
from polynya.server.access.door import allowed, caller
from polynya.server.console.documents import lines_of
from polynya.server.console.forms import Posted, last, read
from polynya.server.console.html import is_fragment, render
from polynya.server.console.page import page_router
from polynya.server.routes import access as access_api
from polynya.server.routes.access import NewAccess, NewToken

router = page_router()

_AUDIT_LINES: Final = 100
#: What the form sends for a person who is to have no role.
_NO_ROLE: Final = "none"


@router.get("/access", dependencies=[allowed(Action.OWN_TOKENS)])
def myself(request: Request) -> HTMLResponse:
    """Who the person is to this server, their sessions and their tokens."""
    return _myself(request)


@router.post("/access/tokens", dependencies=[allowed(Action.OWN_TOKENS)])
def make_token(request: Request, form: Posted) -> HTMLResponse:
    """Make a token; the page shows its secret this one time."""
    made = access_api.make_token(request, read(NewToken, form))
    return _myself(request, made.token)


@router.post("/access/tokens/{token_id}/revoke", dependencies=[allowed(Action.OWN_TOKENS)])
def revoke_token(request: Request, token_id: str) -> HTMLResponse:
    """Revoke a token."""
    access_api.revoke_token(request, token_id)
    return _myself(request)


@router.post("/access/sessions/{session_id}/end", dependencies=[allowed(Action.OWN_TOKENS)])
def end_session(request: Request, session_id: str) -> HTMLResponse:
    """End a session of the person who looks."""
    access_api.end_session(request, session_id)
    return _myself(request)


def _myself(request: Request, secret: str | None = None) -> HTMLResponse:
    return render(
        request,
        "access.html",
        fragment="state",
        me=access_api.me(request),
        sessions=access_api.sessions(request),
        tokens=access_api.tokens(request),
        secret=secret,
        path="/console/access",
    )


@router.get("/access/people", dependencies=[allowed(Action.VIEW_ACCESS)])
def people(request: Request) -> HTMLResponse:
    """People and groups with their roles, what each role may do, and the file that says so."""
    file = access_api.access(request, answer := Response())
    _, document = caller(request)
    return render(
        request,
        "access_people.html",
        file=file,
        etag=answer.headers["ETag"],
        people={} if document is None else people_of(document),
        roles=access_api.roles(),
        actions=list(Action),
        choices=[*Role, _NO_ROLE],
    )


@router.post("/access/people", dependencies=[allowed(Action.MANAGE_ACCESS)])
def change_people(request: Request, form: Posted) -> Response:
    """Show what a change of the access file would do, and do it once it is confirmed."""
    file = access_api.access(request, answer := Response())
    etag = last(form, "etag") or answer.headers["ETag"]
    new = read(NewAccess, {"text": [_text(form, file.text)]})
    if last(form, "confirmed"):
        access_api.replace_access(request, new, etag)
        if is_fragment(request):
            return Response(status_code=204, headers={"HX-Redirect": "/console/access/people"})
        return Response(status_code=303, headers={"Location": "/console/access/people"})
    change = access_api.replace_access(request, new, etag, dry_run=True)
    return render(
        request, "access_change.html", fragment="change", text=new.text, etag=etag, change=change
    )


def _text(form: Mapping[str, Sequence[str]], now: str) -> str:
    """The access file that a form asks for: its text, or the present one with another role."""
    person, role = last(form, "person").strip(), last(form, "role")
    if not person:
        return lines_of(last(form, "text"))
    if not now:
        raise REQUEST_INVALID(reason="the project has no `access.yml` in which roles stand")
    if role not in {*Role, _NO_ROLE}:
        raise REQUEST_INVALID(reason="`role` is none of the roles")
    return with_role(now, person, None if role == _NO_ROLE else Role(role))


@router.get("/access/audit", dependencies=[allowed(Action.VIEW_AUDIT)])
def audit(request: Request, before: Annotated[int | None, Query(ge=1)] = None) -> HTMLResponse:
    """Who did what, the newest first."""
    page = access_api.audit(request, before=before, size=_AUDIT_LINES)
    return render(request, "audit.html", fragment="list", page=page, before=before)
