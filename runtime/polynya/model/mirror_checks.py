"""Checks of mirrors and of the accounts that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, get_args
from urllib.parse import urlsplit

from polynya.model.config.connection import is_this_machine
from polynya.model.config.mirror import ConnectedMirror, MirrorAccount, MirrorTask, mirror_of
from polynya.model.config.server_connection import (
    AnyConnection,
    DatabricksConnection,
    RedshiftConnection,
    SnowflakeConnection,
)
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import Problem, suggest
from polynya.model.error_catalogue.bindings import CONNECTION_CONFLICT
from polynya.model.error_catalogue.capture import CONNECTION_MISSING
from polynya.model.error_catalogue.configuration import WRONG_VALUE
from polynya.model.error_catalogue.mirrors import MIRROR_LOGIN_UNCLEAR, MIRROR_SOURCE_UNKNOWN
from polynya.model.names import shown

_FAMILIES: Final = {"snowflake": "Snowflake", "redshift": "Redshift", "databricks": "Databricks"}


def snowflake_problems(connection: SnowflakeConnection) -> Iterator[Problem]:
    """Yield what is wrong with an account by itself."""
    logins = ("password", "private_key", "token")
    given = [name for name in logins if getattr(connection, name) is not None]
    if len(given) != 1:
        named = "`private_key`, `token` and `password`"
        yield Problem((), MIRROR_LOGIN_UNCLEAR(logins=named))
    yield from _unencrypted(("url",), connection.address)


def redshift_problems(connection: RedshiftConnection) -> Iterator[Problem]:
    """Yield what is wrong with a connection to Redshift by itself."""
    if (connection.workgroup is None) == (connection.cluster is None):
        fix = "name a workgroup of Redshift Serverless, or a provisioned cluster"
        yield Problem((), WRONG_VALUE("it needs either `workgroup` or `cluster`", fix=fix))
    if connection.user is not None and connection.secret_arn is not None:
        yield Problem((), MIRROR_LOGIN_UNCLEAR(logins="`user` and `secret_arn`"))
    if connection.user is not None and connection.workgroup is not None:
        message = "a workgroup takes no `user`: it derives one from the AWS identity"
        yield Problem(("user",), WRONG_VALUE(message, fix="remove it, or use `secret_arn`"))
    if connection.endpoint is not None:
        yield from _unencrypted(("endpoint",), connection.endpoint)


def databricks_problems(connection: DatabricksConnection) -> Iterator[Problem]:
    """Yield what is wrong with a connection to Databricks by itself."""
    pair = (connection.client_id, connection.client_secret)
    if (connection.token is None) == (pair == (None, None)) or (pair.count(None) == 1):
        named = "`token`, or `client_id` with `client_secret`"
        yield Problem((), MIRROR_LOGIN_UNCLEAR(logins=named))
    yield from _unencrypted(("url",), connection.url)


def _unencrypted(path: tuple[str], address: str) -> Iterator[Problem]:
    place = urlsplit(address)
    if place.scheme != "https" and not is_this_machine(place.hostname or ""):
        message = f"{shown(address)} is not encrypted"
        yield Problem(path, CONNECTION_CONFLICT(message, fix="write it with `https://`"))


def connected_mirror(
    task: MirrorTask,
    sources: Mapping[str, StorageTask],
    connections: Mapping[str, AnyConnection | None],
    project: str,
) -> ConnectedMirror | list[Problem]:
    """The mirror as a run has it, or why it cannot be one; nothing where a file has its own error.

    In `connections` None stands for a connection that has something wrong.
    """
    problems = list(_meaningless(task))
    source = sources.get(task.from_)
    if source is None:
        known = sorted(sources)
        fix = suggest(task.from_, known) or "name a task of kind `storage`"
        error = MIRROR_SOURCE_UNKNOWN(task=shown(task.from_), fix=fix)
        problems.append(Problem(("from",), error))
    family = task.target.family
    name = task.target.place.connection
    path = ("target", family, "connection")
    account = connections.get(name)
    if name not in connections:
        fix = suggest(name, sorted(connections)) or f"add `connections/{name}.yml`"
        problems.append(Problem(path, CONNECTION_MISSING(fix=fix, connection=shown(name))))
    elif account is not None and account.type != family:
        message = f"{shown(name)} is of type {account.type}, and the target is {_FAMILIES[family]}"
        problems.append(Problem(path, CONNECTION_CONFLICT(message, fix="name another connection")))
    if problems or source is None or not isinstance(account, get_args(MirrorAccount)):
        return problems
    assert isinstance(account, SnowflakeConnection | RedshiftConnection | DatabricksConnection)
    return mirror_of(task, account, source, project)


def _meaningless(task: MirrorTask) -> Iterator[Problem]:
    """Yield the settings that mean nothing to the target, by name."""
    target = task.target
    if target.snowflake is None and task.views.secure:
        message = f"{_FAMILIES[target.family]} has no secure views"
        yield Problem(("views", "secure"), WRONG_VALUE(message, fix="remove `secure`"))
    is_linked = target.snowflake is not None and target.snowflake.linked_database is not None
    given = task.refresh.model_fields_set
    if target.redshift is not None or is_linked:
        reader = "a linked database" if is_linked else "Redshift"
        message = f"{reader} reads the newest commit by itself, and is not refreshed"
    elif target.databricks is not None and task.refresh.automatic:
        message = "with `automatic: true` nothing is refreshed in Databricks"
        given = given - {"automatic"}
    else:
        return
    for name in sorted(given):
        yield Problem(("refresh", name), WRONG_VALUE(message, fix=f"remove `{name}`"))
