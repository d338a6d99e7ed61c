"""`polynya run`: process what has landed."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.operate.run_report import RunReport
from polynya.cli.selection import select_tasks
from polynya.cli.stopping import Stopping
from polynya.observe.events import Event
from polynya.observe.run import RunStarted, StepProgress, under_way
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.engine.runner import Outcome

#: What else than an error may make a run fail.
FailOn: TypeAlias = Literal["quarantine", "stale"]


def run(
    *tasks: str,
    once: bool = False,
    apply: Literal["policy", "always", "never"] = "policy",
    fail_on: tuple[FailOn, ...] = (),
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
        fail_on: exit code 1 also when a record went to `quarantine`, or when the run is `stale`:
            no new record had landed. May be given twice.
        context: given by `main`.
    """
    clock = SystemClock()
    started = clock.monotonic()
    project = context.load(tolerant=True)
    for error in project.errors:
        context.output.error(error)
    chosen = select_tasks(project, tasks)
    name = project.project.name
    report = RunReport(name)

    def tell(event: Event) -> None:
        report.take(event)
        context.output.event(event)

    with context.output.live():
        # Spark takes seconds, on a busy machine a minute: people should know that it began.
        names = tuple(task.name for task in chosen)
        tell(RunStarted(subject=name, target=project.target.name, tasks=names))
        with under_way(tell, StepProgress(subject=name, step="starting", detail="Spark")):
            # Start-up time: pyspark is only loaded when a run begins.
            from polynya.engine.collaborators import start_engine
            from polynya.engine.runner import run_once, run_until_stopped, units

            engine = start_engine(project, apply_mode=apply, sink=tell, long_lived=not once)
        stopping = Stopping.on_signals(engine.stop, context.output)
        work = units(engine, chosen)
        outcome = run_once(engine, work) if once else run_until_stopped(engine, work)
    _tell_failures(context, outcome, told=once)
    seconds = clock.monotonic() - started
    _tell_end(context, report, outcome, units=len(work), seconds=seconds)
    if stopping.interrupted:
        return ExitCode.INTERRUPTED
    if outcome.failures:
        return max(failure.exit_code for failure in outcome.failures.values())
    if project.errors:
        return ExitCode.USAGE
    return ExitCode.FAILED if _is_refused(context, report, fail_on) else ExitCode.OK


def _tell_failures(context: CommandContext, outcome: Outcome, *, told: bool) -> None:
    """The errors that the run ends with; `told`: people saw them when they happened."""
    for failure in outcome.failures.values():
        if context.output.is_json or not told:
            context.output.error(failure)
        if context.options.debug:
            traceback.print_exception(failure, file=sys.stderr)


def _tell_end(
    context: CommandContext, report: RunReport, outcome: Outcome, *, units: int, seconds: float
) -> None:
    table = report.table(outcome.failures)
    if table is not None:
        context.output.attention(table)
    context.output.note(report.line(seconds, failures=len(outcome.failures)))
    data = {
        "ok": not outcome.failures,
        "failed": sorted(outcome.failures),
        "units": units,
        **report.figures(),
        "seconds": round(seconds, 3),
    }
    context.output.result("run", data)


def _is_refused(context: CommandContext, report: RunReport, fail_on: Sequence[FailOn]) -> bool:
    """Whether a run without an error is to fail, and say why."""
    reasons = []
    if "quarantine" in fail_on and report.quarantined:
        reasons.append(f"{report.quarantined:,} records went to quarantine")
    if "stale" in fail_on and not report.records:
        reasons.append("no new record had landed")
    for reason in reasons:
        context.output.warning(f"{reason}, and `--fail-on` says that the run fails then")
    return bool(reasons)
