"""Statements of a text, and which of them only read. Needs no Spark."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from polynya.model.errors import OperationError

#: First words of statements that only read.
READING = frozenset(
    {"SELECT", "WITH", "VALUES", "FROM", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "("}
)
READ_ONLY = (
    "only `polynya run` writes the tables; `SELECT`, `WITH`, `SHOW`, `DESCRIBE` and `EXPLAIN` "
    "are answered"
)
_SPELLING = "look for a quote or a comment that is not closed"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a script; `place` says where it stands there, for errors."""

    text: str
    place: str = ""


def split_statements(text: str, name: str = "") -> list[Statement]:
    """Statements of a script, without their semicolons.

    Semicolons in comments and quotes do not split. `name` is the script's, for errors. Raises
    OperationError when the text cannot be read as SQL at all.
    """
    try:
        tokens = Tokenizer(dialect="spark").tokenize(text)
    except SqlglotError as error:
        raise unanswered(Statement(text, name), str(error).splitlines()[0], _SPELLING) from error
    statements: list[Statement] = []
    current: list[Token] = []

    def end(stop: int) -> None:
        if current:
            number, line = len(statements) + 1, text.count("\n", 0, current[0].start) + 1
            place = f"{name}, statement {number}, line {line}" if name else ""
            statements.append(Statement(text[start:stop].strip(), place))

    start = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            end(token.start)
            start, current = token.end + 1, []
        else:
            current.append(token)
    end(len(text))
    return statements


def refuse_writing(statement: Statement) -> None:
    """Raise OperationError for a statement whose first word says that it does not only read.

    It needs no Spark. Those that hide it are refused by their plan (`lake/read/plans.py`), and the
    embedded engine knows no others than queries.
    """
    words = [token.text.upper() for token in Tokenizer(dialect="spark").tokenize(statement.text)]
    if not words or words[0] not in READING:
        raise unanswered(statement, "only statements that read are answered", READ_ONLY)


def unanswered(
    statement: Statement, why: str, fix: str, *, code: str = "POLYNYA-QRY-001"
) -> OperationError:
    """The error for a statement that was not answered."""
    text = statement.text if len(statement.text) <= 200 else statement.text[:200] + "…"
    return OperationError(
        code,
        f"the statement was not answered: {why}",
        where=f"{statement.place}: {text}" if statement.place else text,
        state="no data was changed",
        fix=fix,
    )
