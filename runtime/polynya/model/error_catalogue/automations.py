"""Errors of automations (AUT): their files, and their runs."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    OperationError,
    RefusedError,
)

AUTOMATION_TASK_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AUT-001",
    title="an automation names a task that the project does not have",
    message="the project has no task {task}",
    page="`after`, `overdue`, `run` and `reload` name tasks of the same project.",
)
AUTOMATION_CYCLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AUT-002",
    title="automations start each other without end",
    message="these automations would start each other without end: {path}",
    fix="remove one `after`, or one action",
    page="An automation that runs a task starts each automation that waits for that task with "
    "`after`. In a cluster one that reloads the task does, too. The message names the automations "
    "and the tasks between them.",
)
SCHEDULE_WITHOUT_ZONE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AUT-003",
    title="a schedule has no time zone",
    message="the schedule has no time zone",
    fix="write `time_zone: Europe/Berlin` below it, or in `polynya.yml` for all schedules",
    page="A schedule of an automation counts on the clock of a zone, which decides when 02:00 is "
    "and what happens when clocks change. `UTC` is a zone, too.",
)
SCHEDULE_NEVER_COMES: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AUT-004",
    title="a schedule has no moment",
    message="{schedule} has no moment between `start` and `end`",
    fix="change the schedule, or the dates",
    page="The automation would never start by this trigger.",
)
AUTOMATION_BUSY: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-AUT-005",
    title="an automation runs already",
    message="the automation runs already: {run}",
    state="nothing was started",
    fix="wait for its end: `polynya automation runs {name}`",
    page="An automation has at most one run at a time. Its state in the warehouse says which "
    "process runs it; a process that has shown no sign of life for five minutes counts as dead.",
)
RUN_INTERRUPTED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AUT-006",
    title="the process of an automation ended in the middle of a run",
    message="the run {run} was interrupted: its process ended, or lost the automation",
    state="the steps of the run say what was done; the step marked `unknown` may have been done, "
    "and nothing is done a second time",
    fix="`polynya automation runs NAME --steps`, then `polynya automation run NAME` if need be",
    page="A run is never continued by another process, because that one cannot know how far the "
    "step in the middle came. The run is closed and reported, and the next moment starts the next "
    "run.",
)
ACTION_TIMED_OUT: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AUT-007",
    title="an action took longer than its time limit",
    message="the action took longer than {limit}",
    state="the command was stopped; what it had committed stays",
    fix="find out what takes so long, or raise `time_limit`",
    page="The command is asked to stop with SIGTERM, and killed thirty seconds later.",
)
AUTOMATION_UNREADABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AUT-008",
    title="the state of an automation cannot be read",
    message="the state of the automation is not one that this version can read",
    state="no trigger starts the automation; its file in the warehouse was not changed",
    fix="update Polynya, or remove the file: moments that came before are then forgotten",
    page="The state of each automation is a file in `.polynya/automations` of the warehouse. A "
    "newer version may have written it, or something else damaged it.",
)
WEBHOOK_SECRET_SHARED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-AUT-009",
    title="two webhooks have the same secret",
    message="the webhook {other} has the same secret",
    fix="give each webhook a secret of its own",
    page="A message that was signed for one webhook could be sent to the other one, where it would "
    "be as genuine.",
)
WEBHOOK_REFUSED: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-AUT-010",
    title="a call of a webhook is not genuine",
    message="the call is refused: {reason}",
    state="nothing was started",
    fix="sign `SECONDS.BODY` with the secret of the webhook, with a clock that is right",
    page="`Polynya-Signature` is `t=SECONDS,v1=HEX`: the time of the call in seconds since 1970, "
    "and HMAC-SHA256 of `SECONDS.BODY` in lower-case hexadecimal digits. The time may be five "
    "minutes away from the clock of the server. The answer is the same for a wrong secret and for "
    "a webhook that does not exist.",
)
CALL_REPEATED: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-AUT-011",
    title="a call of a webhook was taken before",
    message="the same call was taken before, for the run {run}",
    state="the call that came first starts its run; this one starts nothing",
    fix="sign a new call with the time of now",
    page="A signature is taken once, so that a call which somebody recorded starts nothing.",
)
AUTOMATION_TAKES_NO_CALL: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-AUT-012",
    title="an automation takes no call",
    message="the automation takes no call: {reason}",
    state="nothing was started",
    page="A call starts an automation that is enabled, not paused, and has the trigger `api` or "
    "the webhook in its file. What is called in a pause is not made up for.",
)
TOO_MANY_CALLS: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-AUT-013",
    title="an automation knows too many calls",
    message="the automation knows {most} calls, so it could not tell this one when it comes again",
    state="nothing was started",
    fix="call less often, or without `Idempotency-Key`",
    page="The signature of a webhook is known for ten minutes and the key of a call for a day, so "
    "that a repeated one starts nothing. Their number is limited, because the state of the "
    "automation holds them.",
)
CLUSTER_NOT_WOKEN: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-AUT-016",
    title="a cluster was not woken for a call",
    message="the run {run} waits, and nobody could be asked for a node",
    state="the call is taken: the next node begins its run",
    fix="repeat the call, or start the cluster by `polynya cluster start`",
    page="In a cluster a call is kept in the warehouse, and a command in the coordination place "
    "wants a node where there is none. That place did not take the command. A repeated call starts "
    "nothing twice, and tries again to wake the cluster.",
)
WEBHOOK_SECRET_UNUSABLE: Final = ErrorEntry(
    RefusedError,
    "POLYNYA-AUT-014",
    title="the secret of a webhook cannot be used",
    message="the secret of the webhook {webhook} cannot be used: {reason}",
    state="nothing was started",
    fix="store a secret of at least 16 bytes where the file of the automation says",
    page="The server reads the secret when a call comes. Without a secret that is long enough "
    "anybody could sign.",
)
ACTION_NOT_IN_AGENT: Final = ErrorEntry(
    OperationError,
    "POLYNYA-AUT-015",
    title="an action cannot run in an agent",
    message="the action cannot run in an agent: {reason}",
    state="nothing was changed by the action",
    fix="take it out of the automation, or run the automation by `polynya run` elsewhere",
    page="An agent owns its tables. In a cluster whose nodes share work, the owners of the tables "
    "are asked to `reload`; an agent that is alone takes no such requests.",
)
