"""`polynya history`, `verify`, `locate` and `views`: looking into the tables of a project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rich.table import Table

from polynya.cli.context import CommandContext, Context, dataset_table
from polynya.cli.exit_codes import ExitCode
from polynya.cli.status import chosen_entries
from polynya.model.config.derived import DerivedTask
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import OperationError, PolynyaError
from polynya.model.names import Dialect, quote_path

if TYPE_CHECKING:
    from polynya.engine.inventory import ProjectTable
    from polynya.lake.read.committed import CommittedTable
    from polynya.model.loader import LoadedProject
    from polynya.query.dialects import EngineView


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


def views(
    *datasets: str,
    engine: tuple[Dialect, ...] = (),
    catalog: str | None = None,
    attach: str | None = None,
    secret: str | None = None,
    context: Context,
) -> int:
    """Print the statements that create the views of datasets in another engine.

    Like the views of `polynya query` they show pending changes; those called `…_stored` do not.
    With `--attach`, views for DuckDB read the tables through `polynya serve --catalog`, and show
    each commit at once. Without it they read one metadata file: print them again to see later
    commits. The others read the table by its name. Create them again when columns of the dataset
    change. With `--json` each view comes with its dialect and its columns: a listing for catalogs
    that hold no views. Views of queries (`materialize: view`) come last; one that has no
    translation for an engine is named, with the reason. Needs no Java.

    For example: `polynya views shop.users --engine trino --catalog polynya`.

    Args:
        datasets: names or globs, with or without their schema. Default: all.
        engine: whose SQL it is; may be given several times. Default: `duckdb`.
        catalog: the catalog, or database, of the engine that has the tables. Default: that of the
            session which creates the views.
        attach: URL of the served catalog, for DuckDB, which attaches it as `polynya`.
        secret: name of the secret in DuckDB that has the token of the catalog.
    """
    engines = engine or (Dialect.DUCKDB,)
    if catalog is not None and Dialect.DUCKDB in engines:
        raise WRONG_USAGE("views for DuckDB name no catalog", fix="add `--engine trino`")
    if attach is None and secret is not None:
        raise WRONG_USAGE("`--secret` needs `--attach`")
    if attach is not None and engines != (Dialect.DUCKDB,):
        raise WRONG_USAGE("`--attach` is for DuckDB: other views read the table by its name")
    attached = None if attach is None else _attached(attach, secret)
    project = context.load(tolerant=True)
    queries = _chosen_queries(project, datasets)
    # A pattern that names only views of queries is none of a dataset.
    named = [one for one in datasets if not any(_names(one, *query) for query in queries)]
    entries = []
    if named or not datasets:
        entries = [entry for entry in chosen_entries(project, named) if not entry.is_ledger]
    code = int(ExitCode.OK)
    for entry in entries:
        if entry.table is None and datasets:
            message = f"nothing was copied to `{entry.name}` yet"
            raise WRONG_USAGE(message, fix="`polynya run --once`")
        for dialect in engines:
            try:
                _print_views(context, entry, dialect, catalog, attached)
            except OperationError as error:
                context.output.error(error)
                code = max(code, error.exit_code)
    if queries:
        code = max(code, _print_query_views(context, queries, engines, attached))
    return code


def _print_views(
    context: CommandContext,
    entry: ProjectTable[CommittedTable],
    engine: Dialect,
    catalog: str | None,
    attached: str | None,
) -> None:
    # Start-up time: PyIceberg and sqlglot.
    from polynya.lake.read.inspect import metadata_file, shape
    from polynya.query.dialects import views_in

    if entry.table is None:
        return
    relations = entry.dataset.relations
    names = (engine.fold(relations.internal_schema), engine.fold(relations.internal_table))
    schema, table = relations.schema.lower(), f"iceberg_scan({_text(metadata_file(entry.table))})"
    if engine is not Dialect.DUCKDB:
        schema, table = (
            engine.fold(relations.schema),
            engine.quote(*filter(None, (catalog, *names))),
        )
    elif attached is not None:
        # DuckDB looks names of a catalog up as they are written.
        table = engine.quote(_ATTACHED, relations.internal_schema, relations.internal_table)
    if not context.output.is_json:
        if attached is not None:
            context.output.result("views", {}, f"{attached};")
        context.output.result("views", {}, f"CREATE SCHEMA IF NOT EXISTS {engine.quote(schema)};")
    for view in views_in(engine, entry.dataset, shape(entry.table, entry.dataset), table):
        _print_view(context, engine, schema, view, attached)
        if view.left_out:
            context.output.note(
                f"{schema}.{view.name} lacks columns that {engine} cannot show: "
                f"{', '.join(view.left_out)}"
            )


def _print_view(
    context: CommandContext, engine: Dialect, schema: str, view: EngineView, attached: str | None
) -> None:
    # Start-up time: sqlglot.
    from polynya.query.dialects import create_view, type_in

    statement = create_view(engine, engine.quote(schema, view.name), view)
    data = {
        "view": f"{schema}.{view.name}",
        "engine": engine,
        "columns": [
            {"name": name, "type": type_in(engine, kind)} for name, kind in view.columns.items()
        ],
        "left_out": list(view.left_out),
        "sql": statement,
        **({} if attached is None else {"attach": attached}),
    }
    context.output.result("view", data, statement + ";")


def _chosen_queries(
    project: LoadedProject, patterns: Sequence[str]
) -> list[tuple[DerivedTask, str]]:
    """The views of queries that patterns name; all without any."""
    # Start-up time: sqlglot.
    from polynya.engine.translated_views import query_views_of

    return [
        (task, name)
        for task, name in query_views_of(project)
        if not patterns or any(_names(pattern, task, name) for pattern in patterns)
    ]


def _names(pattern: str, task: DerivedTask, name: str) -> bool:
    names = (task.view_of(name), f"{task.prefix}{name}", name)
    return any(fnmatchcase(one, pattern) for one in names)


def _print_query_views(
    context: CommandContext,
    queries: Sequence[tuple[DerivedTask, str]],
    engines: Sequence[Dialect],
    attached: str | None,
) -> int:
    """Print views of queries after those that they read; one that cannot be had stops no other."""
    # Start-up time: PyIceberg and sqlglot.
    from polynya.engine.project_views import ProjectViews
    from polynya.engine.translated_views import project_view_in

    views, code = ProjectViews(context.load(tolerant=True)), int(ExitCode.OK)
    for task, name in queries:
        for engine in engines:
            schema = task.schema_.lower() if engine is Dialect.DUCKDB else engine.fold(task.schema_)
            try:
                view = project_view_in(engine, views, task, name, None)
            except PolynyaError as error:
                context.output.error(error)
                code = max(code, error.exit_code)
                continue
            if not context.output.is_json:
                text = f"CREATE SCHEMA IF NOT EXISTS {engine.quote(schema)};"
                context.output.result("views", {}, text)
            _print_view(context, engine, schema, view, attached)
    return code


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
    how = "'none'" if secret is None else Dialect.DUCKDB.quote(secret)
    way = "AUTHORIZATION_TYPE" if secret is None else "SECRET"
    endpoint = _text(url.rstrip("/"))
    return (
        f"ATTACH IF NOT EXISTS '' AS {_ATTACHED} (TYPE iceberg, ENDPOINT {endpoint}, {way} {how})"
    )


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
