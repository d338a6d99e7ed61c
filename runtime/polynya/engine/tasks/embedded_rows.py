"""The query of a step over the few rows that count, answered in this process in place of Spark.

The embedded engine answers what is surely the same in Spark for all values, and nothing else
(`query/expressions.py`): so what a table holds does not depend on which of the two computed a row.
Where it refuses a query or a value, Spark runs the user's text over the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from polynya.derived.tables import ParsedQuery
from polynya.engine.tasks.few_inputs import SmallInputs
from polynya.formats.values.arrow_types import arrow_type
from polynya.model.errors import PolynyaError
from polynya.model.types import DataType
from polynya.observe.trace import span
from polynya.query.committed_rows import RowLimits
from polynya.query.embedded import answer_here
from polynya.query.translate import NotEmbeddedError

log = logging.getLogger(__name__)

#: What an input of a step may take; the engine needs about as much for a join of some.
_LIMITS: Final = RowLimits(rows=2_000_000, file_bytes=0, memory_bytes=256 * 1024 * 1024)


@span("compute in memory")
def embedded_rows(
    query: ParsedQuery, inputs: SmallInputs, known: Mapping[str, DataType]
) -> pa.Table | str:
    """The rows of a query over these inputs, or why Spark computes them, as a sentence.

    `known` has columns and types of the table, in which the rows are.
    """
    if inputs.by_spark is not None:
        return f"Spark reads an input: {inputs.by_spark}"
    if not inputs.is_whole:
        return "rows with other keys come of the same rows of its inputs"
    names = {name: f"inputs.i{number}" for number, name in enumerate(inputs.rows)}
    views = {
        names[name]: InputRows(names[name], inputs.types[name], rows)
        for name, rows in inputs.rows.items()
    }
    try:
        schema, batches = answer_here(
            query.over(names), views.__getitem__, limit=None, limits=_LIMITS, has_cases=True
        )
    except NotEmbeddedError as reason:
        return str(reason)
    except PolynyaError:
        raise
    except Exception as error:
        # A bug of the embedded engine must not cost a step: it is logged.
        failure = f"the embedded engine failed: {type(error).__name__}: {error}"
        log.warning("%s", failure)
        log.debug("where it failed", exc_info=error)
        return failure
    types = {name: arrow_type(kind) for name, kind in known.items()}
    if len(set(schema.names)) < len(schema) or any(
        field.type != types.get(field.name) for field in schema
    ):
        return "its columns are not those of the table"
    return pa.Table.from_batches(batches, schema=schema)


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of an input for the embedded engine; what is not among `read` is NULL, as for Spark."""

    name: str
    columns: Mapping[str, DataType]
    read: pa.Table
    #: Any column counts the rows.
    keys: Sequence[str] = ()

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns of the rows. Raises NotEmbeddedError for more than the limits."""
        if self.read.num_rows > limits.rows or self.read.nbytes > limits.memory_bytes:
            raise NotEmbeddedError(f"more than {limits.rows:,} rows of inputs, or too many bytes")
        fields = [pa.field(name, arrow_type(self.columns[name])) for name in columns]
        return pa.table(
            [
                self.read.column(field.name).cast(field.type)
                if field.name in self.read.column_names
                else pa.nulls(self.read.num_rows, field.type)
                for field in fields
            ],
            schema=pa.schema(fields),
        ).to_reader()
