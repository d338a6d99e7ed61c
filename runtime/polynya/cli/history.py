"""`polynya history`, `verify`, `locate` and `views`: looking into the tables of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from rich.table import Table

from polynya.cli.context import Context, dataset_table
from polynya.cli.exit_codes import ExitCode
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.names import quote_path


def verify(dataset: str | None = None, /, *, context: Context) -> int:
    """Check every table, or one, against the rules that must always hold.

    A record is in Current at most once and nothing newer is in Prior; the versions of a record
    neither overlap nor leave holes; keys match their hashes; every file of the snapshot exists;
    the row accounting adds up. If events are kept (`changes_retention`), the versions equal the
    fold of their events, row by row. Reads one snapshot of each table and writes nothing. Exit code
    1 when a rule does not hold.

    For example: `polynya verify shop.users`.

    Args:
        dataset: `schema.name`. Default: all.
    """
    # Start-up time: pyspark.
    from polynya.engine.inventory import inventory
    from polynya.engine.session import start_spark
    from polynya.lake.read.verify import verify as verify_table
    from polynya.lake.spark.catalog import python_catalog
    from polynya.lake.table.dataset import DatasetTable
    from polynya.lake.warehouse.readers import reading

    project = context.load(tolerant=True)
    entries = [
        entry
        for entry in inventory(project, python_catalog(project.target))
        if entry.table is not None and dataset in (None, entry.name)
    ]
    if dataset is not None and not entries:
        raise WRONG_USAGE(f"there is no table of `{dataset}`", fix="`polynya status` lists them")
    with context.starting(project):
        spark = start_spark(project)
    healthy = True
    for entry in entries:
        with reading(project):
            verdict = verify_table(DatasetTable.existing(spark, entry.dataset))
        findings = verdict.findings
        healthy = healthy and not findings
        data = {
            "dataset": entry.name,
            "ok": not findings,
            "rules": verdict.rules,
            "findings": [asdict(finding) for finding in findings],
            "unchecked": verdict.unchecked,
        }
        state = "sound" if not findings else "BROKEN"
        lines = [f"{entry.name}: {state}, {len(verdict.rules)} rules"]
        lines += [
            f"  {finding.rule}: not true that {finding.says}: {finding.count:,}, "
            f"for example {finding.example}"
            for finding in findings
        ]
        lines += [f"  not checked: {text}" for text in verdict.unchecked]
        context.output.result("dataset.verified", data, "\n".join(lines))
    return ExitCode.OK if healthy else ExitCode.FAILED


def history(dataset: str, /, *key: str, context: Context) -> int:
    """Show every version of one record, oldest first, and its events.

    Events are pending or kept; `hdr__store` says which.

    For example: `polynya history shop.users userId=123`.

    Args:
        dataset: `schema.name`.
        key: one `column=value` for each key column.
    """
    # Start-up time: pyspark.
    from polynya.engine.session import start_reader
    from polynya.lake.read.inspect import conditions, has_view, versions_and_events
    from polynya.lake.warehouse.readers import reading

    schema, _, name = dataset.partition(".")
    if not name:
        raise WRONG_USAGE(f"`{dataset}` is not `schema.name`")
    pairs = dict(_pair(text) for text in key)
    if not pairs:
        raise WRONG_USAGE("name the record", fix="one `column=value` for each key column")
    project = context.load(tolerant=True)
    suffixes = {f"{task.schema_}": task.views for task in project.tasks}.get(schema)
    if suffixes is None:
        raise WRONG_USAGE(f"no task writes to the schema `{schema}`")
    spark = start_reader(project, dataset)
    current = quote_path(schema, name)
    view = quote_path(schema, f"{name}{suffixes.history}")
    if not has_view(spark, current):
        raise WRONG_USAGE(
            f"there is no view `{dataset}`", fix="`polynya status` lists the datasets"
        )
    source = view if has_view(spark, view) else current
    with reading(project):
        where = conditions(spark, source, pairs)
        versions, events = versions_and_events(
            spark, source, quote_path(schema, f"{name}{suffixes.changes}"), where
        )
    for kind, rows in (("version", versions), ("event", events)):
        for row in rows:
            if context.output.is_json:
                context.output.result(kind, row)
        if not context.output.is_json:
            context.output.result(kind, {}, _table(f"{kind}s", rows))
    return ExitCode.OK


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise WRONG_USAGE(f"`{text}` is not `column=value`")
    return name, value


def _table(title: str, rows: list[dict[str, object]]) -> Table | str:
    if not rows:
        return f"no {title}"
    names = [name for name in rows[0] if name != "hdr__key_hash"]
    table = Table(*names, title=title, title_justify="left")
    for row in rows:
        table.add_row(*("" if row[name] is None else str(row[name]) for name in names))
    return table


def locate(dataset: str, /, *, context: Context) -> int:
    """Print the path of the current metadata file of a dataset's table.

    Engines that read Iceberg without a catalog, such as DuckDB, start from it. A metadata file
    shows the table as of one commit; the table keeps the newest 21 of them, so run this before each
    session. Needs no Java.

    For example: `polynya locate shop.users`.

    Args:
        dataset: `schema.name`.
    """
    entry, table = dataset_table(context.load(tolerant=True), dataset)
    # Start-up time: PyIceberg.
    from polynya.lake.read.inspect import metadata_file

    place = metadata_file(table)
    context.output.result(
        "table.location",
        {
            "dataset": entry.name,
            "table": entry.dataset.relations.internal,
            "metadata": place,
            "snapshot": table.metadata.current_snapshot_id,
        },
        place,
    )
    return ExitCode.OK


#: What DuckDB calls the catalog that it attaches.
_ATTACHED: Final = "polynya"


class ViewEngine(StrEnum):
    """An engine for which views can be written."""

    DUCKDB = "duckdb"
    TRINO = "trino"


def views(
    dataset: str,
    /,
    *,
    engine: ViewEngine = ViewEngine.DUCKDB,
    attach: str | None = None,
    secret: str | None = None,
    context: Context,
) -> int:
    """Print the statements that create the live views of a dataset in another engine.

    Like the views of `polynya query` they show pending changes. With `--attach`, views for DuckDB
    read the table through `polynya serve --catalog`, and show each commit at once. Without it they
    read one metadata file: print them again to see later commits. Views for Trino read the table by
    its name. Create them again when columns of the dataset change. Needs no Java.

    For example: `polynya views shop.users --attach http://127.0.0.1:8181`.

    Args:
        dataset: `schema.name`.
        engine: `duckdb` or `trino`.
        attach: URL of the served catalog, for DuckDB, which attaches it as `polynya`.
        secret: name of the secret in DuckDB that has the token of the catalog.
    """
    if attach is None and secret is not None:
        raise WRONG_USAGE("`--secret` needs `--attach`")
    if attach is not None and engine is not ViewEngine.DUCKDB:
        raise WRONG_USAGE("`--attach` is for DuckDB: views for Trino read the table by its name")
    attached = None if attach is None else _attached(attach, secret)
    entry, table = dataset_table(context.load(tolerant=True), dataset)
    # Start-up time: PyIceberg and sqlglot.
    from polynya.lake.read.inspect import metadata_file, shape
    from polynya.query.views import attached_duckdb_views, duckdb_views, trino_views

    table_shape = shape(table, entry.dataset)
    if engine is ViewEngine.TRINO:
        statements = trino_views(entry.dataset, table_shape)
    elif attached is None:
        statements = duckdb_views(entry.dataset, table_shape, metadata_file(table))
    else:
        statements = attached_duckdb_views(entry.dataset, table_shape, _ATTACHED)
    schema = entry.dataset.relations.schema.lower()
    if not context.output.is_json:
        if attached is not None:
            context.output.result("views", {}, f"{attached};")
        context.output.result("views", {}, f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)};")
    for view in statements:
        statement = _statement(schema, view.name, view.columns, view.sql, engine)
        data = {"view": f"{schema}.{view.name}", "engine": engine, "sql": statement}
        if attached is not None:
            data["attach"] = attached
        context.output.result("view", data, statement + ";")
    return ExitCode.OK


def _attached(url: str, secret: str | None) -> str:
    """The statement by which DuckDB attaches a served catalog."""
    try:
        parts = urlsplit(url)
        named = parts.scheme in {"http", "https"} and bool(parts.hostname)
        wrong = not named or "@" in parts.netloc or bool(parts.query) or parts.port == 0
    except ValueError:
        wrong = True
    if wrong or not url.isprintable():
        raise WRONG_USAGE("`--attach` is the URL that `polynya serve --catalog` prints")
    how = "AUTHORIZATION_TYPE 'none'" if secret is None else f"SECRET {_quoted(secret)}"
    endpoint = url.rstrip("/").replace("'", "''")
    return f"ATTACH IF NOT EXISTS '' AS {_ATTACHED} (TYPE iceberg, ENDPOINT '{endpoint}', {how})"


def _statement(
    schema: str, name: str, columns: Mapping[str, object], sql: str, engine: ViewEngine
) -> str:
    # Trino has no list of names there, and knows names in lower case only.
    names = f" ({', '.join(map(_quoted, columns))})" if engine is ViewEngine.DUCKDB else ""
    return f"CREATE OR REPLACE VIEW {_quoted(schema)}.{_quoted(name)}{names} AS {sql}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
