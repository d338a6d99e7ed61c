"""Arrow columns as an Iceberg data file stores them: every field with its id.

Readers find a column by the id in the file, not by its name, also inside of structs, lists and
maps (Iceberg specification, "Column Projection").
"""

from __future__ import annotations

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


def _field(name: str, number: int, arrow: pa.DataType, stored: Any, *, required: bool) -> pa.Field:
    return pa.field(name, _type(arrow, stored), nullable=not required, metadata={_ID: str(number)})


def _type(arrow: pa.DataType, stored: Any) -> pa.DataType:
    """The Arrow type with the ids that Iceberg gives to the fields inside."""
    if isinstance(stored, str):
        return _PLAIN.get(stored, arrow)
    if stored["type"] == "struct":
        given = {field.name: field.type for field in arrow}
        return pa.struct(
            [
                _field(one["name"], one["id"], given[one["name"]], one["type"],
                       required=one["required"])
                for one in stored["fields"]
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
