"""`polynya task`: stop, start and resume a task in a running cluster."""

from __future__ import annotations

from polynya.cli.context import Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.sharing.place import ANYWHERE, Where, place_of

app = verb_app("task", "Stop, start and resume a task in a running cluster.")


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
    place_of(context, where).wishes().stop(task, reason)
    data = {"task": task, "stopped": True, "reason": reason}
    context.output.result("task.wish", data, f"{task} is to stand still")
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
    place_of(context, where).wishes().resume(task, reason)
    data = {"task": task, "stopped": False, "resumed": True, "reason": reason}
    context.output.result("task.wish", data, f"what failed in {task} is tried again")
    return ExitCode.OK
