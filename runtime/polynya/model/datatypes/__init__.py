"""The column types that all rooms share, their text form, and which types may become which."""

from __future__ import annotations

from polynya.model.datatypes.parser import TypeSyntaxError, parse_type
from polynya.model.datatypes.promotion import is_in_place, storage_type, unify, widen
from polynya.model.datatypes.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATA_TYPES,
    DATE,
    DOUBLE,
    EMPTY,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
    Void,
)

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATA_TYPES",
    "DATE",
    "DOUBLE",
    "EMPTY",
    "FLOAT",
    "INT",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "Array",
    "DataType",
    "Decimal",
    "MapType",
    "Primitive",
    "Struct",
    "TypeSyntaxError",
    "Void",
    "is_in_place",
    "parse_type",
    "storage_type",
    "unify",
    "widen",
]
