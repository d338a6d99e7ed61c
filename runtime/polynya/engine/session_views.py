"""Live views where the catalog cannot hold them, and registered tables, in a session."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import uuid4

from polynya.derived.tables import parsed_query
from polynya.engine.inventory import inventory
from polynya.engine.query_views import InputMissingError, publish_view
from polynya.lake.iceberg.layout import create_namespaces
from polynya.lake.read.catalog_views import create_views
from polynya.lake.read.inspect import shape
from polynya.lake.read.registered import reader_of
from polynya.lake.spark.api import Py4JError, PySparkException, SparkSession
from polynya.lake.spark.catalog import python_catalog, view_catalog
from polynya.model.config.derived import DerivedTask
from polynya.model.errors import OperationError, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import quote, quote_path

log = logging.getLogger(__name__)


def make_views(spark: SparkSession, project: LoadedProject, statements: str) -> None:
    """Make the views that the statements may name, from the states of their tables."""
    text, everything = statements.lower(), _lists(statements)
    _make_live_views(spark, project, statements)
    # A view may read those of the tasks below.
    derived = [task for task in project.tasks if isinstance(task, DerivedTask)]
    for task in sorted(derived, key=lambda one: one.depth, reverse=True):
        for name, query in task.query_views.items():
            if everything or name.lower() in text:
                text += f"\n{query.text.lower()}"
    for task in sorted(derived, key=lambda one: one.depth):
        for name, query in task.query_views.items():
            if everything or name.lower() in text:
                # The views of its inputs first; a flow need not name them.
                _make_live_views(spark, project, query.text or "SHOW VIEWS")
                _publish_if_possible(spark, task, name)


def _lists(statements: str) -> bool:
    """Whether statements list views or describe schemas, and so name none of them."""
    return statements.lower().lstrip().startswith(("show", "desc"))


def _make_live_views(spark: SparkSession, project: LoadedProject, statements: str) -> None:
    text, everything = statements.lower(), _lists(statements)
    for entry in inventory(project, python_catalog(project.target)):
        named = everything or entry.dataset.relations.view.lower() in text
        if entry.table is None or entry.is_ledger or not named:
            continue
        current = shape(entry.table, entry.dataset)
        if current.data:
            schema = quote_path(view_catalog(spark), entry.dataset.relations.schema)
            create_namespaces(spark, (schema,))
            create_views(spark, entry.dataset, current)


def _publish_if_possible(spark: SparkSession, task: DerivedTask, name: str) -> None:
    """Make the view of a query; a statement that needs one that cannot be made says so itself."""
    try:
        publish_view(spark, task, name)
    except (InputMissingError, PolynyaError, PySparkException, Py4JError) as error:
        log.warning("the view %s: %s", task.view_of(name), error)


@contextmanager
def registered_views(spark: SparkSession, project: LoadedProject, text: str) -> Iterator[str]:
    """The statement over temporary views of the registered tables that it names.

    Each shows the newest version of its table. The views are gone at the end of the block; a frame
    that was made in it stays valid. Raises OperationError for a table that cannot be read.
    """
    known = {
        dataset.relations.current.lower(): dataset
        for task in project.registered
        for dataset in task.datasets()
        if dataset.relations.view.lower() in text.lower()
    }
    try:
        query = parsed_query(text, "the statement") if known else None
    except OperationError:
        # Spark says what is wrong with it; what describes or lists names no registered table.
        query = None
    named = [] if query is None else [one for one in query.tables if one.name.lower() in known]
    if query is None or not named:
        yield text
        return
    made: dict[str, str] = {}
    try:
        for name in dict.fromkeys(table.name for table in named):
            reader = reader_of(spark, known[name.lower()], project.target.aws)
            rows = reader.rows(reader.newest())
            made[name] = f"registered_{uuid4().hex}"
            rows.createTempView(made[name])
        relations = {name: quote(view) for name, view in made.items()}
        yield replace(query, tables=tuple(named)).over(relations)
    finally:
        for view in made.values():
            spark.catalog.dropTempView(view)
