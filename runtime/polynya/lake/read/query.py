"""Answer SQL with JSON rows: what `polynya query` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from polynya.lake.spark.api import PySparkException, SparkSession
from polynya.model.errors import OperationError

#: First words of statements that only read.
READING = frozenset(
    {"SELECT", "WITH", "VALUES", "FROM", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "("}
)
_WRITING = frozenset({"INSERT", "MERGE", "UPDATE", "DELETE"})


def split_statements(text: str) -> list[str]:
    """Statements of a script, without their semicolons.

    Semicolons in comments and quotes do not split. Raises OperationError when the text cannot be
    read as SQL at all.
    """
    try:
        tokens = Tokenizer(dialect="spark").tokenize(text)
    except SqlglotError as error:
        raise _bad(text, str(error).splitlines()[0]) from error
    statements, start = [], 0
    current: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if current:
                statements.append(text[start : token.start].strip())
            start, current = token.end + 1, []
        else:
            current.append(token)
    if current:
        statements.append(text[start:].strip())
    return statements


def run_query(spark: SparkSession, statement: str) -> list[dict[str, Any]]:
    """Rows of one statement as JSON values.

    Timestamps are ISO 8601 in UTC with `Z`, decimals strings, binary lower-case hex, NaN and
    infinities strings. Raises OperationError for a statement that does not only read, and when
    Spark refuses it.
    """
    words = [token.text.upper() for token in Tokenizer(dialect="spark").tokenize(statement)]
    if not words or words[0] not in READING or (words[0] == "WITH" and _writes(words)):
        raise _bad(statement, "only statements that read are answered")
    try:
        frame = spark.sql(statement)
        table = frame.toArrow()
    except PySparkException as error:
        raise _bad(statement, _short(error)) from error
    return [{name: to_json(value) for name, value in row.items()} for row in table.to_pylist()]


def to_json(value: Any) -> Any:
    """One value of a row as JSON. Source: issue text and docs/reference/cli.md."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case Decimal():
            return format(value, "f")
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo is not None else value
            return moment.replace(tzinfo=None).isoformat() + "Z"
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Mapping() | list():
            return _collection(value)
        case _:
            return str(value)


def _collection(value: Mapping[Any, Any] | list[Any]) -> Any:
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    # Arrow gives a map as a list of pairs.
    if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return {str(to_json(key)): to_json(item) for key, item in value}
    return [to_json(item) for item in value]


def _writes(words: list[str]) -> bool:
    """Whether a WITH statement ends in one that writes: such a word outside all parentheses."""
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in _WRITING:
            return True
    return False


def _short(error: PySparkException) -> str:
    text = str(error.getMessage() or error)
    return text.splitlines()[0] if text else type(error).__name__


def _bad(statement: str, why: str) -> OperationError:
    shown = statement if len(statement) <= 200 else statement[:200] + "…"
    return OperationError(
        "POLYNYA-QRY-001",
        f"the statement was not answered: {why}",
        where=shown,
        state="no data was changed",
        fix='check the names with `polynya query "SHOW VIEWS IN <schema>"`',
    )
