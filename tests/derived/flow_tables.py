"""Flows over small tables: compiled, and run by DuckDB, which shares no code with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import sqlglot
from pydantic import ValidationError
from sqlglot import exp

from polynya.derived.flow import CompiledFlow, compile_flow
from polynya.derived.schema import DerivedInput
from polynya.model.config.fields import Frozen
from polynya.model.config.flow import Flow
from polynya.model.documents.problems import located, shape_problems
from polynya.model.documents.references import plain_value
from polynya.model.documents.yaml import NodePath, position_of, read_document
from polynya.model.errors import ConfigErrors
from polynya.model.names import Dialect

FILE = "tasks/flow.yml"
_TYPES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "array<string>": "VARCHAR[]"}


class WithFlow(Frozen):
    """A document with a flow."""

    flow: Flow


@dataclass(frozen=True)
class Table:
    """A table with rows: `columns` are names and Spark's types."""

    columns: Mapping[str, str]
    rows: Sequence[tuple[Any, ...]] = ()
    keys: tuple[str, ...] = field(default=())


def flow_of(text: str, tables: Mapping[str, Table]) -> CompiledFlow:
    """Compile a YAML document with `flow:`; raises ConfigErrors with the places in it."""
    root, faults = read_document(text, FILE)
    assert not faults
    value, _ = plain_value(root, {})
    try:
        steps = WithFlow.model_validate(value).flow
    except ValidationError as error:
        problems = located(shape_problems(error, WithFlow, value), root, FILE)
        raise ConfigErrors(problems) from None
    inputs = {name: DerivedInput(name, table.columns, table.keys) for name, table in tables.items()}

    def where(path: NodePath) -> str:
        position = position_of(root, ("flow", *path))
        return f"{FILE}:{position.line}:{position.column}"

    return compile_flow(steps, inputs, where)


def errors_of(text: str, tables: Mapping[str, Table]) -> list[str]:
    """What is wrong with a document, each as `code place: message; fix`."""
    try:
        flow_of(text, tables)
    except ConfigErrors as errors:
        return [f"{error.code.removeprefix('POLYNYA-')} {error}" for error in errors.errors]
    return []


def rows_of(text: str, tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    """The rows of a flow, sorted; NULL after everything else."""
    return answered(flow_of(text, tables).sql, tables)


@cache
def _session() -> duckdb.DuckDBPyConnection:
    """One for all tests: to open one takes longer than a query."""
    return duckdb.connect(config={"threads": 1})


def answered(sql: str, tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    """The rows of a query in Spark's SQL, as DuckDB answers it."""
    session = _session()
    for name, table in tables.items():
        schema, _, _ = name.rpartition(".")
        path = Dialect.DUCKDB.quote(*name.split("."))
        columns = ", ".join(
            f"{Dialect.DUCKDB.quote(column)} {_TYPES.get(kind, kind)}"
            for column, kind in table.columns.items()
        )
        if schema:
            session.execute(f"CREATE SCHEMA IF NOT EXISTS {Dialect.DUCKDB.quote(schema)}")
        session.execute(f"CREATE OR REPLACE TABLE {path} ({columns})")
        if table.rows:
            row = f"({', '.join('?' * len(table.columns))})"
            values = [value for one in table.rows for value in one]
            rows = ", ".join([row] * len(table.rows))
            session.execute(f"INSERT INTO {path} VALUES {rows}", values)
    found = session.execute(for_duckdb(sql)).fetchall()
    return sorted(found, key=lambda row: [(value is None, str(value)) for value in row])


@cache
def for_duckdb(sql: str) -> str:
    """A query in the SQL of DuckDB."""
    tree = sqlglot.parse_one(sql, read="spark")
    for view in tree.find_all(exp.Lateral):
        if view.args.pop("outer", None):
            # Its generator forgets OUTER: one row for what is empty.
            array = view.this.this
            some = exp.Case().when(exp.ArraySize(this=array.copy()) > 0, array.copy())
            array.replace(some.else_(exp.Array(expressions=[exp.null()])))
    return tree.sql(dialect="duckdb")
