"""What the routes of one server share: the project, the overview, the catalog and the clock."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from polynya.engine.served_catalog import ServedCatalog
from polynya.model.loader import LoadedProject, load_project
from polynya.server.documents import ProjectDocuments
from polynya.server.overview import Overview, OverviewKeeper
from polynya.server.running_queries import RunningQueries
from polynya.store.clock import Clock
from polynya.store.configuration import FolderSource


@dataclass
class ServerState:
    """One project and one of its targets."""

    root: Path
    target: str | None
    clock: Clock
    _lock: threading.Lock = field(default_factory=threading.Lock)
    #: With the identity of the files that it is of.
    _catalog: tuple[str, ServedCatalog] | None = None

    @classmethod
    def of(cls, request: Request) -> ServerState:
        """The state of the server that got this request."""
        found = request.app.state.polynya
        assert isinstance(found, ServerState)
        return found

    def project(self) -> LoadedProject:
        """The project as its files are now; broken task files are left out."""
        return load_project(self.root, self.target, tolerant=True)

    @cached_property
    def overview(self) -> OverviewKeeper:
        """What is known of all datasets."""
        return OverviewKeeper(self.project, self.clock)

    async def newest(self) -> tuple[Overview, LoadedProject]:
        """The newest overview and its project, for routes that read nothing else.

        Such a route is a coroutine: a thread for each request would take longer than its answer.
        """
        overview = self.overview.known() or await run_in_threadpool(self.overview.newest)
        return overview, overview.project or await run_in_threadpool(self.project)

    @property
    def catalog(self) -> ServedCatalog:
        """The catalog for other engines, of the project as its files are now."""
        identity = FolderSource(self.root).read().identity
        with self._lock:
            if self._catalog is None or self._catalog[0] != identity:
                self._catalog = identity, ServedCatalog(self.project())
            return self._catalog[1]

    @cached_property
    def queries(self) -> RunningQueries:
        """The queries that run."""
        return RunningQueries(self.clock)

    @cached_property
    def documents(self) -> ProjectDocuments:
        """The files of the project."""
        return ProjectDocuments(self.root, self.target)
