"""Automations at work: a look at all triggers, and runs of actions with their log.

A run begins with a conditional write of the automation's state, so it begins once, whichever
process was faster. Its process renews its sign of life by the same writes; one that finds its run
taken away stops. A process that dies leaves the run and its log, and the next look of any process
closes both and reports them. Nothing of a run is done a second time.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from polynya.automation.commands import (
    ActionEnd,
    Commands,
    Surroundings,
    arguments_of,
    refused,
    skipped_why,
)
from polynya.automation.due import DueDecision, DueMoment, TaskEnds, TriggerFacts, decide
from polynya.automation.state import (
    SILENT,
    AutomationState,
    AutomationStore,
    LastLook,
    RunLog,
    RunningRun,
    StepLog,
    run_id,
)
from polynya.engine.errors import as_polynya
from polynya.model.automations import LoadedAutomation, awaited_tasks
from polynya.model.config.automation import Action, Automation, FileTrigger
from polynya.model.error_catalogue.automations import AUTOMATION_BUSY
from polynya.model.errors import PolynyaError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

_ALIVE: Final = timedelta(seconds=20)
_LOOK_SECONDS: Final = 5.0
_NOTED: Final = timedelta(minutes=1)
_LONGEST_PAUSE: Final = timedelta(minutes=15)
#: Files of a glob that are looked at.
_MOST_FILES: Final = 10_000

Tell = Callable[[RunLog], None]
#: When runs of tasks last ended.
EndsOf = Callable[[Collection[str]], Mapping[str, TaskEnds]]


class AutomationRunner:
    """The automations of a project in one process.

    Args:
        automations: all of them.
        store: their files.
        landing: the landing zone, for triggers of files.
        directory: the project folder.
        commands: carries actions out.
        clock: of everything.
        tell: takes each run that ended.
        stop: ends runs under way when it is set.
        surroundings: where this process is, which decides what an action can do.
        archives: the place of archives of the project, if it is not the project folder.
        ends_of: finds when runs of tasks ended; default: as commands have noted it.
    """

    def __init__(
        self,
        *,
        automations: Sequence[LoadedAutomation],
        store: AutomationStore,
        landing: ObjectStore,
        directory: Path,
        commands: Commands,
        clock: Clock,
        tell: Tell,
        stop: threading.Event,
        surroundings: Surroundings = Surroundings.RUN,
        archives: str | None = None,
        ends_of: EndsOf | None = None,
    ) -> None:
        self._ends_of = ends_of or (lambda tasks: {task: store.ends(task) for task in tasks})
        self._automations = {one.settings.name: one for one in automations}
        self._store, self._landing, self._directory = store, landing, directory
        self._commands, self._clock, self._tell, self._stop = commands, clock, tell, stop
        self._surroundings, self._archives = surroundings, archives
        self._by = f"{socket.gethostname()}:{os.getpid()}"
        self._at_work: list[threading.Thread] = []
        self._told: set[str] = set()
        self._paused: set[str] = set()
        self._noted: datetime | None = None

    def carry_out_due(self, failed: Callable[[PolynyaError], None]) -> bool:
        """Carry out everything that is due now, one run after the other.

        Returns whether a run failed.
        """
        ended: list[str] = []
        self._note_look(failed)
        for name, one in self._automations.items():
            try:
                while not self._stop.is_set() and (run := self._look_at(one)) is not None:
                    ended.append(self.carry_out(name, run).state)
            except (PolynyaError, OSError) as error:
                failed(as_polynya(error))
        return any(state != "success" for state in ended)

    def keep_looking(self, failed: Callable[[PolynyaError], None]) -> None:
        """Look every few seconds until `stop` is set; each run works on a thread of its own."""
        while not self._stop.is_set():
            self.look(failed)
            self._stop.wait(_LOOK_SECONDS)
        for thread in self._at_work:
            thread.join()

    def look(self, failed: Callable[[PolynyaError], None]) -> None:
        """Look at each automation; runs that begin work on threads of their own.

        `failed` gets each error once.
        """
        self._note_look(partial(self._once, failed))
        self._at_work = [thread for thread in self._at_work if thread.is_alive()]
        for name, one in self._automations.items():
            try:
                run = self._look_at(one)
            except (PolynyaError, OSError) as error:
                self._once(failed, as_polynya(error))
                continue
            if run is not None:
                work = partial(self._guarded, name, run, failed)
                thread = threading.Thread(target=work, name=f"automation {name}")
                thread.start()
                self._at_work.append(thread)

    def _once(self, failed: Callable[[PolynyaError], None], error: PolynyaError) -> None:
        if str(error) not in self._told:
            self._told.add(str(error))
            failed(error)

    def _note_look(self, failed: Callable[[PolynyaError], None]) -> None:
        """Take note once a minute that a process looks: else what waits would wait unexplained."""
        now = self._clock.now()
        if self._noted is not None and now - self._noted < _NOTED:
            return
        self._noted = now
        try:
            self._store.looked(LastLook(at=now, by=self._by))
        except (PolynyaError, OSError) as error:
            failed(as_polynya(error))

    @property
    def paused(self) -> frozenset[str]:
        """The automations that were paused when they were last looked at."""
        return frozenset(self._paused)

    def _guarded(self, name: str, run: RunningRun, failed: Callable[[PolynyaError], None]) -> None:
        try:
            self.carry_out(name, run)
        except (PolynyaError, OSError) as error:
            failed(as_polynya(error))

    def begin_by_hand(self, name: str, why: str) -> RunningRun:
        """Begin a run that an operator wants; raises ConflictError POLYNYA-AUT-005 during one."""
        now = self._clock.now()
        run = self._run_of(DueMoment(now, why), now)

        def begin(state: AutomationState) -> AutomationState:
            kept = self._without_dead(name, state, now)
            if kept.running is not None:
                raise AUTOMATION_BUSY(where=name, run=kept.running.id, name=name)
            return kept.model_copy(update={"running": run, "cancel": False})

        self._store.change(name, begin)
        return run

    def _look_at(self, automation: LoadedAutomation) -> RunningRun | None:
        """Take note of what triggers an automation; its run, when this process begins one."""
        settings, now = automation.settings, self._clock.now()
        begun: RunningRun | None = None
        left_out: tuple[DueMoment, ...] = ()

        def look(state: AutomationState) -> AutomationState:
            nonlocal begun, left_out
            begun, left_out = None, ()
            state = self._without_dead(settings.name, state, now)
            call = state.call
            # Facts from before the state was read may be older than those that it has used.
            facts = self._facts(automation)
            decision = decide(automation, state.memory, facts, now, call)
            state = state.model_copy(update={"memory": dict(decision.memory), "call": None})
            if state.paused is not None or not settings.enabled:
                if call is not None:
                    why = f"{call.why}, but the automation was paused before it began"
                    left_out = (DueMoment(call.at, why, call.run),)
                return state
            state, left_out = _with_due(settings, state, decision)
            if state.running is None and state.waiting:
                begun = self._run_of(state.waiting[0], now)
                state = state.model_copy(
                    update={"running": begun, "waiting": state.waiting[1:], "cancel": False}
                )
            return state

        state = self._store.change(settings.name, look)
        is_paused = state is not None and state.paused is not None
        (self._paused.add if is_paused else self._paused.discard)(settings.name)
        for moment in left_out:
            self._log_left_out(settings.name, moment, now)
        return begun

    def _facts(self, automation: LoadedAutomation) -> TriggerFacts:
        tasks, triggers = awaited_tasks([automation]), automation.settings.triggers
        globs = {one.file for one in triggers if isinstance(one, FileTrigger)}
        ends = self._ends_of(tasks) if tasks else {}
        return TriggerFacts(ends, {glob: self._files(glob) for glob in globs})

    def _files(self, glob: str) -> dict[str, str]:
        """The files of a glob with what tells one content from another."""
        fixed = glob[: min((glob.find(c) for c in "*?[" if c in glob), default=len(glob))]
        listed = self._landing.beginning(fixed)
        found = (info for info in listed if fnmatchcase(info.path, glob))
        return {info.path: f"{info.size}.{info.stamp}" for info in islice(found, _MOST_FILES)}

    def _run_of(self, due: DueMoment, now: datetime) -> RunningRun:
        return RunningRun(
            id=due.run or run_id(now), due=due.at, why=due.why, by=self._by, started=now, alive=now
        )

    def _without_dead(self, name: str, state: AutomationState, now: datetime) -> AutomationState:
        """The state without the run of a process that died, whose log is closed and reported."""
        running = state.running
        if running is None or now - running.alive <= SILENT:
            return state
        closed = self._store.close_dead(name, running, now)
        last = state.last
        if closed is not None:
            self._tell(closed)
            last = closed.ending()
        return state.model_copy(update={"running": None, "cancel": False, "last": last})

    def _log_left_out(self, name: str, moment: DueMoment, now: datetime) -> None:
        id_ = moment.run or f"{run_id(moment.at)}-left-out"
        log = RunLog(
            id=id_, automation=name, due=moment.at, why=moment.why,
            by=self._by, started=now, ended=now, state="left_out",
        )  # fmt: skip
        self._store.log(log)
        self._tell(log)

    def carry_out(self, name: str, run: RunningRun) -> RunLog:
        """Carry out the actions of a run that this process has begun, and log each step."""
        settings = self._automations[name].settings
        log = RunLog(
            id=run.id, automation=name, due=run.due, why=run.why, by=run.by, started=run.started
        )
        self._store.log(log)
        failures: list[ActionEnd] = []
        watch = _Watch(self._store, name, run, self._clock, self._stop)
        for action in settings.actions:
            log = self._step(log, action, failures, watch)
            if watch.lost:
                # Another process has closed the run; its log is the true one.
                return self._store.run(name, run.id) or log
        # A stop after the last step has kept nothing from being done.
        stopped = any(step.state == "cancelled" for step in log.steps)
        log = self._closed(log, failures, stopped=stopped)
        self._store.log(log)

        def end(state: AutomationState) -> AutomationState | None:
            if state.running is None or state.running.id != run.id:
                return None
            ended = log.ending()
            return state.model_copy(update={"running": None, "cancel": False, "last": ended})

        self._store.change(name, end)
        self._store.forget(name, self._clock.now())
        self._tell(log)
        return log

    def _closed(self, log: RunLog, failures: Sequence[ActionEnd], *, stopped: bool) -> RunLog:
        state = "cancelled" if stopped else "failure" if failures else "success"
        last = failures[-1] if failures and not stopped else ActionEnd(success=True)
        return log.model_copy(
            update={
                "ended": self._clock.now(), "state": state, "code": last.code,
                "message": last.message,
            }
        )  # fmt: skip

    def _step(
        self, log: RunLog, action: Action, failures: list[ActionEnd], watch: _Watch
    ) -> RunLog:
        """Carry out one action with its further tries; the log with its step."""
        arguments = arguments_of(
            action, self._directory, log.started, self._surroundings, self._archives
        )
        step = StepLog(action=_shown(arguments, self._directory), started=self._clock.now())
        wanted = {"success": not failures, "failure": bool(failures), "always": True}
        if watch.stopped or not wanted[action.when]:
            state = "cancelled" if watch.stopped else "skipped"
            return self._logged(log, step, state=state, ended=step.started)
        if (why := skipped_why(action, self._surroundings)) is not None:
            return self._logged(log, step, state="skipped", ended=step.started, message=why)
        if (end := refused(action, self._surroundings)) is not None:
            failures.append(end)
            return self._logged(
                log, step, state="failure", ended=step.started, code=end.code, message=end.message
            )
        log = self._logged(log, step)
        end = ActionEnd(success=False, stopped=True)
        for number in range(1, action.retries + 2):
            if not watch.renewed():
                break
            end = self._commands.run(arguments, action.time_limit, watch.goes_on)
            step = step.model_copy(update={"tries": number})
            if end.success or end.stopped or number > action.retries:
                break
            pause = min(action.pause * 2 ** min(number - 1, 20), _LONGEST_PAUSE)
            if not watch.wait(pause):
                end = ActionEnd(success=False, stopped=True)
                break
        # It may have taken long: a run that others have closed meanwhile has its true log already.
        watch.renewed()
        if watch.lost:
            return log
        if not end.success and not end.stopped:
            failures.append(end)
        state = "cancelled" if end.stopped else "success" if end.success else "failure"
        ended = self._clock.now()
        rest = log.model_copy(update={"steps": log.steps[:-1]})
        return self._logged(
            rest, step, state=state, ended=ended, code=end.code, message=end.message
        )

    def _logged(self, log: RunLog, step: StepLog, **changes: object) -> RunLog:
        steps = (*log.steps, step.model_copy(update=changes))
        log = log.model_copy(update={"steps": steps})
        self._store.log(log)
        return log


def _with_due(
    settings: Automation, state: AutomationState, decision: DueDecision
) -> tuple[AutomationState, tuple[DueMoment, ...]]:
    """The state with the runs that wait, and the moments that start nothing."""
    due, left_out = decision.due, decision.left_out
    if not due:
        return state, left_out
    if settings.missed == "all":
        waiting = (*state.waiting, *due)
        kept = waiting[-settings.missed_limit :]
        over = tuple(
            DueMoment(one.at, f"{one.why}, but `missed_limit` runs waited after it", one.run)
            for one in waiting[: len(waiting) - len(kept)]
        )
        return state.model_copy(update={"waiting": kept}), (*left_out, *over)
    # What several triggers want at the same time is one run, which keeps the id of a call.
    run = next((one.run for one in (*state.waiting, *due) if one.run), "")
    due = (DueMoment(due[-1].at, "; ".join(dict.fromkeys(one.why for one in due)), run),)
    if state.running is not None and settings.overlap == "skip":
        why = f"{due[0].why}, but a run was under way"
        return state, (*left_out, DueMoment(due[0].at, why, run))
    cancel = state.cancel or (state.running is not None and settings.overlap == "cancel")
    return state.model_copy(update={"waiting": due, "cancel": cancel}), left_out


class _Watch:
    """Whether a run may go on: its process renews its sign of life, and sees a cancel."""

    def __init__(
        self,
        store: AutomationStore,
        name: str,
        run: RunningRun,
        clock: Clock,
        stop: threading.Event,
    ) -> None:
        self._store, self._name, self._run, self._clock = store, name, run, clock
        self._stop, self._renewed = stop, clock.monotonic()
        self.lost = False
        self._cancelled = False

    @property
    def stopped(self) -> bool:
        """Whether the run ends before its time."""
        return self.lost or self._cancelled or self._stop.is_set()

    def goes_on(self) -> bool:
        """Whether the run may go on; renews the sign of life when it is time to."""
        if self._clock.monotonic() - self._renewed > _ALIVE.total_seconds():
            return self.renewed()
        return not self.stopped

    def renewed(self) -> bool:
        """Renew the sign of life; False when the run is to end."""

        def renew(state: AutomationState) -> AutomationState | None:
            if state.running is None or state.running.id != self._run.id:
                return None
            running = state.running.model_copy(update={"alive": self._clock.now()})
            return state.model_copy(update={"running": running})

        state = self._store.change(self._name, renew)
        self._renewed = self._clock.monotonic()
        self.lost = state is None
        self._cancelled = state is not None and state.cancel
        return not self.stopped

    def wait(self, pause: timedelta) -> bool:
        """Wait before a further try; False when the run is to end."""
        end = self._clock.monotonic() + pause.total_seconds()
        while self._clock.monotonic() < end:
            if not self.goes_on():
                return False
            self._clock.sleep(min(1.0, pause.total_seconds()))
        return True


def _shown(arguments: Sequence[str], directory: Path) -> str:
    """A command as a user would type it in the project folder."""
    folder = f"{directory}/"
    words = ["." if one == str(directory) else one.removeprefix(folder) for one in arguments]
    return " ".join(("polynya", *words))
