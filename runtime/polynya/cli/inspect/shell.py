"""`polynya shell`: statement after statement over the live views."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.inspect.completion import Words, completing
from polynya.cli.inspect.query import show, spark_for
from polynya.model.errors import PolynyaError

if TYPE_CHECKING:
    from polynya.engine.answers import Answers

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
    from polynya.lake.warehouse.reading import reading

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
    from polynya.lake.read.statements import split_statements

    code: int = ExitCode.OK
    for text in statements:
        try:
            if text.split() == [_VIEWS]:
                context.output.result("views", {}, "\n".join(answers.views()) or "no views")
                continue
            with reading(text):
                answers.see_newest()
                for statement in split_statements(_meant(text)):
                    show(context, answers, statement, None)
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
