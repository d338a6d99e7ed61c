"""What other engines cannot read in a table, or take for something else.

Sources: Iceberg's pages of Amazon Redshift (`iceberg-v3-features`, `querying-iceberg`), Amazon
Athena, Trino 476, and of Databricks on foreign Iceberg tables, read in November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from polynya.model.names import folded, shown

#: Deleted rows are in deletion vectors from this version of the format on.
_VECTORS_SINCE = 3


def obstacles(schema: Schema, version: int, wanted_version: int) -> Iterator[str]:
    """What stands in the way of other engines, by the names of columns.

    Args:
        schema: of the table.
        version: of Iceberg's format that the table has.
        wanted_version: the one that the settings of the dataset name.
    """
    if version >= _VECTORS_SINCE:
        origin = "as `format_version` says" if wanted_version >= version else "by another engine"
        yield (
            f"it is a table of version {version}, {origin}: Trino 476 cannot read its deleted "
            "rows, and Athena documents version 2 only"
        )
        nested = [field.name for field in schema.fields if not field.field_type.is_primitive]
        if nested:
            yield f"Redshift reads no {_named(nested)} in a table of version {version}"
    yield from folding_columns(schema)
    for path in required_inside(schema):
        yield f"Databricks cannot read {shown(path)}, which is NOT NULL inside a list or a map"


def folding_columns(schema: Schema) -> Iterator[str]:
    """Columns that engines take for one, which compare names without regard to case."""
    for inside, fields in _levels("", schema.as_struct()):
        met: dict[str, str] = {}
        for field in fields:
            other = met.setdefault(folded(field.name), field.name)
            if other != field.name:
                place = f" of {shown(inside)}" if inside else ""
                yield (
                    f"columns {shown(other)} and {shown(field.name)}{place} are one to Snowflake, "
                    "Redshift and Athena"
                )


def required_inside(schema: Schema) -> Iterator[str]:
    """Paths of fields that must not be NULL inside of lists and maps."""
    for field in schema.fields:
        yield from _required(field.name, field.field_type, inside=False)


def _required(path: str, kind: IcebergType, *, inside: bool) -> Iterator[str]:
    match kind:
        case StructType(fields=fields):
            for field in fields:
                if inside and field.required:
                    yield f"{path}.{field.name}"
                yield from _required(f"{path}.{field.name}", field.field_type, inside=inside)
        case ListType():
            if kind.element_required:
                yield f"{path}.element"
            yield from _required(f"{path}.element", kind.element_type, inside=True)
        case MapType():
            if kind.value_required:
                yield f"{path}.value"
            yield from _required(f"{path}.value", kind.value_type, inside=True)


def _levels(path: str, kind: IcebergType) -> Iterator[tuple[str, tuple[NestedField, ...]]]:
    """The fields of each struct in a type, with the path of the struct."""
    match kind:
        case StructType(fields=fields):
            yield path, fields
            for field in fields:
                below = f"{path}.{field.name}" if path else field.name
                yield from _levels(below, field.field_type)
        case ListType():
            yield from _levels(path, kind.element_type)
        case MapType():
            yield from _levels(path, kind.value_type)


def _named(columns: list[str]) -> str:
    return ", ".join(map(shown, columns[:5])) + (" and more" if len(columns) > 5 else "")
