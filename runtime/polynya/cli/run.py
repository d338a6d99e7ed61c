"""`polynya run`: process what has landed, and report it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from polynya.cli.automation import automations_of, kept_looking, record_ends
from polynya.cli.context import CommandContext, Context, select_tasks
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import stopped_by_signals
from polynya.cli.output import Output
from polynya.cli.plan import refuse_changed
from polynya.cli.stopping import PARENT, EndedEarly, Stopping, stop_with_parent
from polynya.cli.visible import visible
from polynya.engine.latency import LatencyRecorder
from polynya.engine.unit import RunOutcome, Unit
from polynya.model.config.engines import session_for
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.model.error_catalogue.cluster import UNIT_UNKNOWN
from polynya.model.errors import PolynyaError, SuspendedError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.notify.conditions import TaskOf
from polynya.notify.decide import ObjectLag
from polynya.notify.notifier import Notifier
from polynya.observe.capture import CaptureLanded
from polynya.observe.engine import BatchCopied, DatasetApplied, ExtractApplied, ReloadLoaded
from polynya.observe.events import (
    Event,
    EventSink,
    RunStarted,
    StepProgress,
    line,
    under_way,
)
from polynya.observe.streams import StreamLanded
from polynya.store.clock import Clock, SystemClock

if TYPE_CHECKING:
    from rich.table import Table

    from polynya.engine.backlog import Backlog
    from polynya.engine.idle import IdleRun


log = logging.getLogger(__name__)

#: Datasets of the table at the end; the log of a run has all of them.
_MOST_ROWS: Final = 50


@dataclass(slots=True)
class _Tally:
    """Records of one dataset or landed table, and how often it was applied."""

    landed: int = 0
    records: int = 0
    copied: int = 0
    quarantined: int = 0
    applies: int = 0


@dataclass(slots=True)
class RunReport:
    """What happened in a run of a project. Told by its threads, read at its end."""

    project: str
    _tallies: dict[str, _Tally] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, event: Event) -> None:
        """Take note of what happened."""
        with self._lock:
            tally = self._tallies.setdefault(event.subject, _Tally())
            match event:
                case BatchCopied():
                    tally.records += event.rows_in
                    tally.copied += event.rows_out
                    tally.quarantined += event.rows_quarantined
                case ReloadLoaded():
                    tally.records += event.rows_in
                    tally.copied += event.rows_loaded
                    tally.quarantined += event.rows_quarantined
                case StreamLanded():
                    tally.landed += event.records
                case CaptureLanded():
                    tally.landed += event.events
                case DatasetApplied() | ExtractApplied():
                    tally.applies += 1

    @property
    def landed(self) -> int:
        """Records of streams and databases that were landed."""
        return sum(tally.landed for tally in self._tallies.values())

    @property
    def records(self) -> int:
        """Records that were read."""
        return sum(tally.records for tally in self._tallies.values())

    @property
    def copied(self) -> int:
        """Records that entered a table."""
        return sum(tally.copied for tally in self._tallies.values())

    @property
    def quarantined(self) -> int:
        """Records that were set aside."""
        return sum(tally.quarantined for tally in self._tallies.values())

    @property
    def applied(self) -> int:
        """Datasets whose pending changes were applied."""
        return sum(tally.applies > 0 for tally in self._tallies.values())

    @property
    def nothing_new(self) -> bool:
        """Whether no record was read or landed and nothing was applied."""
        return not self.records and not self.applied and not self.landed

    def figures(self) -> dict[str, int]:
        """For programs."""
        return {
            **({"landed": self.landed} if self.landed else {}),
            "records": self.records,
            "copied": self.copied,
            "quarantined": self.quarantined,
            "applied": self.applied,
        }

    def line(self, seconds: float, *, failures: int) -> str:
        """The last line of a run that took so long, the start of Spark included."""
        if self.nothing_new:
            what = "nothing was copied" if failures else "nothing new"
            return line("done", self.project, f"{what}, in {seconds:.1f} s")
        rate = self.records / seconds if seconds else 0
        quarantined = f", {self.quarantined:,} quarantined" if self.quarantined else ""
        landed = f"{self.landed:,} record{'' if self.landed == 1 else 's'} landed, "
        applied = f", {self.applied:,} dataset{'' if self.applied == 1 else 's'} applied"
        return line(
            "done",
            self.project,
            f"{landed if self.landed else ''}"
            f"{self.copied:,} of {self.records:,} records copied{quarantined}"
            f"{applied if self.applied else ''} in {seconds:.1f} s ({rate:,.0f}/s)",
        )

    def table(self, failures: Mapping[str, PolynyaError]) -> Table | None:
        """Datasets that somebody has to look at; None when there are none."""
        rejecting = {name for name, tally in self._tallies.items() if tally.quarantined}
        names = sorted(rejecting | set(failures))
        if not names:
            return None
        from rich.table import Table

        table = Table("dataset", "copied", "quarantined", "state", "what to do")
        for name in names[:_MOST_ROWS]:
            tally = self._tallies.get(name, _Tally())
            state, advice = _state(name, tally, failures.get(name))
            style = "red" if name in failures else "yellow"
            table.add_row(
                name, f"{tally.copied:,}", f"{tally.quarantined:,}", state, advice, style=style
            )
        if len(names) > _MOST_ROWS:
            table.add_row(f"and {len(names) - _MOST_ROWS:,} more", "", "", "", "")
        return table


def _state(name: str, tally: _Tally, failure: PolynyaError | None) -> tuple[str, str]:
    """How it is with a dataset, and what helps."""
    if failure is not None:
        word = "suspended" if isinstance(failure, SuspendedError) else "failed"
        return f"{word} ({failure.code})", failure.fix or f"polynya explain {failure.code}"
    state = "continues" if tally.copied else "no record could be copied"
    return state, f"polynya quarantine list {name}"


#: What maintenance may take of a submitted run that ends: no user waits for it, and no other
#: process maintains its tables.
SUBMITTED_SECONDS: Final = 600.0
#: What else than an error may make a run fail.
FailOn: TypeAlias = Literal["quarantine", "stale"]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How tasks are run; see the options of `run`."""

    once: bool
    apply: Literal["policy", "always", "never"]
    fail_on: Sequence[FailOn]
    unit: str | None
    owner: str | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class _Told:
    """What learns of a run: the output and its report, notifications, latencies."""

    tell: EventSink
    notifier: Notifier
    latencies: LatencyRecorder


@stopped_by_signals
def run(
    *tasks: str,
    once: bool = False,
    apply: Literal["policy", "always", "never"] = "policy",
    fail_on: tuple[FailOn, ...] = (),
    if_unchanged: str | None = None,
    unit: str | None = None,
    owner: str | None = None,
    epoch: int | None = None,
    config: str | None = None,
    base: Path | None = None,
    context: Context,
) -> int:
    """Process what has landed: copy it, and apply it when that is worth its cost.

    Automations of the project are looked at, too: with `--once` those that are due run after the
    tasks, otherwise each runs at its moment. A run with `--once` that finds nothing to do starts no
    Java.

    For example: `polynya run --once --apply always`.

    Args:
        tasks: names or globs of tasks. Default: all.
        once: return when everything that has landed is processed; otherwise run until Ctrl-C or
            SIGTERM.
        apply: `policy` applies when the cost rule decides so, `always` at the end of every run,
            `never` only changes that views could not show otherwise. Queries see the same rows in
            each case.
        fail_on: also exit with code 1 when a record went to `quarantine`, or when the run is
            `stale`: no new record had landed. May be given twice.
        if_unchanged: the `fingerprint` of `polynya plan --json`: nothing is done if the files of
            the project are others by now.
        unit: for agents that submit work: run only this unit, and with `--once` maintain it for up
            to ten minutes. The following options are for them, too.
        owner: identity under which tables are taken over.
        epoch: granted epoch of the unit; the run ends when a table has a newer owner.
        config: load the project from this folder or `s3://BUCKET/PREFIX`.
        base: base folder of relative paths in its target.
    """
    try:
        stopping = Stopping.on_signals(threading.Event(), context.output, starting=True)
        project = _load(context, config, base)
        refuse_changed(context, if_unchanged)
        how = RunSettings(once, apply, fail_on, unit, owner, epoch)
        return _run(project, tasks, context, stopping, how)
    except EndedEarly:
        context.output.note("ended before anything was begun")
        return ExitCode.OK


def _run(
    project: LoadedProject,
    tasks: Sequence[str],
    context: CommandContext,
    stopping: Stopping,
    how: RunSettings,
) -> int:
    for error in project.errors:
        context.output.error(error)
    chosen = select_tasks(project, tasks)
    # A command of an automation, or an agent's, starts no automations itself.
    is_child = how.unit is not None or bool(os.environ.get(PARENT))
    at_work = None if is_child else automations_of(project, context, stopping.stop)
    with kept_looking(at_work, on=not how.once):
        code = _run_tasks(project, chosen, context, stopping, how)
    if how.once and at_work is not None and not stopping.asked:
        failed = at_work.carry_out_due()
        return code or (ExitCode.FAILED if failed else ExitCode.OK)
    return code


def _run_tasks(
    project: LoadedProject,
    chosen: Sequence[Task],
    context: CommandContext,
    stopping: Stopping,
    how: RunSettings,
) -> int:
    clock = SystemClock()
    started = clock.monotonic()
    mirrors = [task for task in chosen if isinstance(task, ConnectedMirror)]
    if mirrors and len(mirrors) == len(chosen):
        return _run_mirrors(project, mirrors, context, stopping, once=how.once)
    project = _with_engine(project, chosen, context.output if how.unit is None else None)
    name = project.project.name
    report = RunReport(name)

    # The agent that submits one unit tells of it.
    notifier = Notifier(
        project if how.unit is None else replace(project, notifications=()),
        clock=clock,
        tell=context.output.event,
        name=gethostname(),
        tasks=[task.name for task in chosen],
    )

    latencies = LatencyRecorder(project, clock=clock, tell=context.output.event)

    def tell(event: Event) -> None:
        report.take(event)
        notifier.take(event)
        latencies.take(event)
        context.output.event(event)

    with context.output.live(), notifier.running(), latencies.running():
        names = tuple(task.name for task in chosen)
        tell(RunStarted(subject=name, target=project.target.name, tasks=names))
        idle = _idle_run(project, chosen, clock, how)
        if idle is not None:
            stopping.starting = False
            notifier.look = lambda: {
                dataset: ObjectLag(notifier.task_of(dataset), 0.0) for dataset in idle.backlog
            }
            latencies.look = lambda: idle.backlog
            for event in idle.events:
                tell(event)
            for unit, task in idle.rounds:
                notifier.ended(unit, task, None)
            outcome, begun, failed = RunOutcome(), idle.units, set[str]()
        else:
            told = _Told(tell, notifier, latencies)
            outcome, work = _run_engine(project, chosen, stopping, how, told)
            begun = len(work)
            failed = {step.task for step in work if step.name in outcome.failures}
    if stopping.asked:
        outcome = outcome.without_waiting()
    elif how.once:
        record_ends(project, {task.name: task.name not in failed for task in chosen})
    _tell_failures(context, outcome, told=how.once)
    seconds = clock.monotonic() - started
    _tell_end(context, report, outcome, units=begun, seconds=seconds)
    if stopping.interrupted:
        return ExitCode.INTERRUPTED
    if outcome.failures:
        return max(failure.exit_code for failure in outcome.failures.values())
    # The agent that submits one unit has reported broken files already.
    if project.errors and how.unit is None:
        return ExitCode.USAGE
    return ExitCode.FAILED if _is_refused(context, report, how.fail_on) else ExitCode.OK


def _idle_run(
    project: LoadedProject, chosen: Sequence[Task], clock: Clock, how: RunSettings
) -> IdleRun | None:
    """What the run reports if it has nothing to do; None: Spark starts."""
    if not how.once or how.unit is not None or how.owner is not None or how.epoch is not None:
        return None
    # Start-up time: PyArrow.
    from polynya.engine.idle import AtWorkError, idle_run

    try:
        return idle_run(project, chosen, how.apply, clock.now)
    except AtWorkError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - the run itself meets it, and reports it
        reason = f"a look at the tables failed: {error!r}"
    log.debug("Spark starts: %s", reason)
    return None


def _run_engine(
    project: LoadedProject,
    chosen: Sequence[Task],
    stopping: Stopping,
    how: RunSettings,
    told: _Told,
) -> tuple[RunOutcome, Sequence[Unit]]:
    """Start Spark, and run the units of the tasks. Raises what that raises."""
    name, clock = project.project.name, SystemClock()
    # Spark takes seconds, on a busy machine a minute: the user should see that it starts.
    with under_way(told.tell, StepProgress(subject=name, step="starting", detail="Spark")):
        # Start-up time: pyspark is only loaded when a run begins.
        from polynya.engine.collaborators import start_engine
        from polynya.engine.runner import run_once, run_until_stopped, units

        engine = start_engine(
            project, apply_mode=how.apply, sink=told.tell, long_lived=not how.once
        )
        engine = replace(
            engine,
            owner=how.owner or engine.owner,
            epoch=how.epoch,
            stop=stopping.stop,
            maintenance_seconds=None if how.unit is None else SUBMITTED_SECONDS,
            hooks=replace(engine.hooks, on_round=told.notifier.ended),
        )
        told.notifier.look = partial(_lags, engine.backlog, clock, told.notifier.task_of)
        told.latencies.look = lambda: engine.backlog.datasets(clock.monotonic())
    stopping.starting = False
    stop_with_parent(engine.stop, os.environ)
    work = [step for step in units(engine, chosen) if how.unit in (None, step.name)]
    if not work and how.unit is not None:
        raise UNIT_UNKNOWN(unit=shown(how.unit))
    return run_once(engine, work) if how.once else run_until_stopped(engine, work), work


def _run_mirrors(
    project: LoadedProject,
    tasks: Sequence[ConnectedMirror],
    context: CommandContext,
    stopping: Stopping,
    *,
    once: bool,
) -> int:
    """Run mirrors alone, without Spark, until they are done or somebody stops them."""
    # Start-up time: PyIceberg and sqlglot.
    from polynya.engine.tasks.mirror import MirrorWork, StandaloneMirrors

    clock, name = SystemClock(), project.project.name
    started = clock.monotonic()
    notifier = Notifier(
        project,
        clock=clock,
        tell=context.output.event,
        name=gethostname(),
        tasks=[task.name for task in tasks],
    )

    def tell(event: Event) -> None:
        notifier.take(event)
        context.output.event(event)

    stop_with_parent(stopping.stop, os.environ)
    with context.output.live(), notifier.running():
        names = tuple(task.name for task in tasks)
        tell(RunStarted(subject=name, target=project.target.name, tasks=names))
        stopping.starting = False
        works = [MirrorWork(task, project.target, clock=clock, sink=tell) for task in tasks]
        failures = StandaloneMirrors(works, tell, stopping.stop).run(once=once)
    for failure in failures.values():
        if context.output.is_json or not once:
            context.output.error(failure)
    if once and not stopping.asked:
        record_ends(project, {task.name: task.name not in failures for task in tasks})
    seconds = clock.monotonic() - started
    context.output.note(line("done", name, f"{len(tasks)} mirrored in {seconds:.1f} s"))
    data = {"ok": not failures, "failed": sorted(failures), "units": len(tasks)}
    context.output.result("run", {**data, "seconds": round(seconds, 3)})
    if stopping.interrupted:
        return ExitCode.INTERRUPTED
    return max((failure.exit_code for failure in failures.values()), default=ExitCode.OK)


def _lags(backlog: Backlog, clock: Clock, task_of: TaskOf) -> dict[str, ObjectLag]:
    """How far the objects of a run are behind."""
    ages = backlog.ages(clock.monotonic())
    return {name: ObjectLag(task_of(name), seconds) for name, seconds in ages.items()}


def _load(context: CommandContext, config: str | None, base: Path | None) -> LoadedProject:
    if config is None:
        return context.load(tolerant=True)
    # Start-up time: the agent's room.
    from polynya.cluster.submit.configured import load_from

    return load_from(config, context.options.target, base)


def _with_engine(
    project: LoadedProject, chosen: Sequence[Task], output: Output | None
) -> LoadedProject:
    """The project with the session that its tasks need; `output` reports what differs."""
    target = project.target
    named = {task.name: task.engine for task in chosen if isinstance(task, StorageTask)}
    choice = session_for(target.engine, named)
    if output is not None:
        for note in choice.notes:
            output.note(note)
    return replace(project, target=replace(target, cluster=choice.cluster))


def _tell_failures(context: CommandContext, outcome: RunOutcome, *, told: bool) -> None:
    """Report the errors that the run ends with; `told`: they were shown when they happened."""
    for failure in outcome.failures.values():
        if context.output.is_json or not told:
            context.output.error(failure)
        if context.options.debug:
            shown = "".join(traceback.format_exception(failure))
            sys.stderr.write(visible(shown, sys.stderr.encoding))


def _tell_end(
    context: CommandContext, report: RunReport, outcome: RunOutcome, *, units: int, seconds: float
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
