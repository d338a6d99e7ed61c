"""Errors of automations (AUT): their files, and their runs."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, ConflictError, OperationError

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
    "`after`. The message names the automations and the tasks between them.",
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
