"""Checks of mirrors and of the accounts that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from polynya.model.config.connection import is_this_machine
from polynya.model.config.mirror import ConnectedMirror, MirrorTask, mirror_of
from polynya.model.config.server_connection import AnyConnection, SnowflakeConnection
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import Problem, suggest
from polynya.model.error_catalogue.bindings import CONNECTION_CONFLICT
from polynya.model.error_catalogue.capture import CONNECTION_MISSING
from polynya.model.error_catalogue.mirrors import MIRROR_LOGIN_UNCLEAR, MIRROR_SOURCE_UNKNOWN
from polynya.model.names import shown


def account_problems(connection: SnowflakeConnection) -> Iterator[Problem]:
    """Yield what is wrong with an account by itself."""
    logins = ("password", "private_key", "token")
    given = [name for name in logins if getattr(connection, name) is not None]
    if len(given) != 1:
        yield Problem((), MIRROR_LOGIN_UNCLEAR())
    place = urlsplit(connection.address)
    if place.scheme != "https" and not is_this_machine(place.hostname or ""):
        message = f"{shown(connection.address)} is not encrypted"
        yield Problem(("url",), CONNECTION_CONFLICT(message, fix="write it with `https://`"))


def connected_mirror(
    task: MirrorTask,
    sources: Mapping[str, StorageTask],
    connections: Mapping[str, AnyConnection | None],
    project: str,
) -> ConnectedMirror | list[Problem]:
    """The mirror as a run has it, or why it cannot be one; nothing where a file has its own error.

    In `connections` None stands for a connection that has something wrong.
    """
    problems = []
    source = sources.get(task.from_)
    if source is None:
        known = sorted(sources)
        fix = suggest(task.from_, known) or "name a task of kind `storage`"
        error = MIRROR_SOURCE_UNKNOWN(task=shown(task.from_), fix=fix)
        problems.append(Problem(("from",), error))
    name = task.target.snowflake.connection
    path = ("target", "snowflake", "connection")
    account = connections.get(name)
    if name not in connections:
        fix = suggest(name, sorted(connections)) or f"add `connections/{name}.yml`"
        problems.append(Problem(path, CONNECTION_MISSING(fix=fix, connection=shown(name))))
    elif account is not None and not isinstance(account, SnowflakeConnection):
        message = f"{shown(name)} is of type {account.type}, and the target is Snowflake"
        problems.append(Problem(path, CONNECTION_CONFLICT(message, fix="name another connection")))
    if source is None or not isinstance(account, SnowflakeConnection):
        return problems
    return mirror_of(task, account, source, project)
