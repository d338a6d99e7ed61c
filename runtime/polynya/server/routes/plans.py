"""Plans as resources: the files that differ, what that does to data, who decided, what applied it.

A plan is the operation `plan`. It is approved or rejected once, and an approved one is applied by
`migrate` or `run` as long as the files of the project are those that it was made of.
"""

from __future__ import annotations

import threading
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.error_catalogue.server_plans import PLAN_NOT_OPEN, PROJECT_CHANGED_SINCE_PLAN
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router, caller
from polynya.server.operations.manager import OperationManager, OperationView
from polynya.server.operations.verbs import (
    VERBS,
    MigrateParameters,
    NoParameters,
    RunParameters,
    arguments,
    objects,
)
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.plans import (
    PLAN,
    Decision,
    PlanApplied,
    PlanDecision,
    PlanFiles,
    PlannedFile,
    PlanRecord,
    PlanState,
    changed_files,
    plan_state,
)
from polynya.server.routes.operations import IdempotencyKey, manager_of
from polynya.server.state import ServerState
from polynya.store.configuration import FolderSource, plan_fingerprint

router = api_router("plans")

#: One decision about plans at a time: a plan is decided once, and applied once.
_DECIDING: Final = threading.Lock()


class PlanShown(BaseModel):
    """A plan; its id is that of its operation."""

    id: str
    state: PlanState = Field(description="`outdated`: the files have changed since it was made")
    by: str
    created: str
    fingerprint: str | None = Field(description="of the files that it was made of")
    changes: bool = Field(description="whether anything has to be done")
    to_decide: int = Field(description="changes that need a decision first")
    destructive: int = Field(description="changes by which something can no longer be queried")
    effects: int
    base: str | None = Field(description="the plan whose files `files` are compared with")
    files: int | None = Field(description="files that differ; null where no plan was applied yet")
    decision: PlanDecision | None
    applied: PlanApplied | None
    errors: list[dict[str, Any]]


class RewriteShown(BaseModel):
    """Rows that a change reads and writes again; `seconds` as earlier copies were fast."""

    rows: int
    files: int
    bytes: int
    seconds: float | None


class PlannedChangeShown(BaseModel):
    """One consequence: what differs, what that does to the data, and who has to act."""

    kind: str
    what: str
    means: str
    action: Literal["apply", "run", "decide", "nobody"] = Field(
        description="`apply`: `polynya migrate` does it; `run`: the next run"
    )
    destructive: bool
    rewrites: RewriteShown | None = Field(description="null where no row is written again")


class PlanEffectShown(BaseModel):
    """What a plan does to a dataset, task, step of a transform, column of one, or mirror."""

    kind: str
    name: str
    task: str | None
    text: str
    changes: list[PlannedChangeShown]
    rows: int | None = Field(description="that the table has now")
    files: int | None
    bytes: int | None


class DecisionAsked(BaseModel):
    """A reason for others."""

    model_config = ConfigDict(extra="forbid")

    comment: str | None = Field(default=None, max_length=2000)


class ApplyAsked(BaseModel):
    """Which command carries the plan out: `run` is for changes that need landed records."""

    model_config = ConfigDict(extra="forbid")

    command: Literal["migrate", "run"] = "migrate"


@router.get("/plans", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def plans(
    request: Request,
    *,
    plan_state: Annotated[PlanState | None, Query(alias="state")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> ListPage[PlanShown]:
    """The plans of the last 30 days, the newest first."""
    manager, fingerprint = manager_of(request.app), _fingerprint(request)
    views = [view for name in manager.ids() if (view := _plan(manager, name)) is not None]
    if plan_state is None:
        places = {view.request.id: number for number, view in enumerate(views)}
        part = page(views, lambda one: (places[one.request.id], one.request.id), limit, cursor)
        items = [_shown(manager, one, fingerprint) for one in part.items]
        return ListPage(items=items, total=part.total, next=part.next)
    found = [_shown(manager, one, fingerprint) for one in views]
    found = [one for one in found if one.state == plan_state]
    numbers = {one.id: number for number, one in enumerate(found)}
    return page(found, lambda one: (numbers[one.id], one.id), limit, cursor)


@router.post("/plans", status_code=202, dependencies=[allowed(Action.PLAN)])
def make_plan(
    request: Request, response: Response, idempotency_key: IdempotencyKey = None
) -> PlanShown:
    """Make a plan of the files as they are now; it is ready when its operation has succeeded."""
    manager, state = manager_of(request.app), ServerState.of(request)
    # Before the command reads them: a plan of later files has another fingerprint.
    files = _texts(state)
    verb = VERBS[PLAN]
    name, is_new = manager.submit(
        verb, arguments(verb, NoParameters()), (), by=_by(request), key=idempotency_key
    )
    if is_new:
        base = _base(manager, name)
        before = base.files() if base is not None else None
        PlanRecord(manager.folder(name)).note_files(
            PlanFiles(
                files,
                None if base is None else base.folder.path.name,
                changed_files(None if before is None else before.files, files),
            )
        )
        manager.keep(name)
    response.headers["Location"] = f"/api/v1/plans/{name}"
    return _of(request, name)


@router.get("/plans/{name}", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def plan(request: Request, name: str) -> PlanShown:
    """One plan."""
    return _of(request, name)


@router.get("/plans/{name}/effects", dependencies=[allowed(Action.VIEW_OPERATIONS)])
def effects(
    request: Request, name: str, limit: Limit = 100, cursor: Cursor = None
) -> ListPage[PlanEffectShown]:
    """What a plan does to the data, in the order of the command."""
    manager = manager_of(request.app)
    _known(request, name)
    datasets = ServerState.of(request).overview.newest().datasets
    found = []
    for one in PlanRecord(manager.folder(name)).says().effects:
        facts = datasets.get(one.name)
        health = facts.maintenance.get("health", {}) if facts is not None else {}
        status = facts.status if facts is not None else None
        rate = status.rows_per_second if status is not None else None
        found.append(
            PlanEffectShown(
                kind=one.kind,
                name=one.name,
                task=one.task,
                text=one.text,
                changes=[_change(change, rate) for change in one.changes],
                rows=status.current_rows if status is not None else None,
                files=health.get("files"),
                bytes=_bytes(health),
            )
        )
    numbered = list(enumerate(found))
    part = page(numbered, lambda one: (one[0], ""), limit, cursor)
    return ListPage(items=[one for _, one in part.items], total=part.total, next=part.next)


@router.get("/plans/{name}/files", dependencies=[allowed(Action.VIEW_DOCUMENTS)])
def plan_files(
    request: Request, name: str, limit: Limit = 20, cursor: Cursor = None
) -> ListPage[PlannedFile]:
    """The files that differ from those that were applied last, each with its lines."""
    _known(request, name)
    files = PlanRecord(manager_of(request.app).folder(name)).files()
    changed: list[PlannedFile] = [] if files is None else list(files.changed)
    return page(changed, lambda one: (one.path, one.path), limit, cursor)


@router.post("/plans/{name}/approve", dependencies=[allowed(Action.APPROVE_PLAN)])
def approve(request: Request, name: str, asked: DecisionAsked) -> PlanShown:
    """Approve a plan that is ready: it may be applied while the files stay as they are."""
    return _decide(request, name, "approved", asked.comment)


@router.post("/plans/{name}/reject", dependencies=[allowed(Action.APPROVE_PLAN)])
def reject(request: Request, name: str, asked: DecisionAsked) -> PlanShown:
    """Reject a plan that is ready, or outdated: it is never applied."""
    return _decide(request, name, "rejected", asked.comment)


@router.post("/plans/{name}/apply", status_code=202, dependencies=[allowed(Action.MIGRATE)])
def apply(request: Request, response: Response, name: str, asked: ApplyAsked) -> PlanShown:
    """Carry out an approved plan, as an operation that refuses any other files."""
    manager = manager_of(request.app)
    with _DECIDING:
        shown_plan = _of(request, name)
        if shown_plan.state == "outdated":
            raise PROJECT_CHANGED_SINCE_PLAN(where=f"/api/v1/plans/{name}")
        if shown_plan.state not in {"approved", "not applied"}:
            raise PLAN_NOT_OPEN(plan=name, word=shown_plan.state)
        verb = VERBS[asked.command]
        parameters: NoParameters = MigrateParameters(yes=True, if_unchanged=shown_plan.fingerprint)
        if asked.command == "run":
            parameters = RunParameters(once=True, if_unchanged=shown_plan.fingerprint)
        operation, _ = manager.submit(
            verb, arguments(verb, parameters), objects(parameters), by=_by(request)
        )
        now = ServerState.of(request).clock.now().isoformat()
        PlanRecord(manager.folder(name)).note_applied(PlanApplied(operation, _by(request), now))
        manager.keep(name)
    response.headers["Location"] = f"/api/v1/operations/{operation}"
    return _of(request, name)


def _decide(request: Request, name: str, decision: Decision, comment: str | None) -> PlanShown:
    manager = manager_of(request.app)
    with _DECIDING:
        shown_plan = _of(request, name)
        if decision == "approved" and shown_plan.state == "outdated":
            raise PROJECT_CHANGED_SINCE_PLAN(where=f"/api/v1/plans/{name}")
        if shown_plan.state not in {"ready", "outdated"} or shown_plan.decision is not None:
            raise PLAN_NOT_OPEN(plan=name, word=shown_plan.state)
        now = ServerState.of(request).clock.now().isoformat()
        PlanRecord(manager.folder(name)).note_decision(
            PlanDecision(decision, _by(request), now, comment)
        )
        manager.keep(name)
    return _of(request, name)


def _plan(manager: OperationManager, name: str) -> OperationView | None:
    view = manager.view(name)
    return view if view is not None and view.request.verb == PLAN else None


def _known(request: Request, name: str) -> OperationView:
    view = _plan(manager_of(request.app), name)
    if view is None:
        raise NO_SUCH_RESOURCE(what=f"plan {shown(name)}")
    return view


def _of(request: Request, name: str) -> PlanShown:
    view = _known(request, name)
    return _shown(manager_of(request.app), view, _fingerprint(request))


def _shown(manager: OperationManager, view: OperationView, fingerprint: str) -> PlanShown:
    record = PlanRecord(manager.folder(view.request.id))
    says, decision, applied = record.says(), record.decision(), record.applied()
    operation = None if applied is None else manager.view(applied.operation)
    files = record.files()
    state = plan_state(view, says, decision, operation, fingerprint=fingerprint)
    if applied is not None and operation is None:
        # Its operation is so old that it was removed.
        state = "applied"
    return PlanShown(
        id=view.request.id,
        state=state,
        by=view.request.by,
        created=view.request.created,
        fingerprint=says.fingerprint,
        changes=says.has_changes,
        to_decide=says.to_decide,
        destructive=says.destructive,
        effects=len(says.effects),
        base=None if files is None else files.base,
        files=None if files is None or files.base is None else len(files.changed),
        decision=decision,
        applied=applied,
        errors=[dict(one) for one in says.errors],
    )


def _change(change: Any, rate: float | None) -> PlannedChangeShown:
    size = change.get("rewrites")
    rewrites = None
    if size is not None:
        seconds = round(size["rows"] / rate, 1) if rate else None
        rewrites = RewriteShown(
            rows=size["rows"], files=size["files"], bytes=size["size_bytes"], seconds=seconds
        )
    return PlannedChangeShown(
        kind=change["kind"],
        what=change["what"],
        means=change["means"],
        action=change["action"],
        destructive=change["destructive"],
        rewrites=rewrites,
    )


def _bytes(health: Any) -> int | None:
    files, average = health.get("files"), health.get("average_bytes")
    return None if files is None or average is None else int(files * average)


def _base(manager: OperationManager, name: str) -> PlanRecord | None:
    """The newest plan before this one that was applied."""
    for other in manager.ids():
        view = _plan(manager, other)
        if view is None or other >= name:
            continue
        record = PlanRecord(manager.folder(other))
        applied = record.applied()
        operation = None if applied is None else manager.view(applied.operation)
        if operation is not None and operation.status == "succeeded" and record.files():
            return record
    return None


def _fingerprint(request: Request) -> str:
    """The fingerprint of the files of the project as they are now."""
    return plan_fingerprint(FolderSource(ServerState.of(request).root).read().files)


def _texts(state: ServerState) -> dict[str, str]:
    """The files of the project as text, without who may do what."""
    return {one.path: one.content.decode("utf-8", "replace") for one in state.documents.all()}


def _by(request: Request) -> str:
    """Name of the person of a request."""
    person, _ = caller(request)
    return person.name
