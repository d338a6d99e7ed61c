"""Queries that no table keeps: each is a view of the catalog over the live views of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from polynya.engine.context import EngineContext
from polynya.engine.query_views import InputMissingError, owner_of, publish_view, query_in_session
from polynya.engine.unit import IDLE, StepResult, TimeSlice
from polynya.lake.errors import machine_error
from polynya.lake.read.catalog_views import drop_views, query_views
from polynya.lake.spark.api import Py4JError, PySparkException
from polynya.lake.spark.catalog import internal_path
from polynya.model.config.derived import DerivedTask
from polynya.model.config.settings import Dataset
from polynya.model.config.task import resolved
from polynya.model.error_catalogue.derived import QUERY_REFUSED, VIEW_HAS_TABLE
from polynya.model.errors import PolynyaError
from polynya.model.names import Dialect, shown
from polynya.observe.engine import DerivedTableWaits, ViewsFailed, ViewsPublished

if TYPE_CHECKING:
    from polynya.query.dialects import EngineView

#: Seconds between two looks at the columns of the inputs: Spark analyses the query at each.
_PAUSE_SECONDS: Final = 30.0
#: The same while an input is missing.
_WAIT_SECONDS: Final = 1.0


class QueryViewUnit:
    """Keeps one view up to date with its query and the columns of its inputs."""

    def __init__(self, context: EngineContext, task: DerivedTask, name: str) -> None:
        self._context, self._task, self._view = context, task, name
        self._name = task.view_of(name)
        self._next_look = float("-inf")
        self._is_first = True

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Publish the view where it is not as its query says."""
        now = self._context.clock.monotonic()
        if now >= self._next_look:
            self._next_look = now + self._look()
        if time_slice.at_once:
            return IDLE
        return StepResult(wait_seconds=max(0.0, self._next_look - now))

    def _look(self) -> float:
        """Publish the view; seconds until the next look."""
        try:
            if self._is_first:
                self._refuse_table()
                self._drop_others()
                self._is_first = False
            self._publish()
        except InputMissingError as error:
            if self._context.is_news(f"{self._name} waits", str(error)):
                self._context.sink(DerivedTableWaits(subject=self._name, table=str(error)))
            return _WAIT_SECONDS
        except (PySparkException, Py4JError) as error:
            raise self._refused(error) from error
        return _PAUSE_SECONDS

    def _publish(self) -> None:
        spark, hooks = self._context.spark, self._context.hooks
        # Start-up time: sqlglot.
        from polynya.engine.translated_views import view_translator

        others = hooks.other_dialects
        translate = None if others is None else view_translator(others.version)
        if publish_view(spark, self._task, self._view, translate):
            self._context.sink(ViewsPublished(subject=self._name, views=(self._name,)))
        if hooks.publish_query_view is not None:
            self._publish_elsewhere(hooks.publish_query_view)

    def _publish_elsewhere(self, publish: Callable[[EngineView, str], bool]) -> None:
        """Publish the view for other engines; a failure is reported once and stops nothing."""
        # Start-up time: sqlglot.
        from polynya.engine.translated_views import typed_columns, view_in

        query, columns = query_in_session(self._context.spark, self._task, self._view)
        try:
            view = view_in(Dialect.ATHENA, query, partial(typed_columns, columns))
            changed = publish(view, self._task.schema_)
        except PolynyaError as error:
            if self._context.is_news(f"{self._name} has views", error.message):
                self._context.sink(ViewsFailed(subject=self._name, error=error))
            return
        if changed:
            self._context.sink(ViewsPublished(subject=self._name, views=(self._name,)))

    def _refuse_table(self) -> None:
        """Raise OperationError for a table of this name: nobody would keep its rows any more."""
        spark = self._context.spark
        dataset = resolved(self._task, Dataset(name=self._view, mode="append_only"))
        if spark.catalog.tableExists(internal_path(spark, dataset)):
            raise VIEW_HAS_TABLE(where=self._name, table=shown(dataset.relations.internal))

    def _drop_others(self) -> None:
        """Drop the views of this task that its file no longer has."""
        task, spark = self._task, self._context.spark
        own = {f"{task.prefix}{name}".lower() for name in task.query_views}
        for dataset in task.datasets:
            own |= {view.lower() for view in resolved(task, dataset).relations.views}
        gone = query_views(spark, task.schema_, owner_of(task), own)
        drop_views(spark, [f"{task.schema_}.{name}" for name in gone])

    def _refused(self, error: PySparkException | Py4JError) -> PolynyaError:
        fault = machine_error(error)
        if fault is not None:
            return fault
        return QUERY_REFUSED(
            where=self._name,
            reason=str(error).strip().splitlines()[0][:500],
            fix="correct the query; `polynya query` answers the same SQL",
        )
