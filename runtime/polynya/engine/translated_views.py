"""The views of queries for engines beside Spark: what they read there, and by which names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from polynya.engine.project_views import ProjectViews, query_of_view
from polynya.engine.query_views import InputMissingError, ViewQuery, ViewTranslator
from polynya.model.config.derived import DerivedTask
from polynya.model.error_catalogue.operation import QUERY_VIEW_NOT_TRANSLATED
from polynya.model.errors import OperationError
from polynya.model.loader import LoadedProject
from polynya.model.names import Dialect
from polynya.model.types import DataType, parse_type
from polynya.query.dialects import READERS, EngineView
from polynya.query.embedded import columns_here
from polynya.query.query_views import ViewInput, query_view_in
from polynya.query.translate import NotEmbeddedError
from polynya.query.warehouses import is_nested


def query_views_of(project: LoadedProject) -> Iterator[tuple[DerivedTask, str]]:
    """Every query of a project that no table keeps: inputs before what reads them."""
    derived = [task for task in project.tasks if isinstance(task, DerivedTask)]
    for task in sorted(derived, key=lambda one: one.depth):
        for name in task.query_views:
            yield task, name


def project_view_in(
    dialect: Dialect, views: ProjectViews, task: DerivedTask, name: str, catalog: str | None
) -> EngineView:
    """The view of a query in the SQL of an engine, over the views that `views_in` writes for it.

    `catalog` is the first part of the paths of these views; default: none.

    Raises:
        OperationError: the engine does not have it (POLYNYA-VIEW-005).
        ConfigErrors: a flow does not fit its inputs.
    """
    where = task.view_of(name)
    try:
        query = query_of_view(views, task, name)
        if dialect is Dialect.SPARK:
            text = query.sql(catalog)
            return EngineView(
                f"{task.prefix}{name}", columns_here(query.sql(None), views.any), text, {}
            )
    except InputMissingError as error:
        raise _refused(dialect, where, f"the view {error} is not there yet", None) from error
    except NotEmbeddedError as error:
        raise _refused(dialect, where, str(error), None) from error
    return view_in(dialect, query, lambda one: views.any(one).columns, catalog)


def columns_in(
    dialect: Dialect, views: ProjectViews, task: DerivedTask, name: str
) -> Mapping[str, DataType]:
    """The columns of the view of a query, by Spark's names, for an engine that has it.

    Raises as `project_view_in`.
    """
    made = project_view_in(Dialect.SPARK, views, task, name, None)
    if dialect is not Dialect.DUCKDB:
        project_view_in(dialect, views, task, name, None)
    return made.columns


def view_in(
    dialect: Dialect,
    query: ViewQuery,
    columns: Callable[[str], Mapping[str, DataType] | None],
    catalog: str | None = None,
    *,
    in_catalog: bool = False,
) -> EngineView:
    """The view of a query in the SQL of an engine.

    `columns` gives the columns of `schema.view` with their types, as Spark has them. `in_catalog`
    says that the views which it reads are those of the catalog, and not printed ones: DuckDB looks
    these up as they are written.

    Raises OperationError where the engine might show other rows than Spark (POLYNYA-VIEW-005).
    """
    is_lower = dialect is Dialect.DUCKDB and not in_catalog

    def read(name: str) -> ViewInput:
        known = columns(name)
        if known is None:
            raise NotEmbeddedError(f"the view {name}, which is not there yet")
        if dialect is Dialect.REDSHIFT:
            # Its live views have none of these.
            known = {one: kind for one, kind in known.items() if not is_nested(kind)}
        path = [one.lower() if is_lower else dialect.fold(one) for one in name.split(".")]
        return ViewInput(dialect.quote(*filter(None, (catalog, *path))), known)

    _, _, name = query.name.partition(".")
    try:
        return query_view_in(dialect, name, query.sql(None), read)
    except NotEmbeddedError as error:
        raise _refused(dialect, query.name, str(error), query.place(error.start)) from error


def texts_of(
    query: ViewQuery,
    columns: Callable[[str], Mapping[str, DataType] | None],
    *,
    for_trino: str | None = None,
) -> dict[Dialect, str]:
    """The texts of an Iceberg view beside Spark's, as `representations` gives them."""
    made = {}
    for dialect in READERS:
        catalog = for_trino if dialect is Dialect.TRINO else None
        try:
            made[dialect] = view_in(dialect, query, columns, catalog, in_catalog=True).sql
        except OperationError:
            # Other engines say that the view has no text for them; `polynya views` says why.
            continue
    return made


def _refused(dialect: Dialect, view: str, reason: str, place: str | None) -> OperationError:
    at = "" if place is None else f" ({place})"
    return QUERY_VIEW_NOT_TRANSLATED(where=view, view=view, engine=dialect, reason=f"{reason}{at}")


def view_translator(version: str) -> ViewTranslator:
    """What writes the texts of views for the catalog."""
    return ViewTranslator(
        version, lambda query, columns: texts_of(query, partial(typed_columns, columns))
    )


def typed_columns(
    columns: Callable[[str], Mapping[str, str] | None], name: str
) -> dict[str, DataType] | None:
    """Columns with their types, from Spark's text of these."""
    known = columns(name)
    try:
        return None if known is None else {one: parse_type(kind) for one, kind in known.items()}
    except ValueError as error:
        raise NotEmbeddedError(f"the type of a column of {name}") from error
