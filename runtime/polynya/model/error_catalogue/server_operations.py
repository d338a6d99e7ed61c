"""Errors of operations, the long actions of the API (SRV-040 to 079)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    OperationError,
)

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
    page="`polynya --server URL` starts actions of the API, and shows what it answers to some "
    "commands that read. Other commands, and options that mean files or settings of one machine, "
    "work only where the project is.",
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
ACTION_NEEDS_TABLES: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-060",
    title="an action that this server leaves to other machines",
    message="this server starts nothing that works on tables, such as `polynya {command}`",
    state="nothing was started",
    fix="run the command on a machine with Java and rights on the tables, or set `server.tables` "
    "in the file of the stage",
    page="A server that was started with `--requests-only` has neither Java nor rights to change "
    "tables: it checks, plans, and leaves requests for the nodes of the cluster and for captures. "
    "In a cluster `task run`, `reload` and `maintain` are such requests.",
)
FOLDER_NOT_FOLLOWING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-061",
    title="a folder with a project of its own cannot follow a bucket",
    message="the folder does not follow {bucket}: it has a project of its own",
    state="nothing in the folder was changed",
    fix="name an empty folder with `--project`, or leave `--config` out to serve what is here",
    page="`polynya serve --config` writes the configuration of a bucket into the project folder, "
    "and removes other files of a project there. It takes an empty folder, or one that followed "
    "the same bucket before.",
)
OPERATIONS_NOT_KEPT: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-SRV-062",
    title="operations cannot be kept in the state of the target",
    message="operations cannot be kept in the state of the target",
    state="nothing was started",
    fix="give the server the right to read and write below `.polynya/operations` of the warehouse, "
    "then repeat the request",
    page="With `--keep-operations` a server writes each operation to the warehouse before it "
    "starts it, so that the server after it can report it. That failed, and `why` has the answer "
    "of the store.",
)
CONSOLE_WITHOUT_SERVER: Final = ErrorEntry(
    OperationError,
    "POLYNYA-SRV-063",
    title="no server of the target runs in AWS",
    message="no instance serves {place} in this account and region",
    state="nothing was started",
    fix="add `server: {{}}` to the file of the stage and deploy it; right after a deployment wait "
    "some minutes. `polynya console --local` serves the target from this machine",
    page="`polynya console` looks for a running instance whose tag `polynya:server` has the "
    "`config` of the target as its value. The stage file makes one with `server`. Account and "
    "region are those of your credentials and of the target.",
)
CONSOLE_PROGRAM_MISSING: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-SRV-064",
    title="a program of AWS that opens the tunnel is not installed",
    message="`{program}` is not installed, or not on PATH",
    state="nothing was started",
    fix="install {what}",
    page="The server in AWS accepts no connection from outside. `polynya console` reaches it by "
    "port forwarding of Session Manager, which the command line of AWS (`aws`, version 2) opens "
    "with its Session Manager plugin (`session-manager-plugin`). AWS publishes packages of both.",
)
CONSOLE_UNREACHED: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-SRV-065",
    title="the server was not reached",
    message="{server} was not reached",
    state="nothing was changed",
    page="The tunnel ended, or nothing answered at its other end in time. Your credentials need "
    "`ssm:StartSession` on the instance and on the document "
    "`AWS-StartPortForwardingSession`. A server that does not answer says why in its log: stream "
    "`INSTANCE/server` of the log group of its stack.",
)
CONSOLE_URL_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-066",
    title="the address of the server is not known",
    message="the server is behind a load balancer, and `access.yml` of this project has no `url`",
    state="nothing was started",
    fix="pull the project (`polynya config pull`), or open the address yourself",
    page="A server behind a load balancer has the address that `url` of `access.yml` names.",
)
