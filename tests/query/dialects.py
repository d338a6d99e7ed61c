"""Run the views of any engine in DuckDB: sqlglot translates them, whatever their dialect."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from polynya.lake.fold.shape import Shape
from polynya.model.names import Dialect
from polynya.query.views import trino_sql


def shown_in(
    dialect: Dialect, text: str, shape: Shape, stored: pa.Table, schema: str = "s"
) -> list[tuple[Any, ...]]:
    """Rows of a view whose table is `schema.stored`."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", stored)
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.stored AS FROM rows")
        cursor = connection.execute(in_duckdb(dialect, text, shape))
        return [tuple(row.values()) for row in cursor.fetch_arrow_table().to_pylist()]


def rows_in(dialect: Dialect, text: str, shape: Shape, stored: pa.Table) -> list[tuple[Any, ...]]:
    """The same in one order, with values that can be compared between engines."""
    return ordered(shown_in(dialect, text, shape, stored))


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in one order, with values that can be compared between engines."""
    return sorted((tuple(map(comparable, row)) for row in rows), key=repr)


def in_duckdb(dialect: Dialect, text: str, shape: Shape) -> str:
    """A view in DuckDB's SQL."""
    if dialect is Dialect.DUCKDB:
        return text
    tree = sqlglot.parse_one(text, read=dialect)
    if dialect is Dialect.DATABRICKS:
        # It has the same functions as Spark, for some of which DuckDB has none.
        tree = sqlglot.parse_one(trino_sql(tree, shape), read="trino")
    return tree.transform(_binary_hash).sql("duckdb")


def _binary_hash(node: exp.Expr) -> exp.Expr:
    """DuckDB's `sha1` gives the hash as text."""
    if isinstance(node, exp.SHA1Digest):
        return exp.Unhex(this=exp.SHA(this=node.this.copy()))
    if isinstance(node, exp.Anonymous) and node.name.upper() == "FROM_HEX":
        return exp.Unhex(this=node.expressions[0].copy())
    if isinstance(node, exp.Unhex):
        return node
    if isinstance(node, exp.SHA) and not isinstance(node.parent, exp.Unhex):
        return exp.Unhex(this=node.copy())
    return node


def comparable(value: Any) -> Any:
    """Some views show instants as times of UTC without a zone; maps and fields have no order."""
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, dict):
        return sorted((key, comparable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return sorted((key, comparable(inner)) for key, inner in value)
        return [comparable(one) for one in value]
    return bytes(value) if isinstance(value, bytearray | memoryview) else value
