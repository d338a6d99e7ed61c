"""Answers SQL by the first engine that suffices: the embedded one, else Spark."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.io import load_file_io

from polynya.engine.inventory import inventory
from polynya.lake.fold.live_views import DEFINITION, definition_of, definitions
from polynya.lake.read.inspect import shape
from polynya.lake.read.query import Statement, refuse_writing, unanswered
from polynya.lake.read.values import Answer
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.spark.session import CATALOG
from polynya.lake.warehouse.catalogs import CatalogEntry, catalog_file
from polynya.lake.warehouse.check import entries_of, refuse_unusable
from polynya.lake.warehouse.tables import ListedTables, Tables
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.operation import STATEMENT_NEEDS_SPARK
from polynya.model.errors import OperationError, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import quote_path
from polynya.query.embedded import Live, StatementLimits, answer_here, columns_of, stream_here
from polynya.query.translate import NotEmbeddedError

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession


log = logging.getLogger(__name__)


class QueryEngine(StrEnum):
    """What answers statements; `auto` lets Spark answer what the embedded engine cannot."""

    AUTO = "auto"
    EMBEDDED = "embedded"
    SPARK = "spark"


class Answers:
    """Answers the statements of a process, each over the newest commits.

    `start` gives the Spark session, once one is needed. `tell` receives the reason of each
    statement that is left to Spark.
    """

    def __init__(
        self,
        project: LoadedProject,
        start: Callable[[], SparkSession],
        *,
        engine: QueryEngine = QueryEngine.AUTO,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.project = project
        self._start, self._engine, self._tell = start, engine, tell
        self._spark: SparkSession | None = None

    def check(self) -> None:
        """Raise a PolynyaError where the warehouse cannot be used."""
        refuse_unusable(self.project.target, CATALOG)

    @property
    def spark(self) -> SparkSession:
        """The Spark session; the first access starts it."""
        if self._spark is None:
            self._spark = self._start()
            self._spark.conf.set("spark.sql.caseSensitive", "false")
        return self._spark

    def answer(self, statement: Statement, *, limit: int | None = None) -> Answer:
        """Answer one statement; at most `limit` rows.

        Raises:
            OperationError: it does not only read, or Spark refuses it (POLYNYA-QRY-001), or only
                Spark could answer it and may not (POLYNYA-QRY-002).
            PolynyaError: the warehouse cannot be used, or Spark does not start.
        """
        refuse_writing(statement)
        if self._engine is not QueryEngine.SPARK:
            reason = self._reason_or_answer(statement, limit)
            if isinstance(reason, Answer):
                return reason
            if self._engine is QueryEngine.EMBEDDED:
                raise unanswered(
                    statement,
                    reason,
                    entry=STATEMENT_NEEDS_SPARK,
                )
            self._tell(f"Spark answers: {reason}")
        # Start-up time: pyspark.
        from polynya.lake.read.query import answer

        return answer(self.spark, statement, limit=limit)

    def see_newest(self) -> None:
        """Let later statements on Spark see the newest commits."""
        if self._spark is not None:
            # Start-up time: pyspark.
            from polynya.lake.read.inspect import see_newest

            see_newest(self._spark)

    def cancel(self) -> None:
        """Cancel the running jobs of Spark."""
        if self._spark is not None:
            self._spark.sparkContext.cancelAllJobs()

    def views(self) -> list[str]:
        """`schema.view` of every view that can be read, in order."""
        names = published_views(self.project)
        if names is not None:
            return names
        # Start-up time: pyspark.
        from polynya.lake.read.query import view_names

        return view_names(self.spark)

    def columns(self, view: str) -> list[str]:
        """Names of the columns of a view; none where only Spark could tell and it does not run."""
        if self._spark is not None:
            return self._spark.table(view).columns
        try:
            return view_columns(self.project, view)
        except NotEmbeddedError:
            return []

    def _reason_or_answer(self, statement: Statement, limit: int | None) -> Answer | str:
        try:
            schema, batches = answer_embedded(self.project, statement.text, limit=limit)
        except NotEmbeddedError as error:
            return str(error)
        except PolynyaError:
            raise
        except Exception as error:
            # A bug of the embedded engine must not cost an answer: it is logged.
            failure = f"the embedded engine failed: {type(error).__name__}: {error}"
            log.warning("%s", failure)
            log.debug("where it failed", exc_info=error)
            return failure
        return Answer(schema, iter(batches))


def answer_embedded(
    project: LoadedProject,
    statement: str,
    *,
    limit: int | None = None,
    limits: StatementLimits | None = None,
) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The rows of a statement as Spark would give them, over the newest commit of each table.

    Rows without an ORDER BY come in any order. At most `limit` of them.

    Raises:
        NotEmbeddedError: Spark has to answer it, for this reason.
        PolynyaError: what `refuse_unusable` raises.
    """
    refuse_unusable(project.target, CATALOG)
    return answer_here(
        statement, _Views(project).find, limit=limit, limits=limits or StatementLimits()
    )


def stream_embedded(project: LoadedProject, statement: str) -> Iterator[pa.RecordBatch]:
    """The rows of a statement as they come, over the newest commit of each table.

    Raises as `answer_embedded`, mostly before the first rows.
    """
    refuse_unusable(project.target, CATALOG)
    yield from stream_here(statement, _Views(project).find, limits=StatementLimits())


def published_views(project: LoadedProject) -> list[str] | None:
    """`schema.view` of every view that the catalog holds, in order; None where it holds none."""
    if project.target.on_glue:
        return None
    entries = entries_of(project.target, CATALOG)
    return sorted(entry.full_name for entry in entries if entry.is_view)


def view_columns(project: LoadedProject, name: str) -> list[str]:
    """Names of the columns of a view. Raises NotEmbeddedError where only Spark can answer."""
    live = _Views(project).find(name)
    return list(columns_of(live.dataset, live.shape, live.view) or ())


class _Views:
    """The views of a project; each table is loaded once, so that all its views show one commit."""

    def __init__(self, project: LoadedProject) -> None:
        self._project = project
        self._known: list[Live] = []

    @cached_property
    def _entries(self) -> list[CatalogEntry]:
        return entries_of(self._project.target, CATALOG)

    @cached_property
    def _tables(self) -> Tables:
        target = self._project.target
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
        self._check(view_found, view)
        return replace(view_found, view=view)

    def _as_called(self, name: str) -> str:
        """The name with the case of the only view that matches: some sources use capitals."""
        views = [entry.full_name for entry in self._entries if entry.is_view]
        if name in views:
            return name
        alike = [view for view in views if view.casefold() == name.casefold()]
        return alike[0] if len(alike) == 1 else name

    def _load(self, name: str, wanted: Callable[[ResolvedDataset], bool]) -> Live:
        for entry in inventory(self._project, self._tables, wanted):
            if entry.table is not None and not entry.is_ledger:
                return Live("", entry.dataset, shape(entry.table, entry.dataset), entry.table)
        raise NotEmbeddedError(f"{name} is not a view of the project")

    def _check(self, live: Live, view: str) -> None:
        """Raise where the catalog holds another definition of a view than today's.

        Settings have changed since then, or a run was killed. On Glue, views are made for each
        session, from the same states.
        """
        if self._project.target.on_glue:
            return
        relations = live.dataset.relations
        name = f"{relations.schema}.{view}"
        made = {entry.full_name: entry.metadata for entry in self._entries if entry.is_view}
        place = made.get(name)
        table = quote_path(CATALOG, relations.internal_schema, relations.internal_table)
        text = definitions(live.dataset, live.shape, table).get(view)
        if (
            place is None
            or text is None
            or self._definition(place) != definition_of(live.shape, text)
        ):
            raise NotEmbeddedError(f"the view {name} was made in another way")

    def _definition(self, metadata: str) -> str | None:
        """The definition in the metadata file of a view; None where there is none to read."""
        try:
            reader = load_file_io(dict(self._tables.properties), metadata)
            with reader.new_input(metadata).open() as file:
                data = file.read()
            text = gzip.decompress(data) if metadata.endswith(".gz.metadata.json") else data
            definition = json.loads(text).get("properties", {}).get(DEFINITION)
        except (OSError, EOFError, ValueError, AttributeError):
            return None
        return str(definition) if definition is not None else None


def _has_view(dataset: ResolvedDataset, schema: str, view: str) -> bool:
    named = dataset.relations
    views = (named.view, named.changes_view, named.history_view, named.headers_view)
    return named.schema == schema and view in views
