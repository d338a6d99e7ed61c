"""The project and its tasks as resources."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from polynya.engine.commands.validate import project_errors
from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.health import HealthWord, counts, worst
from polynya.server.overview import DatasetOverview, Overview
from polynya.server.pages import Cursor, Limit, ListPage, page
from polynya.server.state import ServerState

router = APIRouter(tags=["project"])


class ProjectShown(BaseModel):
    """A project and its target. `health` is that of its worst dataset; `datasets` counts words."""

    name: str
    target: str
    health: HealthWord
    datasets: dict[str, int]
    errors: list[dict[str, Any]]
    as_of: str | None


class TaskShown(BaseModel):
    """A task: its kind, its file, and the health of its datasets."""

    name: str
    kind: str
    file: str
    cluster: str | None
    health: HealthWord
    datasets: dict[str, int]


class Validated(BaseModel):
    """Whether all files of the project are right; the errors, if there are any."""

    valid: bool
    errors: list[dict[str, Any]]


@router.get("/project", dependencies=[allowed(Action.VIEW_PROJECT)])
def project(request: Request) -> ProjectShown:
    """The project that this server answers for."""
    state = ServerState.of(request)
    overview = state.overview.newest()
    loaded = overview.project or state.project()
    words = [one.health for one in overview.datasets.values()]
    parts = [part for one in overview.datasets.values() for part in one.parts]
    return ProjectShown(
        name=loaded.project.name,
        target=loaded.target.name,
        health=worst(parts),
        datasets=dict(counts(words)),
        errors=[error.as_dict() for error in overview.errors],
        as_of=None if overview.at is None else overview.at.isoformat(),
    )


@router.post("/project/validate", dependencies=[allowed(Action.VALIDATE)])
def validate(request: Request) -> Validated:
    """Check all files of the project as they are now, without the network."""
    errors, _ = project_errors(ServerState.of(request).project())
    return Validated(valid=not errors, errors=[error.as_dict() for error in errors])


@router.get("/tasks", dependencies=[allowed(Action.VIEW_PROJECT)])
def tasks(request: Request, limit: Limit = 100, cursor: Cursor = None) -> ListPage[TaskShown]:
    """The tasks of the project by name."""
    found = sorted(_tasks(request), key=lambda one: one.name)
    return page(found, lambda one: (one.name, one.name), limit, cursor)


@router.get("/tasks/{name}", dependencies=[allowed(Action.VIEW_PROJECT)])
def task(request: Request, name: str) -> TaskShown:
    """One task."""
    for one in _tasks(request):
        if one.name == name:
            return one
    raise NO_SUCH_RESOURCE(what=f"task {shown(name)}")


def _tasks(request: Request) -> list[TaskShown]:
    state = ServerState.of(request)
    overview: Overview = state.overview.newest()
    loaded = overview.project or state.project()
    of_tasks: dict[str, list[DatasetOverview]] = defaultdict(list)
    for dataset in overview.datasets.values():
        of_tasks[dataset.task].append(dataset)
    made = []
    for one in (*loaded.works, *loaded.registered):
        datasets = of_tasks[one.name]
        parts = [part for found in datasets for part in found.parts]
        cluster = getattr(one, "cluster", None) or loaded.project.cluster
        made.append(
            TaskShown(
                name=one.name,
                kind=one.kind,
                file=loaded.files.get(one.name, ""),
                cluster=cluster,
                health=worst(parts),
                datasets=dict(counts([found.health for found in datasets])),
            )
        )
    return made
