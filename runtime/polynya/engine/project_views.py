"""The views of a project, found without a JVM, as of the newest commits of its tables."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import load_file_io

from polynya.derived.inputs import QueryInput
from polynya.engine.inventory import inventory, tables_of
from polynya.engine.query_views import InputMissingError, ViewQuery, view_query
from polynya.lake.fold.live_views import DEFINITION, definition_of, spark_views
from polynya.lake.read.inspect import shape
from polynya.lake.read.registered_folders import folder_of
from polynya.lake.spark.catalog import CATALOG, holds_views, python_catalog
from polynya.lake.warehouse.catalogs import CatalogEntry, catalog_file
from polynya.lake.warehouse.check import entries_of
from polynya.lake.warehouse.tables import ListedTables, Tables
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.error_catalogue.registered import REGISTERED_MISSING
from polynya.model.errors import OperationError
from polynya.model.loader import LoadedProject
from polynya.model.names import quote_path, shown
from polynya.model.types import DataType
from polynya.query.embedded import EmbeddedView, answer_here, columns_here
from polynya.query.live_rows import Live
from polynya.query.registered_rows import RegisteredFolder, RegisteredSnapshot
from polynya.query.stored_rows import RowLimits
from polynya.query.translate import NotEmbeddedError


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
    return views.find(name)


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

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.Table:
        """See `EmbeddedView`."""
        schema, batches = answer_here(self.text, self.views.any, limit=None, limits=limits)
        return pa.Table.from_batches(batches, schema=schema).select(list(columns))


def query_of_view(views: ProjectViews, task: DerivedTask, view: str) -> ViewQuery:
    """The query of a view over the views that it reads. Raises as `view_query` and `any`."""
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

    @cached_property
    def _entries(self) -> list[CatalogEntry]:
        schemas = {task.schema_ for task in self.project.tasks}
        return entries_of(self.project.target, CATALOG, schemas)

    @cached_property
    def tables(self) -> Tables:
        """What finds the tables, all as of the same moment. Raises NotEmbeddedError."""
        target = self.project.target
        if target.catalog_properties:
            # Such properties may change anything.
            raise NotEmbeddedError("the catalog of the target has properties of its own")
        if catalog_file(target) is not None:
            return ListedTables(self._entries)
        try:
            return python_catalog(target)
        except OperationError as error:
            # There is no table at all.
            raise NotEmbeddedError(error.message) from error

    def any(self, name: str) -> EmbeddedView:
        """The view or the registered table of this name. Raises as `embedded_view`."""
        return embedded_view(self.project, self, name)

    def find(self, name: str) -> Live:
        """The view of this name (`schema.view`); its case matters only if several match.

        Raises NotEmbeddedError.
        """
        schema, _, view = self._as_called(name).partition(".")
        has_view = partial(_has_view, schema=schema, view=view)
        view_found = next((live for live in self._known if has_view(live.dataset)), None)
        if view_found is None:
            view_found = self._load(name, has_view)
            self._known.append(view_found)
        self.check(view_found, view)
        return replace(view_found, view=view)

    def _as_called(self, name: str) -> str:
        """The name with the case of the only view that matches: some sources use capitals."""
        views = [entry.full_name for entry in self._entries if entry.is_view]
        if name in views:
            return name
        alike = [view for view in views if view.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else name

    def _load(self, name: str, wanted: Callable[[ResolvedDataset], bool]) -> Live:
        for entry in inventory(self.project, self.tables, wanted):
            if entry.table is not None and not entry.is_ledger:
                return Live("", entry.dataset, shape(entry.table, entry.dataset), entry.table)
        raise NotEmbeddedError(f"{name} is not a view of the project")

    def check(self, live: Live, view: str) -> None:
        """Raise NotEmbeddedError where the catalog has another definition of a view than today's.

        Settings have changed since then, or a run was killed. Where the catalog holds no views,
        they are made for each session, from the same states.
        """
        if not holds_views(self.project.target):
            return
        relations = live.dataset.relations
        name = f"{relations.schema}.{view}"
        made = {entry.full_name: entry.metadata for entry in self._entries if entry.is_view}
        place = made.get(name)
        table = quote_path(CATALOG, relations.internal_schema, relations.internal_table)
        text = spark_views(live.dataset, live.shape, table).get(view)
        if (
            place is None
            or text is None
            or self._definition(name, place) != (definition_of(live.shape, text), text)
        ):
            raise NotEmbeddedError(f"the view {name} was made in another way")

    def check_query(self, name: str, text: str) -> None:
        """Raise NotEmbeddedError where the catalog has another text of a query's view than today's.

        Where it holds no views, Spark makes them from the same texts.
        """
        if not holds_views(self.project.target):
            return
        made = {entry.full_name: entry.metadata for entry in self._entries if entry.is_view}
        if name not in made:
            raise NotEmbeddedError(f"the view {name}, which is not there yet")
        definition = self._definition(name, made[name])
        if definition is None or definition[1] != text:
            raise NotEmbeddedError(f"the view {name} was made in another way")

    def _definition(self, name: str, metadata: str) -> tuple[str, str] | None:
        """Definition and Spark's text in the metadata of a view; None where there is none.

        Whoever replaces a view keeps its properties, so that the definition alone says little.
        """
        try:
            document = self._metadata(name, metadata)
            definition = document["properties"][DEFINITION]
            versions = {one["version-id"]: one for one in document["versions"]}
            shown = versions[document["current-version-id"]]["representations"]
            sql = next(one["sql"] for one in shown if one["dialect"] == "spark")
        except (OSError, EOFError, ValueError, LookupError, TypeError, StopIteration):
            return None
        return str(definition), str(sql)

    def _metadata(self, name: str, metadata: str) -> Any:
        target = self.project.target
        if target.rest is not None:
            # Start-up time: PyIceberg's client, which no other catalog needs.
            from polynya.lake.warehouse.rest_catalog import view_metadata

            return view_metadata(target, CATALOG, name)
        reader = load_file_io(dict(self.tables.properties), metadata)
        with reader.new_input(metadata).open() as file:
            data = file.read()
        return json.loads(gzip.decompress(data) if metadata.endswith(".gz.metadata.json") else data)


def _has_view(dataset: ResolvedDataset, schema: str, view: str) -> bool:
    return dataset.relations.schema == schema and view in dataset.relations.views
