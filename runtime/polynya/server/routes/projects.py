"""The project and its tasks as resources."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import Query, Request
from pydantic import BaseModel, Field

from polynya.engine.commands.validate import project_errors
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.health import HealthWord, counts, worst
from polynya.server.overview import MOST_COMMITS, DatasetOverview, Overview
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState

router = api_router("project")

#: Changes of shapes that an answer lists.
_MOST_SHAPES: Final = 20


class ProjectShown(BaseModel):
    """A project and its target. `health` is that of its worst dataset; `datasets` counts words."""

    name: str
    target: str
    health: HealthWord
    datasets: dict[str, int]
    errors: list[dict[str, Any]]
    as_of: str | None
    late_since: str | None = Field(
        description="since when the server has not looked at the tables although it is time"
    )


class TaskShown(BaseModel):
    """A task: its kind as its file has it, its file, and the health of its datasets."""

    name: str
    kind: str
    file: str
    cluster: str | None
    health: HealthWord
    datasets: dict[str, int]


class ShapeChange(BaseModel):
    """A change of the shape of a source, and the policy that decided about it."""

    dataset: str
    at: str
    says: str
    policy: str


class RecentChanges(BaseModel):
    """What was committed to tables since a moment; `shapes` are the newest first.

    `is_whole` is false where a table has more commits than the server keeps of each: what is
    counted is then the least that there was.
    """

    since: str
    commits: int
    datasets: int
    rows_copied: int
    events_applied: int
    rows_quarantined: int
    shapes: list[ShapeChange]
    shape_changes: int
    is_whole: bool


class Validated(BaseModel):
    """Whether all files of the project are right; the errors, if there are any."""

    valid: bool
    errors: list[dict[str, Any]]


@router.get("/project", dependencies=[allowed(Action.VIEW_PROJECT)])
async def project(request: Request) -> ProjectShown:
    """The project that this server answers for."""
    overview, loaded = await ServerState.of(request).newest()
    late = ServerState.of(request).overview.late_since()
    found = overview.once("project", lambda: _project(overview, loaded))
    return found.model_copy(update={"late_since": None if late is None else late.isoformat()})


def _project(overview: Overview, loaded: LoadedProject) -> ProjectShown:
    words = [one.health for one in overview.datasets.values()]
    parts = [part for one in overview.datasets.values() for part in one.parts]
    return ProjectShown(
        name=loaded.project.name,
        target=loaded.target.name,
        health=worst(parts),
        datasets=dict(counts(words)),
        errors=[error.as_dict() for error in overview.errors],
        as_of=None if overview.at is None else overview.at.isoformat(),
        late_since=None,
    )


@router.get("/project/changes", dependencies=[allowed(Action.VIEW_PROJECT)])
async def changes(
    request: Request,
    hours: Annotated[int, Query(ge=1, le=168, description="how far back")] = 24,
) -> RecentChanges:
    """What has changed lately: commits, rows, rejected records, and shapes of sources."""
    state = ServerState.of(request)
    overview, _ = await state.newest()
    since = (overview.at or state.clock.now()) - timedelta(hours=hours)
    return overview.once(("changes", hours), lambda: _changes(overview, since))


def _changes(overview: Overview, since: datetime) -> RecentChanges:
    commits = datasets = copied = applied = quarantined = 0
    is_whole = True
    shapes: list[ShapeChange] = []
    for one in overview.datasets.values():
        recent = 0
        for commit in reversed(one.commits):
            if commit.at < since:
                break
            recent += 1
            rows = commit.rows
            copied += rows.get("out", 0)
            applied += rows.get("events", 0)
            quarantined += rows.get("quarantined", 0)
        commits, datasets = commits + recent, datasets + bool(recent)
        is_whole &= recent < MOST_COMMITS
        decided = one.status.shape_changes if one.status is not None else ()
        shapes += [
            ShapeChange(dataset=one.name, at=change.at, says=change.says, policy=change.policy)
            for change in decided
            if datetime.fromisoformat(change.at) >= since
        ]
    shapes.sort(key=lambda one: one.at, reverse=True)
    return RecentChanges(
        since=since.isoformat(),
        commits=commits,
        datasets=datasets,
        rows_copied=copied,
        events_applied=applied,
        rows_quarantined=quarantined,
        shapes=shapes[:_MOST_SHAPES],
        shape_changes=len(shapes),
        is_whole=is_whole,
    )


@router.post("/project/validate", dependencies=[allowed(Action.VALIDATE)])
def validate(request: Request) -> Validated:
    """Check all files of the project as they are now, without the network."""
    errors, _ = project_errors(ServerState.of(request).project())
    return Validated(valid=not errors, errors=[error.as_dict() for error in errors])


@router.get("/tasks", dependencies=[allowed(Action.VIEW_PROJECT)])
async def tasks(request: Request, limit: Limit = 100, cursor: Cursor = None) -> ListPage[TaskShown]:
    """The tasks of the project by name."""
    found = list((await _tasks(request)).values())
    return page(found, lambda one: (one.name, one.name), limit, cursor)


@router.get("/tasks/{name}", dependencies=[allowed(Action.VIEW_PROJECT)])
async def task(request: Request, name: str) -> TaskShown:
    """One task."""
    found = (await _tasks(request)).get(name)
    if found is None:
        raise NO_SUCH_RESOURCE(what=f"task {shown(name)}")
    return found


async def _tasks(request: Request) -> dict[str, TaskShown]:
    overview, loaded = await ServerState.of(request).newest()
    return overview.once("tasks", lambda: _tasks_of(overview, loaded))


def _tasks_of(overview: Overview, loaded: LoadedProject) -> dict[str, TaskShown]:
    """The tasks in the order of their names."""
    of_tasks: dict[str, list[DatasetOverview]] = defaultdict(list)
    for dataset in overview.datasets.values():
        of_tasks[dataset.task].append(dataset)
    made: dict[str, TaskShown] = {}
    for one in (*loaded.works, *loaded.registered):
        datasets = of_tasks[one.name]
        parts = [part for found in datasets for part in found.parts]
        cluster = getattr(one, "cluster", None) or loaded.project.cluster
        made[one.name] = TaskShown(
            name=one.name,
            kind=loaded.kind_of(one.name) or one.kind,
            file=loaded.files.get(one.name, ""),
            cluster=cluster,
            health=worst(parts),
            datasets=dict(counts([found.health for found in datasets])),
        )
    return dict(sorted(made.items()))
