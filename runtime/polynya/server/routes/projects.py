"""The project as a resource."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel

from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.state import ServerState

router = APIRouter(tags=["project"])


class ProjectShown(BaseModel):
    """A project and the target that the server works on."""

    name: str
    target: str


@router.get("/project", dependencies=[allowed(Action.VIEW_PROJECT)])
def project(request: Request) -> ProjectShown:
    """The project that this server answers for."""
    state = ServerState.of(request)
    loaded = state.project()
    return ProjectShown(name=loaded.project.name, target=loaded.target.name)
