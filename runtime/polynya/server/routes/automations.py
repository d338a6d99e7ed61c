"""Automations through the API: what is to come, what ran, pauses, and their files as a bundle.

A run by hand is the action `automation-run`, an operation with progress and cancel.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.automation.due import DueMoment
from polynya.automation.outlook import AutomationWord, next_moments, word_of
from polynya.automation.state import AutomationState, AutomationStore, RunLog
from polynya.model.automations import AUTOMATION_FOLDER, LoadedAutomation, load_automations
from polynya.model.documents.files import document_files, is_document
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE, REQUEST_INVALID
from polynya.model.errors import ConfigError
from polynya.model.loader import LoadedProject
from polynya.model.names import is_name, shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState

router = api_router("automations")

_MOST_MOMENTS: Final = 20
_MOST_DOCUMENTS: Final = 1000
_MOST_TEXT: Final = 1_000_000


class AutomationRunShown(BaseModel):
    """A run: the moment that it was due for, why, by which process, and how it ended.

    `waiting` is a run that was called for and has not begun; `left_out` a moment that started
    nothing; `interrupted` a run whose process died.
    """

    id: str
    due: datetime
    why: str
    by: str
    started: datetime | None
    ended: datetime | None
    state: str
    code: str | None
    message: str | None
    seconds: float | None = Field(description="its length, once it has ended")

    @classmethod
    def of(cls, log: RunLog) -> AutomationRunShown:
        """The run of a log."""
        return cls(**_run_values(log))


class RunStepShown(BaseModel):
    """One action of a run, as its command line; `unknown`: its process died during it."""

    action: str
    started: datetime
    ended: datetime | None
    state: str
    tries: int
    code: str | None
    message: str | None


class RunWithSteps(AutomationRunShown):
    """A run with each of its steps."""

    steps: list[RunStepShown]

    @classmethod
    def of(cls, log: RunLog) -> RunWithSteps:
        """The run of a log."""
        steps = [RunStepShown(**step.model_dump()) for step in log.steps]
        return cls(**_run_values(log), steps=steps)


class RunningShown(BaseModel):
    """The run under way, and the last sign of life of its process."""

    id: str
    due: datetime
    why: str
    by: str
    started: datetime
    alive: datetime


class AutomationShown(BaseModel):
    """An automation: its file, what it does now, its next moments and its last run.

    `waiting` counts runs that were called for or have to wait for the one under way.
    """

    name: str
    file: str
    state: AutomationWord
    paused: datetime | None
    next: list[datetime]
    running: RunningShown | None
    waiting: int
    last: AutomationRunShown | None

    @classmethod
    def of(
        cls, one: LoadedAutomation, state: AutomationState, now: datetime, moments: int
    ) -> AutomationShown:
        """An automation with its state."""
        return cls(**_automation_values(one, state, now, moments))


class AutomationDetails(AutomationShown):
    """An automation with its definition as it is in force; secrets are masked."""

    definition: dict[str, Any]


class LookShown(BaseModel):
    """When a process last looked at automations, to the minute, and which: `host:process`."""

    at: datetime
    by: str


class AutomationPage(ListPage[AutomationShown]):
    """Automations by name, and what is wrong with files that have none that is valid.

    `looked` is null if no process has ever looked: what waits then waits for `polynya run` or an
    agent.
    """

    errors: list[dict[str, Any]]
    looked: LookShown | None


class AutomationDocuments(BaseModel):
    """Files of automations by their paths, such as `automations/nightly.yml`."""

    documents: dict[str, Annotated[str, Field(max_length=_MOST_TEXT)]] = Field(
        max_length=_MOST_DOCUMENTS
    )


class AutomationImport(AutomationDocuments):
    """Files to add; with `replace` they also take the place of files that are there."""

    replace: bool = False


class AutomationsImported(BaseModel):
    """What an import did, or would do: the lines that differ, and the errors that it makes."""

    diff: str
    errors: list[dict[str, Any]]
    written: bool


Moments = Annotated[int, Query(ge=1, le=_MOST_MOMENTS, description="most next moments of each")]


def _run_values(log: RunLog) -> dict[str, Any]:
    seconds = None if log.ended is None else (log.ended - log.started).total_seconds()
    return {**log.model_dump(exclude={"automation", "steps"}), "seconds": seconds}


def _automation_values(
    one: LoadedAutomation, state: AutomationState, now: datetime, moments: int
) -> dict[str, Any]:
    running = state.running
    return {
        "name": one.settings.name,
        "file": one.file,
        "state": word_of(one, state),
        "paused": state.paused,
        "next": next_moments(one, state, now, moments),
        "running": None if running is None else RunningShown(**running.model_dump()),
        "waiting": len(state.waiting) + (state.call is not None),
        "last": None if state.last is None else AutomationRunShown.of(state.last),
    }


def _project(request: Request) -> LoadedProject:
    state = ServerState.of(request)
    return state.overview.newest().project or state.project()


@dataclass(frozen=True, slots=True)
class _Kept:
    """The automations of files, and what tells these files and their project from others."""

    key: object
    automations: dict[str, LoadedAutomation]
    errors: tuple[ConfigError, ...]


def loaded_automations(
    request: Request,
) -> tuple[dict[str, LoadedAutomation], tuple[ConfigError, ...]]:
    """The valid automations of the project of a request by name, and what is wrong with others.

    A file is parsed again when it has changed, so that a request does not cost all of them.
    """
    project = _project(request)
    key = _key_of(project)
    kept = getattr(request.app.state, "automations", None)
    if not isinstance(kept, _Kept) or kept.key != key:
        automations, errors = load_automations(project)
        kept = _Kept(key, {one.settings.name: one for one in automations}, tuple(errors))
        request.app.state.automations = kept
    return kept.automations, kept.errors


def _key_of(project: LoadedProject) -> object:
    """What automations depend on: their files, and the tasks, zone and variables of the project."""
    files = []
    for path in document_files(project.directory / AUTOMATION_FOLDER):
        with suppress(FileNotFoundError):
            found = path.stat()
            files.append((path.name, found.st_mtime_ns, found.st_size, found.st_ino))
    tasks = tuple(task.name for task in project.works)
    variables = tuple(sorted(project.bindings.variables.items()))
    return tuple(files), tasks, project.project.time_zone, bool(project.errors), variables


def automation_of(request: Request, name: str) -> LoadedAutomation:
    """An automation of the project of a request, or the error that it has none."""
    found = loaded_automations(request)[0].get(name)
    if found is None:
        raise NO_SUCH_RESOURCE(what=f"automation {shown(name)}")
    return found


def store_of(request: Request) -> AutomationStore:
    """What is kept of the automations of the target of a request."""
    return AutomationStore.of(_project(request).target)


@router.get("/automations", dependencies=[allowed(Action.VIEW_AUTOMATIONS)])
def automations(
    request: Request, limit: Limit = 50, cursor: Cursor = None, moments: Moments = 1
) -> AutomationPage:
    """The automations by name."""
    loaded, errors = loaded_automations(request)
    store, now = store_of(request), ServerState.of(request).clock.now()
    look = store.last_look()
    names = page(sorted(loaded), lambda name: (name, name), limit, cursor)
    return AutomationPage(
        items=[
            AutomationShown.of(loaded[name], store.read(name)[0], now, moments)
            for name in names.items
        ],
        total=names.total,
        next=names.next,
        errors=[error.as_dict() for error in errors],
        looked=None if look is None else LookShown(**look.model_dump()),
    )


@router.get("/automations/export", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def export(request: Request) -> AutomationDocuments:
    """The files of all automations, for an import elsewhere. Logs and pauses stay here."""
    found = ServerState.of(request).documents.all()
    return AutomationDocuments(
        documents={
            one.path: one.content.decode("utf-8", "replace")
            for one in found
            if one.path.startswith(f"{AUTOMATION_FOLDER}/")
        }
    )


@router.post("/automations/import", dependencies=[allowed(Action.EDIT_DOCUMENTS)])
def import_(
    request: Request,
    new: AutomationImport,
    *,
    dry_run: Annotated[bool, Query(description="show what it would do, and write nothing")] = False,
) -> AutomationsImported:
    """Add files of automations, all of them or none. What would make an error is refused."""
    for path in new.documents:
        folder, _, file = path.rpartition("/")
        if folder != AUTOMATION_FOLDER or not is_document(file):
            raise REQUEST_INVALID(reason=f"{shown(path)} is not a file of `{AUTOMATION_FOLDER}/`")
    change = ServerState.of(request).documents.add(
        {path: text.encode("utf-8", "surrogatepass") for path, text in new.documents.items()},
        replace=new.replace,
        write=not dry_run,
    )
    errors = [error.as_dict() for error in change.errors]
    return AutomationsImported(diff=change.diff, errors=errors, written=not dry_run)


@router.get("/automations/{name}", dependencies=[allowed(Action.VIEW_AUTOMATIONS)])
def automation(request: Request, name: str, moments: Moments = 5) -> AutomationDetails:
    """One automation with its definition and its next moments."""
    one = automation_of(request, name)
    state, _ = store_of(request).read(name)
    now = ServerState.of(request).clock.now()
    definition: Mapping[str, Any] = one.settings.model_dump(mode="json", by_alias=True)
    return AutomationDetails(
        **_automation_values(one, state, now, moments), definition=dict(definition)
    )


@router.get("/automations/{name}/runs", dependencies=[allowed(Action.VIEW_AUTOMATIONS)])
def runs(
    request: Request, name: str, limit: Limit = 20, cursor: Cursor = None
) -> ListPage[RunWithSteps]:
    """The runs of the last 30 days with their steps, newest first; also of a file that is gone."""
    if not is_name(name):
        raise NO_SUCH_RESOURCE(what=f"automation {shown(name)}")
    store = store_of(request)
    ids = store.ids(name)
    if not ids:
        automation_of(request, name)
    chosen = page(ids, lambda id_: (_newest_first(id_), id_), limit, cursor)
    logs = [log for id_ in chosen.items if (log := store.run(name, id_)) is not None]
    return ListPage(
        items=[RunWithSteps.of(log) for log in logs], total=chosen.total, next=chosen.next
    )


def _newest_first(id_: str) -> int:
    """What sorts ids, which begin with their time, the newest first."""
    return -int("".join(sign for sign in id_.partition("-")[0] if sign in "0123456789") or "0")


@router.get("/automations/{name}/runs/{run}", dependencies=[allowed(Action.VIEW_AUTOMATIONS)])
def run(request: Request, name: str, run: str) -> RunWithSteps:
    """One run with its steps."""
    if is_name(name):
        store = store_of(request)
        found = store.run(name, run) if run in store.ids(name) else None
        if found is not None:
            return RunWithSteps.of(found)
        state, _ = store.read(name)
        for one in (state.call, *state.waiting):
            if one is not None and one.run == run:
                return _waiting(one)
    raise NO_SUCH_RESOURCE(what=f"run {shown(run)} of automation {shown(name)}")


def _waiting(one: DueMoment) -> RunWithSteps:
    return RunWithSteps(
        id=one.run, due=one.at, why=one.why, by="", started=None, ended=None, state="waiting",
        code=None, message=None, seconds=None, steps=[],
    )  # fmt: skip


@router.post("/automations/{name}/pause", dependencies=[allowed(Action.PAUSE_AUTOMATION)])
def pause(request: Request, name: str) -> AutomationShown:
    """Pause an automation: no trigger starts it until it is resumed. A run under way goes on."""
    return _with_pause(request, name, ServerState.of(request).clock.now())


@router.post("/automations/{name}/resume", dependencies=[allowed(Action.PAUSE_AUTOMATION)])
def resume(request: Request, name: str) -> AutomationShown:
    """Resume a paused automation. Moments in the pause are not made up for."""
    return _with_pause(request, name, None)


def _with_pause(request: Request, name: str, moment: datetime | None) -> AutomationShown:
    one = automation_of(request, name)
    state = store_of(request).set_pause(name, moment)
    return AutomationShown.of(one, state, ServerState.of(request).clock.now(), 1)
