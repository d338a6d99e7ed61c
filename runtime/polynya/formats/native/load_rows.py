"""What a task yields of some records: rows in the fields of `task_schema`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER, TIMESTAMP_UTC, DatasetBatch
from polynya.formats.columnar import Places
from polynya.formats.loads import in_fields, rejected_rows
from polynya.formats.native.columnar import ColumnarRecords
from polynya.formats.values.columns import Faults


def rows_of_chunk(
    chunk: ColumnarRecords, places: Places, keys: Sequence[str], schema: pa.Schema
) -> pa.RecordBatch:
    """Rows of a chunk; those that may be rejected, for a fault or a NULL key, carry their text."""
    told = sorted({*places.faults, *_without_key(chunk, keys)})
    columns = {**chunk.columns, **_record_columns(chunk, told, places.faults)}
    if "__ci" in schema.names:
        columns["__ci"] = _default(places.identifiers, chunk.count)
        columns["__tail"] = places.tails
    if "__ts" in schema.names:
        columns["__ts"] = places.times.cast(TIMESTAMP_UTC)
    return in_fields(columns, chunk.count, schema)


def rows_of_batch(batch: DatasetBatch, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Rows of records that were read one by one, then those that were rejected."""
    rows = batch.rows.combine_chunks()
    columns = {name: _one(rows.column(name)) for name in rows.column_names}
    good = in_fields(columns, rows.num_rows, schema)
    return [good, rejected_rows(batch.rejected, schema)] if batch.rejected else [good]


def _without_key(chunk: ColumnarRecords, keys: Sequence[str]) -> list[int]:
    found: set[int] = set()
    for key in keys:
        column = chunk.columns[key]
        if column.null_count:
            found.update(pc.indices_nonzero(pc.is_null(column)).to_pylist())
    return sorted(found)


def _record_columns(
    chunk: ColumnarRecords, told: Sequence[int], faults: Faults
) -> dict[str, pa.Array]:
    if not told:
        return {}
    spread: dict[str, list[object]] = {
        name: [None] * chunk.count for name in ("__file", "__offset", "__raw", "__rule", "__error")
    }
    for index in told:
        spread["__file"][index] = chunk.file
        spread["__offset"][index] = chunk.first + index
        spread["__raw"][index] = chunk.raw(index)
        spread["__rule"][index], spread["__error"][index] = faults.get(index, (None, None))
    types = {"__offset": pa.int64(), "__raw": pa.binary()}
    return {name: pa.array(values, types.get(name, pa.string())) for name, values in spread.items()}


def _default(identifiers: pa.Array | None, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(NO_ORDER), count) if identifiers is None else identifiers


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
