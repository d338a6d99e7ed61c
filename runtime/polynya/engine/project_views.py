"""The views of a project, found without a JVM, as of the newest commits of its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from polynya.engine.inventory import Reader, inventory, tables_of
from polynya.lake.fold.live_views import DEFINITION, definition_of, spark_views
from polynya.lake.read.committed import (
    CatalogFiles,
    CommittedTable,
    CommittedTables,
    PublishedView,
    document,
)
from polynya.lake.read.inspect import shape
from polynya.lake.spark.catalog import CATALOG, holds_views, python_catalog
from polynya.lake.warehouse.catalogs import CatalogEntry, catalog_file
from polynya.lake.warehouse.check import entries_of
from polynya.lake.warehouse.rest_access import s3_for_python
from polynya.lake.warehouse.tables import ListedTables, Tables
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.error_catalogue.registered import REGISTERED_MISSING
from polynya.model.errors import OperationError
from polynya.model.loader import LoadedProject
from polynya.model.names import quote_path, shown
from polynya.model.types import DataType
from polynya.query.committed_rows import RowLimits
from polynya.query.embedded import EmbeddedView, answer_here, columns_here
from polynya.query.live_rows import Live
from polynya.query.translate import NotEmbeddedError
from polynya.store.data_files import LocalFiles

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from polynya.derived.inputs import QueryInput
    from polynya.engine.query_views import ViewQuery
    from polynya.query.registered_rows import RegisteredFolder, RegisteredSnapshot


#: Views of which a process keeps the metadata.
_KNOWN_VIEWS: Final = 64


def embedded_view(project: LoadedProject, views: ProjectViews, name: str) -> EmbeddedView:
    """The view or the registered table of a name `schema.table`.

    Raises NotEmbeddedError, and OperationError for a registered table that is missing.
    """
    for task in project.registered:
        for dataset in task.datasets():
            if dataset.relations.current.casefold() == name.casefold():
                return registered_view(project, views, dataset)
    for derived in (task for task in project.tasks if isinstance(task, DerivedTask)):
        for view in derived.query_views:
            if derived.view_of(view).casefold() == name.casefold():
                return QueryView.of(views, derived, view)
    return views.embedded(name)


@dataclass(frozen=True, slots=True)
class QueryView:
    """The view of a query that no table keeps: it answers its query from the same commits."""

    name: str
    text: str
    views: ProjectViews

    def newest(self) -> QueryView:
        """The same view over the newest commits."""
        return replace(self, views=ProjectViews(self.views.project))

    @classmethod
    def of(cls, views: ProjectViews, task: DerivedTask, view: str) -> QueryView:
        """The view as the catalog has it. Raises NotEmbeddedError where only Spark can answer."""
        # Start-up time: the analysis of queries.
        from polynya.engine.query_views import InputMissingError

        name = task.view_of(view)
        try:
            query = query_of_view(views, task, view)
        except InputMissingError as error:
            raise NotEmbeddedError(f"the view {error}, which is not there yet") from error
        views.check_query(name, query.sql(CATALOG))
        return cls(name, query.sql(None), views)

    @property
    def columns(self) -> Mapping[str, DataType]:
        """See `EmbeddedView`."""
        return columns_here(self.text, self.views.any)

    @property
    def keys(self) -> Sequence[str]:
        """See `EmbeddedView`: nothing tells its rows apart."""
        return ()

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """See `EmbeddedView`."""
        schema, batches = answer_here(self.text, self.views.any, limit=None, limits=limits)
        return pa.Table.from_batches(batches, schema=schema).select(list(columns)).to_reader()


def query_of_view(views: ProjectViews, task: DerivedTask, view: str) -> ViewQuery:
    """The query of a view over the views that it reads. Raises as `view_query` and `any`."""
    # Start-up time: the analysis of queries.
    from polynya.engine.query_views import view_query

    entries = [entry for read in task.reads for entry in tables_of(read, views.tables)]
    datasets: list[QueryInput] = [one.dataset for one in entries if not one.is_ledger]
    datasets += [one for other in task.registered for one in other.datasets()]

    def columns(place: str) -> Mapping[str, str] | None:
        found = views.any(place).columns
        return None if found is None else {one: str(kind) for one, kind in found.items()}

    return view_query(task, view, datasets, columns)


def registered_view(
    project: LoadedProject, views: ProjectViews, dataset: RegisteredDataset
) -> RegisteredFolder | RegisteredSnapshot:
    """A registered table as it is now.

    Raises OperationError where it is missing, and NotEmbeddedError where only Spark can tell.
    """
    # Start-up time: PyIceberg.
    from pyiceberg.exceptions import NoSuchTableError

    from polynya.lake.read.registered_folders import folder_of
    from polynya.query.registered_rows import RegisteredFolder, RegisteredSnapshot

    folder = folder_of(dataset, project.target.aws)
    if folder is not None:
        return RegisteredFolder(folder)
    schema, _, table = dataset.table.source.partition(".")
    try:
        return RegisteredSnapshot(dataset, views.tables.load_table((schema, table)))
    except NoSuchTableError as error:
        current = dataset.relations.current
        reason = f"the catalog has no table {shown(dataset.table.source)}"
        raise REGISTERED_MISSING(where=current, table=current, reason=reason) from error


class ProjectViews:
    """The views of a project; each table is loaded once, so that all its views show one commit."""

    def __init__(self, project: LoadedProject) -> None:
        self.project = project
        self._known: list[Live] = []
        self._known_by_files: list[Live[CommittedTable]] = []

    @cached_property
    def entries(self) -> list[CatalogEntry]:
        """What the catalog holds, read once; of a REST catalog only the schemas of the project."""
        schemas = {task.schema_ for task in self.project.tasks}
        return entries_of(self.project.target, CATALOG, schemas)

    @cached_property
    def tables(self) -> Tables:
        """What finds the tables, all as of the same moment. Raises NotEmbeddedError."""
        target = self.project.target
        self._refuse_own_properties()
        if catalog_file(target) is not None:
            return ListedTables(self.entries)
        try:
            return python_catalog(target)
        except OperationError as error:
            # There is no table at all.
            raise NotEmbeddedError(error.message) from error

    @cached_property
    def _files(self) -> CommittedTables | None:
        """The same tables by their files; None where only PyIceberg can ask the catalog."""
        self._refuse_own_properties()
        if catalog_file(self.project.target) is None:
            return None
        return CommittedTables(self.entries, s3_for_python(self.project.target))

    def _refuse_own_properties(self) -> None:
        if self.project.target.catalog_properties:
            # Such properties may change anything.
            raise NotEmbeddedError("the catalog of the target has properties of its own")

    def any(self, name: str) -> EmbeddedView:
        """The view or the registered table of this name. Raises as `embedded_view`."""
        return embedded_view(self.project, self, name)

    def find(self, name: str) -> Live:
        """The view of this name (`schema.view`); its case matters only if several match.

        Raises NotEmbeddedError.
        """
        return self._found(self._known, self.tables, name)

    def embedded(self, name: str) -> EmbeddedView:
        """The same for a statement: where they can be, small tables are read without PyIceberg."""
        files = self._files
        if files is None:
            return self.find(name)
        return self._found(self._known_by_files, files, name)

    def _found(self, known: list[Live[Reader]], tables: Tables[Reader], name: str) -> Live[Reader]:
        schema, _, view = self._as_called(name).partition(".")
        wanted = partial(_has_view, schema=schema, view=view)
        found = next((live for live in known if wanted(live.dataset)), None)
        if found is None:
            found = self._load(tables, wanted, name)
            known.append(found)
        self.check(found, view)
        return replace(found, view=view)

    def _as_called(self, name: str) -> str:
        """The name with the case of the only view that matches: some sources use capitals."""
        views = [entry.full_name for entry in self.entries if entry.is_view]
        if name in views:
            return name
        alike = [view for view in views if view.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else name

    def _load(
        self, tables: Tables[Reader], wanted: Callable[[ResolvedDataset], bool], name: str
    ) -> Live[Reader]:
        for entry in inventory(self.project, tables, wanted):
            if entry.table is not None and not entry.is_ledger:
                return Live("", entry.dataset, shape(entry.table, entry.dataset), entry.table)
        raise NotEmbeddedError(f"{name} is not a view of the project")

    def check(self, live: Live[Table | CommittedTable], view: str) -> None:
        """Raise NotEmbeddedError where the catalog has another definition of a view than today's.

        Settings have changed since then, or a run was killed. Where the catalog holds no views,
        they are made for each session, from the same states.
        """
        if not holds_views(self.project.target):
            return
        relations = live.dataset.relations
        name = f"{relations.schema}.{view}"
        made = {entry.full_name: entry.metadata for entry in self.entries if entry.is_view}
        place = made.get(name)
        table = quote_path(CATALOG, relations.internal_schema, relations.internal_table)
        found = None if place is None else self._published(name, place)
        texts = (
            spark_views(live.dataset, live.shape, table, settled=settled).get(view)
            for settled in (True, False)
        )
        if found is None or found.sql not in texts:
            raise NotEmbeddedError(f"the view {name} was made in another way")
        # Whoever replaces a view keeps its properties, so that the definition alone says little.
        if found.properties.get(DEFINITION) != definition_of(live.shape, found.sql):
            raise NotEmbeddedError(f"the view {name} was made in another way")

    def check_query(self, name: str, text: str) -> None:
        """Raise NotEmbeddedError where the catalog has another text of a query's view than today's.

        Where it holds no views, Spark makes them from the same texts.
        """
        if not holds_views(self.project.target):
            return
        made = {entry.full_name: entry.metadata for entry in self.entries if entry.is_view}
        if name not in made:
            raise NotEmbeddedError(f"the view {name}, which is not there yet")
        found = self._published(name, made[name])
        if found is None or DEFINITION not in found.properties or found.sql != text:
            raise NotEmbeddedError(f"the view {name} was made in another way")

    def _published(self, name: str, metadata: str) -> PublishedView | None:
        """The view of a metadata file; None where it cannot be read."""
        try:
            return PublishedView.of(self._metadata(name, metadata))
        except (OSError, EOFError, ValueError):
            return None

    def _metadata(self, name: str, metadata: str) -> Any:
        target = self.project.target
        if target.rest is not None:
            # Start-up time: PyIceberg's client, which no other catalog needs.
            from polynya.lake.warehouse.rest_catalog import view_metadata

            return view_metadata(target, CATALOG, name)
        if LocalFiles().holds(metadata):
            return _local_view(metadata)
        # Start-up time: PyIceberg's files.
        from pyiceberg.io import load_file_io

        return document(
            CatalogFiles(load_file_io(dict(self.tables.properties), metadata)), metadata
        )


@lru_cache(maxsize=_KNOWN_VIEWS)
def _local_view(metadata: str) -> Any:
    """The metadata file of a local view, which never changes."""
    return document(LocalFiles(), metadata)


def _has_view(dataset: ResolvedDataset, schema: str, view: str) -> bool:
    return dataset.relations.schema == schema and view in dataset.relations.views
