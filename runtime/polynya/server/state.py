"""What the routes of one server share: the project, the overview, the catalog and the clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.loader import LoadedProject, load_project
from polynya.server.clusters import ClusterWatch
from polynya.server.configuration import FollowedConfiguration
from polynya.server.documents import DocumentPlace, ProjectDocuments
from polynya.server.overview import Overview, OverviewKeeper
from polynya.server.running_queries import RunningQueries
from polynya.server.sources import SourceWatch
from polynya.store.clock import Clock
from polynya.store.configuration import FolderSource

if TYPE_CHECKING:
    from polynya.derived.column_graph import ColumnGraph
    from polynya.engine.served_catalog import ServedCatalog


@dataclass
class ServerState:
    """One project and one of its targets.

    Attributes:
        root: the project folder.
        target: name of the target; None for the only or default one.
        clock: the time.
        followed: the bucket whose configuration the folder follows, if it does.
        keeper: name of this machine, by which its operations are kept in the state of the target;
            None keeps them in the folder alone.
        requests_only: refuse actions that work on tables here.
        look_seconds: pause between two looks at all tables; None for that of the overview.
        loaded: the project as it has just been loaded, for the first look at its tables.
    """

    root: Path
    target: str | None
    clock: Clock
    followed: FollowedConfiguration | None = None
    keeper: str | None = None
    requests_only: bool = False
    look_seconds: float | None = None
    loaded: LoadedProject | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    #: With the identity of the files that it is of.
    _catalog: tuple[str, ServedCatalog] | None = None
    #: With what it was made of.
    _graph: tuple[Any, ColumnGraph] | None = None
    _drawing: threading.Lock = field(default_factory=threading.Lock)
    #: With the place and the access that it is of.
    _bucket: tuple[object, ProjectDocuments] | None = None

    @classmethod
    def of(cls, request: Request) -> ServerState:
        """The state of the server that got this request."""
        found = request.app.state.polynya
        assert isinstance(found, ServerState)
        return found

    def project(self) -> LoadedProject:
        """The project as its files are now; broken task files are left out."""
        return load_project(self.root, self.target, tolerant=True)

    def known_project(self) -> LoadedProject:
        """The project as of the newest look at its tables, so that a request reads no files."""
        return self.overview.newest().project or self.project()

    def lineage(self) -> ColumnGraph:
        """The columns of the project and what they are made of, as of the newest overview.

        It reads each table, so it is made anew only where files or columns have changed.
        """
        overview = self.overview.newest()
        with self._drawing:
            return overview.once("lineage", lambda: self._drawn(overview))

    def _drawn(self, overview: Overview) -> ColumnGraph:
        # Start-up time: sqlglot.
        from polynya.engine.commands.lineage import project_graph

        project = overview.project or self.project()
        columns = {name: (one.columns, one.keys) for name, one in overview.datasets.items()}
        basis = project.documents, project.project_document, columns
        if self._graph is None or self._graph[0] != basis:
            catalog = python_catalog(project.target) if has_tables(project.target) else None
            self._graph = basis, project_graph(project, catalog)
        return self._graph[1]

    @cached_property
    def overview(self) -> OverviewKeeper:
        """What is known of all datasets."""
        if self.look_seconds is None:
            return OverviewKeeper(self._newest_project, self.clock)
        return OverviewKeeper(self._newest_project, self.clock, self.look_seconds)

    def _newest_project(self) -> LoadedProject:
        loaded, self.loaded = self.loaded, None
        return loaded or self.project()

    @cached_property
    def clusters(self) -> ClusterWatch:
        """What is known of the clusters of the project."""
        return ClusterWatch(self.root, self.clock)

    @cached_property
    def sources(self) -> SourceWatch:
        """What is known of the captures and streams of the project."""
        return SourceWatch(self.clock)

    async def newest(self) -> tuple[Overview, LoadedProject]:
        """The newest overview and its project, for routes that read nothing else.

        Such a route is a coroutine: a thread for each request would take longer than its answer.
        """
        overview = self.overview.known()
        if overview is None:
            overview = await run_in_threadpool(self.overview.newest)
        project = overview.project
        if project is None:
            project = await run_in_threadpool(self.project)
        return overview, project

    @property
    def catalog(self) -> ServedCatalog:
        """The catalog for other engines, of the project as its files are now."""
        # Start-up time: DuckDB and sqlglot.
        from polynya.engine.served_catalog import ServedCatalog

        identity = FolderSource(self.root).read().identity
        with self._lock:
            if self._catalog is None or self._catalog[0] != identity:
                self._catalog = identity, ServedCatalog(self.project())
            return self._catalog[1]

    @cached_property
    def queries(self) -> RunningQueries:
        """The queries that run."""
        return RunningQueries(self.clock)

    def documents_at(self, place: DocumentPlace) -> ProjectDocuments:
        """The documents of the project folder, or those in force in the configuration bucket."""
        if place is DocumentPlace.PROJECT:
            return self.documents
        # Start-up time: the bucket of most projects is edited elsewhere.
        from polynya.server.bucket_documents import BucketDocuments

        project = self.project()
        where = project.target.config, project.target.aws
        with self._lock:
            # It knows what it has read, so that a request fetches only what has changed.
            if self._bucket is None or self._bucket[0] != where:
                self._bucket = where, BucketDocuments.of(project, self.target)
            return self._bucket[1]

    @cached_property
    def documents(self) -> ProjectDocuments:
        """The files of the project."""
        return ProjectDocuments(self.root, self.target, self.followed)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold back readings of the bucket while a change is written to it and to the folder."""
        with nullcontext() if self.followed is None else self.followed.lock:
            yield
