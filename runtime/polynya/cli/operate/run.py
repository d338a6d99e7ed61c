"""`polynya run`: process what has landed."""

from __future__ import annotations

import sys
import traceback
from typing import Literal

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.output import Output
from polynya.cli.selection import select_tasks
from polynya.cli.stopping import Stopping
from polynya.observe.events import Event


def run(
    *tasks: str,
    once: bool = False,
    apply: Literal["policy", "always", "never"] = "policy",
    context: Context,
) -> int:
    """Process what has landed: copy it, and apply it when that is worth it.

    For example: `polynya run --once --apply always`.

    Args:
        tasks: names or globs of tasks; all of them when none is given.
        once: return when all that has landed is processed; else run until Ctrl-C or SIGTERM.
        apply: `policy` applies when the cost rule says so, `always` at the end of every run,
            `never` only what views could not show otherwise. Queries see the same rows in each
            case.
        context: given by `main`.
    """
    # Start-up time: pyspark is only loaded when a run begins.
    from polynya.engine.runner import run_once, run_until_stopped, units
    from polynya.engine.start import start_engine

    project = context.load(tolerant=True)
    for error in project.errors:
        context.output.error(error)
    chosen = select_tasks(project, tasks)
    engine = start_engine(
        project,
        apply_mode=apply,
        sink=lambda event: show(context.output, event),
        long_lived=not once,
    )
    stopping = Stopping.on_signals(engine.stop, context.output)
    work = units(engine, chosen)
    outcome = run_once(engine, work) if once else run_until_stopped(engine, work)
    for failure in outcome.failures.values():
        context.output.error(failure)
        if context.options.debug:
            traceback.print_exception(failure, file=sys.stderr)
    context.output.result(
        "run", {"ok": not outcome.failures, "failed": sorted(outcome.failures), "units": len(work)}
    )
    if stopping.interrupted:
        return ExitCode.INTERRUPTED
    if outcome.failures:
        return max(failure.exit_code for failure in outcome.failures.values())
    return ExitCode.USAGE if project.errors else ExitCode.OK


def show(output: Output, event: Event) -> None:
    """Tell what happened: a JSON line, or a line for people."""
    output.result(event.type, {"subject": event.subject, **event.fields})
    fields = event.fields
    if event.type == "batch.copied":
        quarantined = (
            f", {fields['rows_quarantined']} quarantined" if fields["rows_quarantined"] else ""
        )
        rate = fields["rows_in"] / fields["seconds"] if fields["seconds"] else 0
        # Such as the position of a task whose tables have batches of their own.
        tell = output.note if fields["rows_in"] else output.detail
        tell(
            f"copied   {event.subject}: {fields['rows_out']:,} of {fields['rows_in']:,} records"
            f"{quarantined} in {fields['seconds']:.1f} s ({rate:,.0f}/s)"
        )
    elif event.type == "reload.loaded":
        output.note(
            f"loaded   {event.subject}: {fields['rows_loaded']:,} rows, "
            f"{fields['files_left']} files left"
        )
    elif event.type == "schema.changed":
        output.note(f"changed  {event.subject}: {fields['says']} ({fields['policy']})")
    elif event.type == "extract.applied":
        note = "" if fields["complete"] else ", incomplete"
        output.note(
            f"extract  {event.subject}: {fields['extract']}, {fields['rows_loaded']:,} rows{note}"
        )
    elif event.type in ("extract.waiting", "extract.restarted"):
        what = event.type.rpartition(".")[2]
        output.note(f"{what} {event.subject}: {fields['extract']}: {fields['reason']}")
    elif event.type == "dataset.applied":
        output.note(f"applied  {event.subject}: {fields['reason']}")
    elif event.type == "apply.skipped":
        output.detail(f"waiting  {event.subject}: {fields['reason']}")
    elif event.type == "views.published":
        output.detail(f"views    {', '.join(fields['views'])}")
    elif event.type == "views.failed":
        output.warning(f"{event.subject}: other engines may miss its views: {fields['error']}")
    elif event.type == "file.changed":
        output.warning(
            f"{event.subject}: {fields['file']} changed after it was copied; "
            "the new content is not read"
        )
