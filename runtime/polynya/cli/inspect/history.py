"""`polynya history`: every event and version of one record."""

from __future__ import annotations

from rich.table import Table

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.model.contract.identifiers import quote_path


def history(dataset: str, /, *key: str, context: Context) -> int:
    """Show every version of one record, oldest first, and its events.

    Events are pending or kept; `hdr__store` says which.

    For example: `polynya history shop.users userId=123`.

    Args:
        dataset: `schema.name`.
        key: one `column=value` for each key column.
        context: given by `main`.
    """
    # Start-up time: pyspark.
    from polynya.engine.reader import start_reader
    from polynya.lake.read.record import conditions, has_view, versions_and_events
    from polynya.lake.warehouse.reading import reading

    schema, _, name = dataset.partition(".")
    if not name:
        raise usage_error(f"`{dataset}` is not `schema.name`")
    pairs = dict(_pair(text) for text in key)
    if not pairs:
        raise usage_error("name the record", "one `column=value` for each key column")
    project = context.load(tolerant=True)
    suffixes = {f"{task.schema_}": task.views for task in project.tasks}.get(schema)
    if suffixes is None:
        raise usage_error(f"no task writes to the schema `{schema}`")
    spark = start_reader(project, dataset)
    current = quote_path(schema, name)
    view = quote_path(schema, f"{name}{suffixes.history}")
    if not has_view(spark, current):
        raise usage_error(f"there is no view `{dataset}`", "`polynya status` lists the datasets")
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
        raise usage_error(f"`{text}` is not `column=value`")
    return name, value


def _table(title: str, rows: list[dict[str, object]]) -> Table | str:
    if not rows:
        return f"no {title}"
    names = [name for name in rows[0] if name != "hdr__key_hash"]
    table = Table(*names, title=title, title_justify="left")
    for row in rows:
        table.add_row(*("" if row[name] is None else str(row[name]) for name in names))
    return table
