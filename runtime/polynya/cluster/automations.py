"""Automations in the agent of a node: the leader of a cluster looks at them, or a lone agent.

Which node looks only saves work. That a moment has one run comes from the conditional writes of
the automation's state, also while two nodes think that they lead, and its moments outlast a node.
A run ends with its node: the next look closes it as interrupted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from polynya.automation.commands import ChildCommands, Commands, Surroundings
from polynya.automation.due import TaskEnds
from polynya.automation.outlook import next_moments
from polynya.automation.runner import AutomationRunner
from polynya.automation.state import AutomationState, AutomationStore, RunLog
from polynya.cluster.task_ends import TaskProgress
from polynya.engine.errors import as_polynya
from polynya.model.automations import LoadedAutomation, awaited_tasks, load_automations
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.notify.conditions import speaks
from polynya.observe.automations import AutomationEnded, AutomationFailed
from polynya.observe.events import EventSink
from polynya.store.clock import Clock
from polynya.store.places import store_at

#: Where archives of the project are, below the warehouse.
ARCHIVES: Final = ".polynya/archives"
#: Seconds between two looks, each of which reads one object for each automation.
EVERY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class AutomationPlace:
    """Where the automations of a node live.

    Attributes:
        node: its name.
        folder: the files that are in force, with `polynya.yml`.
        coordination: where nodes of the cluster agree, None for an agent that is alone.
        cluster: the name of the cluster, None for that of the project.
    """

    node: str
    folder: Path
    coordination: str | None
    cluster: str | None

    @property
    def variables(self) -> dict[str, str]:
        """The environment of commands, which ask the nodes of this cluster."""
        found = {"POLYNYA_COORDINATION": self.coordination, "POLYNYA_CLUSTER": self.cluster}
        return {name: value for name, value in found.items() if value is not None}


class ClusterAutomations:
    """The automations of the configuration in force, in one agent.

    Args:
        place: of the node.
        clock: of everything.
        tell: takes what happens, from any thread.
        store_of: opens what is kept of them; default: in the warehouse of the project.
        commands_of: carries actions out; default: child processes of this one.
    """

    def __init__(
        self,
        place: AutomationPlace,
        *,
        clock: Clock,
        tell: EventSink,
        store_of: Callable[[LoadedProject], AutomationStore] | None = None,
        commands_of: Callable[[LoadedProject], Commands] | None = None,
    ) -> None:
        self._place, self._clock, self._tell = place, clock, tell
        self._store_of = store_of or (lambda project: AutomationStore.of(project.target))
        self._commands_of = commands_of or self._children
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._runner: AutomationRunner | None = None
        self._automations: tuple[LoadedAutomation, ...] = ()
        self._told: set[str] = set()
        self._awaited: frozenset[str] = frozenset()
        self._progress: TaskProgress | None = None
        self._report: Mapping[str, Any] | None = None
        self._leads = False
        self._thread: threading.Thread | None = None

    def configure(self, project: LoadedProject) -> None:
        """Take the automations of a project from now on; runs under way end as they began."""
        project = replace(project, directory=self._place.folder)
        automations, errors = load_automations(project)
        try:
            runner = self._runner_of(project, automations) if automations else None
        except (PolynyaError, OSError) as failure:
            # The tasks of the configuration go on without its automations.
            self._failed(project.project.name, as_polynya(failure))
            automations, runner = [], None
        with self._lock:
            self._automations, self._runner = tuple(automations), runner
            self._awaited = awaited_tasks(automations)
        for wrong in errors:
            self._failed(wrong.where or project.project.name, wrong)

    def put(self, report: Mapping[str, Any]) -> None:
        """Learn from a report of this node whether it looks, and of units; an outlet of it."""
        self._report = report
        self._leads = report["state"] == "running" and speaks(report)

    def due(self, now: datetime) -> dict[str, datetime]:
        """The next moment of each automation that waits for one, for a cluster without nodes."""
        with self._lock:
            automations, runner = self._automations, self._runner
        paused = frozenset() if runner is None else runner.paused
        found = {}
        for one in automations:
            name = one.settings.name
            if name not in paused and (moments := next_moments(one, AutomationState(), now)):
                found[f"automation {name}"] = moments[0]
        return found

    def start(self) -> None:
        """Look every few seconds from now on, while this node leads."""
        self._thread = threading.Thread(target=self._work, name="automations", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begin no run from now on, and end those under way; does not wait for them."""
        self._stop.set()

    def look(self) -> None:
        """Tell of units, and look once if this node leads; runs work on their own threads."""
        with self._lock:
            runner, awaited, progress = self._runner, self._awaited, self._progress
        report = self._report
        if runner is None or report is None or self._stop.is_set():
            return
        try:
            if progress is not None and awaited and report["state"] == "running":
                progress.tell(report, awaited)
            if self._leads:
                runner.look(lambda error: self._failed(self._place.node, error))
        except Exception as error:  # noqa: BLE001 - the edge of the thread: data work goes on
            self._failed(self._place.node, as_polynya(error))

    def _work(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(EVERY_SECONDS)

    def _failed(self, subject: str, error: PolynyaError) -> None:
        if str(error) not in self._told:
            self._told.add(str(error))
            self._tell(AutomationFailed(subject=subject, error=error))

    def _runner_of(
        self, project: LoadedProject, automations: list[LoadedAutomation]
    ) -> AutomationRunner:
        shares, store = self._place.coordination is not None, self._store_of(project)
        if self._progress is None:
            # An agent whose warehouse changes starts again.
            self._progress = TaskProgress(store)
        return AutomationRunner(
            automations=automations,
            store=store,
            landing=store_at(project.target.landing, project.target.aws),
            directory=project.directory,
            commands=self._commands_of(project),
            clock=self._clock,
            tell=self._ended,
            stop=self._stop,
            surroundings=Surroundings.CLUSTER if shares else Surroundings.AGENT,
            # A file of the node would end with it.
            archives=f"{project.target.warehouse}/{ARCHIVES}",
            ends_of=self._ends,
        )

    def _ends(self, tasks: Collection[str]) -> Mapping[str, TaskEnds]:
        progress, report = self._progress, self._report
        assert progress is not None, "a runner has a store"
        assert report is not None, "only a node that has reported looks"
        return progress.ends(report, tasks)

    def _children(self, project: LoadedProject) -> Commands:
        target, variables = project.target.name, self._place.variables
        return ChildCommands(project.directory, target, self._clock, variables=variables)

    def _ended(self, log: RunLog) -> None:
        seconds = 0.0 if log.ended is None else (log.ended - log.started).total_seconds()
        self._tell(
            AutomationEnded(
                subject=log.automation,
                run=log.id,
                state=log.state,
                why=log.why,
                seconds=seconds,
                code=log.code,
            )
        )
