"""Answer SQL: rows as JSON values, or as a stream of Arrow batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from polynya.lake.read.hints import hint
from polynya.lake.spark.api import DataFrame, Py4JError, PySparkException, SparkSession
from polynya.model.errors import OperationError

#: First words of statements that only read.
READING = frozenset(
    {"SELECT", "WITH", "VALUES", "FROM", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "("}
)
_WRITING = frozenset({"INSERT", "MERGE", "UPDATE", "DELETE"})
_READ_ONLY = (
    "only `polynya run` writes the tables; `SELECT`, `WITH`, `SHOW`, `DESCRIBE` and `EXPLAIN` "
    "are answered"
)
_SPELLING = "look for a quote or a comment that is not closed"


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a script; `place` says where it stands there, for errors."""

    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a statement: their types, and the batches as they come, each read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def split_statements(text: str, name: str = "") -> list[Statement]:
    """Statements of a script, without their semicolons.

    Semicolons in comments and quotes do not split. `name` is the script's, for errors. Raises
    OperationError when the text cannot be read as SQL at all.
    """
    try:
        tokens = Tokenizer(dialect="spark").tokenize(text)
    except SqlglotError as error:
        raise _bad(Statement(text, name), str(error).splitlines()[0], _SPELLING) from error
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


def run_query(spark: SparkSession, statement: str) -> list[dict[str, Any]]:
    """Rows of one statement as JSON values, all at once.

    Timestamps are ISO 8601 in UTC with `Z`, decimals strings, binary lower-case hex, NaN and
    infinities strings. Raises OperationError for a statement that does not only read, and when
    Spark refuses it.
    """
    return [
        row for batch in answer(spark, Statement(statement)).batches for row in json_rows(batch)
    ]


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as JSON values, by the names of their columns."""
    for row in batch.to_pylist():
        yield {name: to_json(value) for name, value in row.items()}


def answer(spark: SparkSession, statement: Statement, *, limit: int | None = None) -> Answer:
    """Answer one statement; at most `limit` rows.

    With a limit all rows come at once. Without one they are a stream: no more than one partition
    of the result is in memory. Raises OperationError as `run_query`; the stream does, too.
    """
    words = [token.text.upper() for token in Tokenizer(dialect="spark").tokenize(statement.text)]
    if not words or words[0] not in READING or (words[0] == "WITH" and _writes(words)):
        raise _bad(statement, "only statements that read are answered", _READ_ONLY)
    try:
        frame = spark.sql(statement.text)
        if limit is None:
            return Answer(frame.limit(0).toArrow().schema, _stream(spark, frame, statement))
        table = frame.limit(limit).toArrow()
    except (PySparkException, Py4JError) as error:
        raise _refused(spark, statement, error) from error
    return Answer(table.schema, iter(table.to_batches()))


def _stream(
    spark: SparkSession, frame: DataFrame, statement: Statement
) -> Iterator[pa.RecordBatch]:
    try:
        schema = frame.limit(0).toArrow().schema
        # PySpark streams rows one by one as pickles, or collects everything as Arrow.
        rows: Any = frame._jdf
        batches = rows.toArrowBatchRdd().toJavaRDD().toLocalIterator()
        while batches.hasNext():
            yield pa.ipc.read_record_batch(pa.py_buffer(batches.next()), schema)
    except (PySparkException, Py4JError) as error:
        raise _refused(spark, statement, error) from error


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


def _refused(
    spark: SparkSession, statement: Statement, error: PySparkException | Py4JError
) -> OperationError:
    text = str(error.getMessage() or error) if isinstance(error, PySparkException) else str(error)
    why = text.splitlines()[0] if text else type(error).__name__
    return _bad(statement, why, hint(spark, error))


def _bad(statement: Statement, why: str, fix: str) -> OperationError:
    text = statement.text if len(statement.text) <= 200 else statement.text[:200] + "…"
    return OperationError(
        "POLYNYA-QRY-001",
        f"the statement was not answered: {why}",
        where=f"{statement.place}: {text}" if statement.place else text,
        state="no data was changed",
        fix=fix,
    )
