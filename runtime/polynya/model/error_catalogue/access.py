"""Errors of access to the server: who asks, what they may do, how they ask (ACC-001 to 099)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    DependencyError,
    InternalError,
    OperationError,
    RefusedError,
)

_NOTHING: Final = "nothing was done"

NOT_LOGGED_IN: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-001",
    title="the request names no person",
    state=_NOTHING,
    fix="log in at `/api/v1/login`, or send a token as `Authorization: Bearer TOKEN`",
    page="The project has an `access.yml`, so that each request needs a session, a token, a bearer "
    "token of the provider, or an identity of AWS. What came was missing, unknown, revoked or "
    "expired; the server does not say which. `polynya access token list` shows tokens with their "
    "expiry.",
)

NOT_ALLOWED: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-002",
    title="the person may not do this",
    message="{person} may not do `{action}`: {reason}",
    state=_NOTHING,
    fix="ask an owner of the project for a role",
    page="Each route asks for one action, and roles are sets of actions: the table is in the docs "
    "and at `/api/v1/access/roles`. A token may do less than its owner: the actions that it was "
    "made for. Each refusal is a line of the audit log.",
)

NOT_READABLE: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-003",
    title="the person may not read this view",
    message="{view} is not a view that {person} may read",
    state=_NOTHING,
    fix="ask an owner of the project for a grant in `access.yml`",
    page="`can_consume` reads what `grants` of `access.yml` name. A dataset that nobody granted "
    "and one that does not exist are answered alike.",
)

FOREIGN_HOST: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-010",
    title="the request is for another host",
    state=_NOTHING,
    fix="use the address in `url` of `access.yml`, or a name of this machine",
    page="A web page can give its own name the address of this server (DNS rebinding). So the "
    "server answers its own names only: `localhost`, loopback addresses, and `url` of "
    "`access.yml`.",
)

FOREIGN_ORIGIN: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-011",
    title="a page of another site sent the request",
    state=_NOTHING,
    fix="send changes from the server's own pages, with the header `X-Polynya-Request: 1`",
    page="Browsers send cookies along with requests that other sites make. A request that changes "
    "something needs the server's own `Origin`; with a session it also needs the header "
    "`X-Polynya-Request`, which another site cannot set. Programs with a token need neither.",
)

TOO_MANY_REQUESTS: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-012",
    title="too many requests",
    message="too many requests from {name}",
    state=_NOTHING,
    fix="wait for the seconds in `Retry-After`",
    page="Each address and each person may send a number of requests at once, which fills up again "
    "with time. Refused logins count many times, so that tokens cannot be guessed.",
)

REQUEST_TOO_LARGE: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-013",
    title="the request is too large or took too long",
    message="the {part} of the request is over its limit of {limit}",
    state=_NOTHING,
    fix="send less",
    page="The address of a request, its headers and its body have limits of size, and a request "
    "has to arrive within a limit of time.",
)

LOGIN_FAILED: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-020",
    title="the login did not succeed",
    message="the login did not succeed: {reason}",
    state="no session was begun",
    fix="begin again at `/api/v1/login`",
    page="The provider refused, or what it sent does not belong to a login that this browser began "
    "in the last ten minutes: its state, nonce, signature, issuer, audience or time is not right. "
    "A login that is tried twice, or in two windows, has to begin again.",
)

PROVIDER_UNREACHABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-ACC-021",
    title="the provider of logins cannot be reached",
    message="the provider of logins cannot be reached: {reason}",
    state="no session was begun; sessions that exist go on",
    fix="wait, or check `oidc.issuer` in `access.yml`",
    page="The server asks the issuer for its settings and its keys, and exchanges codes for "
    "tokens. Answers are limited in size and time, and an issuer on this machine or at a "
    "link-local address has to be named in `POLYNYA_LOCAL_APIS`.",
)

NO_LOGIN: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-022",
    title="the server has no login",
    state=_NOTHING,
    fix="set `oidc` in `access.yml`, or use a token",
    page="`access.yml` names no provider. Tokens work without one: `polynya access token create`.",
)

UNSAFE_LISTENING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-ACC-030",
    title="the server would be reached by others without protection",
    message="the server would be reached by others: it needs {missing}",
    state="nothing was started",
    fix="leave `--host` out, or set up what is missing",
    page="Off loopback, the server starts only with TLS (`--tls-certificate` and `--tls-key`) and "
    "an `access.yml` with `url`. Otherwise it listens on this machine, which `ssh -L` or port "
    "forwarding of AWS Systems Manager reaches.",
)

UNGUARDED_ROUTE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-ACC-031",
    title="a route names no action",
    message="these routes name no action: {routes}",
    state="nothing was started",
    fix="report it: it is a bug of the server",
    page="Each route of the server asks for one action. The server does not start with a route "
    "that would let everybody pass.",
)

TOKEN_UNUSABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-ACC-040",
    title="a token cannot be made so",
    state="no token was made",
    page="A token has an owner, actions that exist, and a life that is not longer than "
    "`longest_token` of `access.yml`. Who asks for a token by a token gets at most its actions.",
)

TOKEN_MISSING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-ACC-041",
    title="no such token or session",
    message="no token or session of {owner} is called {name}",
    state="nothing was revoked",
    fix="`polynya access token list` shows the ids",
    page="Tokens and sessions are called by their public id, not by their secret. One of another "
    "person and one that does not exist are answered alike.",
)

ACCESS_CHANGE_REFUSED: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-050",
    title="`access.yml` may not be changed so",
    message="`access.yml` may not be changed so: {reason}",
    state="the file is as it was",
    fix="ask another owner to make the change",
    page="Only an owner changes roles and grants, no change may give the person who makes it more "
    "than before, and an owner has to remain.",
)

ACCESS_CHANGED_MEANWHILE: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-ACC-051",
    title="`access.yml` was changed meanwhile",
    state="the file is as the other change left it",
    fix="read the file again, and repeat the change with its new `ETag` in `If-Match`",
    page="A change names the version of the file that it was made for, so that no change of "
    "another person is lost.",
)

AUDIT_BROKEN: Final = ErrorEntry(
    OperationError,
    "POLYNYA-ACC-060",
    title="the audit log was changed",
    message="the audit log is not what was written: {reason}",
    state="the log is as it is; tables are not concerned",
    fix="find out who writes below `.polynya/access` of the warehouse, and compare with a copy",
    page="Each line of the log holds the hash of the line before. A changed, removed or inserted "
    "line breaks the chain there. What was cut off at the end shows only against a head that was "
    "noted elsewhere: `polynya access audit --verify --head SEQUENCE:HASH`.",
)

AUDIT_UNWRITABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-ACC-061",
    title="the audit log cannot be written",
    state="the request may have been carried out; it is not in the audit log",
    fix="make the warehouse writable, then look at what was asked for before asking again",
    page="The server answers a change only after its line is in the audit log. Here the line could "
    "not be written, so that the answer is withheld.",
)

SERVER_BUG: Final = ErrorEntry(
    InternalError,
    "POLYNYA-ACC-070",
    title="the server failed unexpectedly",
    message="the server failed unexpectedly: {reason}",
    state="unknown: look at what was asked for before asking again",
    fix="report it, with the log of the server",
    page="A bug of the server. Its log has the details, which an answer never shows.",
)
