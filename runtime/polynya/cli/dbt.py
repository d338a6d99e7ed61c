"""`polynya dbt`: the live views as sources of a dbt project."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from polynya.cli.context import CommandContext, Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.model.config.fields import parse_duration
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import PolynyaError
from polynya.model.names import Dialect
from polynya.query.dbt_sources import DbtView, Staleness, query_table, source_of, source_tables

app = command_group("dbt", "The live views as sources of a dbt project.")
_HEAD = "# Written by `polynya dbt sources`; write it again after columns or keys change.\n"


@app.command
def sources(
    *,
    engine: Dialect = Dialect.DUCKDB,
    out: Path | None = None,
    warn_after: str | None = None,
    error_after: str | None = None,
    context: Context,
) -> int:
    """Print a `sources.yml` with the live views of all tables of the project.

    Each view has its columns with types in the SQL of the engine. Keys of Current get tests:
    `not_null`, and `unique` if the key is one column. The same tables give the same text. Names
    that dbt would run as a template are left out with a warning. Needs no Java.

    For example: `polynya dbt sources --engine trino --out dbt/models/sources.yml`.

    Args:
        engine: on which dbt runs, `duckdb` (default), `athena`, `databricks`, `redshift`,
            `snowflake`, `spark` or `trino`.
        out: the file to write; default: print it.
        warn_after: age of the newest row from which `dbt source freshness` warns, such as `2h`, in
            views with `hdr__from_timestamp` or `hdr__timestamp`; default: it does not.
        error_after: the same for its errors.
    """
    project = context.load(tolerant=True)
    # Start-up time: PyIceberg.
    from polynya.engine.inventory import inventory
    from polynya.engine.project_views import ProjectViews
    from polynya.engine.translated_views import columns_in, query_views_of
    from polynya.lake.read.inspect import shape
    from polynya.lake.spark.catalog import python_catalog

    staleness = Staleness(_age("--warn-after", warn_after), _age("--error-after", error_after))
    schemas: dict[str, list[dict[str, Any]]] = {}
    for entry in inventory(project, python_catalog(project.target)):
        if entry.table is None or entry.is_ledger:
            continue
        made = source_tables(entry.dataset, shape(entry.table, entry.dataset), engine, staleness)
        for table in made:
            _take(context, schemas, entry.dataset.relations.schema, table)
    views = ProjectViews(project)
    for task, name in query_views_of(project):
        try:
            columns = columns_in(engine, views, task, name)
        except PolynyaError as error:
            context.output.warning(f"left out: the view {task.view_of(name)}: {error.message}")
            continue
        made_view = query_table(task.view_of(name), columns, engine)
        _take(context, schemas, task.schema_, made_view)
    found = [
        source_of(schema, project.project.name, sorted(tables, key=lambda one: str(one["name"])))
        for schema, tables in sorted(schemas.items())
    ]
    text = _yaml({"version": 2, "sources": found})
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    count = sum(len(tables) for tables in schemas.values())
    data = {"sources": found, "file": None if out is None else str(out)}
    said = text.rstrip("\n") if out is None else f"{out}: {count} views as sources"
    context.output.result("dbt.sources", data, said)
    return ExitCode.OK


def _take(
    context: CommandContext, schemas: dict[str, list[dict[str, Any]]], schema: str, table: DbtView
) -> None:
    """Add a table to the source of its schema, and say what is left out of it."""
    for what in table.left_out:
        context.output.warning(f"left out: {what}")
    if table.document:
        schemas.setdefault(schema, []).append(table.document)


def _age(option: str, text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise WRONG_USAGE(f"`{option}`: {error}", fix="such as `30m`, `2h` or `1d`") from error


def _yaml(document: dict[str, Any]) -> str:
    # Start-up time.
    from io import StringIO

    from ruamel.yaml import YAML

    writer = YAML(typ="rt")
    writer.width = 100
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    writer.dump(document, stream)
    return _HEAD + stream.getvalue()
