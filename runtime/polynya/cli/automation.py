"""`polynya automation`: list, show, runs, run, pause and resume; and automations in a run."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext, Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import stopped_by_signals
from polynya.cli.stopping import Stopping
from polynya.model.automations import AUTOMATION_FOLDER, LoadedAutomation, load_automations
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.observe.events import line
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from datetime import datetime

    from polynya.automation.runner import AutomationRunner
    from polynya.automation.state import AutomationState, AutomationStore, RunLog

app = command_group("automation", "Automations: list, show, runs, run, pause, resume.")

#: Results after which nobody has to look.
_GOOD = frozenset({"running", "success", "left_out"})


@app.command(name="list")
def list_(*, context: Context) -> None:
    """List the automations with their state, last run and next moment. Needs no Java.

    For example: `polynya automation list --json`.
    """
    project, automations = _loaded(context)
    # Start-up time: rich.
    from rich.table import Table

    table = Table("automation", "state", "last run", "result", "next moment")
    store = _store(project)
    for name, one in sorted(automations.items()):
        state, _ = store.read(name)
        last = state.last
        following = _next(one, state)
        data = {
            "name": name,
            "file": one.file,
            "state": _state(one, state),
            "last_run": None if last is None else last.model_dump(mode="json", exclude={"steps"}),
            "next": following,
        }
        context.output.result("automation", data)
        when = "" if last is None else f"{last.started:%Y-%m-%d %H:%M:%S}"
        result = "" if last is None else last.state
        moment = "" if following is None else f"{following:%Y-%m-%d %H:%M:%S}"
        table.add_row(name, _state(one, state), when, result, moment)
    if not automations:
        context.output.note(f"the project has no automations; add files to `{AUTOMATION_FOLDER}/`")
    elif not context.output.is_json:
        context.output.result("automations", {}, table)


@app.command
def show(name: str, /, *, context: Context) -> None:
    """Show an automation: its settings as they are used, its state, and what waits. Needs no Java.

    For example: `polynya automation show nightly`.

    Args:
        name: an automation.
    """
    project, automations = _loaded(context)
    one = _chosen(automations, name)
    state, _ = _store(project).read(name)
    settings = one.settings.model_dump(mode="json", by_alias=True)
    following = _next(one, state)
    running = None if state.running is None else state.running.model_dump(mode="json")
    data = {
        "name": name,
        "file": one.file,
        "state": _state(one, state),
        "next": following,
        "running": running,
        "waiting": len(state.waiting),
        "settings": settings,
    }
    lines = [f"{name}: {_state(one, state)}", f"  file     {one.file}"]
    lines += [f"  next     {following:%Y-%m-%d %H:%M:%S} UTC"] if following else []
    lines += [f"  running  {state.running.id}: {state.running.why}"] if state.running else []
    lines += [f"  trigger  {_line_of(trigger)}" for trigger in settings["triggers"]]
    lines += [f"  action   {_line_of(action)}" for action in settings["actions"]]
    context.output.result("automation", data, "\n".join(lines))


@app.command
def runs(name: str, /, *, steps: bool = False, limit: int = 20, context: Context) -> None:
    """Show the runs of an automation of the last 30 days, newest first. Needs no Java.

    For example: `polynya automation runs nightly --steps`.

    Args:
        name: an automation, also one whose file is gone.
        steps: also show each step with its result.
        limit: most runs to show.
    """
    if limit < 1:
        raise WRONG_USAGE("`--limit` is at least 1")
    project = context.load(tolerant=True)
    for run in islice(_store(project).runs(_as_name(name)), limit):
        text = [_line(run)]
        for step in run.steps if steps else ():
            tries = f", {step.tries} tries" if step.tries > 1 else ""
            why = f": {step.code or ''} {step.message}".rstrip() if step.message else ""
            text.append(f"  {step.state:<10} {step.action}{tries}{why}")
        context.output.result("automation.run", run.model_dump(mode="json"), "\n".join(text))


@app.command
@stopped_by_signals
def run(automation: str, /, *, context: Context) -> int:
    """Run an automation now, paused or not, and wait for its end.

    Exit code 1 when an action fails, 5 when the automation runs already. If the environment names a
    cluster by `POLYNYA_COORDINATION`, its agents keep their tables: they are asked to reload.

    For example: `polynya automation run nightly`.

    Args:
        automation: its name.
    """
    stopping = Stopping.on_signals(threading.Event(), context.output)
    project, automations = _loaded(context)
    _chosen(automations, automation)
    runner = _runner(project, automations, context, stopping.stop, by_hand=True)
    begun = runner.begin_by_hand(automation, "started by hand")
    log = runner.carry_out(automation, begun)
    if stopping.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if log.state == "success" else ExitCode.FAILED


@app.command
def pause(name: str, /, *, context: Context) -> None:
    """Pause an automation: no trigger starts it until it is resumed. Its file stays as it is.

    A run under way goes on. Moments in the pause are not made up for.

    For example: `polynya automation pause nightly`.

    Args:
        name: an automation.
    """
    _set_pause(name, context, SystemClock().now())


@app.command
def resume(name: str, /, *, context: Context) -> None:
    """Resume a paused automation.

    For example: `polynya automation resume nightly`.

    Args:
        name: an automation.
    """
    _set_pause(name, context, None)


def _set_pause(name: str, context: CommandContext, moment: datetime | None) -> None:
    project, automations = _loaded(context)
    _chosen(automations, name)
    _store(project).set_pause(name, moment)
    word = "resumed" if moment is None else "paused"
    context.output.result(f"automation.{word}", {"name": name}, f"{name}: {word}")


class ProjectAutomations:
    """The automations that a run of a project looks at."""

    def __init__(self, runner: AutomationRunner, context: CommandContext) -> None:
        self._runner, self._context = runner, context

    def carry_out_due(self) -> bool:
        """Carry out what is due now; whether anything failed."""
        failed = False

        def take(error: PolynyaError) -> None:
            nonlocal failed
            failed = True
            self._context.output.error(error)

        return self._runner.carry_out_due(take) or failed

    def keep_looking(self) -> None:
        """Look until the run stops."""
        self._runner.keep_looking(self._context.output.error)


def automations_of(
    project: LoadedProject, context: CommandContext, stop: threading.Event
) -> ProjectAutomations | None:
    """The automations of a project for a run; None without any. Those with errors are reported."""
    automations, errors = load_automations(project)
    for error in errors:
        context.output.error(error)
    if not automations:
        return None
    named = {one.settings.name: one for one in automations}
    return ProjectAutomations(_runner(project, named, context, stop), context)


@contextmanager
def kept_looking(automations: ProjectAutomations | None, *, on: bool) -> Iterator[None]:
    """Look at automations on a thread during the block; the runs under way end with it."""
    if automations is None or not on:
        yield
        return
    thread = threading.Thread(target=automations.keep_looking, name="automations")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def record_ends(project: LoadedProject, ends: Mapping[str, bool]) -> None:
    """Take note of how runs of tasks ended, where automations may wait for them."""
    if not (project.directory / AUTOMATION_FOLDER).is_dir():
        return
    now, store = SystemClock().now(), _store(project)
    for task, success in ends.items():
        store.ended(task, now, success=success)


def _runner(
    project: LoadedProject,
    automations: Mapping[str, LoadedAutomation],
    context: CommandContext,
    stop: threading.Event,
    *,
    by_hand: bool = False,
) -> AutomationRunner:
    # Start-up time: most runs have no automations.
    from polynya.automation.commands import ChildCommands, Surroundings
    from polynya.automation.runner import AutomationRunner
    from polynya.store.places import store_at

    clock, directory = SystemClock(), project.directory.absolute()

    def tell(log: RunLog) -> None:
        data = log.model_dump(mode="json")
        text = line("automation", log.automation, _what(log))
        context.output.result("automation.run", data)
        if log.state in _GOOD:
            context.output.note(text)
        else:
            context.output.warning(text)

    return AutomationRunner(
        automations=list(automations.values()),
        store=_store(project),
        landing=store_at(project.target.landing, project.target.aws),
        directory=directory,
        commands=ChildCommands(directory, project.target.name, clock),
        clock=clock,
        tell=tell,
        stop=stop,
        # Agents own the tables of a cluster; a run that somebody starts there takes them anyway.
        surroundings=Surroundings.OPERATOR
        if by_hand and os.environ.get("POLYNYA_COORDINATION")
        else Surroundings.RUN,
    )


def _store(project: LoadedProject) -> AutomationStore:
    # Start-up time: as above.
    from polynya.automation.state import AutomationStore

    return AutomationStore.of(project.target)


def _loaded(context: CommandContext) -> tuple[LoadedProject, dict[str, LoadedAutomation]]:
    project = context.load(tolerant=True)
    automations, errors = load_automations(project)
    if errors:
        raise ConfigErrors(errors)
    return project, {one.settings.name: one for one in automations}


def _chosen(automations: Mapping[str, LoadedAutomation], name: str) -> LoadedAutomation:
    if name not in automations:
        fix = suggest(name, list(automations))
        raise WRONG_USAGE(f"no automation is called {shown(name)}", fix=fix)
    return automations[name]


def _as_name(name: str) -> str:
    """A name that is safe in a path."""
    # Start-up time: as above.
    from polynya.model.names import is_name

    if not is_name(name):
        raise WRONG_USAGE(f"no automation is called {shown(name)}")
    return name


def _next(automation: LoadedAutomation, state: AutomationState) -> datetime | None:
    """The next moment of its schedules, in UTC; None when none comes or it is paused."""
    # Start-up time: as above.
    from polynya.automation.outlook import next_moments

    return next(iter(next_moments(automation, state, SystemClock().now())), None)


def _state(automation: LoadedAutomation, state: AutomationState) -> str:
    # Start-up time: as above.
    from polynya.automation.outlook import word_of

    return word_of(automation, state)


def _line(log: RunLog) -> str:
    return f"{log.started:%Y-%m-%d %H:%M:%S} UTC  {_what(log)}"


def _what(log: RunLog) -> str:
    took = "" if log.ended is None else f" in {(log.ended - log.started).total_seconds():.1f} s"
    error = f": {log.code or ''} {log.message}".rstrip() if log.message else ""
    return f"{log.state.replace('_', ' ')}{took}, {log.why}{error}"


def _line_of(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in settings.items() if value is not None)
