"""Answer SQL by Spark, as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from polynya.lake.iceberg.errors.machine import machine_error
from polynya.lake.read.hints import hint
from polynya.lake.read.plans import why_refused
from polynya.lake.read.statements import READ_ONLY, Statement, refuse_writing, unanswered
from polynya.lake.read.values import Answer, json_rows
from polynya.lake.spark.api import DataFrame, Py4JError, PySparkException, SparkSession
from polynya.model.errors import PolynyaError


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


def _refused(
    spark: SparkSession, statement: Statement, error: PySparkException | Py4JError
) -> PolynyaError:
    """The error to show: what the machine did, or what Spark has against the statement."""
    found = machine_error(error)
    if found is not None:
        return found
    text = str(error.getMessage() or error) if isinstance(error, PySparkException) else str(error)
    why = text.splitlines()[0] if text else type(error).__name__
    return unanswered(statement, why, hint(spark, error))
