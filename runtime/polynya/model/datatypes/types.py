"""The type model: frozen values whose text is Spark's DDL spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

PRIMITIVE_NAMES: Final = frozenset(
    {
        "boolean",
        "int",
        "bigint",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    }
)
MAX_PRECISION: Final = 38
_PLAIN_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters; `timestamp` is a UTC instant, `timestamp_ntz` has no zone."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in PRIMITIVE_NAMES:
            raise ValueError(f"unknown primitive type `{self.name}`")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of `precision` digits (at most 38), `scale` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_PRECISION or not 0 <= self.scale <= self.precision:
            raise ValueError(
                f"decimal({self.precision},{self.scale}) is out of range: "
                f"precision 1 to {MAX_PRECISION}, scale 0 to the precision"
            )

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of elements of one type."""

    element: DataType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from keys of one type to values of one type."""

    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields in order. Names are kept as they are, whatever they hold."""

    fields: tuple[tuple[str, DataType], ...]

    def __str__(self) -> str:
        return f"struct<{','.join(f'{_field_name(name)}:{kind}' for name, kind in self.fields)}>"


@dataclass(frozen=True, slots=True)
class Void:
    """The type of a column of which only NULLs were seen so far."""

    def __str__(self) -> str:
        return "void"


DataType: TypeAlias = Primitive | Decimal | Array | MapType | Struct | Void
#: The same for `isinstance`.
DATA_TYPES: Final = (Primitive, Decimal, Array, MapType, Struct, Void)

BOOLEAN: Final = Primitive("boolean")
INT: Final = Primitive("int")
BIGINT: Final = Primitive("bigint")
FLOAT: Final = Primitive("float")
DOUBLE: Final = Primitive("double")
STRING: Final = Primitive("string")
BINARY: Final = Primitive("binary")
DATE: Final = Primitive("date")
TIMESTAMP: Final = Primitive("timestamp")
TIMESTAMP_NTZ: Final = Primitive("timestamp_ntz")
#: The type of values of which only empty objects were seen so far: held as their text, `{}`.
EMPTY: Final = Struct(())


def _field_name(name: str) -> str:
    """Back-quote a field name unless it is plain."""
    return name if _PLAIN_FIELD.fullmatch(name) else "`" + name.replace("`", "``") + "`"
