"""Access through the API: login, tokens, sessions, roles and the audit log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

from fastapi import Header, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from polynya.model.config.access import AccessDocument, Role
from polynya.model.error_catalogue.access import LOGIN_FAILED, NOT_LOGGED_IN, TOKEN_UNUSABLE
from polynya.server.access.actions import Action
from polynya.server.access.audit import AuditLine
from polynya.server.access.changes import Effect, change_access, current_file
from polynya.server.access.control import AccessControl
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.access.roles import OPEN, TABLE, Person, decide, roles_of
from polynya.server.access.sessions import COOKIE
from polynya.server.access.tokens import actions_named
from polynya.server.state import ServerState
from polynya.store.places import store_at

router = api_router("access")

#: Ties a login to the browser that began it.
_LOGIN_COOKIE: Final = "__Host-polynya-login"
#: What a project without `access.yml` allows to tokens; they work once it has one.
_LONGEST: Final = timedelta(days=90)


def _control(request: Request) -> AccessControl:
    found = getattr(request.app.state, "access", None)
    if not isinstance(found, AccessControl):
        raise NOT_LOGGED_IN(fix="start the server by `polynya serve`").by(503)
    return found


class MyAccess(BaseModel):
    """The person of a request, and everything that they may do."""

    name: str = Field(description="The mail address, or `oidc:SUBJECT`, `aws:ARN`, `local`.")
    proof: str = Field(description="How they were recognised.")
    roles: list[Role] = Field(description="Their roles.")
    actions: list[str] = Field(description="What they may do with this login or token.")


class NewToken(BaseModel):
    """A token to be made."""

    actions: list[str] = Field(
        min_length=1, max_length=100, description="Actions, or patterns such as `task.*`."
    )
    days: float = Field(default=30, gt=0, le=366, description="Its life in days.")
    note: str = Field(default="", max_length=200, description="What it is for.")


class TokenShown(BaseModel):
    """A token without its secret."""

    id: str
    owner: str
    actions: list[str]
    note: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None


class TokenMade(TokenShown):
    """A token with its secret, which is shown this one time."""

    token: str


class SessionShown(BaseModel):
    """A session of a person."""

    id: str
    created_at: datetime
    seen_at: datetime
    agent: str
    current: bool


class AccessText(BaseModel):
    """The access file."""

    file: str
    text: str = Field(max_length=1_000_000)


class AccessReplaced(BaseModel):
    """What a change of the access file did, or would do where it was only tried."""

    diff: str
    effects: list[Effect] = Field(description="Who gains or loses which actions.")
    written: bool


class NewAccess(BaseModel):
    """The whole new text of the access file."""

    text: str = Field(max_length=1_000_000)


class RoleShown(BaseModel):
    """A role with the actions that it allows."""

    role: Role
    actions: list[str]


class AuditPage(BaseModel):
    """Lines of the audit log, the newest first."""

    lines: list[AuditLine]
    next: int | None = Field(description="`before` of the next page; null on the last one.")


@router.get("/login", dependencies=[allowed(Action.LOG_IN)], status_code=302)
def log_in(request: Request, to: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """Begin a login: goes to the provider, and afterwards to a path of this server."""
    # Start-up time: cryptography.
    from polynya.server.access.oidc import LOGIN_SECONDS

    begun = _control(request).provider().begin(to)
    answer = RedirectResponse(begun.address, 302)
    _set_cookie(answer, _LOGIN_COOKIE, begun.state, int(LOGIN_SECONDS))
    return answer


@router.get("/login/callback", dependencies=[allowed(Action.LOG_IN)], status_code=302)
def logged_in(
    request: Request,
    state: Annotated[str, Query(max_length=200)] = "",
    code: Annotated[str, Query(max_length=4000)] = "",
    iss: Annotated[str | None, Query(max_length=500)] = None,
    error: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Finish a login: the provider sends the browser here."""
    control = _control(request)
    # A login is logged, although it is a GET.
    request.scope["polynya.logs"] = True
    if error is not None or not code:
        raise LOGIN_FAILED(reason="the provider refused").by(400)
    identity, to = control.provider().finish(
        state=state,
        browser_state=request.cookies.get(_LOGIN_COOKIE, ""),
        code=code,
        issuer=iss,
    )
    document = control.document()
    assert document is not None, "a provider is named by a document"
    agent = "".join(c for c in request.headers.get("user-agent", "") if c.isprintable())
    # A session that the browser brings along is ended: a new login has a new one.
    if (old := request.cookies.get(COOKIE)) is not None:
        found = control.sessions.find(old, document.idle, document.longest)
        if found is not None:
            control.sessions.end(found[0])
    value = control.sessions.begin(identity.name, identity.subjects, agent, document.longest)
    request.scope["polynya.person"] = Person(identity.name, identity.subjects, "session")
    answer = RedirectResponse(to, 302)
    _set_cookie(answer, COOKIE, value, int(document.longest.total_seconds()))
    answer.delete_cookie(_LOGIN_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return answer


def _set_cookie(answer: Response, name: str, value: str, seconds: int) -> None:
    answer.set_cookie(
        name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax"
    )


@router.post("/logout", dependencies=[allowed(Action.LOG_IN)], status_code=204)
def log_out(request: Request) -> Response:
    """End this session on the server, so that a copy of its cookie ends with it."""
    person, _ = caller(request)
    if person.proof == "session":
        _control(request).sessions.end(person.session)
    answer = Response(status_code=204, headers={"Clear-Site-Data": '"cookies", "storage"'})
    answer.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return answer


@router.get("/me", dependencies=[allowed(Action.LOG_IN)])
def me(request: Request) -> MyAccess:
    """The person of this request, and what they may do; `anonymous` without a login."""
    person, document = caller(request)
    return MyAccess(
        name=person.name,
        proof=person.proof,
        roles=[] if document is None else list(roles_of(person, document)),
        actions=sorted(one for one in Action if decide(person, one, document).allowed),
    )


@router.get("/me/sessions", dependencies=[allowed(Action.OWN_TOKENS)])
def sessions(request: Request) -> list[SessionShown]:
    """The sessions of the person who asks."""
    person, _ = caller(request)
    return [
        SessionShown(
            id=key[:16],
            created_at=one.created_at,
            seen_at=one.seen_at,
            agent=one.agent,
            current=key == person.session,
        )
        for key, one in _control(request).sessions.of(person.name)
    ]


@router.delete("/me/sessions/{session_id}", dependencies=[allowed(Action.OWN_TOKENS)])
def end_session(request: Request, session_id: str) -> None:
    """End a session of the person who asks."""
    person, _ = caller(request)
    _control(request).sessions.end_of(person.name, session_id)


@router.delete("/access/people/{name}/sessions", dependencies=[allowed(Action.MANAGE_ACCESS)])
def end_sessions(request: Request, name: str) -> None:
    """End all sessions of a person."""
    sessions = _control(request).sessions
    for key, _ in sessions.of(name):
        sessions.end(key)


@router.get("/access/tokens", dependencies=[allowed(Action.OWN_TOKENS)])
def tokens(
    request: Request,
    everybody: bool = False,  # noqa: FBT001, FBT002 - of the query
) -> list[TokenShown]:
    """The tokens of the person who asks; with `everybody` those of all, for owners."""
    person, document = caller(request)
    owner = None if everybody and _manages(person, document) else person.name
    return [TokenShown.model_validate(one.shown()) for one in _control(request).tokens.all(owner)]


@router.post("/access/tokens", dependencies=[allowed(Action.OWN_TOKENS)], status_code=201)
def make_token(request: Request, new: NewToken) -> TokenMade:
    """Make a token of the person who asks. A token makes none with more than it may do itself."""
    person, document = caller(request)
    control = _control(request)
    if person.proof == "local":
        raise TOKEN_UNUSABLE(
            "a token has an owner, and nobody is logged in",
            fix="`polynya access token create --owner PERSON`",
        )
    wanted = actions_named(new.actions)
    beyond = sorted(one for one in wanted if not decide(person, one, document).allowed)
    if beyond:
        raise TOKEN_UNUSABLE(
            f"you may not do this yourself: {', '.join(beyond)}", fix="leave it out"
        )
    text, record = control.tokens.create(
        person.name,
        wanted,
        timedelta(days=new.days),
        longest=_LONGEST if document is None else document.longest_token,
        note=new.note,
    )
    return TokenMade.model_validate({**record.shown(), "token": text})


@router.delete("/access/tokens/{token_id}", dependencies=[allowed(Action.OWN_TOKENS)])
def revoke_token(request: Request, token_id: str) -> None:
    """Revoke a token of the person who asks; owners revoke those of all."""
    person, document = caller(request)
    owner = None if _manages(person, document) else person.name
    _control(request).tokens.revoke(token_id, owner)


def _manages(person: Person, document: AccessDocument | None) -> bool:
    return decide(person, Action.MANAGE_ACCESS, document).allowed


@router.get("/access", dependencies=[allowed(Action.VIEW_ACCESS)])
def access(request: Request, response: Response) -> AccessText:
    """The access file as it is, with its version as `ETag`."""
    found = current_file(ServerState.of(request).root)
    response.headers["ETag"] = found.etag
    return AccessText(file=found.name, text=found.text)


@router.put("/access", dependencies=[allowed(Action.MANAGE_ACCESS)])
def replace_access(
    request: Request,
    new: NewAccess,
    if_match: Annotated[str, Header(max_length=100)],
    *,
    dry_run: Annotated[bool, Query(description="only say what it would do")] = False,
) -> AccessReplaced:
    """Replace the access file of this version. The answer is the difference, and its effects."""
    person, document = caller(request)
    state = ServerState.of(request)
    target = state.project().target
    bucket = None if target.config is None else store_at(target.config, target.aws)
    with state.changing():
        change = change_access(
            state.root,
            new.text,
            if_match,
            person,
            before=document,
            bucket=bucket,
            write=not dry_run,
        )
    _control(request).look_again()
    return AccessReplaced(diff=change.diff, effects=list(change.effects), written=not dry_run)


@router.get("/access/roles", dependencies=[allowed(Action.OWN_TOKENS)])
def roles() -> list[RoleShown]:
    """The table of roles and their actions."""
    return [RoleShown(role=role, actions=sorted(TABLE[role] - OPEN)) for role in Role]


@router.get("/access/audit", dependencies=[allowed(Action.VIEW_AUDIT)])
def audit(
    request: Request,
    before: Annotated[int | None, Query(ge=1)] = None,
    size: Annotated[int, Query(ge=1, le=500)] = 100,
) -> AuditPage:
    """Lines of the audit log, the newest first."""
    lines = _control(request).audit.page(before, size)
    more = len(lines) == size and lines[-1].sequence > 1
    return AuditPage(lines=lines, next=lines[-1].sequence if more else None)
