"""Arrow columns of a file as columns of the dataset, without a look at single values.

Only for what every value survives as it is. Whatever else there is, the exact reader types value by
value; `None` says so.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.values.arrow_types import arrow_type
from polynya.model.datatypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

#: Times between these, in microseconds, are in the calendar whatever their zone: years 2 to 9998.
_FIRST_MICROS, _LAST_MICROS = -62_103_715_200_000_000, 253_370_764_800_000_000
_FIRST_DAY, _LAST_DAY = -718_791, 2_932_532


def typed_columns(
    rows: pa.RecordBatch, schema: Mapping[str, DataType]
) -> dict[str, pa.Array] | None:
    """The columns of `schema`, those that the file lacks as NULLs.

    None when the values of one must be looked at, or the file has a column more. Raises
    `pa.ArrowInvalid` for a text that is not UTF-8.
    """
    if not set(rows.schema.names) <= set(schema):
        return None
    found: dict[str, pa.Array] = {}
    for name, kind in schema.items():
        place = rows.schema.get_field_index(name)
        if place < 0:
            found[name] = pa.nulls(rows.num_rows, arrow_type(kind))
            continue
        column = typed(rows.column(place), kind)
        if column is None:
            return None
        found[name] = column
    return found


def typed(column: pa.Array, kind: DataType) -> pa.Array | None:
    """One column as that of a type, None when its values must be looked at."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), arrow_type(kind))
    if not _is_same(column.type, kind):
        return None
    try:
        column = column.cast(arrow_type(kind))
    except pa.ArrowInvalid:
        return None
    if kind == STRING:
        column.validate(full=True)
    return column if _is_in_calendar(column, kind) else None


def _is_same(arrow: pa.DataType, kind: DataType) -> bool:
    """Whether a type of Arrow holds no value that is another one in the type of the column."""
    types = pa.types
    if isinstance(kind, Decimal):
        return types.is_decimal128(arrow) and (arrow.precision, arrow.scale) == (
            kind.precision,
            kind.scale,
        )
    small = types.is_int8(arrow) or types.is_int16(arrow) or types.is_int32(arrow)
    small = small or types.is_uint8(arrow) or types.is_uint16(arrow)
    checks: dict[DataType, bool] = {
        BOOLEAN: types.is_boolean(arrow),
        INT: small,
        BIGINT: small or types.is_int64(arrow) or types.is_uint32(arrow),
        FLOAT: types.is_float32(arrow),
        DOUBLE: types.is_float64(arrow),
        STRING: types.is_string(arrow) or types.is_large_string(arrow),
        BINARY: types.is_binary(arrow) or types.is_large_binary(arrow),
        DATE: types.is_date32(arrow),
        TIMESTAMP: types.is_timestamp(arrow) and arrow.tz is not None,
        TIMESTAMP_NTZ: types.is_timestamp(arrow) and arrow.tz is None,
    }
    return checks.get(kind, False)


def _is_in_calendar(column: pa.Array, kind: DataType) -> bool:
    if kind == DATE:
        first, last, plain = _FIRST_DAY, _LAST_DAY, column.view(pa.int32())
    elif kind in {TIMESTAMP, TIMESTAMP_NTZ}:
        first, last, plain = _FIRST_MICROS, _LAST_MICROS, column.view(pa.int64())
    else:
        return True
    ends = pc.min_max(plain)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (low >= first and high <= last)
