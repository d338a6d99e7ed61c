"""From the types of Replicate to column types."""

from __future__ import annotations

from typing import Any

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
    DataType,
    Decimal,
)
from polynya.model.datatypes.types import MAX_PRECISION

_TYPES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "INT1": INT,
    "INT2": INT,
    "INT4": INT,
    "INT8": BIGINT,
    "UINT1": INT,
    "UINT2": INT,
    "UINT4": BIGINT,
    "UINT8": Decimal(20, 0),
    "REAL4": FLOAT,
    "REAL8": DOUBLE,
    "STRING": STRING,
    "WSTRING": STRING,
    "CLOB": STRING,
    "NCLOB": STRING,
    "TIME": STRING,
    "BYTES": BINARY,
    "BLOB": BINARY,
    "DATE": DATE,
    "DATETIME": TIMESTAMP,
}


def column_type(name: Any, precision: int, scale: int) -> DataType | None:
    """The column type of a Replicate type, None where the values have to decide."""
    folded = str(name).upper()
    if folded != "NUMERIC":
        return _TYPES.get(folded)
    fits = 1 <= precision <= MAX_PRECISION and scale <= precision
    return Decimal(precision, scale) if fits else None
