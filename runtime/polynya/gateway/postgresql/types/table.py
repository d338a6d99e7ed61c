"""The types of a database, its own ones included: how a column of each leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polynya.gateway.postgresql.sql import identifier
from polynya.gateway.postgresql.types import encoding
from polynya.gateway.postgresql.types.known import (
    EXTENSIONS,
    GEOMETRIES,
    NO_ARRAYS,
    NULLABLE_ELEMENTS,
    OPAQUE,
    UNTRIED,
    Written,
    built_in,
    geometry,
    is_negative_scale,
)

_CATALOG = "pg_catalog"
_IN_ARRAYS = {"date": encoding.date_in_array, "time": encoding.time_in_array}


@dataclass(frozen=True, slots=True)
class PgType:
    """A row of pg_type.

    Attributes:
        kind: `b` base, `d` domain, `e` enum, `c` composite, `r` range, `m` multirange.
        element: of an array, else 0.
        base: of a domain, else 0; `base_typmod` with it.
        labels: of an enum.
    """

    schema: str
    name: str
    kind: str
    element: int = 0
    base: int = 0
    base_typmod: int = -1
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that Debezium cannot give, and why."""

    why: str


def written(types: Mapping[int, PgType], oid: int, typmod: int) -> Written | LeftOut:
    """How a column of a type leaves the database."""
    found = types.get(oid)
    while found is not None and found.kind == "d":
        typmod = found.base_typmod if found.base_typmod >= 0 else typmod
        oid, found = found.base, types.get(found.base)
    if found is None:
        return OPAQUE
    if found.element:
        return _array(types, found, typmod)
    if _is_untried(found):
        return LeftOut(f"{found.name} was never tried")
    if found.schema == _CATALOG and is_negative_scale(found.name, typmod):
        return LeftOut("a number with a negative scale has no exact place in the stream")
    return _single(found, typmod)


def _is_untried(found: PgType) -> bool:
    return found.schema != _CATALOG and found.kind == "b" and found.name in UNTRIED


def _single(found: PgType, typmod: int) -> Written:
    if found.kind == "e":
        schema = {
            "type": "string",
            "name": "io.debezium.data.Enum",
            "version": 1,
            "parameters": {"allowed": ",".join(found.labels)},
        }
        return Written(schema, encoding.text)
    if found.schema == _CATALOG:
        return built_in(found.name, typmod) or OPAQUE
    if found.name == "hstore":
        schema_of = {
            "type": "map",
            "keys": {"type": "string", "optional": False},
            "values": {"type": "string", "optional": True},
        }
        return Written(schema_of, encoding.map_of(identifier(found.schema)))
    if found.kind == "b" and found.name in GEOMETRIES:
        return geometry(found.name, identifier(found.schema))
    return EXTENSIONS.get(found.name, OPAQUE) if found.kind == "b" else OPAQUE


def _array(types: Mapping[int, PgType], found: PgType, typmod: int) -> Written | LeftOut:
    element = types.get(found.element)
    if found.schema == _CATALOG and found.name in {"int2vector", "oidvector"}:
        return LeftOut("the stream has lists of this type without their elements")
    if element is None or element.kind == "d":
        return _list_of(OPAQUE, may_be_null=False)
    if _is_untried(element) or (element.kind == "b" and element.name in GEOMETRIES):
        return LeftOut(f"lists of {element.name} were never tried")
    if element.schema == _CATALOG and element.name in NO_ARRAYS:
        return LeftOut(f"the stream has no lists of {element.name}")
    if element.schema == _CATALOG and is_negative_scale(element.name, typmod):
        return LeftOut("a number with a negative scale has no exact place in the stream")
    inner = _single(element, typmod)
    other = _IN_ARRAYS.get(element.name) if element.schema == _CATALOG else None
    if other is not None:
        inner = Written(inner.schema, other)
    is_known = element.kind in "br" and element.name in NULLABLE_ELEMENTS
    return _list_of(inner, may_be_null=is_known)


def _list_of(inner: Written, *, may_be_null: bool) -> Written:
    items = {**inner.schema, "optional": may_be_null}
    return Written(
        {"type": "array", "items": items}, encoding.array(inner.encode, null_elements=may_be_null)
    )
