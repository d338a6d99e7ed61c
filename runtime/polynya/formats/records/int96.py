"""Parquet files with times of 96 bits (INT96), as Spark, Hive and Impala wrote them for long.

Arrow makes nanoseconds in 64 bits of them, in which the years before 1677 and after 2262 become
other years. As microseconds every time of a table fits. Where one is finer, its column comes as
text, so that whoever types it refuses that record by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

_UNIT: Final = "us"


def has_int96(reader: parquet.ParquetFile) -> bool:
    """Whether a file has such times, nested ones too."""
    schema = reader.schema
    return any(schema.column(n).physical_type == "INT96" for n in range(len(schema)))


def exact_batches(
    file: BinaryIO, rows: int, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, or of some of its row groups, so many at a time.

    Raises what Arrow raises, and ValueError for a nested time that is finer than a microsecond.
    """
    reader = parquet.ParquetFile(file, coerce_int96_timestamp_unit=_UNIT)
    batches = reader.iter_batches(rows, row_groups=groups)
    if not has_int96(reader):
        yield from batches
        return
    # The same once more as nanoseconds, which wrap around: they tell what microseconds leave out.
    fine = parquet.ParquetFile(file).iter_batches(rows, row_groups=groups)
    for batch, nanos in zip(batches, fine, strict=True):
        columns = [_exact(*pair) for pair in zip(batch.columns, nanos.columns, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _exact(column: pa.Array, nanos: pa.Array) -> pa.Array:
    wrapped = column.cast(nanos.type, safe=False)
    if nanos.equals(wrapped):
        return column
    if not pa.types.is_timestamp(column.type):
        raise ValueError("a nested time of 96 bits is finer than a microsecond")
    rest = pc.subtract(nanos.view(pa.int64()), wrapped.view(pa.int64())).to_pylist()
    texts = column.cast(pa.string()).to_pylist()
    return pa.array(
        [
            text if not digits else f"{text}{digits % 2**64:03d}"
            for text, digits in zip(texts, rest, strict=True)
        ],
        pa.string(),
    )
