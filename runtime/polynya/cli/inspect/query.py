"""`polynya query`: SQL over the live views."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error


def query(sql: str | None = None, /, *, file: Path | None = None, context: Context) -> int:
    """Answer SQL over the views.

    They are called `<schema>.<name>`, `<schema>.<name>__history` and `<schema>.<name>__changes`.

    With `--json` each row is one JSON object and nothing else is printed: timestamps are ISO 8601
    in UTC, decimals strings, binary lower-case hex. With `--file` each statement is one object
    {"statement": n, "rows": [...]}.

    For example: `polynya query "SELECT * FROM shop.users__history" --json`.

    Args:
        sql: one statement.
        file: file of statements separated by semicolons.
        context: given by `main`.
    """
    if (sql is None) == (file is None):
        raise usage_error("give either one statement or `--file`")
    # Start-up time: pyspark is only loaded when there is something to ask.
    from polynya.engine.reader import start_reader
    from polynya.lake.read.query import run_query, split_statements

    context.output.only_rows()
    project = context.load(tolerant=True)
    if file is not None:
        if not file.is_file():
            raise usage_error(f"there is no file `{file}`")
        statements = split_statements(file.read_text(encoding="utf-8"))
    else:
        statements = split_statements(sql or "")
        if len(statements) != 1:
            raise usage_error(
                f"expected one statement, found {len(statements)}", "use `--file` for several"
            )
    with context.starting(project):
        spark = start_reader(project, "; ".join(statements))
    spark.conf.set("spark.sql.caseSensitive", "false")
    for number, statement in enumerate(statements, 1):
        rows = run_query(spark, statement)
        if not context.output.is_json:
            context.output.result("rows", {}, _table(rows))
        elif file is not None:
            context.output.row({"statement": number, "rows": rows})
        else:
            for row in rows:
                context.output.row(row)
    return ExitCode.OK


def _table(rows: list[dict[str, object]]) -> Table | str:
    if not rows:
        return "no rows"
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    return table
