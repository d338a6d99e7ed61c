"""Arrow columns as an Iceberg data file stores them: every field with its field id.

Readers find a column by the id in the file and not by its name, also inside structs, lists and maps
(Iceberg specification, "Column Projection").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

_ID = "PARQUET:field_id"
#: Arrow types of Iceberg's, but for those with parameters.
_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
#: Arrow type in a file → type of its column since Iceberg promoted it, or as others write it.
_PROMOTED = {
    ("int32", "int64"),
    ("float", "double"),
    ("large_string", "string"),
    ("large_binary", "binary"),
}


def as_stored(rows: pa.Table, columns: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The columns of `rows`, in the order of the table, with the field ids of the table.

    `columns` are those of the table as Iceberg's specification writes a schema in JSON.
    """
    present = set(rows.column_names)
    there = [column for column in columns if column["name"] in present]
    fields = [
        _field(column["name"], column["id"], rows.schema.field(column["name"]).type, column["type"],
               required=column["required"])
        for column in there
    ]  # fmt: skip
    schema = pa.schema(fields)
    return pa.Table.from_arrays(
        [rows.column(field.name).cast(field.type) for field in schema], schema=schema
    )


def arrow_type(stored: Any) -> pa.DataType | None:
    """The Arrow type of a primitive type of Iceberg's, None for any other."""
    if not isinstance(stored, str):
        return None
    digits = _DECIMAL.fullmatch(stored)
    return pa.decimal128(*map(int, digits.groups())) if digits else _PLAIN.get(stored)


def field_id(field: pa.Field) -> int | None:
    """The id of a field as a file holds it."""
    number = (field.metadata or {}).get(_ID.encode())
    return None if number is None else int(number)


def holds(field: pa.Field, stored: Any) -> bool:
    """Whether a field of a file has the type that the table has now, up to a promotion.

    A type with fields inside must be the same down to names and ids.
    """
    plain = arrow_type(stored)
    if plain is not None:
        return field.type == plain or (str(field.type), str(plain)) in _PROMOTED or (
            pa.types.is_decimal(field.type)
            and pa.types.is_decimal(plain)
            and field.type.scale == plain.scale
            and field.type.precision <= plain.precision
        )  # fmt: skip
    if isinstance(stored, str) or not pa.types.is_nested(field.type):
        return False
    inside = _inside(stored)
    given = [field.type.field(index) for index in range(field.type.num_fields)]
    if stored["type"] == "map":
        given = [field.type.key_field, field.type.item_field]
    return len(given) == len(inside) and all(
        (field_id(array), array.name) == (number, name)
        and (arrow_type(kind) == array.type if isinstance(kind, str) else holds(array, kind))
        for array, (number, name, kind) in zip(given, inside, strict=True)
    )


def _inside(stored: Mapping[str, Any]) -> list[tuple[int, str, Any]]:
    """Id, name and type of the fields inside of a type."""
    if stored["type"] == "struct":
        return [(field["id"], field["name"], field["type"]) for field in stored["fields"]]
    if stored["type"] == "list":
        return [(stored["element-id"], "element", stored["element"])]
    return [
        (stored["key-id"], "key", stored["key"]),
        (stored["value-id"], "value", stored["value"]),
    ]


def _field(name: str, number: int, arrow: pa.DataType, stored: Any, *, required: bool) -> pa.Field:
    return pa.field(name, typed(arrow, stored), nullable=not required, metadata={_ID: str(number)})


def typed(arrow: pa.DataType, stored: Any) -> pa.DataType:
    """The Arrow type of a column of type `stored`, with the ids that Iceberg gives inside.

    `arrow` is the type that its values have now.
    """
    if isinstance(stored, str):
        return arrow_type(stored) or arrow
    if stored["type"] == "struct":
        given = {field.name: field.type for field in arrow}
        return pa.struct(
            [
                _field(field["name"], field["id"], given[field["name"]], field["type"],
                       required=field["required"])
                for field in stored["fields"]
            ]
        )  # fmt: skip
    if stored["type"] == "list":
        return pa.list_(
            _field("element", stored["element-id"], arrow.value_type, stored["element"],
                   required=stored["element-required"])
        )  # fmt: skip
    return pa.map_(
        _field("key", stored["key-id"], arrow.key_type, stored["key"], required=True),
        _field("value", stored["value-id"], arrow.item_type, stored["value"],
               required=stored["value-required"]),
    )  # fmt: skip
