"""`polynya views`: the live views as SQL for other engines."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.selection import dataset_table


class Engine(StrEnum):
    """Whose SQL."""

    DUCKDB = "duckdb"
    TRINO = "trino"


def views(dataset: str, /, *, engine: Engine = Engine.DUCKDB, context: Context) -> int:
    """Print the statements that create the live views of a dataset in another engine.

    Like the views of `polynya query` they show pending changes. Views for DuckDB read one metadata
    file: print them again to see later commits. Views for Trino read the table by its name; create
    them again when columns of the dataset change. Needs no Java.

    For example: `polynya views shop.users --engine duckdb`.

    Args:
        dataset: `schema.name`.
        engine: `duckdb` or `trino`.
        context: given by `main`.
    """
    entry, table = dataset_table(context.load(tolerant=True), dataset)
    # Start-up time: PyIceberg and sqlglot.
    from polynya.lake.read.inspect import metadata_file, shape
    from polynya.mirror.duckdb import duckdb_views
    from polynya.mirror.trino import trino_views

    known = shape(table, entry.dataset)
    made = (
        duckdb_views(entry.dataset, known, metadata_file(table))
        if engine is Engine.DUCKDB
        else trino_views(entry.dataset, known)
    )
    schema = entry.dataset.relations.schema.lower()
    if not context.output.is_json:
        context.output.result("views", {}, f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)};")
    for view in made:
        statement = _statement(schema, view.name, view.columns, view.sql, engine)
        data = {"view": f"{schema}.{view.name}", "engine": engine, "sql": statement}
        context.output.result("view", data, statement + ";")
    return ExitCode.OK


def _statement(
    schema: str, name: str, columns: Mapping[str, object], sql: str, engine: Engine
) -> str:
    # Trino has no list of names there, and knows names in lower case only.
    names = f" ({', '.join(map(_quoted, columns))})" if engine is Engine.DUCKDB else ""
    return f"CREATE OR REPLACE VIEW {_quoted(schema)}.{_quoted(name)}{names} AS {sql}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
