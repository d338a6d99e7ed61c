"""`polynya query` and `polynya shell`: SQL over the live views."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import RowFormat, as_table, write_csv, write_parquet
from polynya.cli.options import as_typed
from polynya.engine.answers import QueryEngine
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import PolynyaError

if TYPE_CHECKING:
    from polynya.engine.answers import Answers
    from polynya.lake.read.query import Statement
    from polynya.lake.read.values import Answer
    from polynya.lake.spark.api import SparkSession
    from polynya.model.loader import LoadedProject

#: Answers a statement, with so many rows at most; None for all.
Answering: TypeAlias = "Callable[[Statement, int | None], Answer]"

#: Rows of a table on a terminal, unless `--limit` says otherwise.
SHOWN: Final = 1000


def query(
    sql: str | None = None,
    /,
    *,
    file: Path | None = None,
    output: Annotated[RowFormat | None, Parameter(name=["--output", "-o"])] = None,
    limit: Annotated[int | None, Parameter(name="--limit")] = None,
    engine: QueryEngine = QueryEngine.AUTO,
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
    """
    asked = asked_rows(context, sql, file=file, output=output, limit=limit)
    # Start-up time: pyarrow and PyIceberg are only loaded when there is something to ask.
    from polynya.engine.answers import Answers
    from polynya.lake.warehouse.readers import reading

    project = context.load(tolerant=True)
    text = "; ".join(statement.text for statement in asked.statements)
    answers = Answers(
        project, spark_for(context, project, text), engine=engine, tell=context.output.detail
    )
    with reading(project, text):
        write_rows(context, asked, lambda statement, most: answers.answer(statement, limit=most))
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class AskedRows:
    """Statements, how their rows are written, and how many; `numbered` are those of a file."""

    statements: Sequence[Statement]
    form: RowFormat
    limit: int | None
    numbered: bool


def asked_rows(
    context: CommandContext,
    sql: str | None = None,
    *,
    file: Path | None = None,
    output: RowFormat | None = None,
    limit: int | None = None,
) -> AskedRows:
    """What a command line of `polynya query` asks for. From here on only rows are printed."""
    form = output or (RowFormat.JSON if context.output.is_json else RowFormat.TABLE)
    if context.output.is_json and form is not RowFormat.JSON:
        raise WRONG_USAGE(f"`--json` and `--output {form}` exclude each other")
    if limit is not None and limit < 0:
        raise WRONG_USAGE("`--limit` is 0 or more")
    if (sql is None) == (file is None):
        raise WRONG_USAGE("give either one statement or `--file`")
    context.output.only_rows()
    statements = _statements(sql or "", file)
    _check(context, form, len(statements))
    return AskedRows(statements, form, limit, numbered=file is not None)


def write_rows(context: CommandContext, asked: AskedRows, answer: Answering) -> None:
    """Write the rows of each statement as they come."""
    # Start-up time: pyarrow.
    from polynya.lake.read.values import json_rows

    for number, statement in enumerate(asked.statements, 1):
        if asked.form is RowFormat.TABLE:
            show(context, answer, statement, asked.limit)
            continue
        rows = answer(statement, asked.limit or None)
        if asked.form is RowFormat.CSV:
            write_csv(rows, context.output.stdout)
        elif asked.form is RowFormat.PARQUET:
            write_parquet(rows, context.output.stdout.buffer)
        elif asked.numbered:
            found = [row for batch in rows.batches for row in json_rows(batch)]
            context.output.row({"statement": number, "rows": found})
        else:
            for batch in rows.batches:
                for row in json_rows(batch):
                    context.output.row(row)


def show(
    context: CommandContext, answer: Answering, statement: Statement, limit: int | None
) -> None:
    """Print the rows of a statement as a table, with a note when there are more than it shows."""
    most = limit or (SHOWN if limit is None and context.output.is_screen else None)
    table, has_more = as_table(answer(statement, most and most + 1), most)
    context.output.result("rows", {}, table)
    if has_more:
        context.output.note(f"the first {most:,} rows; `--limit 0` shows all")


def spark_for(
    context: CommandContext, project: LoadedProject, statements: str
) -> Callable[[], SparkSession]:
    """What starts the Spark session for these statements, and shows people that it does."""

    def start() -> SparkSession:
        # Start-up time: pyspark.
        from polynya.engine.session import start_reader

        with context.starting(project):
            return start_reader(project, statements)

    return start


def _statements(sql: str, file: Path | None) -> list[Statement]:
    from polynya.lake.read.query import split_statements

    if file is not None:
        if not file.is_file():
            raise WRONG_USAGE(f"there is no file `{file}`")
        return split_statements(file.read_text(encoding="utf-8"), str(file))
    statements = split_statements(as_typed(sql))
    if len(statements) != 1:
        raise WRONG_USAGE(
            f"expected one statement, found {len(statements)}", fix="use `--file` for several"
        )
    return statements


def _check(context: CommandContext, written: RowFormat, statements: int) -> None:
    if written in {RowFormat.CSV, RowFormat.PARQUET} and statements != 1:
        raise WRONG_USAGE(f"`--output {written}` writes the rows of one statement")
    if written is RowFormat.PARQUET and context.output.is_screen:
        raise WRONG_USAGE(
            "Parquet is not for a terminal", fix="write it to a file: `> rows.parquet`"
        )


KEYWORDS: Final = (
    "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "COUNT(", "DESC", "DESCRIBE", "DISTINCT", "ELSE",
    "END", "EXPLAIN", "FROM", "GROUP", "HAVING", "IN", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT",
    "NULL", "ON", "OR", "ORDER", "SELECT", "SHOW", "THEN", "UNION", "USING", "WHEN", "WHERE",
    "WITH",
)  # fmt: skip
_DELIMITERS: Final = " \t\n,()=<>+-*/;'\"`"


class Words:
    """Words that a statement may contain; views and their columns are read once."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._views: list[str] | None = None
        self._columns: dict[str, list[str]] = {}

    def starting(self, prefix: str, line: str) -> list[str]:
        """The words that begin with a prefix, where `line` is what was typed so far."""
        words = [*self._named(line), *self._all_views(), *KEYWORDS]
        start = prefix.lower()
        return [word for word in words if word.isprintable() and word.lower().startswith(start)]

    def _named(self, line: str) -> list[str]:
        """Columns of the views that the line names."""
        typed = set(re.findall(r"[\w.]+", line.lower()))
        found: dict[str, None] = {}
        for view in self._all_views():
            if view.lower() in typed:
                if view not in self._columns:
                    self._columns[view] = self._answers.columns(view)
                found |= dict.fromkeys(self._columns[view])
        return list(found)

    def _all_views(self) -> list[str]:
        if self._views is None:
            self._views = self._answers.views()
        return self._views


@contextmanager
def completing(words: Words) -> Iterator[None]:
    """Let Tab complete what is typed into `input`, where the system has readline."""
    try:
        import readline
    except ImportError:
        yield
        return

    def complete(prefix: str, state: int) -> str | None:
        try:
            matches = words.starting(prefix, readline.get_line_buffer())
        except Exception:  # noqa: BLE001 - a completion that fails must not end what is typed
            return None
        return matches[state] if state < len(matches) else None

    kept = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(complete)
    readline.set_completer_delims(_DELIMITERS)
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(kept[0])
        readline.set_completer_delims(kept[1])


_ENDS = frozenset({"exit", "quit", "\\q"})
_VIEWS = "\\d"
_HELP = (
    "a statement ends with a semicolon; `\\d` lists the views, `\\d schema.view` the columns of "
    "one; Tab completes; `\\q` or Ctrl-D ends"
)


def shell(*, context: Context) -> int:
    """Answer statements as they are typed, each over the newest commit.

    Spark starts once, with the first statement that the embedded engine cannot answer (`polynya
    query`). Statements end with a semicolon. Tab completes names of views and columns. Without a
    terminal, statements are read from standard input, and the exit code is that of the last failed
    one.

    For example: `polynya shell`.
    """
    # Start-up time: pyarrow and PyIceberg.
    from polynya.engine.answers import Answers
    from polynya.lake.warehouse.readers import reading

    context.output.only_rows()
    project = context.load(tolerant=True)
    # On Glue a session makes views for what is listed: all of them.
    answers = Answers(
        project, spark_for(context, project, "SHOW VIEWS"), tell=context.output.detail
    )
    answers.check()
    if not sys.stdin.isatty():
        typed = lines_of(lambda _: sys.stdin.readline())
        return serve(context, answers, typed, partial(reading, project))
    context.output.note(_HELP)
    with completing(Words(answers)):
        serve(context, answers, lines_of(_typed), partial(reading, project))
    return ExitCode.OK


def serve(
    context: CommandContext,
    answers: Answers,
    statements: Iterator[str],
    reading: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> int:
    """Answer each of the texts; return the exit code of the last one that failed, else 0.

    Each is answered inside of what `reading` makes of it.
    """
    from polynya.lake.read.query import split_statements

    code: int = ExitCode.OK
    for text in statements:
        try:
            if text.split() == [_VIEWS]:
                context.output.result("views", {}, "\n".join(answers.views()) or "no views")
                continue
            with reading(text):
                answers.see_newest()
                for statement in split_statements(_meant(text)):
                    show(
                        context, lambda one, most: answers.answer(one, limit=most), statement, None
                    )
        except PolynyaError as error:
            context.output.error(error)
            code = error.exit_code
        except KeyboardInterrupt:
            answers.cancel()
            context.output.note("cancelled")
    return code


def lines_of(read: Callable[[str], str]) -> Iterator[str]:
    """Texts that end with a semicolon, or commands; `read(prompt)` gives a line, "" at the end."""
    text = ""
    while True:
        try:
            line = read("polynya> " if not text else "      -> ")
        except KeyboardInterrupt:
            text = ""
            continue
        text += line
        word = text.strip()
        if not line or word.rstrip(";").lower() in _ENDS:
            if word and word.rstrip(";").lower() not in _ENDS:
                yield text
            return
        if word.endswith(";") or word.startswith("\\"):
            yield text
            text = ""
        elif not word:
            text = ""


def _meant(text: str) -> str:
    """The statement that a command stands for."""
    words = text.strip().rstrip(";").split()
    return f"DESCRIBE {words[1]}" if words[:1] == [_VIEWS] and len(words) > 1 else text


def _typed(prompt: str) -> str:
    try:
        return input(prompt) + "\n"
    except EOFError:
        return ""
