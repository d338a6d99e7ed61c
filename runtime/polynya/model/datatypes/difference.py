"""How a type differs from the one it grew out of, and how to take only a part of the growth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polynya.model.datatypes.types import Array, DataType, MapType, Primitive, Struct, Void


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that was added (`old` None), or a type that was widened; `path` is below the type."""

    path: str
    old: DataType | None
    new: DataType


def differences(old: DataType, new: DataType, path: str = "") -> Iterator[Difference]:
    """Yield how `new` differs from `old`; `new` holds every value of `old`.

    The first value of what only held NULL so far is no difference, nor is a text where only empty
    objects were.
    """
    match old, new:
        case (Void(), _) | (Struct(()), Primitive()):
            return
        case Struct(before), Struct(after):
            known = dict(before)
            for name, kind in after:
                if name in known:
                    yield from differences(known[name], kind, f"{path}.{name}")
                else:
                    yield Difference(f"{path}.{name}", None, kind)
        case Array(element), Array(other):
            yield from differences(element, other, f"{path}.element")
        case MapType(_, value), MapType(_, other):
            yield from differences(value, other, f"{path}.value")
        case _:
            if old != new:
                yield Difference(path, old, new)


def restricted(old: DataType, new: DataType, *, grow: bool, widen: bool) -> DataType:
    """`new` without its added fields unless `grow`, and with the old scalars unless `widen`."""
    match old, new:
        case (Void(), _) | (Struct(()), Primitive()):
            return new
        case Struct(before), Struct(after):
            known = dict(before)
            return Struct(
                tuple(
                    (
                        name,
                        restricted(known[name], kind, grow=grow, widen=widen)
                        if name in known
                        else kind,
                    )
                    for name, kind in after
                    if grow or name in known
                )
            )
        case Array(element), Array(other):
            return Array(restricted(element, other, grow=grow, widen=widen))
        case MapType(key, value), MapType(_, other):
            return MapType(key, restricted(value, other, grow=grow, widen=widen))
        case _:
            return new if widen else old


def tag(kind: DataType) -> str:
    """The short name of a type, as in `<name>_<type>`."""
    match kind:
        case Struct():
            return "struct"
        case Array():
            return "array"
        case MapType():
            return "map"
        case _:
            return str(kind).partition("(")[0]
