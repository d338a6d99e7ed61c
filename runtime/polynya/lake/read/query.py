"""Answer SQL by Spark as Arrow batches: statements, live views in the catalog, hints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from polynya.lake.errors import machine_error
from polynya.lake.read.plans import why_refused
from polynya.lake.read.values import Answer, json_rows
from polynya.lake.spark import api
from polynya.lake.spark.catalog import view_catalog
from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.error_catalogue.operation import STATEMENT_NOT_ANSWERED
from polynya.model.errors import OperationError, PolynyaError
from polynya.model.names import quote_path

if TYPE_CHECKING:
    from polynya.lake.spark.api import DataFrame, Py4JError, PySparkException, SparkSession

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
    statement: Statement,
    reason: str,
    fix: str | None = None,
    *,
    entry: ErrorEntry[OperationError] = STATEMENT_NOT_ANSWERED,
) -> OperationError:
    """The error for a statement that was not answered."""
    text = statement.text if len(statement.text) <= 200 else statement.text[:200] + "…"
    where = f"{statement.place}: {text}" if statement.place else text
    return entry(where=where, fix=fix, reason=reason)


#: Views that a hint lists; a project may have hundreds.
_LISTED_VIEWS: Final = 10


def hint(spark: SparkSession, error: PySparkException | Py4JError) -> str:
    """The fix of an error, by Spark's own name of it."""
    if not isinstance(error, api.PySparkException):
        return "`--debug` shows what Java said"
    condition = error.getCondition() or ""
    return fix_of(condition, error.getMessageParameters() or {}, _views(spark, condition))


def fix_of(condition: str, parameters: Mapping[str, str], views: list[str]) -> str:
    """The fix of an error with these parameters, for a query of these views."""
    if condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")):
        wanted = next(iter(parameters.values()), "").replace("`", "")
        close = get_close_matches(wanted.lower(), views, n=1)
        if close:
            return f"did you mean `{close[0]}`?"
        shown = ", ".join(views[:_LISTED_VIEWS]) + (", …" if len(views) > _LISTED_VIEWS else "")
        return f"there are: {shown}" if views else "`polynya run --once` makes the views"
    if condition.startswith("UNRESOLVED_COLUMN"):
        proposal = parameters.get("proposal")
        return f"did you mean {proposal}?" if proposal else "`DESCRIBE <view>` lists the columns"
    if condition.startswith("PARSE"):
        return "the SQL is Spark's; quote names that are not plain words in backquotes"
    return "correct the statement as the message says"


def view_names(spark: SparkSession) -> list[str]:
    """`schema.view` of every view that can be read, in order."""
    catalog = view_catalog(spark)
    schemas = [row[0] for row in spark.sql(f"SHOW NAMESPACES IN {quote_path(catalog)}").collect()]
    return sorted(
        f"{schema}.{row['viewName']}"
        for schema in schemas
        for row in spark.sql(f"SHOW VIEWS IN {quote_path(catalog, schema)}").collect()
    )


def _views(spark: SparkSession, condition: str) -> list[str]:
    if not condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")):
        return []
    try:
        return view_names(spark)
    except (api.PySparkException, api.Py4JError):
        # The first error is the one to tell.
        return []


def run_query(spark: SparkSession, statement: str) -> list[dict[str, Any]]:
    """Rows of one statement as JSON values, all at once.

    Instants are ISO 8601 in UTC with `Z`, wall-clock times have no zone, decimals are strings,
    binary is lower-case hex, NaN and infinities are strings. Raises OperationError for a statement
    that does not only read, and when Spark refuses it.
    """
    return [
        row for batch in answer(spark, Statement(statement)).batches for row in json_rows(batch)
    ]


def answer(spark: SparkSession, statement: Statement, *, limit: int | None = None) -> Answer:
    """Answer one statement; at most `limit` rows.

    With a limit all rows come at once. Without one they are a stream: no more than one partition
    of the result is in memory. Raises OperationError as `run_query`; the stream does, too.
    """
    refuse_writing(statement)
    try:
        refused = why_refused(spark, statement.text)
        if refused is not None:
            raise unanswered(statement, refused, READ_ONLY)
        frame = spark.sql(statement.text)
        if limit is None:
            schema = frame.limit(0).toArrow().schema
            return Answer(schema, _stream(spark, frame, schema, statement))
        table = frame.limit(limit).toArrow()
    except (api.PySparkException, api.Py4JError) as error:
        raise _refused(spark, statement, error) from error
    return Answer(table.schema, iter(table.to_batches()))


def _stream(
    spark: SparkSession, frame: DataFrame, schema: pa.Schema, statement: Statement
) -> Iterator[pa.RecordBatch]:
    try:
        # PySpark streams rows one by one as pickles, or collects everything as Arrow.
        rows: Any = frame._jdf
        batches = rows.toArrowBatchRdd().toJavaRDD().toLocalIterator()
        while batches.hasNext():
            yield pa.ipc.read_record_batch(pa.py_buffer(batches.next()), schema)
    except (api.PySparkException, api.Py4JError) as error:
        raise _refused(spark, statement, error) from error


def _refused(
    spark: SparkSession, statement: Statement, error: PySparkException | Py4JError
) -> PolynyaError:
    """The error to show: what the machine did, or what Spark has against the statement."""
    fault = machine_error(error)
    if fault is not None:
        return fault
    text = (
        str(error.getMessage() or error) if isinstance(error, api.PySparkException) else str(error)
    )
    why = text.splitlines()[0] if text else type(error).__name__
    return unanswered(statement, why, hint(spark, error))
