"""The views of a dataset in the SQL of each engine, made from their one text in Spark's SQL.

sqlglot translates most of it and raises where it knows of no translation; what it would translate
to something else has a line of its own in `query/views.py` (Trino, Athena, DuckDB) or
`query/warehouses.py` (Snowflake, Redshift). Databricks reads that text as it is. Spark has another
one where it can tell rows by their places in files. A user's query has a stricter translation
(`query/query_views.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError, UnsupportedError

from polynya.lake.fold.live_views import HEADER_TYPES, columns_of, definitions, spark_views
from polynya.lake.fold.shape import Shape
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.operation import VIEW_NOT_TRANSLATED
from polynya.model.errors import OperationError
from polynya.model.names import Dialect, quote
from polynya.model.promotion import storage_type
from polynya.model.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from polynya.query.views import duckdb_sql, duckdb_type, shown_type, trino_sql, trino_type
from polynya.query.warehouses import (
    REDSHIFT,
    SNOWFLAKE,
    in_warehouse,
    is_nested,
    redshift_type,
    snowflake_type,
)


@dataclass(frozen=True, slots=True)
class EngineView:
    """A view in the SQL of one engine.

    `columns` are its columns, as it names them, with their types and in their order. `left_out` are
    columns of the dataset that the engine's views cannot show.
    """

    name: str
    columns: Mapping[str, DataType]
    sql: str
    left_out: Mapping[str, DataType]


_TYPES: Final[Mapping[Dialect, Callable[[DataType], str]]] = {
    Dialect.SPARK: str,
    Dialect.TRINO: trino_type,
    Dialect.ATHENA: shown_type,
    Dialect.DUCKDB: duckdb_type,
    Dialect.SNOWFLAKE: snowflake_type,
    Dialect.REDSHIFT: redshift_type,
    Dialect.DATABRICKS: str,
}

#: What the table is called in a text that is about to be translated.
_TABLE: Final = "__table"


def views_in(
    dialect: Dialect,
    dataset: ResolvedDataset,
    shape: Shape,
    table: str,
    *,
    settled: bool = False,
) -> list[EngineView]:
    """The views of a dataset as an engine reads them; `settled` where nothing is pending.

    `table` is the internal table's place in the engine, already quoted; for DuckDB it may be a call
    such as `iceberg_scan('…')`. Views and their columns are called as `Dialect.fold` has it, so
    that queries need no quotes.

    Raises:
        OperationError: the SQL has no translation (POLYNYA-VIEW-004).
    """
    if dialect in {Dialect.SPARK, Dialect.DATABRICKS}:
        # Databricks reads Spark's SQL, but knows no places of Iceberg's rows.
        made = spark_views if dialect is Dialect.SPARK else definitions
        return [
            EngineView(name, columns_of(dataset, shape, name) or {}, sql, {})
            for name, sql in made(dataset, shape, table, settled=settled).items()
        ]
    try:
        left_out = _left_out(dialect, shape)
        known = _without(shape, left_out)
        return [
            EngineView(*_translated(dialect, name, sql, known, table), left_out)
            for name, sql in definitions(dataset, known, quote(_TABLE), settled=settled).items()
        ]
    except SqlglotError as error:
        raise VIEW_NOT_TRANSLATED(
            where=dataset.relations.current,
            relation=dataset.relations.current,
            engine=dialect,
            reason=error,
        ) from error


#: The dialects that readers of Iceberg views look for, beside Spark's.
READERS: Final = (Dialect.TRINO, Dialect.DUCKDB)


def representations(
    dataset: ResolvedDataset,
    shape: Shape,
    *,
    for_trino: str | None = None,
    settled: bool = False,
) -> dict[str, dict[Dialect, str]]:
    """The texts of an Iceberg view beside Spark's: name of the view → dialect → SQL.

    They read the internal table by schema and name, in the catalog of the view; `for_trino` names
    it for Trino, which finds no table by such a name if the view has no default catalog. A dialect
    to which the dataset has no translation is missing.
    """
    schema, name = dataset.relations.internal_schema, dataset.relations.internal_table
    names = definitions(dataset, shape, "")
    texts: dict[str, dict[Dialect, str]] = {view: {} for view in names}
    for dialect in READERS:
        catalog = for_trino if dialect is Dialect.TRINO else None
        path = filter(None, (catalog, dialect.fold(schema), dialect.fold(name)))
        table = dialect.quote(*path)
        try:
            views = views_in(dialect, dataset, shape, table, settled=settled)
        except OperationError:
            # Other engines say that the view has no text for them; `polynya views` says why.
            continue
        for view, made in zip(names, views, strict=True):
            texts[view][dialect] = made.sql
    return texts


def create_view(dialect: Dialect, place: str, view: EngineView) -> str:
    """The statement that makes a view at an already quoted place, without a semicolon."""
    # DuckDB takes the names of the columns here; the texts of the others have them.
    names = ", ".join(map(dialect.quote, view.columns))
    listed = f" ({names})" if dialect is Dialect.DUCKDB else ""
    # A view over a table of an external schema has to be bound late.
    bound = " WITH NO SCHEMA BINDING" if dialect is Dialect.REDSHIFT else ""
    return f"CREATE OR REPLACE VIEW {place}{listed} AS {view.sql}{bound}"


def type_in(dialect: Dialect, datatype: DataType) -> str:
    """The type of a shown column in the SQL of an engine."""
    return _TYPES[dialect](datatype)


def _left_out(dialect: Dialect, shape: Shape) -> dict[str, DataType]:
    """Columns that views of the engine cannot show. Raises UnsupportedError if others need them."""
    if dialect is not Dialect.REDSHIFT:
        return {}
    nested = {name: kind for name, kind in shape.columns.items() if is_nested(kind)}
    tells = nested and (shape.coalesce or shape.looks)
    if tells or nested.keys() & {*shape.keys}:
        raise UnsupportedError(
            "Redshift's views show no structs, lists or maps, and the versions of this dataset are "
            f"told apart by {', '.join(nested)}"
        )
    return nested


def _without(shape: Shape, columns: Mapping[str, DataType]) -> Shape:
    kept = {name: kind for name, kind in shape.columns.items() if name not in columns}
    partial = tuple(name for name in shape.partial if name in kept)
    return replace(shape, columns=kept, partial=partial, bridged=shape.bridged - columns.keys())


def _translated(
    dialect: Dialect, name: str, spark: str, shape: Shape, table: str
) -> tuple[str, Mapping[str, DataType], str]:
    """Name, columns and text of a view. Raises SqlglotError."""
    tree = sqlglot.parse_one(spark, read="spark")
    assert isinstance(tree, exp.Query)
    columns = {
        column: storage_type(shape.columns.get(column) or HEADER_TYPES[column])
        for column in tree.named_selects
    }
    _compare_in_utc(tree, shape)
    match dialect:
        case Dialect.DUCKDB:
            athena = _shown(Dialect.ATHENA, columns, trino_sql(tree, shape))
            return name.lower(), columns, duckdb_sql(athena, _TABLE, _as_it_is(table))
        case Dialect.SNOWFLAKE | Dialect.REDSHIFT:
            warehouse = SNOWFLAKE if dialect is Dialect.SNOWFLAKE else REDSHIFT
            text = in_warehouse(warehouse, _placed(tree, table), shape)
        case _:
            text = trino_sql(_placed(tree, table), shape)
    shown = {dialect.fold(column): kind for column, kind in columns.items()}
    if len(shown) < len(columns):
        raise UnsupportedError(f"two columns whose names differ in case only, of {list(columns)}")
    return dialect.fold(name), shown, _shown(dialect, columns, text)


def _compare_in_utc(tree: exp.Query, shape: Shape) -> None:
    """Compare the age of a date or of a time without a zone in UTC, whatever zone a session has."""
    if shape.expired is None or shape.columns[shape.expired[0]] not in {DATE, TIMESTAMP_NTZ}:
        return
    for older in list(tree.find_all(exp.LT)):
        age, before = older.this, older.expression
        if isinstance(age, exp.Cast) and age.this.name == shape.expired[0]:
            time = exp.Literal.string(before.this.name.removesuffix("+00:00"))
            for side, value in (("this", age.this), ("expression", time)):
                older.set(side, exp.cast(value, exp.DataType.Type.TIMESTAMPNTZ))


def _placed(tree: exp.Query, table: str) -> exp.Query:
    """The tree with the place of the table, which is not parsed."""
    for node in list(tree.find_all(exp.Table)):
        if node.name == _TABLE:
            node.set("this", exp.Var(this=table))
    return tree


def _shown(dialect: Dialect, columns: Mapping[str, DataType], text: str) -> str:
    """The rows of a text, with columns as the engine's views have them."""
    shown = []
    for name, kind in columns.items():
        column = dialect.quote(name)
        if dialect is Dialect.ATHENA and kind == TIMESTAMP:
            # Athena's views hold no time zone at the top.
            column = f"CAST({column} AT TIME ZONE 'UTC' AS timestamp(6))"
        shown.append(f"{column} AS {dialect.quote(dialect.fold(name))}")
    # Redshift wants an alias there.
    return f"SELECT {', '.join(shown)} FROM (\n{text}\n) AS {dialect.quote('__shown')}"


def _as_it_is(table: str) -> str:
    """The rows of a table for DuckDB, which finds files by `hdr__partition` only.

    DuckDB 1.4 skips files without statistics of a column that has to be NULL, so that conditions on
    other columns must not reach its scan. It takes conditions through no expression.
    """
    others = f"COLUMNS(* EXCLUDE ({h.PARTITION}))"
    return f"(SELECT {h.PARTITION}, CASE WHEN {h.PARTITION} <> '' THEN {others} END FROM {table})"
