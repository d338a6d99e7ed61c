"""What stands before every route: host, rates, sizes, the person, other sites, headers, the log."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, Response

from polynya.model.config.access import AccessDocument
from polynya.model.error_catalogue.access import (
    AUDIT_UNWRITABLE,
    FOREIGN_HOST,
    FOREIGN_ORIGIN,
    NOT_LOGGED_IN,
    REQUEST_TOO_LARGE,
    SERVER_BUG,
    TOO_MANY_REQUESTS,
    UNGUARDED_ROUTE,
)
from polynya.model.errors import PolynyaError, RefusedError
from polynya.observe import trace
from polynya.observe.trace import OpenSpan
from polynya.server.access.audit import AuditEntry
from polynya.server.access.control import AccessControl, AccessSettings, check_listening
from polynya.server.access.door import unguarded
from polynya.server.access.rates import RateLimits
from polynya.server.access.roles import NOBODY, Person
from polynya.server.access.sessions import COOKIE
from polynya.server.http_protocol import ARRIVED
from polynya.server.problems import answer_to, status_of

if TYPE_CHECKING:
    from polynya.server.state import ServerState

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger(__name__)

#: Answers anybody that the server is up, and nothing else: a probe knows neither its host nor a
#: person. It stands in no log.
HEALTH: Final = "/health"
#: The header that pages of the server send with a change; another site cannot set it.
REQUEST_HEADER: Final = "x-polynya-request"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: Statuses of refusals, which are logged also where nothing would change.
_REFUSED: Final = frozenset({401, 403, 408, 413, 421, 431})
_METHODS: Final = _SAFE | {"POST", "PUT", "PATCH", "DELETE"}
#: Seconds for a line of the audit log; a place that hangs is one that cannot be written.
_LOG_SECONDS: Final = 15.0
_MAX_TARGET_BYTES: Final = 8 * 1024
_MAX_HEADERS: Final = 64
_API: Final = ("/api/", "/iceberg/", "/metrics", "/openapi.json")
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_POLICY: Final = b"content-security-policy"
_POLICY_OF_DATA: Final = b"default-src 'none'; frame-ancestors 'none'"
_POLICY_OF_PAGES: Final = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)
_TRANSPORT: Final = (b"strict-transport-security", b"max-age=31536000")
_TIMING: Final = b"server-timing"
#: Headers that only the guard sets.
_OWN_HEADERS: Final = {*dict(_HEADERS), _POLICY, _TRANSPORT[0], _TIMING}
_ADDRESS_OF_TESTS: Final = "127.0.0.1"


def guard(
    app: FastAPI, settings: AccessSettings, control: AccessControl | None = None
) -> AccessControl:
    """Put the guard before an app whose routes are all there.

    Raises:
        ConfigError: the server would be reached without protection (POLYNYA-ACC-030).
        ConfigErrors: the project or its `access.yml` is wrong.
        OperationError: a route names no action (POLYNYA-ACC-031).
    """
    if open_routes := unguarded(app.routes):
        raise UNGUARDED_ROUTE(routes=", ".join(open_routes))
    if control is None:
        state: ServerState = app.state.polynya
        control = AccessControl.of(state.root, state.project().target, state.clock)
        check_listening(settings, control.document())
    app.state.access = control
    app.add_middleware(Guard, control=control, settings=settings)
    return control


def is_probe(scope: Scope) -> bool:
    """Whether a request only asks if the server is up."""
    return scope["path"] == HEALTH and scope["method"] in {"GET", "HEAD"}


class Guard:
    """The guard as ASGI. Each request passes it once; what it refuses reaches no route."""

    def __init__(self, app: AsgiApp, control: AccessControl, settings: AccessSettings) -> None:
        self._app, self._control, self._settings = app, control, settings
        self._addresses = RateLimits(settings.address_rate, control.clock)
        self._people = RateLimits(settings.person_rate, control.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = _Guarded(self, scope, receive, send)
        if is_probe(scope):
            await request.say_healthy()
            return
        given = Headers(scope=scope).get("traceparent")
        with trace.opened("request", given) as span:
            try:
                await self._answered(request, scope)
            finally:
                if span is not None:
                    _end_span(span, scope, request.status)

    async def _answered(self, request: _Guarded, scope: Scope) -> None:
        try:
            await self._admit(scope)
            await self._app(scope, request.receive, request.send)
        except PolynyaError as error:
            await request.refuse(error)
        except Exception as error:  # noqa: BLE001 - the edge of the server: what is left is a bug
            # What is left is a bug: it is logged, and no detail of it is answered.
            _log.exception("a request failed")
            await request.refuse(SERVER_BUG(reason=type(error).__name__))

    async def _admit(self, scope: Scope) -> None:
        """Let a request pass to the routes, with its person, or raise."""
        headers, settings = Headers(scope=scope), self._settings
        address = _address(scope)
        self._limit(self._addresses, address)
        _check_head(scope, headers, settings)
        control = self._control
        # Threads are for what reads files or the store: to get one takes as long as a whole answer.
        has_looked = control.has_just_looked
        document = control.document() if has_looked else await run_in_threadpool(control.document)
        if not is_own_host(headers.get("host", ""), settings, document):
            raise FOREIGN_HOST().by(421)
        cookies: dict[str, str] = cookie_parser(headers.get("cookie", ""))
        given = headers.getlist("authorization")
        person = None
        if len(given) < 2:
            text = given[0] if given else None
            if has_looked and (document is None or (text is None and COOKIE not in cookies)):
                person = control.person(text, cookies)
            else:
                person = await run_in_threadpool(control.person, text, cookies)
        if person is None:
            self._addresses.charge(address, settings.refusal_cost)
            raise NOT_LOGGED_IN().by(401, WWW_Authenticate='Bearer realm="polynya"')
        scope["polynya.person"], scope["polynya.access"] = person, document
        if person.proof not in {"none", "local"}:
            self._limit(self._people, person.name)
        if scope["method"] not in _SAFE:
            _check_origin(headers, person, settings, document)

    def _limit(self, limits: RateLimits, name: str) -> None:
        if seconds := limits.take(name):
            after = str(int(seconds) + 1)
            raise TOO_MANY_REQUESTS(name=name).by(429, Retry_After=after)

    @property
    def settings(self) -> AccessSettings:
        """Those of the server."""
        return self._settings

    async def log(self, scope: Scope, status: int, code: str, location: str) -> None:
        """Write the line of a request, unless it only reads and was let pass."""
        person = scope.get("polynya.person", NOBODY)
        _, found, operation = location.rpartition("/operations/")
        entry = AuditEntry(
            who=person.name,
            proof=person.proof,
            action=str(scope.get("polynya.action", "")),
            method=scope["method"],
            path=scope["path"],
            source=_address(scope),
            status=status,
            code=code,
            operation=operation if found else "",
        )
        try:
            async with asyncio.timeout(_LOG_SECONDS):
                await run_in_threadpool(self._control.log, entry)
        except TimeoutError:
            raise AUDIT_UNWRITABLE(why=f"no answer within {_LOG_SECONDS:.0f} s") from None


class _Guarded:
    """One request: its body within limits, its answer with the headers of safety, its line."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self._guard, self._scope, self._receive, self._send = guard, scope, receive, send
        self._bytes, self._whole = 0, False
        now = asyncio.get_running_loop().time()
        self._arrived = float(scope.get(ARRIVED, now))
        self._deadline = now + guard.settings.body_seconds
        self._started = self._withheld = False
        self._refusal: PolynyaError | None = None
        #: Of the answer; None before it.
        self.status: int | None = None

    async def receive(self) -> Message:
        """The next part of the body. Raises RefusedError POLYNYA-ACC-013 beyond a limit."""
        if self._whole:
            # What comes now is only the end of the connection, which may be long away.
            return await self._receive()
        settings = self._guard.settings
        seconds = self._deadline - asyncio.get_running_loop().time()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, seconds))
        except TimeoutError:
            limit = f"{settings.body_seconds:g} s"
            self._refusal = REQUEST_TOO_LARGE(part="body", limit=limit).by(408)
            raise self._refusal from None
        self._bytes += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._bytes > settings.max_body_bytes:
            self._refusal = _too_large("body", f"{settings.max_body_bytes:,} bytes", 413)
            raise self._refusal
        return message

    async def refuse(self, error: PolynyaError) -> None:
        """Answer with an error, unless an answer was begun: then end it where it is."""
        if self._started:
            raise error
        await self._answer(error)

    async def send(self, message: Message) -> None:
        """Send a part of the answer; before its first part, its line is in the log."""
        if self._withheld:
            return
        if message["type"] == "http.response.start" and not self._started:
            # The framework makes a plain 400 of a body that was refused.
            if self._refusal is not None:
                self._withheld = True
                await self._answer(self._refusal)
                return
            headers = MutableHeaders(scope=message)
            code = str(self._scope.get("polynya.code", ""))
            failed = await self._logged(int(message["status"]), code, headers.get("location", ""))
            if failed is not None:
                self._withheld = True
                await self._send_problem(failed)
                return
            self._started = True
            self.status = int(message["status"])
            self._dress(headers)
        await self._send(message)

    async def _answer(self, error: PolynyaError) -> None:
        failed = await self._logged(status_of(error), error.code, "")
        await self._send_problem(failed or error)

    async def say_healthy(self) -> None:
        """Answer a probe."""
        await self._send_whole(PlainTextResponse("ok\n"))

    async def _send_problem(self, error: PolynyaError) -> None:
        await self._send_whole(answer_to(self._scope, error))

    async def _send_whole(self, answer: Response) -> None:
        self._started = True
        self.status = answer.status_code
        self._dress(answer.headers)
        start: Message = {
            "type": "http.response.start",
            "status": answer.status_code,
            "headers": list(answer.raw_headers),
        }
        await self._send(start)
        await self._send({"type": "http.response.body", "body": bytes(answer.body)})

    async def _logged(self, status: int, code: str, location: str) -> PolynyaError | None:
        """Log a change or a refusal; the error if its line cannot be written."""
        reads = self._scope["method"] in _SAFE and not self._scope.get("polynya.logs")
        if reads and status not in _REFUSED:
            return None
        try:
            await self._guard.log(self._scope, status, code, location)
        except PolynyaError as error:
            return error
        return None

    def _dress(self, headers: MutableHeaders) -> None:
        """Add the headers of safety to an answer, and how long it took."""
        found = [one for one in headers.raw if one[0] not in _OWN_HEADERS]
        found += _HEADERS
        is_data = str(self._scope["path"]).startswith(_API)
        found.append((_POLICY, _POLICY_OF_DATA if is_data else _POLICY_OF_PAGES))
        if all(name != b"cache-control" for name, _ in found):
            found.append((b"cache-control", b"no-store"))
        if self._guard.settings.tls:
            found.append(_TRANSPORT)
        took = (asyncio.get_running_loop().time() - self._arrived) * 1000
        found.append((_TIMING, b"total;dur=%.2f" % took))
        headers.raw[:] = found


def _end_span(span: OpenSpan, scope: Scope, status: int | None) -> None:
    """End the span of a request: its route and not its address, which has keys of records."""
    method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
    route = route_of(scope)
    told = {"method": method, "route": route, "status": status, "code": scope.get("polynya.code")}
    said = {name: value for name, value in told.items() if value}
    span.end(f"{method} {route or ''}".strip(), said, failed=status is None or status >= 500)


def route_of(scope: Scope) -> str | None:
    """The path of the route that took a request, with names for its parameters; None: no route."""
    path: str | None = getattr(scope.get("route"), "path", None)
    return path


def _check_head(scope: Scope, headers: Headers, settings: AccessSettings) -> None:
    """Refuse what is too large before anything of it is read. Raises POLYNYA-ACC-013."""
    target = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    if target > _MAX_TARGET_BYTES:
        raise _too_large("address", f"{_MAX_TARGET_BYTES:,} bytes", 414)
    if len(headers) > _MAX_HEADERS:
        raise _too_large("headers", f"{_MAX_HEADERS} headers", 431)
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:18]) > settings.max_body_bytes:
        raise _too_large("body", f"{settings.max_body_bytes:,} bytes", 413)


def _too_large(part: str, limit: str, status: int) -> RefusedError:
    return REQUEST_TOO_LARGE(part=part, limit=limit).by(status, Connection="close")


def is_own_host(host: str, settings: AccessSettings, document: AccessDocument | None) -> bool:
    """Whether a `Host` header names this server, and not a name that a page chose for it."""
    url = None if document is None else document.url
    if url is not None and host.lower() == urlsplit(url).netloc.lower():
        return True
    if not settings.loopback:
        return False
    # The port may be another one: that of an end of port forwarding.
    name = _name_of(host)
    return name == "localhost" or _is_loopback(name)


def _name_of(host: str) -> str:
    name, separator, port = host.lower().rpartition(":")
    if not separator or not port.isdecimal():
        name = host.lower()
    return name.removeprefix("[").removesuffix("]")


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _check_origin(
    headers: Headers, person: Person, settings: AccessSettings, document: AccessDocument | None
) -> None:
    """Refuse a change that a page of another site sends. Raises POLYNYA-ACC-011."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    own = _own_origin(origin, headers.get("host", ""), settings, document)
    if (origin is not None and not own) or site not in {None, "same-origin", "none"}:
        raise FOREIGN_ORIGIN().by(403)
    if person.proof == "session" and not (own and headers.get(REQUEST_HEADER) is not None):
        raise FOREIGN_ORIGIN().by(403)


def _own_origin(
    origin: str | None, host: str, settings: AccessSettings, document: AccessDocument | None
) -> bool:
    """Whether a page of the server itself sent a request: its `Origin` is that of the server."""
    if origin is None:
        return False
    if document is not None and document.url is not None and origin.lower() == document.url.lower():
        return True
    scheme = "https" if settings.tls else "http"
    return settings.loopback and origin.lower() == f"{scheme}://{host.lower()}"


def _address(scope: Scope) -> str:
    """The address of the client: that of the connection, because headers can say anything."""
    client = scope.get("client")
    return str(client[0]) if client else _ADDRESS_OF_TESTS
