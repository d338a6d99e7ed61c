"""`polynya query`: SQL over the live views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.inspect.rows import Format, as_table, write_csv, write_parquet
from polynya.cli.options import as_typed, usage_error
from polynya.engine.asked import Engine

if TYPE_CHECKING:
    from polynya.engine.answers import Answers
    from polynya.lake.read.statements import Statement
    from polynya.lake.spark.api import SparkSession
    from polynya.model.reading.loader import LoadedProject

#: Rows of a table on a terminal, unless `--limit` says otherwise.
SHOWN: Final = 1000


def query(
    sql: str | None = None,
    /,
    *,
    file: Path | None = None,
    output: Annotated[Format | None, Parameter(name=["--output", "-o"])] = None,
    limit: Annotated[int | None, Parameter(name="--limit")] = None,
    engine: Engine = Engine.AUTO,
    context: Context,
) -> int:
    """Answer SQL over the views.

    Views are `<schema>.<name>`, `<schema>.<name>__history` and `<schema>.<name>__changes`. Rows are
    written as they arrive; a table on a terminal ends after 1,000 rows, and says so.

    With `--json` each row is one JSON object and nothing else is printed: instants are ISO 8601
    in UTC with `Z`, wall-clock times the same without a zone, decimals strings, binary lower-case
    hex. With `--file` each statement is one object
    {"statement": n, "rows": [...]}.

    An embedded engine answers plain questions over small and medium tables in about a second; for
    all others Spark starts. Both return the same rows, without ORDER BY in any order. `--debug`
    shows why a statement needs Spark.

    For example: `polynya query "SELECT * FROM shop.users__history" --json`.

    Args:
        sql: one statement.
        file: file of statements separated by semicolons.
        output: `table` (default), `json` (as `--json`), `csv` or `parquet`, for one statement.
        limit: maximum rows of a statement; 0 for all.
        engine: `auto` (default), `spark`, or `embedded`, which fails if it cannot answer.
        context: given by `main`.
    """
    written = output or (Format.JSON if context.output.is_json else Format.TABLE)
    if context.output.is_json and written is not Format.JSON:
        raise usage_error(f"`--json` and `--output {written}` exclude each other")
    if limit is not None and limit < 0:
        raise usage_error("`--limit` is 0 or more")
    if (sql is None) == (file is None):
        raise usage_error("give either one statement or `--file`")
    # Start-up time: pyarrow and PyIceberg are only loaded when there is something to ask.
    from polynya.engine.answers import Answers
    from polynya.lake.read.values import json_rows
    from polynya.lake.warehouse.reading import reading

    context.output.only_rows()
    project = context.load(tolerant=True)
    statements = _statements(sql or "", file)
    _check(context, written, len(statements))
    text = "; ".join(one.text for one in statements)
    answers = Answers(
        project, spark_for(context, project, text), engine=engine, tell=context.output.detail
    )
    with reading(project, text):
        for number, statement in enumerate(statements, 1):
            if written is Format.TABLE:
                show(context, answers, statement, limit)
                continue
            answer = answers.answer(statement, limit=limit or None)
            if written is Format.CSV:
                write_csv(answer, context.output.stdout)
            elif written is Format.PARQUET:
                write_parquet(answer, context.output.stdout.buffer)
            elif file is not None:
                rows = [row for batch in answer.batches for row in json_rows(batch)]
                context.output.row({"statement": number, "rows": rows})
            else:
                for batch in answer.batches:
                    for row in json_rows(batch):
                        context.output.row(row)
    return ExitCode.OK


def show(
    context: CommandContext, answers: Answers, statement: Statement, limit: int | None
) -> None:
    """Print the rows of a statement as a table, with a note when there are more than it shows."""
    most = limit or (SHOWN if limit is None and context.output.is_screen else None)
    table, has_more = as_table(answers.answer(statement, limit=most and most + 1), most)
    context.output.result("rows", {}, table)
    if has_more:
        context.output.note(f"the first {most:,} rows; `--limit 0` shows all")


def spark_for(
    context: CommandContext, project: LoadedProject, statements: str
) -> Callable[[], SparkSession]:
    """What starts the Spark session for these statements, and shows people that it does."""

    def start() -> SparkSession:
        # Start-up time: pyspark.
        from polynya.engine.reader import start_reader

        with context.starting(project):
            return start_reader(project, statements)

    return start


def _statements(sql: str, file: Path | None) -> list[Statement]:
    from polynya.lake.read.statements import split_statements

    if file is not None:
        if not file.is_file():
            raise usage_error(f"there is no file `{file}`")
        return split_statements(file.read_text(encoding="utf-8"), str(file))
    statements = split_statements(as_typed(sql))
    if len(statements) != 1:
        raise usage_error(
            f"expected one statement, found {len(statements)}", "use `--file` for several"
        )
    return statements


def _check(context: CommandContext, written: Format, statements: int) -> None:
    if written in {Format.CSV, Format.PARQUET} and statements != 1:
        raise usage_error(f"`--output {written}` writes the rows of one statement")
    if written is Format.PARQUET and context.output.is_screen:
        raise usage_error("Parquet is not for a terminal", "write it to a file: `> rows.parquet`")
