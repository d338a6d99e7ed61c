"""Checks of well-formed connections to REST APIs, and of the landings that name them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from polynya.model.config.connection import is_this_machine
from polynya.model.config.http_connection import (
    ApiKeyAuth,
    ClientCredentialsAuth,
    HttpConnection,
    is_secret_header,
)
from polynya.model.config.http_source import ConnectedHttpSource, HttpSource, connected_source
from polynya.model.config.server_connection import AnyConnection
from polynya.model.config.stream_landing import StreamingLanding, landed_table
from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.capture import CONNECTION_MISSING
from polynya.model.error_catalogue.configuration import UNPROTECTED_LOGIN
from polynya.model.error_catalogue.http_sources import HTTP_SETTINGS_CONFLICT
from polynya.model.names import shown

_REFERENCE: Final = re.compile(r"\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|(?:file|secret):[^}]+)\}")
#: Headers that the client sets itself.
_OWN_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
)
#: Settings of a landing that a REST API has no use for, and what says the same.
_NOT_OF_APIS: Final[Mapping[str, str]] = {
    "start_from": "`incremental.start` of a resource says where a read begins",
    "readers": "the pages of a resource are read one after the other",
    "on_new_topic": "an API has the resources that `resources` names",
}


def landed_api_problems(task: StreamingLanding, source: HttpSource) -> Iterator[Problem]:
    """Yield the problems of a landing of an API that need no other file."""
    for name, why in _NOT_OF_APIS.items():
        if name in task.model_fields_set:
            yield _conflict((name,), f"`{name}` is not for `http`: {why}", "remove it")
    if task.direct:
        message = "an API cannot be read again from a position, so its records have to land"
        yield _conflict(("direct",), message, "remove `direct`")
    if task.content.type != "json":
        message = "the records of an API land as JSON"
        yield _conflict(("content", "type"), message, "remove `content`")
    if task.into.table is not None and len(source.resources) > 1:
        message = "each resource has a landed table of its own"
        yield _conflict(("into",), message, "remove `into`, or make one task for each resource")
    tables: dict[str, str] = {}
    for name in source.resources:
        other = tables.setdefault(landed_table(name), name)
        if other != name:
            message = f"{shown(name)} and {shown(other)} would have one landed table"
            yield _conflict(("source", "http", "resources", name), message, "rename one of them")
        yield from _resource_problems(source, name)


def _resource_problems(source: HttpSource, name: str) -> Iterator[Problem]:
    resource, path = source.resources[name], ("source", "http", "resources", name)
    if resource.parent is None:
        if resource.placeholders:
            message = f"`{{{resource.placeholders[0]}}}` needs a `parent` whose records have it"
            yield _conflict((*path, "path"), message, "add `parent: RESOURCE`")
        return
    if resource.parent not in source.resources:
        message = f"there is no resource {shown(resource.parent)} in this task"
        fix = suggest(resource.parent, sorted(source.resources)) or "name another resource"
        yield _conflict((*path, "parent"), message, fix)
    elif _leads_to_itself(source, name):
        yield _conflict((*path, "parent"), "the parents of a resource lead back to it", "remove it")
    if not resource.placeholders:
        message = "the path has no field of the parent's record"
        yield _conflict((*path, "path"), message, "write for example `/orders/{id}/lines`")
    for setting in ("incremental", "every"):
        if setting in resource.model_fields_set:
            message = (
                f"a resource with a parent is read when a record of that lands: no `{setting}`"
            )
            yield _conflict((*path, setting), message, "remove it, or set it at the parent")


def _leads_to_itself(source: HttpSource, name: str) -> bool:
    met = {name}
    parent = source.resources[name].parent
    while parent is not None and parent in source.resources:
        if parent in met:
            return True
        met.add(parent)
        parent = source.resources[parent].parent
    return False


def api_problems(connection: HttpConnection) -> Iterator[Problem]:
    """Yield the problems of one connection that need no other file."""
    yield from _address_problems(connection, ())
    for name, override in connection.targets.items():
        if {"url", "auth", "headers"} & override.model_fields_set:
            yield from _address_problems(connection.in_target(name), ("targets", name))


def _address_problems(connection: HttpConnection, path: NodePath) -> Iterator[Problem]:
    parts = urlsplit(connection.url)
    if parts.query or parts.fragment:
        message = "the base address of an API has no query"
        yield _conflict((*path, "url"), message, "write what comes after `?` as `parameters`")
    auth = connection.auth
    names = [*connection.headers, *([auth.name] if isinstance(auth, ApiKeyAuth) else [])]
    for name in names:
        if name.lower() in _OWN_HEADERS:
            message = f"Polynya sets the header {shown(name)} itself"
            yield _conflict((*path, "headers"), message, "remove it")
    has_login = auth is not None or any(map(is_secret_header, connection.headers))
    addresses = [("url", connection.url)] if has_login else []
    if isinstance(auth, ClientCredentialsAuth):
        addresses.append(("auth", auth.token_url))
    for key, url in addresses:
        one = urlsplit(url)
        is_open = one.scheme == "http" and not is_this_machine(one.hostname or "")
        if is_open and not connection.allow_unencrypted:
            message = f"{shown(one.hostname or '')} is on another machine, and the login would go "
            message += "over the network without TLS"
            fix = "write an `https://` address, or `allow_unencrypted: true`"
            yield Problem((*path, key), UNPROTECTED_LOGIN(message, fix=fix))


def api_of(
    task: StreamingLanding, connections: Mapping[str, AnyConnection | None]
) -> tuple[StreamingLanding | None, list[Problem]]:
    """A landing with its connection, or why it has none.

    Other landings stay as they are. None without problems: its connection reports its own errors.
    """
    source = task.source.http
    if source is None:
        return task, []
    path = ("source", "http", "connection")
    if source.connection not in connections:
        apis = sorted(name for name, one in connections.items() if isinstance(one, HttpConnection))
        fix = suggest(source.connection, apis) or f"add `connections/{source.connection}.yml`"
        return None, [
            Problem(path, CONNECTION_MISSING(fix=fix, connection=shown(source.connection)))
        ]
    connection = connections[source.connection]
    if connection is None:
        return None, []
    if not isinstance(connection, HttpConnection):
        message = f"{shown(source.connection)} is of type {connection.type}, and not an API"
        return None, [_conflict(path, message, "name a connection of `type: http`")]
    return with_api(task, connection), []


def with_api(task: StreamingLanding, api: HttpConnection) -> StreamingLanding:
    """The landing of an API with its connection."""
    http = task.source.http
    assert http is not None, "a landing of an API"
    if isinstance(http, ConnectedHttpSource):
        http = http.model_copy(update={"api": api})
    else:
        http = connected_source(http, api)
    return task.model_copy(update={"source": task.source.model_copy(update={"http": http})})


def _conflict(path: NodePath, message: str, fix: str) -> Problem:
    return Problem(path, HTTP_SETTINGS_CONFLICT(message, fix=fix))
