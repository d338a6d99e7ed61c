"""`polynya run`: process what has landed."""

from __future__ import annotations

import sys
import traceback
from typing import Literal

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.selection import select_tasks
from polynya.cli.stopping import Stopping


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
        sink=context.output.event,
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
