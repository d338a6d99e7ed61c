"""`polynya task`: stop, start, resume and recreate a task in a running cluster."""

from __future__ import annotations

from polynya.cli.asking import ask, units_of
from polynya.cli.cluster_moves import ANYWHERE, Where, place_of, warn_of_waiting
from polynya.cli.context import Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.store.clock import SystemClock

app = verb_app("task", "Stop, start, resume and recreate a task in a running cluster.")


@app.command
def stop(
    task: str,
    /,
    *,
    reason: str = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Stop a task on all nodes, after its running steps, until `start`.

    For example: `polynya task stop orders --reason "month end"`.

    Args:
        task: name of the task.
        reason: reason to show to other operators.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    place.wishes().stop(task, reason)
    data = {"task": task, "stopped": True, "reason": reason}
    context.output.result("task.wish", data, f"{task} is to stand still")
    warn_of_waiting(context, place, task=task)
    return ExitCode.OK


@app.command
def start(
    task: str,
    /,
    *,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Start a stopped task again.

    For example: `polynya task start orders`.

    Args:
        task: name of the task.
        where: the cluster.
        context: given by `main`.
    """
    was = place_of(context, where).wishes().start(task)
    text = f"{task} goes on" if was else f"nobody had stopped {task}"
    context.output.result("task.wish", {"task": task, "stopped": False, "was": was}, text)
    return ExitCode.OK


@app.command
def resume(
    task: str,
    /,
    *,
    reason: str = "",
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Retry the suspended jobs of a task without an edit of its file.

    This also starts a stopped task. To resume a dataset that waits for a decision, use `polynya
    dataset resume`.

    For example: `polynya task resume orders`.

    Args:
        task: name of the task.
        reason: reason to show to other operators.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    place.wishes().resume(task, reason)
    data = {"task": task, "stopped": False, "resumed": True, "reason": reason}
    context.output.result("task.wish", data, f"what failed in {task} is tried again")
    warn_of_waiting(context, place, task=task)
    return ExitCode.OK


@app.command
def recreate(
    task: str,
    /,
    *,
    dataset: str | None = None,
    reason: str = "",
    wait: bool = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Start a task from scratch: empty its tables, then reread everything that has landed.

    The owner of a dataset does it between two steps. History, quarantine and decisions are removed,
    too; data that is no longer in the landing zone does not return. Views do not exist until the
    first rows are there.

    For example: `polynya task recreate orders --reason "other keys" --wait`.

    Args:
        task: name of the task.
        dataset: only this dataset.
        reason: reason to show to other operators.
        wait: wait until it is done; exit code 1 when it fails.
        where: the cluster.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.coordination.documents import UnitRequest

    place = place_of(context, where)
    wish = UnitRequest(
        kind="recreate",
        dataset=dataset,
        by=place.person(),
        reason=reason,
        since=SystemClock().now(),
    )
    return ask(context, place, task, wish, wait=wait)


@app.command
def withdraw(
    task: str,
    /,
    *,
    dataset: str | None = None,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Withdraw a pending `recreate` or `polynya reload` of a task.

    A running reload stops; its loaded rows stay next to Current. Another reload resumes it, or
    `polynya reload --abandon` discards it.

    For example: `polynya task withdraw orders`.

    Args:
        task: name of the task.
        dataset: only this dataset.
        where: the cluster.
        context: given by `main`.
    """
    place = place_of(context, where)
    wishes = place.wishes()
    for unit in units_of(place, task, dataset):
        was = wishes.withdraw(unit)
        what = "nothing is asked any more" if was else "nothing was asked"
        data = {"task": unit.task, "name": unit.name, "was": was}
        context.output.result("unit.withdrawn", data, f"{unit.task}/{unit.name}: {what}")
    return ExitCode.OK
