"""Answers SQL by the first engine that suffices: the embedded one, else Spark."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from polynya.engine.project_views import ProjectViews, embedded_view
from polynya.lake.read.query import Statement, refuse_writing, unanswered
from polynya.lake.read.values import Answer
from polynya.lake.spark.catalog import CATALOG, holds_views
from polynya.lake.warehouse.check import entries_of, refuse_unusable
from polynya.model.error_catalogue.operation import STATEMENT_NEEDS_SPARK
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.query.committed_rows import RowLimits
from polynya.query.embedded import (
    STATEMENT_LIMITS,
    EmbeddedView,
    answer_here,
    plan_here,
    stream_here,
)
from polynya.query.translate import NotEmbeddedError

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession


log = logging.getLogger(__name__)

#: Gives the view of a name `schema.view`.
FindView: TypeAlias = Callable[[str], EmbeddedView]


class QueryEngine(StrEnum):
    """What answers statements; `auto` lets Spark answer what the embedded engine cannot."""

    AUTO = "auto"
    EMBEDDED = "embedded"
    SPARK = "spark"


class Answers:
    """Answers the statements of a process, each over the newest commits.

    `start` gives the Spark session, once one is needed. `tell` receives the reason of each
    statement that is left to Spark. `guarded` makes of the views that there are those that somebody
    may read; it needs the embedded engine.
    """

    def __init__(
        self,
        project: LoadedProject,
        start: Callable[[], SparkSession],
        *,
        engine: QueryEngine = QueryEngine.AUTO,
        tell: Callable[[str], None] = lambda _: None,
        guarded: Callable[[FindView], FindView] | None = None,
    ) -> None:
        self.project, self._guarded = project, guarded
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
        from polynya.engine.session_views import registered_views
        from polynya.lake.read.query import answer

        # Java keeps what a statement has broadcast as long as Python has its objects, and each
        # object of py4j that was called is a cycle.
        gc.collect()
        with registered_views(self.spark, self.project, statement.text) as text:
            return answer(self.spark, replace(statement, text=text), limit=limit)

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
        """`schema.view` of every view and registered table that can be read, in order."""
        names = published_views(self.project)
        if names is None:
            # Start-up time: pyspark.
            from polynya.lake.read.query import view_names

            names = view_names(self.spark)
        registered = (one for task in self.project.registered for one in task.datasets())
        return sorted([*names, *(one.relations.current for one in registered)])

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
            schema, batches = answer_embedded(
                self.project, statement.text, limit=limit, guarded=self._guarded
            )
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
    limits: RowLimits = STATEMENT_LIMITS,
    guarded: Callable[[FindView], FindView] | None = None,
) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The rows of a statement as Spark would give them, over the newest commit of each table.

    Rows without an ORDER BY come in any order. At most `limit` of them. `guarded` makes of the
    views that there are those that somebody may read.

    Raises:
        NotEmbeddedError: Spark has to answer it, for this reason.
        PolynyaError: what `refuse_unusable` raises.
    """
    find: FindView = partial(embedded_view, project, _usable_views(project))
    if guarded is not None:
        find = guarded(find)
    return answer_here(statement, find, limit=limit, limits=limits)


def plan_embedded(
    project: LoadedProject,
    statement: str,
    *,
    guarded: Callable[[FindView], FindView] | None = None,
) -> dict[str, list[str]]:
    """The columns of views that the embedded engine would read to answer a statement.

    Raises as `answer_embedded`, but for what shows only when rows are read.
    """
    find: FindView = partial(embedded_view, project, _usable_views(project))
    return plan_here(statement, find if guarded is None else guarded(find))


def stream_embedded(project: LoadedProject, statement: str) -> Iterator[pa.RecordBatch]:
    """The rows of a statement as they come, over the newest commit of each table.

    Raises as `answer_embedded`, mostly before the first rows.
    """
    find = partial(embedded_view, project, _usable_views(project))
    yield from stream_here(statement, find, limits=STATEMENT_LIMITS)


def _usable_views(project: LoadedProject) -> ProjectViews:
    """The views of a project over the newest commits. Raises what `refuse_unusable` raises."""
    views, target = ProjectViews(project), project.target
    refuse_unusable(target, CATALOG, None if target.rest is not None else views.entries)
    return views


def published_views(project: LoadedProject) -> list[str] | None:
    """`schema.view` of every view that the catalog holds, in order; None where it holds none."""
    if not holds_views(project.target):
        return None
    entries = entries_of(project.target, CATALOG, {task.schema_ for task in project.tasks})
    return sorted(entry.full_name for entry in entries if entry.is_view)


def view_columns(project: LoadedProject, name: str) -> list[str]:
    """Names of the columns of a view. Raises NotEmbeddedError where only Spark can answer."""
    return list(embedded_view(project, ProjectViews(project), name).columns or ())
