"""Types of columns as Trino and Athena name them, and as the Glue Data Catalog does."""

from __future__ import annotations

from typing import Final

from polynya.model.datatypes import (
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
    storage_type,
)

_TRINO: Final = {
    "boolean": "boolean",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double",
    "string": "varchar",
    "binary": "varbinary",
    "date": "date",
    "timestamp": "timestamp(6) with time zone",
    "timestamp_ntz": "timestamp(6)",
}
#: The types whose text is the same in Spark and in Trino.
_SAME_TEXT: Final = frozenset({"boolean", "int", "bigint", "string", "date"})


def trino_type(datatype: DataType) -> str:
    """The type in Trino."""
    match storage_type(datatype):
        case Primitive(name):
            return _TRINO[name]
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element):
            return f"array({trino_type(element)})"
        case MapType(key, value):
            return f"map({trino_type(key)}, {trino_type(value)})"
        case Struct(fields):
            inner = ", ".join(f"{quoted(name)} {trino_type(kind)}" for name, kind in fields)
            return f"row({inner})"
        case other:
            raise AssertionError(f"no table stores {other}")


def shown_type(datatype: DataType) -> str:
    """The type in which a view shows a column: Athena's views hold no time zone at the top."""
    return "timestamp(6)" if datatype == Primitive("timestamp") else trino_type(datatype)


def glue_type(datatype: DataType) -> str:
    """The type in the Glue Data Catalog, which has that of Hive."""
    match storage_type(datatype):
        case Primitive("timestamp_ntz"):
            return "timestamp"
        case Array(element):
            return f"array<{glue_type(element)}>"
        case MapType(key, value):
            return f"map<{glue_type(key)},{glue_type(value)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{name}:{glue_type(kind)}' for name, kind in fields)}>"
        case other:
            return str(other)


def has_same_text(datatype: DataType) -> bool:
    """Whether a cast to text gives what it gives in Spark."""
    match datatype:
        case Primitive(name):
            return name in _SAME_TEXT
        case Decimal():
            return True
        case _:
            return False


def has_json(datatype: DataType) -> bool:
    """Whether Trino can make JSON of it: of binary and of times with a zone it cannot."""
    match datatype:
        case Array(element):
            return has_json(element)
        case MapType(key, value):
            return key == Primitive("string") and has_json(value)
        case Struct(fields):
            return all(has_json(kind) for _, kind in fields)
        case _:
            return datatype not in {Primitive("binary"), Primitive("timestamp")}


def quoted(name: str) -> str:
    """An identifier in Trino's SQL."""
    return '"' + name.replace('"', '""') + '"'
