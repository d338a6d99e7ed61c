"""`polynya task`: stop, start, resume and recreate a task in a running cluster."""

from __future__ import annotations

from polynya.cli.context import Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.asking import ask, units_of
from polynya.cli.sharing.place import ANYWHERE, Where, place_of
from polynya.cli.sharing.waiting import warn_of_waiting
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
    """Let a task stand still on all nodes, after its running steps, until `start`.

    For example: `polynya task stop orders --reason "month end"`.

    Args:
        task: name of the task.
        reason: what others are told.
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
    """Let a task go on that somebody stopped.

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
    """Let the suspended jobs of a task be tried again without an edit of its file.

    A task that somebody stopped goes on, too. A dataset that waits for a decision is resumed with
    `polynya dataset resume`.

    For example: `polynya task resume orders`.

    Args:
        task: name of the task.
        reason: what others are told.
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
    """Let a task begin again: its tables lose all, then all that has landed is read again.

    The node that has a dataset does it between two of its steps. History, quarantine and decisions
    go, too; what is no longer in the landing zone does not come back. Readers find no views until
    the first rows are there.

    For example: `polynya task recreate orders --reason "other keys" --wait`.

    Args:
        task: name of the task.
        dataset: only this dataset.
        reason: what others are told.
        wait: until it is done; exit code 1 when it cannot be.
        where: the cluster.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.coordination.documents import UnitWish

    place = place_of(context, where)
    wish = UnitWish(
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
    """Take back what was asked of a task with `recreate` or `polynya reload`, if it is not done.

    A reload that has begun stops; what it has gathered stays beside Current, and another one goes
    on with it, or `polynya reload --abandon` gives it up.

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
        was = wishes.take_back(unit)
        what = "nothing is asked any more" if was else "nothing was asked"
        data = {"task": unit.task, "name": unit.name, "was": was}
        context.output.result("unit.withdrawn", data, f"{unit.task}/{unit.name}: {what}")
    return ExitCode.OK
