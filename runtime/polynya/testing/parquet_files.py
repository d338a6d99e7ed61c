"""A Parquet file of the records that a test writes as YAML."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.formats.values.arrow_types import arrow_type
from polynya.model.datatypes import DataType, storage_type


def parquet_file(records: Sequence[Mapping[str, Any]], declared: Mapping[str, DataType]) -> bytes:
    """Return the bytes of a file with a column for each name, NULL where a record lacks it.

    A declared column has its declared type, and text in it is converted; another column has the
    type of its values. Raises ValueError when a value does not fit, or two do not fit together.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {
        name: _column(name, [record.get(name) for record in records], declared.get(name))
        for name in names
    }
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def _column(name: str, values: list[Any], kind: DataType | None) -> pa.Array:
    try:
        if kind is None:
            return pa.array(values)
        wanted = arrow_type(storage_type(kind))
        if all(value is None or isinstance(value, str) for value in values):
            return pa.array(values, pa.string()).cast(wanted)
        return pa.array(values, wanted)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise ValueError(f"column {name} of a Parquet file cannot hold this: {error}") from error
