"""What is kept of automations, as files in `.polynya/automations` of the warehouse.

`state/NAME.json` has the memory of the triggers, the run under way and the pause. It is only
changed by conditional writes, so of several processes that find the same moment due one starts the
run. `runs/NAME/ID.json` is the log of a run with its steps, kept for 30 days. `tasks/NAME.json`
says when runs of a task ended, `nodes/CLUSTER/NODE.json` how far the units of a node are, and
`looked.json` when a process last looked. No JVM is needed to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from polynya.automation.due import DueMoment, TaskEnds, TriggerMemory
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.automations import AUTOMATION_UNREADABLE, RUN_INTERRUPTED
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at

FOLDER: Final = ".polynya/automations"
#: How long the log of a run is kept.
KEPT: Final = timedelta(days=30)
#: A run whose process has not renewed its sign of life for this time counts as dead. Clocks of
#: nodes may differ by less.
SILENT: Final = timedelta(minutes=5)
_MAX_FILE_BYTES: Final = 16 * 2**20
_ID_TIME: Final = "%Y%m%dT%H%M%S%fZ"

StepState: TypeAlias = Literal["running", "success", "failure", "skipped", "cancelled", "unknown"]
RunState: TypeAlias = Literal[
    "running", "success", "failure", "cancelled", "interrupted", "left_out"
]


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StepLog(_Stored):
    """One action of a run: what, when, how it ended, and the code of its error."""

    action: str
    started: datetime
    ended: datetime | None = None
    state: StepState = "running"
    tries: int = 1
    code: str | None = None
    message: str | None = None


class RunLog(_Stored):
    """One run: which moment it was due for, why it began, and its steps."""

    id: str
    automation: str
    due: datetime
    why: str
    by: str
    started: datetime
    ended: datetime | None = None
    state: RunState = "running"
    code: str | None = None
    message: str | None = None
    steps: tuple[StepLog, ...] = ()

    def ending(self) -> RunLog:
        """The run without its steps, as the state of its automation keeps it."""
        return self.model_copy(update={"steps": ()})


class RunningRun(_Stored):
    """The run under way; `alive` is the last sign of life of its process."""

    id: str
    due: datetime
    why: str
    by: str
    started: datetime
    alive: datetime


class HeardCall(_Stored):
    """A call that was taken: the run that it starts, and how long it is known."""

    run: str
    until: datetime


class AutomationState(_Stored):
    """The state of one automation.

    `last` is the run that ended last, without its steps. `call` is a call from outside that no look
    has seen yet, `heard` what was called before, by what tells one call from others.
    """

    memory: dict[str, TriggerMemory] = Field(default_factory=dict)
    paused: datetime | None = None
    running: RunningRun | None = None
    cancel: bool = False
    waiting: tuple[DueMoment, ...] = ()
    last: RunLog | None = None
    call: DueMoment | None = None
    heard: dict[str, HeardCall] = Field(default_factory=dict)

    def waits_for(self, run: str) -> bool:
        """Whether a run that was called for has not begun yet."""
        return any(one is not None and one.run == run for one in (self.call, *self.waiting))


class LastLook(_Stored):
    """When a process last looked at automations, to the minute, and which."""

    at: datetime
    by: str


class UnitProgress(_Stored):
    """How far a unit of a task is that works all the time.

    Attributes:
        epoch: of its owner; what an owner of a lower epoch says no longer counts.
        fresh: all that came before this moment was taken in.
        step: when something was committed last.
        failed: when it last began to fail.
        failing: it still does.
    """

    epoch: int = 0
    fresh: datetime | None = None
    step: datetime | None = None
    failed: datetime | None = None
    failing: bool = False


class NodeProgress(_Stored):
    """The units that a node owned at a moment, by task and name."""

    at: datetime
    units: dict[str, dict[str, UnitProgress]] = Field(default_factory=dict)


class _Ends(_Stored):
    success: datetime | None = None
    failure: datetime | None = None
    fresh: datetime | None = None


def run_id(moment: datetime) -> str:
    """The id of a run that begins at a moment; ids sort by time."""
    return moment.astimezone(UTC).strftime(_ID_TIME)


class AutomationStore:
    """The files of all automations of a target."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def of(cls, target: ResolvedTarget) -> AutomationStore:
        """The files in the warehouse of a target."""
        return cls(store_at(target.warehouse, target.aws))

    def read(self, name: str) -> tuple[AutomationState, str | None]:
        """The state of an automation and its version; None before the first.

        Raises OperationError: POLYNYA-AUT-008, the state is none that can be read.
        """
        path = f"{FOLDER}/state/{name}.json"
        try:
            content = self._store.read(path, _MAX_FILE_BYTES)
        except FileNotFoundError:
            return AutomationState(), None
        try:
            return AutomationState.model_validate_json(content.data), content.version
        except ValidationError as error:
            raise AUTOMATION_UNREADABLE(where=path) from error

    def write(self, name: str, state: AutomationState, version: str | None) -> bool:
        """Write a state in place of the version that was read; False when another process did."""
        path, data = f"{FOLDER}/state/{name}.json", state.model_dump_json().encode()
        if version is None:
            return self._store.put_if_absent(path, data)
        return self._store.put_if_unchanged(path, data, version)

    def change(
        self, name: str, change: Callable[[AutomationState], AutomationState | None]
    ) -> AutomationState | None:
        """Change a state, again if another process was faster; None: `change` wants no change."""
        while True:
            state, version = self.read(name)
            wanted = change(state)
            if wanted is None:
                return None
            if wanted == state or self.write(name, wanted, version):
                return wanted

    def set_pause(self, name: str, moment: datetime | None) -> AutomationState:
        """Pause an automation from a moment on, or resume it; the state afterwards."""

        def change(state: AutomationState) -> AutomationState:
            # Who pauses what is paused already moves nothing.
            since = None if moment is None else state.paused or moment
            # Waiting runs belong to moments before the pause.
            return state.model_copy(update={"paused": since, "waiting": ()})

        changed = self.change(name, change)
        assert changed is not None, "a pause always has a state"
        return changed

    def log(self, run: RunLog) -> None:
        """Write the log of a run."""
        data = run.model_dump_json().encode()
        self._store.put(f"{FOLDER}/runs/{run.automation}/{run.id}.json", data)

    def run(self, name: str, id_: str) -> RunLog | None:
        """The log of a run; None when there is none, or it is damaged."""
        try:
            data = self._store.read(f"{FOLDER}/runs/{name}/{id_}.json", _MAX_FILE_BYTES).data
            return RunLog.model_validate_json(data)
        except (FileNotFoundError, ValidationError):
            return None

    def runs(self, name: str) -> Iterator[RunLog]:
        """The logs of an automation, newest first."""
        for id_ in self.ids(name):
            if (run := self.run(name, id_)) is not None:
                yield run

    def ids(self, name: str) -> list[str]:
        """The runs of an automation that have a log, newest first."""
        return self._ids(name)[::-1]

    def forget(self, name: str, now: datetime) -> None:
        """Remove the logs of runs that began more than 30 days ago."""
        first = run_id(now - KEPT)
        for id_ in self._ids(name):
            if id_ < first:
                self._store.delete(f"{FOLDER}/runs/{name}/{id_}.json")

    def close_dead(self, name: str, running: RunningRun, now: datetime) -> RunLog | None:
        """Close the log of a run whose process is dead; None when the run had ended."""
        log = self.run(name, running.id) or RunLog(
            id=running.id, automation=name, due=running.due, why=running.why, by=running.by,
            started=running.started,
        )  # fmt: skip
        if log.ended is not None:
            return None
        error = RUN_INTERRUPTED(where=name, run=running.id)
        steps = tuple(
            step.model_copy(update={"state": "unknown"}) if step.state == "running" else step
            for step in log.steps
        )
        closed = log.model_copy(
            update={
                "ended": now, "state": "interrupted", "steps": steps, "code": error.code,
                "message": error.message,
            }
        )  # fmt: skip
        self.log(closed)
        return closed

    def ended(self, task: str, moment: datetime, *, success: bool) -> None:
        """Take note that a run of a task ended."""
        self.note_ends(task, TaskEnds(moment) if success else TaskEnds(failure=moment))

    def note_ends(self, task: str, ends: TaskEnds) -> TaskEnds:
        """Take note of ends of a task, unless later ones are known; those that are known then."""
        while True:
            known, version = self._ends(task)
            later = known.with_later(ends)
            if later == known:
                return known
            path = f"{FOLDER}/tasks/{task}.json"
            kept = _Ends(success=later.success, failure=later.failure, fresh=later.fresh)
            data = kept.model_dump_json().encode()
            if version is None and self._store.put_if_absent(path, data):
                return later
            if version is not None and self._store.put_if_unchanged(path, data, version):
                return later

    def ends(self, task: str) -> TaskEnds:
        """When runs of a task last ended."""
        return self._ends(task)[0]

    def _ends(self, task: str) -> tuple[TaskEnds, str | None]:
        try:
            content = self._store.read(f"{FOLDER}/tasks/{task}.json", _MAX_FILE_BYTES)
        except FileNotFoundError:
            return TaskEnds(), None
        try:
            known = _Ends.model_validate_json(content.data)
        except ValidationError:
            return TaskEnds(), content.version
        return TaskEnds(known.success, known.failure, known.fresh), content.version

    def note_progress(self, node: str, progress: NodeProgress) -> None:
        """Take note of how far the units of a node are."""
        self._store.put(f"{FOLDER}/nodes/{node}.json", progress.model_dump_json().encode())

    def progress(self) -> dict[str, NodeProgress]:
        """How far the units of each node are, by node; a damaged file says nothing."""
        found, folder = {}, f"{FOLDER}/nodes/"
        for info in self._store.list(folder.rstrip("/")):
            node = info.path.removeprefix(folder).removesuffix(".json")
            with suppress(FileNotFoundError, ValidationError):
                data = self._store.read(info.path, _MAX_FILE_BYTES).data
                found[node] = NodeProgress.model_validate_json(data)
        return found

    def forget_node(self, node: str) -> None:
        """Remove what a node has told that is gone."""
        self._store.delete(f"{FOLDER}/nodes/{node}.json")

    def looked(self, look: LastLook) -> None:
        """Take note that a process looks."""
        self._store.put(f"{FOLDER}/looked.json", look.model_dump_json().encode())

    def last_look(self) -> LastLook | None:
        """The last look of any process; None when none is known."""
        try:
            data = self._store.read(f"{FOLDER}/looked.json", _MAX_FILE_BYTES).data
            return LastLook.model_validate_json(data)
        except (FileNotFoundError, ValidationError):
            return None

    def _ids(self, name: str) -> list[str]:
        found = self._store.list(f"{FOLDER}/runs/{name}")
        paths = [info.path.rpartition("/")[2] for info in found]
        return [path.removesuffix(".json") for path in paths if path.endswith(".json")]
