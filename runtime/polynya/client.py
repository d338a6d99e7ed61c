"""A client of the API: starts actions at a server, follows them and cancels them.

    client = PolynyaClient("https://polynya.example.com", token=os.environ["POLYNYA_TOKEN"])
    started = client.start("run", RunParameters(tasks=["shop"]))
    for event in client.events(started.id):
        print(event)

    for dataset in client.routes.datasets.datasets(health=HealthWord.SUSPENDED):
        print(dataset.name, dataset.parts)

`routes` has a method for each route of the API, generated from the server's own (`client_routes`).
Parameters and answers are the models of the server, so a type checker knows them.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel
from typing_extensions import override

from polynya.model.error_catalogue.server_operations import (
    COMMAND_NOT_SERVED,
    SERVER_UNREACHABLE,
    SERVER_URL_UNUSABLE,
)
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    OperationError,
    PolynyaError,
)
from polynya.server.operations.verbs import VERBS, NoParameters

if TYPE_CHECKING:
    from polynya.client_routes import ServerRoutes

#: Longer than the server's heartbeats.
_TIMEOUT_SECONDS: Final = 60.0
_TRIES: Final = 5
#: Items of a page.
_PAGE: Final = 200
_PAUSE_SECONDS: Final = 1.0
_LARGEST_ANSWER: Final = 64 * 1024 * 1024
#: The limits of a query that the server grants at most; it answers nothing before its end.
_QUERY_SECONDS: Final = 300
_QUERY_MEGABYTES: Final = 256
_LARGEST_ROWS: Final = 2 * _QUERY_MEGABYTES * 1024 * 1024
_ARROW: Final = "application/vnd.apache.arrow.stream"
_CLASSES: Final[dict[int, type[PolynyaError]]] = {
    400: ConfigError,
    404: ConfigError,
    409: ConflictError,
    422: ConfigError,
    503: DependencyError,
}
_LOST: Final = (OSError, http.client.HTTPException)

#: Of a request: JSON, a model of the server, or text.
Body = Mapping[str, Any] | BaseModel | str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as the server shows it; `ended` is None while it waits or runs."""

    id: str
    action: str
    command: str
    status: str
    created: str
    ended: str | None = None
    exit_code: int | None = None
    state: str | None = None
    progress: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, shown: Mapping[str, Any]) -> Operation:
        """The operation of an answer; fields of newer servers are left out."""
        return cls(**{one.name: shown[one.name] for one in fields(cls)})


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another host."""

    @override
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(slots=True)
class PolynyaClient:
    """A server by its URL, and the token that it asks for.

    Raises ConfigError POLYNYA-SRV-052 for a URL that the token could leak through.
    """

    url: str
    token: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SERVER_URL_UNUSABLE(reason="is no URL with `https` and a host")
        if parts.username is not None or parts.query or parts.fragment:
            raise SERVER_URL_UNUSABLE(reason="has a user, a query or a fragment")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise SERVER_URL_UNUSABLE(reason="needs `https` for another machine")
        self.url = self.url.rstrip("/")

    def start(
        self, action: str, parameters: NoParameters | None = None, *, key: str | None = None
    ) -> Operation:
        """Start an action by its name, such as `run` or `quarantine-replay`.

        It is sent with an idempotency key, so that a lost answer starts nothing twice.
        """
        if action not in VERBS:
            raise COMMAND_NOT_SERVED(what=f"the action `{action}`")
        given = parameters or VERBS[action].parameters()
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return Operation.of(self.call("POST", f"/actions/{action}", given, headers))

    @property
    def routes(self) -> ServerRoutes:
        """Each route of the API as a method."""
        # Start-up time: all models of the server.
        from polynya.client_routes import ServerRoutes

        return ServerRoutes(self)

    def call(
        self,
        method: str,
        path: str,
        body: Body = None,
        headers: Mapping[str, str | None] | None = None,
        /,
        **query: Any,
    ) -> Any:
        """The answer of a route below `/api/v1`: JSON, text, or None without content.

        A parameter or header of None is left out.
        """
        sent = {name: value for name, value in (headers or {}).items() if value is not None}
        try:
            with self._open(method, _with_query(path, query), body, sent) as answer:
                content = answer.read(_LARGEST_ANSWER)
                if answer.headers.get_content_type() == "text/plain":
                    return content.decode()
                return json.loads(content) if content else None
        except (*_LOST, ValueError) as error:
            raise SERVER_UNREACHABLE(url=self.url, why=str(error)) from error

    def ask(self, method: str, path: str, body: Body = None, /, **query: Any) -> dict[str, Any]:
        """The answer of a route below `/api/v1`, which is an object of JSON."""
        answer = self.call(method, path, body, **query)
        if not isinstance(answer, dict):
            raise SERVER_UNREACHABLE(url=self.url, why="its answer is not of the API")
        return answer

    def ask_list(self, method: str, path: str, body: Body = None) -> list[dict[str, Any]]:
        """The answer of a route below `/api/v1`, which is a list of objects."""
        read = self.call(method, path, body)
        if not isinstance(read, list) or not all(isinstance(one, dict) for one in read):
            raise SERVER_UNREACHABLE(url=self.url, why="its answer is not of the API")
        return read

    def listed(self, path: str, /, **query: Any) -> Iterator[dict[str, Any]]:
        """All items of a list below `/api/v1` as JSON, page after page."""
        cursor: str | None = None
        while True:
            page = self.ask("GET", path, **{"limit": _PAGE, **query, "cursor": cursor})
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def query(self, sql: str, *, limit: int) -> tuple[bytes, bool]:
        """The rows of a statement as a stream of Arrow, and whether `limit` cut them."""
        body = {
            "sql": sql,
            "limit": limit,
            "seconds": _QUERY_SECONDS,
            "megabytes": _QUERY_MEGABYTES,
        }
        seconds = _QUERY_SECONDS + _TIMEOUT_SECONDS
        try:
            with self._open("POST", "/queries", body, {"Accept": _ARROW}, seconds) as answer:
                rows = answer.read(_LARGEST_ROWS)
                return rows, answer.headers.get("Polynya-More") == "true"
        except _LOST as error:
            raise SERVER_UNREACHABLE(url=self.url, why=str(error)) from error

    def operation(self, name: str) -> Operation:
        """An operation as it is now."""
        return Operation.of(self.ask("GET", f"/operations/{quote(name, safe='')}"))

    def cancel(self, name: str) -> Operation:
        """Ask an operation to end after its running steps."""
        return Operation.of(self.ask("POST", f"/operations/{quote(name, safe='')}/cancel"))

    def events(self, name: str) -> Iterator[Mapping[str, Any] | Operation]:
        """What an operation says, until it has ended: output of its command, and how it is.

        A lost connection is taken up again where it ended.
        """
        place, tries, ended = "0", 0, False
        while not ended:
            try:
                path = f"/operations/{quote(name, safe='')}/events"
                with self._open("GET", path, None, {"Last-Event-ID": place}) as answer:
                    for kind, data, at in _parsed(answer):
                        tries, place = 0, at or place
                        if kind == "output":
                            yield data
                        elif kind == "operation":
                            operation = Operation.of(data)
                            ended = operation.ended is not None
                            yield operation
            except _LOST as error:
                lost: Exception | None = error
            except DependencyError as error:
                lost = error.__cause__ if isinstance(error.__cause__, OSError) else error
            else:
                lost = None
            tries += 1
            if not ended and tries >= _TRIES:
                raise SERVER_UNREACHABLE(url=self.url, why=str(lost)) from lost
            if not ended:
                time.sleep(_PAUSE_SECONDS)

    def _open(
        self,
        method: str,
        path: str,
        body: Body,
        headers: Mapping[str, str],
        seconds: float = _TIMEOUT_SECONDS,
    ) -> Any:
        kind = "text/plain" if isinstance(body, str) else "application/json"
        request = urllib.request.Request(  # noqa: S310 - http and https only, see __post_init__
            f"{self.url}/api/v1{path}",
            data=None if body is None else _encoded(body),
            method=method,
            headers={"Content-Type": kind, **headers},
        )
        if self.token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            return opener.open(request, timeout=seconds)
        except urllib.error.HTTPError as error:
            raise _error_of(error, self.url) from error
        except _LOST as error:
            raise SERVER_UNREACHABLE(url=self.url, why=str(error)) from error


def _encoded(body: Mapping[str, Any] | BaseModel | str) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, BaseModel):
        return body.model_dump_json(by_alias=True, exclude_unset=True).encode()
    return json.dumps(body).encode()


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _error_of(answer: urllib.error.HTTPError, url: str) -> PolynyaError:
    """The error that a problem of the server tells of."""
    try:
        told = json.loads(answer.read(_LARGEST_ANSWER))
        texts = {part: told.get(part) for part in ("where", "state", "fix", "why")}
        raised = _class_of(str(told["code"]), answer.code)
        return raised(str(told["code"]), str(told["title"]), **texts)
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return SERVER_UNREACHABLE(url=url, why=f"it answers with status {answer.code}")


def _class_of(code: str, status: int) -> type[PolynyaError]:
    """The class of an error: that of its code, or by the status if a newer server has the code."""
    # Start-up time: all errors.
    from polynya.model.error_catalogue.codes import ERROR_PAGES

    if (entry := ERROR_PAGES.get(code)) is not None:
        return entry.raises
    return _CLASSES.get(status, OperationError)


def _parsed(lines: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Server-sent events as their kind, data and id, as WHATWG HTML section 9.2 has them."""
    parts: dict[str, str] = {}
    for line in lines:
        text = line.decode("utf-8").rstrip("\r\n")
        name, _, value = text.partition(":")
        if text and name:
            parts[name] = value.removeprefix(" ")
        elif not text:
            if "data" in parts:
                yield parts.get("event", ""), json.loads(parts["data"]), parts.get("id")
            parts = {}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
