"""Errors of operations, the long actions of the API (SRV-040 to 079)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, ConflictError, DependencyError

OPERATION_CONFLICTS: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-SRV-040",
    title="an operation on the same object is under way",
    message="operation {other} (`{command}`) is under way on the same object",
    state="nothing was started",
    fix="wait until operation {other} has ended, or cancel it",
    page="The server does not start the same action twice on one object, and starts `migrate` only "
    "when nothing else writes. The answer names the operation that is under way.",
)
TOO_MANY_OPERATIONS: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-SRV-041",
    title="too many operations wait",
    message="{most} operations wait already",
    state="nothing was started",
    fix="repeat the request when some of them have ended",
    page="The server runs few operations at a time, and the others wait in a queue. When the queue "
    "is full, it refuses further ones with status 503.",
)
IDEMPOTENCY_KEY_REUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-042",
    title="an idempotency key that another request has",
    message="another request was sent with this `Idempotency-Key`, as operation {other}",
    state="nothing was started",
    fix="choose a new key for a new request",
    page="For 24 hours a request with the same `Idempotency-Key` gives the same operation. A "
    "different request with that key is refused.",
)
OPERATIONS_LOCKED: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-SRV-043",
    title="another server starts the operations of this project",
    message="another server starts the operations of this project and target",
    state="nothing was started",
    fix="end the other server, then repeat the request",
    page="One server at a time starts operations for a project and a target, so that two servers "
    "cannot start the same action. Every other server refuses them.",
)
TASK_UNKNOWN_TO_ACTION: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-044",
    title="an action on a task that the project does not have",
    message="the project has no task {task}",
    state="nothing was started",
    page="The body of an action names a task by the `name` in its file. `/api/v1/tasks` lists all.",
)
SERVER_UNREACHABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-SRV-050",
    title="the server of `--server` cannot be reached",
    message="the server {url} cannot be reached",
    state="an operation that it has started continues there",
    page="`polynya --server URL` got no answer, or none of the API. The certificate of the server "
    "is always checked; `SSL_CERT_FILE` names the authorities that count.",
)
COMMAND_NOT_SERVED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-051",
    title="a command or option that a server does not take",
    message="{what} cannot be given to a server",
    state="nothing was started",
    page="`polynya --server URL` starts actions of the API. Other commands, and options that mean "
    "files or settings of one machine, work only where the project is.",
)
SERVER_URL_UNUSABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-052",
    title="`--server` is not the URL of a server",
    message="`--server` {reason}",
    state="nothing was started",
    fix="give the URL that `polynya serve` prints, such as https://polynya.example.com",
    page="The URL has `https`, or `http` for this machine itself, a host, and neither a user, a "
    "query nor a fragment. The token of `POLYNYA_TOKEN` would otherwise travel unencrypted.",
)
