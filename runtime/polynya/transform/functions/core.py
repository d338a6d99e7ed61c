"""The functions of expressions: how Polynya's are defined, and which of Spark's are allowed.

A call of Polynya's own function is rewritten into native Spark expressions for the types of its
arguments. An argument of another type, or without a sensible value, counts as NULL: no value of a
row raises an error.

Spark's functions are on an allow-list: pure, deterministic, one value per row. Not on it are
functions that reach outside (`reflect`, `java_method`, `input_file_name`), differ from run to run
(`current_timestamp`, `rand`, `uuid`), look at other rows (aggregates, windows), make rows
(`explode`), raise (`raise_error`), or grow a value without bound (`repeat`, `sequence`, `lpad`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.model.names import literal
from polynya.model.types import STRING, DataType, Struct

_PLACE: Final = re.compile(r"\s*(\d{1,4})\s*(?:,\s*number\s*(?:,(.+))?)?", re.DOTALL)
_NAMED: Final = {"percent": "#,##0%", "integer": "#,##0", "currency": None}
_NUMBER_PATTERN: Final = "#,##0.###"


@dataclass(frozen=True, slots=True)
class PatternPart:
    """Plain text, or the place of an input with the pattern of a number (None: as text)."""

    text: str
    index: int | None = None
    pattern: str | None = None


def message_parts(form: str) -> list[PatternPart] | None:
    """The parts of a format; None for one that is wrong."""
    parts, plain, at, quoted = [], "", 0, False
    while at < len(form):
        letter = form[at]
        if letter == "'":
            if form[at + 1 : at + 2] == "'":
                plain, at = plain + letter, at + 1
            else:
                quoted = not quoted
        elif letter == "{" and not quoted:
            end = form.find("}", at)
            place = None if end < 0 else _input_part(form[at + 1 : end])
            if place is None:
                return None
            parts += [PatternPart(plain), place] if plain else [place]
            plain, at = "", end
        elif letter == "}" and not quoted:
            return None
        else:
            plain += letter
        at += 1
    return [*parts, PatternPart(plain)] if plain else parts


def _input_part(text: str) -> PatternPart | None:
    match = _PLACE.fullmatch(text)
    if match is None:
        return None
    index, pattern = int(match[1]), match[2]
    if "," not in text:
        return PatternPart("", index)
    if pattern is None:
        return PatternPart("", index, _NUMBER_PATTERN)
    named = _NAMED.get(pattern.strip(), pattern)
    return None if named is None else PatternPart("", index, named)


#: What is short enough to be written several times: a column, a literal, a variable.
_SIMPLE: Final = re.compile(r"(`[^`]{1,80}`(\.`[^`]{1,80}`){0,3}|-?[\w.]{1,40}|'[^'\\]{0,40}')")


@dataclass(frozen=True, slots=True)
class Value:
    """An expression of Spark SQL and its type.

    `constant` is what a literal says, as text; None for what is computed.
    """

    sql: str
    kind: DataType
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class ExpressionContext:
    """Where an expression runs.

    Attributes:
        kinds: the types of fragments of Spark SQL there.
        works: whether a fragment without columns can be computed.
        row: SQL of a text that only this row has, the same on every run.
    """

    kinds: Callable[[Sequence[str]], Sequence[DataType]]
    works: Callable[[str], bool]
    row: str

    def typed(self, sql: str) -> Value:
        """A fragment with the type that it has here."""
        return Value(sql, self.kinds([sql])[0])


Build: TypeAlias = Callable[[Sequence[Value], ExpressionContext], Value]


@dataclass(frozen=True, slots=True)
class Example:
    """A call, and what it gives, as JSON."""

    call: str
    gives: str


@dataclass(frozen=True, slots=True)
class Function:
    """A line of the table of functions.

    Attributes:
        name: in small letters.
        family: the part of the reference that it stands in.
        parameters: names; `'x'` takes a literal only, `x?` may be left out, `x+` takes one or more.
        about: what it gives and its edge cases, in sentences.
        build: makes the SQL of a call; None for a header column.
        examples: tested, and shown in the reference.
        written: the name as a call has it, with its qualifier where it needs one.
        header: the header column of messages that a call stands for, whatever its arguments.
        by_place: what it gives depends on the place of the record in the landing zone.
    """

    name: str
    family: str
    parameters: tuple[str, ...]
    about: str
    build: Build | None
    examples: tuple[Example, ...]
    written: str = ""
    header: str | None = None
    by_place: bool = False

    @property
    def signature(self) -> str:
        """As people read it: `substring(text, start[, end])`."""
        text = ""
        for index, parameter in enumerate(self.parameters):
            shown = parameter.rstrip("?+") + (", …" if parameter.endswith("+") else "")
            comma = ", " if index else ""
            text += f"[{comma}{shown}]" if parameter.endswith("?") else f"{comma}{shown}"
        return f"{self.written}({text})"

    @property
    def fewest(self) -> int:
        """How many arguments a call has at least."""
        return sum(not parameter.endswith("?") for parameter in self.parameters)

    @property
    def most(self) -> int | None:
        """How many arguments a call has at most; None without a limit."""
        many = any(parameter.endswith("+") for parameter in self.parameters)
        return None if many else len(self.parameters)

    def parameter(self, index: int) -> str:
        """The parameter that takes an argument."""
        return self.parameters[min(index, len(self.parameters) - 1)]


def function(
    name: str,
    parameters: str,
    build: Build | None,
    about: str,
    *examples: str,
    header: str | None = None,
    by_place: bool = False,
) -> Function:
    """A line of the table, without its family.

    `parameters` are divided by blanks. `examples` are `call -> JSON`.
    """
    pairs = (example.split(" -> ") for example in examples)
    shown = tuple(Example(call, gives) for call, gives in pairs)
    text, names = " ".join(about.split()), tuple(parameters.split())
    return Function(name, "", names, text, build, shown, header=header, by_place=by_place)


def template(sql: str, kind: DataType, *coerced: Callable[[Value], Value]) -> Build:
    """A function that is one expression of Spark.

    `sql` has a `{}` for each argument, which the function of `coerced` at its position brings to
    the type that Spark takes there.
    """

    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        arguments = (coerce(value).sql for coerce, value in zip(coerced, values, strict=True))
        return Value(sql.format(*arguments), kind)

    return build


def null(kind: DataType = STRING) -> Value:
    """NULL of a type."""
    return Value(f"CAST(NULL AS {kind})", kind)


def text_of(value: str) -> Value:
    """A text that is known here."""
    return Value(literal(value), STRING, value)


def is_simple(sql: str) -> bool:
    """Whether SQL is a column, a literal or a variable: short, and whole wherever it stands."""
    return _SIMPLE.fullmatch(sql) is not None


def let(tag: str, value: Value, body: Callable[[Value], str]) -> str:
    """SQL that uses a value several times but computes, and writes, it once.

    `tag` differs between the values of one function. The name of the variable is one that no
    column has.
    """
    if is_simple(value.sql):
        return body(value)
    variable = f"`|{tag}`"
    return f"transform(array({value.sql}), {variable} -> {body(Value(variable, value.kind))})[0]"


def item(tag: str, kind: DataType) -> Value:
    """The variable that stands for an element of an array in a lambda."""
    return Value(f"`|{tag}`", kind)


_CONDITIONAL: Final = """
    coalesce equal_null greatest if ifnull isnan isnotnull isnull least nanvl nullif
    nullifzero nvl nvl2 zeroifnull
"""
_STRING: Final = """
    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws
    contains endswith find_in_set hex initcap instr lcase left length levenshtein locate
    lower ltrim md5 octet_length position regexp regexp_count regexp_extract regexp_instr
    regexp_like regexp_replace regexp_substr replace reverse right rlike rtrim sha sha1 sha2
    split_part startswith substr substring substring_index translate trim ucase unbase64
    unhex upper
"""
_NUMBER_FUNCTIONS: Final = """
    abs bin bround cbrt ceil ceiling conv crc32 div exp floor hash ln log log10 log2 mod
    negative pmod positive pow power round shiftleft shiftright sign signum sqrt try_add
    try_divide try_mod try_multiply try_subtract xxhash64
"""
_DATE: Final = """
    add_months date_add date_diff date_format date_from_unix_date date_part date_sub
    date_trunc datediff day dayofmonth dayofweek dayofyear extract from_unixtime
    from_utc_timestamp hour last_day make_date make_timestamp minute month months_between
    next_day quarter second timestamp_micros timestamp_millis timestamp_seconds to_date
    to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc
    try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds
    unix_timestamp weekday weekofyear year
"""
_CONVERSION: Final = """
    bigint binary boolean date decimal double float int smallint string timestamp tinyint
    to_binary to_char to_number try_to_binary try_to_number
"""
_NESTED: Final = """
    array_contains array_position cardinality element_at get get_json_object
    json_array_length json_object_keys map_contains_key size try_element_at
"""

ALLOWED_FUNCTIONS: Final = frozenset(
    f"{_CONDITIONAL} {_STRING} {_NUMBER_FUNCTIONS} {_DATE} {_CONVERSION} {_NESTED}".split()
)


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


def flag(values: Sequence[Value], index: int) -> bool:
    """Whether an argument that may be left out says `true`."""
    return len(values) > index and (values[index].constant or "").lower() == "true"
