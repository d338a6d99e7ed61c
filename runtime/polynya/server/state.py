"""What the routes of one server share: the project and the clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastapi import Request

from polynya.model.loader import LoadedProject, load_project
from polynya.store.clock import Clock


@dataclass(frozen=True, slots=True)
class ServerState:
    """One project and one of its targets."""

    root: Path
    target: str | None
    clock: Clock

    @classmethod
    def of(cls, request: Request) -> ServerState:
        """The state of the server that got this request."""
        found = request.app.state.polynya
        assert isinstance(found, ServerState)
        return found

    def project(self) -> LoadedProject:
        """The project as its files are now; broken task files are left out."""
        return load_project(self.root, self.target, tolerant=True)
