"""The type model: frozen values whose text is Spark's DDL, and the parser of that text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
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
    """The type of a column that has only had NULLs so far."""

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
#: The type of a column that has only had empty objects so far: held as their text, `{}`.
EMPTY: Final = Struct(())


def _field_name(name: str) -> str:
    """Back-quote a field name unless it is plain."""
    return name if _PLAIN_FIELD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


# Spark's other spellings. Iceberg has no 8- or 16-bit integer: int holds those.
_ALIASES: Final = {
    "bool": "boolean",
    "tinyint": "int",
    "byte": "int",
    "smallint": "int",
    "short": "int",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "timestamptz": "timestamp",
}
_DECIMALS: Final = frozenset({"decimal", "dec", "numeric"})
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z0-9_]+)|([<>(),:]))")
_MAX_LENGTH: Final = 100_000
_MAX_DEPTH: Final = 64


class TypeSyntaxError(ValueError):
    """Raised when a text is not a type; `position` is the 0-based place in the text."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} at position {position}")
        self.position = position


def parse_type(text: str) -> DataType:
    """Return the type that a Spark type text spells; raises TypeSyntaxError (a ValueError)."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > _MAX_LENGTH:
            raise TypeSyntaxError(f"a type text has at most {_MAX_LENGTH} characters", _MAX_LENGTH)
        self._text = text
        self._position = 0
        self._depth = 0

    def parse(self) -> DataType:
        kind = self._type()
        if self._text[self._position :].strip():
            raise TypeSyntaxError("unexpected text after the type", self._position)
        return kind

    def _type(self) -> DataType:
        start = self._position
        word = self._word("a type").lower()
        if word in _DECIMALS:
            return self._decimal(start)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise TypeSyntaxError(f"types nest at most {_MAX_DEPTH} deep", start)
        kind = self._nested_or_primitive(word, start)
        self._depth -= 1
        return kind

    def _nested_or_primitive(self, word: str, start: int) -> DataType:
        if word == "array":
            self._expect("<")
            element = self._type()
            self._expect(">")
            return Array(element)
        if word == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return MapType(key, value)
        if word == "struct":
            return self._struct()
        if word == "void":
            return Void()
        name = _ALIASES.get(word, word)
        if name not in PRIMITIVE_NAMES:
            raise TypeSyntaxError(f"unknown type `{word[:60]}`", start)
        return Primitive(name)

    def _decimal(self, start: int) -> DataType:
        if self._peek() != "(":
            return Decimal(10, 0)
        self._expect("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._expect(",")
            scale = self._number()
        self._expect(")")
        try:
            return Decimal(precision, scale)
        except ValueError as error:
            raise TypeSyntaxError(str(error), start) from None

    def _struct(self) -> DataType:
        self._expect("<")
        fields: dict[str, DataType] = {}
        while self._peek() != ">":
            if fields:
                self._expect(",")
            start = self._position
            name = self._field_name()
            if self._peek() == ":":
                self._expect(":")
            if name in fields:
                raise TypeSyntaxError(f"duplicate field `{name}`", start)
            fields[name] = self._type()
        self._expect(">")
        return Struct(tuple(fields.items()))

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._position)
        return match[match.lastindex or 0].strip() if match else ""

    def _next(self, wanted: str) -> re.Match[str]:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise TypeSyntaxError(f"expected {wanted}", self._position)
        return match

    def _expect(self, symbol: str) -> None:
        match = self._next(f"`{symbol}`")
        if match[3] != symbol:
            raise TypeSyntaxError(f"expected `{symbol}`", match.start(match.lastindex or 0))
        self._position = match.end()

    def _word(self, wanted: str) -> str:
        match = self._next(wanted)
        if match[2] is None:
            raise TypeSyntaxError(f"expected {wanted}", match.start(match.lastindex or 0))
        self._position = match.end()
        return match[2]

    def _number(self) -> int:
        start, word = self._position, self._word("a number")
        # More digits than any precision has would make int() slow and mean nothing.
        if not word.isascii() or not word.isdigit() or len(word) > len("100"):
            raise TypeSyntaxError(f"expected a number, got `{word}`", start)
        return int(word)

    def _field_name(self) -> str:
        match = self._next("a field name")
        if match[3] is not None:
            raise TypeSyntaxError("expected a field name", match.start(3))
        self._position = match.end()
        if match[1] is not None:
            return match[1][1:-1].replace("``", "`")
        return match[2]


_COUNTERPARTS: Final = {
    **dict.fromkeys(("varchar", "varchar2", "nvarchar", "char", "character", "nchar"), "string"),
    **dict.fromkeys(("text", "str", "clob", "uuid", "json", "jsonb", "enum", "time"), "string"),
    **dict.fromkeys(("datetime", "datetime2", "datetimeoffset"), "timestamp"),
    **dict.fromkeys(("timestamp_tz", "timestampntz", "timestampz"), "timestamp"),
    **dict.fromkeys(("number", "bignumeric"), "decimal(38,10)"),
    **dict.fromkeys(("money", "currency"), "decimal(19,4)"),
    **dict.fromkeys(("float8", "float64", "double_precision"), "double"),
    **dict.fromkeys(("float4", "float32"), "float"),
    **dict.fromkeys(("int8", "int64", "serial", "bigserial", "hugeint"), "bigint"),
    **dict.fromkeys(("int2", "int4", "int16", "int32", "mediumint"), "int"),
    **dict.fromkeys(("blob", "bytes", "bytea", "varbinary", "raw"), "binary"),
    **dict.fromkeys(("bit", "logical"), "boolean"),
    "list": "array<string>",
    "object": "struct<name:string>",
}
_KNOWN: Final = (*sorted(PRIMITIVE_NAMES), "array<…>", "decimal(p,s)", "map<…,…>", "struct<…>")


def type_advice(word: str) -> str:
    """What to write in place of a type that is not known."""
    name = word.lower()
    known = f"types: {', '.join(_KNOWN)}"
    if name in _COUNTERPARTS:
        return f"write `{_COUNTERPARTS[name]}`; {known}"
    close = get_close_matches(name[:100], [*PRIMITIVE_NAMES, "decimal", "array", "map", "struct"])
    return f"did you mean `{close[0]}`? {known}" if close else known
