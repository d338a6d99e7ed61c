"""`polynya task`: stop, start, resume, run and recreate a task in a running cluster."""

from __future__ import annotations

from polynya.cli.cluster_location import (
    ANYWHERE,
    Reason,
    TaskName,
    Wait,
    Where,
    locate,
    operator,
)
from polynya.cli.cluster_requests import command
from polynya.cli.context import Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.unit_requests import OnlyDataset, send_request, send_requests, units_of
from polynya.engine.policy import ApplyMode
from polynya.store.clock import SystemClock

app = command_group("task", "Stop, start, resume, run and recreate a task in a running cluster.")
for name in ("stop", "start", "resume"):
    app.command(command(name))


@app.command
def run(
    *tasks: TaskName,
    apply: ApplyMode = "policy",
    reason: Reason = "",
    wait: Wait = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Take in what has landed for tasks of tables now, without waiting for more.

    Agents do this all the time, by the settings of the tasks. With `--apply always` the owner of a
    dataset also applies what the settings would let wait.

    For example: `polynya task run orders --apply always --wait`.

    Args:
        apply: as `--apply` of `polynya run`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.coordination.documents import UnitRequest

    location, now = locate(context, where), SystemClock().now()
    request = UnitRequest(kind="run", apply=apply, by=operator(), reason=reason, since=now)
    return send_requests(context, location, [(task, request) for task in tasks], wait=wait)


@app.command
def recreate(
    task: TaskName,
    /,
    *,
    dataset: OnlyDataset = None,
    reason: Reason = "",
    wait: Wait = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Start a task from scratch: empty its tables, then reread everything that has landed.

    The owner of a dataset does it between two steps. History, quarantine and decisions are removed,
    too; data that is no longer in the landing zone does not return. Views do not exist until the
    first rows are there.

    For example: `polynya task recreate orders --reason "other keys" --wait`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.coordination.documents import UnitRequest

    request = UnitRequest(
        kind="recreate", dataset=dataset, by=operator(), reason=reason, since=SystemClock().now()
    )
    return send_request(context, locate(context, where), task, request, wait=wait)


@app.command
def withdraw(
    task: TaskName,
    /,
    *,
    dataset: OnlyDataset = None,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Withdraw a pending `recreate` or `polynya reload` of a task.

    A running reload stops; its loaded rows stay next to Current. Another reload resumes it, or
    `polynya reload --abandon` discards it.

    For example: `polynya task withdraw orders`.
    """
    location = locate(context, where)
    requests = location.requests()
    for unit in units_of(location, task, dataset):
        was = requests.withdraw(unit)
        text = "the request is withdrawn" if was else "no request was pending"
        data = {"task": unit.task, "name": unit.name, "was": was}
        context.output.result("unit.withdrawn", data, f"{unit.task}/{unit.name}: {text}")
    return ExitCode.OK
