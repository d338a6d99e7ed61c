"""Structs that functions make: fields with names that a literal lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polynya.model.contract.identifiers import literal
from polynya.model.datatypes import STRING, Struct
from polynya.transform.functions.base import Value, null


def names_of(value: Value) -> list[str]:
    """The names that a literal lists, divided by commas; no name twice."""
    names = (name.strip() for name in (value.constant or "").split(","))
    return list(dict.fromkeys(name for name in names if name))


def record(fields: Mapping[str, Value]) -> Value:
    """A struct; NULL of a text where it would have no field."""
    if not fields:
        return null(STRING)
    members = ", ".join(f"{literal(name)}, {value.sql}" for name, value in fields.items())
    kind = Struct(tuple((name, value.kind) for name, value in fields.items()))
    return Value(f"named_struct({members})", kind)


def said(values: Sequence[Value], index: int) -> bool:
    """Whether an argument that may be left out says `true`."""
    return len(values) > index and (values[index].constant or "").lower() == "true"
