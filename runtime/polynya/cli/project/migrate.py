"""`polynya migrate`: bring tables and views in line with the configuration."""

from __future__ import annotations

import sys

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.project.plan import make_plan, show_plan


def migrate(*, yes: bool = False, context: Context) -> int:
    """Execute what `polynya plan` shows, except changes that need landed records.

    Creates the tables of new datasets, columns that are no longer excluded, and views; drops views
    that are no longer configured; rewrites columns that cannot get their declared type in place;
    records the settings, and the new name of a renamed task. Reports what is left for the next
    `polynya run`. Stop `polynya run` first: a running one waits, says so, and then continues with
    its old settings. Exit code 1 when something needs a decision.

    For example: `polynya migrate --yes`.

    Args:
        yes: do not ask.
        context: given by `main`.
    """
    project, found = make_plan(context)
    show_plan(context, project, found)
    if not found.has_changes:
        return ExitCode.OK
    if not yes and not _agreed(context):
        context.output.note("nothing was done")
        return ExitCode.OK
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.engine.verbs.configure import configure

    with context.starting(project):
        engine = start_engine(project, sink=context.output.event)
    done = [one.plan.name for one in found.datasets if configure(engine, one)]
    changes = list(found.changes())
    to_decide = sum(change.action == "decide" for change in changes)
    for_run = bool(found.undiscovered) or any(
        change.action == "run" or change.kind == "new_dataset" for change in changes
    )
    text = f"brought in line: {', '.join(done) or 'nothing'}"
    if for_run:
        text += "\nthe next `polynya run` does the rest: see [next run] and new datasets above"
    if to_decide:
        text += f"\n{to_decide} left to decide: see [decide first] above"
    data = {"datasets": done, "to_decide": to_decide, "for_next_run": for_run}
    context.output.result("applied", data, text)
    return ExitCode.FAILED if to_decide else ExitCode.OK


def _agreed(context: CommandContext) -> bool:
    if not sys.stdin.isatty() or context.output.is_json:
        raise usage_error("nobody is there to ask", "look at `polynya plan`, then use `--yes`")
    context.output.note("Migrate? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
