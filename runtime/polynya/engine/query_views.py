"""The text of a query that no table keeps, over the live views of its inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from polynya.derived.flow import compile_flow, tables_read
from polynya.derived.inputs import QueryInput, dataset_named, reads_history, views_read
from polynya.derived.schema import DerivedInput
from polynya.derived.tables import ParsedQuery, parsed_query
from polynya.engine.ledger import datasets_of
from polynya.lake.read.catalog_views import publish_query_view
from polynya.lake.read.plans import why_refused
from polynya.lake.spark import api
from polynya.lake.spark.catalog import view_catalog
from polynya.model.config.derived import DerivedQuery, DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.documents.yaml import dotted
from polynya.model.error_catalogue.derived import QUERY_INPUT_UNKNOWN, QUERY_REFUSED
from polynya.model.names import Dialect, quote_path, shown

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

#: Gives the columns of `schema.view` with their types, None where it is not there.
InputColumns: TypeAlias = "Callable[[str], Mapping[str, str] | None]"
#: What Spark calls a view or a schema that is not there.
_NOT_FOUND: Final = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


class InputMissingError(Exception):
    """A table that a query reads has no view yet; the message is its name."""


@dataclass(frozen=True, slots=True)
class ViewTranslator:
    """What writes the view of a query for engines beside Spark.

    `version` changes when the texts may. `texts` gives them by dialect, from the types of the
    inputs' columns; a dialect to which the query has no translation is missing.
    """

    version: str
    texts: Callable[[ViewQuery, InputColumns], Mapping[Dialect, str]]


def owner_of(task: DerivedTask) -> str:
    """What published views of queries say of their task."""
    return f"query-of:{task.name}"


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """The query of a view: its text, and the schema and view of each name in it.

    `is_written` says that the text is the user's own, and not made of a flow.
    """

    name: str
    parsed: ParsedQuery
    inputs: Mapping[str, tuple[str, str]]
    is_written: bool

    def sql(self, catalog: str | None) -> str:
        """Spark's SQL, each input by its quoted path; `catalog` is the first part of the paths."""
        return self.parsed.over(self._relations(catalog))

    def place(self, start: int | None) -> str | None:
        """Where a place of `sql(None)` is in the user's text; None where nothing tells."""
        if start is None or not self.is_written:
            return None
        line, column = self.parsed.place(self._relations(None), start)
        return f"line {line}, column {column} of the query"

    def _relations(self, catalog: str | None) -> dict[str, str]:
        first = () if catalog is None else (catalog,)
        return {name: quote_path(*first, *path) for name, path in self.inputs.items()}


def view_query(
    task: DerivedTask,
    name: str,
    datasets: Sequence[QueryInput],
    columns: InputColumns,
    *,
    may_grow: bool = False,
) -> ViewQuery:
    """The query of a view over the live views of its inputs.

    `datasets` are those that it may read; `columns` gives the columns of `schema.view` with their
    types, None where it is not there yet. `may_grow` says that a first run may find more datasets.

    Raises OperationError for a query that reads something else, ConfigErrors for a flow that does
    not fit its inputs, and InputMissingError.
    """
    query, where = task.query_views[name], task.view_of(name)
    text = query.text
    if query.flow:
        text = _compiled(query, where, datasets, columns)
    parsed = parsed_query(text, where)
    views = views_read(task)
    inputs = {}
    for one in parsed.names:
        path = views.get(one.lower())
        if path is None:
            dataset = dataset_named(one, datasets, where=where, may_grow=may_grow)
            if dataset is None:
                raise InputMissingError(one)
            if isinstance(dataset, RegisteredDataset):
                raise QUERY_INPUT_UNKNOWN(
                    f"the view reads {shown(one)}, a registered table, which has no live view",
                    where=where,
                    fix="write `materialize: table`",
                )
            relation = dataset.relations
            view = relation.history_view if reads_history(one, dataset) else relation.view
            path = (relation.schema, view)
        if columns(".".join(path)) is None:
            raise InputMissingError(".".join(path))
        inputs[one] = path
    return ViewQuery(where, parsed, inputs, not query.flow)


def query_in_session(
    spark: SparkSession, task: DerivedTask, name: str
) -> tuple[ViewQuery, InputColumns]:
    """The query of a view over what the catalog of the session has, and the columns of that.

    Raises as `view_query`, and what Spark has against it.
    """
    datasets: list[QueryInput] = [one for other in task.registered for one in other.datasets()]
    may_grow = False
    for read in task.reads:
        found, grows = datasets_of(spark, read)
        datasets += found
        may_grow = may_grow or grows
    catalog = view_catalog(spark)

    def columns(view: str) -> Mapping[str, str] | None:
        path = quote_path(catalog, *view.split("."))
        try:
            fields = spark.table(path).schema.fields
        except api.PySparkException as error:
            # `tableExists` knows of no views of a catalog.
            if (error.getCondition() or "").startswith(_NOT_FOUND):
                return None
            raise
        return {one.name: one.dataType.simpleString() for one in fields}

    return view_query(task, name, datasets, columns, may_grow=may_grow), columns


def publish_view(
    spark: SparkSession, task: DerivedTask, name: str, translate: ViewTranslator | None = None
) -> bool:
    """Create or replace a view in the catalog of the session; whether it was changed.

    `translate` writes it for other engines, too.

    Raises as `query_in_session`, and OperationError for a query that does not only read its inputs.
    """
    query, columns = query_in_session(spark, task, name)
    sql = query.sql(view_catalog(spark))
    refused = why_refused(spark, sql)
    if refused is not None:
        raise QUERY_REFUSED(
            where=task.view_of(name),
            reason=refused,
            fix="a query only computes from the tables of its transform",
        )
    version, texts = "", dict[Dialect, str]()
    if translate is not None:
        texts |= translate.texts(query, columns)
        # A type of an input may change a text, and no column of the view.
        digest = hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:16]
        version = f"{translate.version}, {digest}"
    view = f"{task.prefix}{name}"
    return publish_query_view(
        spark, task.schema_, view, sql, owner_of(task), version=version, others=texts
    )


def _compiled(
    query: DerivedQuery,
    where: str,
    datasets: Sequence[QueryInput],
    columns: InputColumns,
) -> str:
    named = tables_read(query.flow)
    names = list(named or [one.relations.current for one in datasets[:1]])
    inputs = {}
    for one in names:
        dataset = dataset_named(one, datasets, where=where, may_grow=True, in_flow=True)
        known = None if dataset is None else columns(dataset.relations.current)
        if known is None:
            raise InputMissingError(one)
        inputs[one] = DerivedInput(one, dict(known), ())
    return compile_flow(
        query.flow, inputs, lambda path: f"{where}: {dotted((*query.path, *path))}"
    ).sql
