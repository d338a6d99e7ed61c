"""Values, relations and functions of the embedded engine, with Spark's types.

A function on the list has the same value in both engines for all values of its arguments, or raises
an error in DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from sqlglot import exp

from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)
from polynya.query.translate import NotEmbeddedError, start_of

#: The most digits of a decimal.
MAX_DIGITS: Final = 38
#: Integers that Spark and DuckDB compute with alike, but for an overflow, which is an error here.
INTEGERS: Final = frozenset({INT, BIGINT})
_ORDERED: Final = frozenset({INT, BIGINT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ})
_KEYS: Final = _ORDERED | {BOOLEAN, BINARY}


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of the statement: its text without quotes, with its sign."""

    text: str
    is_string: bool


@dataclass(frozen=True, slots=True)
class EmbeddedValue:
    """An expression in DuckDB's SQL.

    `type` is None for what has none by itself: NULL, and a number with a point. `name` is what
    Spark calls the expression where nobody gives it a name; None where we do not know.
    """

    sql: str
    type: DataType | None
    name: str | None = None
    constant: Constant | None = None

    @property
    def known(self) -> DataType:
        """Its type. Raises NotEmbeddedError where it has none."""
        if self.type is None:
            raise NotEmbeddedError("a literal whose type depends on what is around it")
        return self.type


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation; `sql` is how the relation itself calls it."""

    name: str
    type: DataType
    sql: str


@dataclass(frozen=True, slots=True)
class Relation:
    """Something to select from: DuckDB's SQL, which stands behind FROM, and its columns."""

    sql: str
    columns: tuple[RelationColumn, ...]
    use: Callable[[str], None] = field(default=lambda _: None, compare=False)


@dataclass(frozen=True, slots=True)
class AliasedRelation:
    """A relation under the name that a statement gives it, and under ours."""

    name: str
    alias: str
    relation: Relation

    def columns(self) -> list[EmbeddedValue]:
        """All of its columns, as `*` shows them."""
        return [self.column(column) for column in self.relation.columns]

    def column(self, column: RelationColumn) -> EmbeddedValue:
        """One of its columns."""
        self.relation.use(column.name)
        return EmbeddedValue(f"{self.alias}.{column.sql}", column.type, column.name)


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What an engine does in another way than Spark; of the embedded one nothing is known.

    `compared` are types whose values it compares otherwise, `functions` names of functions and
    operators, each with the reason.
    """

    compared: Mapping[DataType, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)

    def check_compared(self, datatype: DataType) -> None:
        """Raise NotEmbeddedError for a type whose values are compared otherwise."""
        if datatype in self.compared:
            reason = self.compared[datatype]
            raise NotEmbeddedError(f"a comparison of values of type {datatype}: {reason}")

    def check_function(self, name: str, node: exp.Expr | None = None) -> None:
        """Raise NotEmbeddedError for a function that is another one there; `node` has its place."""
        if name in self.functions:
            error = NotEmbeddedError(f"{name}: {self.functions[name]}")
            error.start = None if node is None else start_of(node)
            raise error


@dataclass(frozen=True, slots=True)
class Scope:
    """What names may mean in one SELECT, and what its engine cannot do."""

    sources: tuple[AliasedRelation, ...]
    limits: EngineLimits = field(default_factory=EngineLimits)

    def is_key(self, datatype: DataType) -> bool:
        """As `is_key`. Raises NotEmbeddedError where the engine compares such values otherwise."""
        self.limits.check_compared(datatype)
        return is_key(datatype)

    def is_ordered(self, datatype: DataType) -> bool:
        """As `is_ordered`. Raises as `is_key`."""
        self.limits.check_compared(datatype)
        return is_ordered(datatype)

    def resolve(self, column: exp.Column) -> EmbeddedValue:
        """The column that is meant, with its name as it was written, which is Spark's for it."""
        parts = [part.name for part in column.parts]
        if len(parts) > 2 or not all(isinstance(part, exp.Identifier) for part in column.parts):
            raise NotEmbeddedError(f"the name {column.sql(dialect='spark')}")
        sources = [
            source for source in self.sources if len(parts) == 1 or same(source.name, parts[0])
        ]
        matches = [
            (source, column)
            for source in sources
            for column in source.relation.columns
            if same(column.name, parts[-1])
        ]
        if len(matches) != 1:
            many = "more than one column" if matches else "no column"
            raise NotEmbeddedError(f"{many} of the name {column.sql(dialect='spark')}")
        value = matches[0][0].column(matches[0][1])
        return EmbeddedValue(value.sql, value.type, parts[-1])


def same(left: str, right: str) -> bool:
    """Whether two names are one for Spark; of others than ASCII only what is surely the same."""
    return left == right or (left.isascii() and right.isascii() and left.lower() == right.lower())


def distinct_names(names: Sequence[str]) -> bool:
    """Whether no two names may be one, for Spark or for DuckDB."""
    return len({name.casefold() for name in names}) == len(names)


def is_ordered(datatype: DataType) -> bool:
    """Whether both engines have one and the same smallest and largest of such values."""
    return datatype in _ORDERED or isinstance(datatype, Decimal)


def is_key(datatype: DataType) -> bool:
    """Whether both engines see the same ones of such values as equal."""
    return datatype in _KEYS or isinstance(datatype, Decimal)


def quoted(name: str) -> str:
    """An identifier in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text in DuckDB's SQL, which knows no escapes but that of the quote."""
    return "'" + text.replace("'", "''") + "'"


_SMALL: Final = re.compile(r"[0-9]{1,6}")
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_POINTED: Final = re.compile(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(_DATE.pattern + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z?)")
#: The error of a mean that Spark may round otherwise.
LARGE_SUMS: Final = "avg of large sums"
#: Integers that a double holds exactly.
EXACT: Final = 2**53


def number(text: str) -> EmbeddedValue:
    """A number as Spark reads it: int, bigint, or decimal, which takes the type of its company."""
    constant = Constant(text, is_string=False)
    if _INTEGER.fullmatch(text):
        # The smallest bigint is too large a number for parsers that see its sign later.
        for kind, least, most, name in (
            (INT, -(2**31), 2**31, "INTEGER"),
            (BIGINT, 1 - 2**63, 2**63, "BIGINT"),
        ):
            if least <= int(text) < most:
                return EmbeddedValue(f"CAST({text} AS {name})", kind, text, constant)
    elif _POINTED.fullmatch(text):
        return EmbeddedValue("", None, None, constant)
    raise NotEmbeddedError(f"the number {text[:40]}")


def string(text: str) -> EmbeddedValue:
    """A text."""
    return EmbeddedValue(text_literal(text), STRING, None, Constant(text, is_string=True))


def as_type(constant: Constant, datatype: DataType) -> str:
    """SQL of a literal as a value of a type, for comparisons with such values.

    Raises:
        NotEmbeddedError: the comparison would be made in another type.
    """
    if not constant.is_string:
        return _number_as(constant.text, datatype)
    if datatype == STRING:
        return text_literal(constant.text)
    return moment(constant.text, datatype)


def moment(text: str, datatype: DataType) -> str:
    """SQL of a date or a time that is written out in full; a time without a zone is one of UTC."""
    try:
        if datatype == DATE and _DATE.fullmatch(text):
            return f"DATE {text_literal(date.fromisoformat(text).isoformat())}"
        match = _TIME.fullmatch(text)
        if match and (datatype == TIMESTAMP or (datatype == TIMESTAMP_NTZ and not match[2])):
            time = datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC)
            shown = time.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")
            if datatype == TIMESTAMP:
                return f"TIMESTAMPTZ {text_literal(shown + '+00')}"
            return f"TIMESTAMP {text_literal(shown)}"
    except ValueError as error:
        raise NotEmbeddedError(f"the text {text!r} as {datatype}") from error
    raise NotEmbeddedError(f"a text in the place of a value of type {datatype}")


def _number_as(text: str, datatype: DataType) -> str:
    is_whole = _INTEGER.fullmatch(text) is not None
    if datatype in INTEGERS and is_whole:
        return number(text).sql
    if isinstance(datatype, Decimal):
        whole, _, rest = text.lstrip("-").partition(".")
        whole, rest = whole.lstrip("0"), rest.rstrip("0")
        if len(rest) <= datatype.scale and len(whole) <= datatype.precision - datatype.scale:
            return f"CAST('{text}' AS DECIMAL({datatype.precision}, {datatype.scale}))"
    if datatype == DOUBLE and (not is_whole or abs(int(text)) <= EXACT):
        return f"CAST('{text}' AS DOUBLE)"
    raise NotEmbeddedError(f"the number {text} in the place of a value of type {datatype}")


def call(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue:
    """A call of a function.

    Raises:
        NotEmbeddedError: the function is not on the list, or not with such arguments.
    """
    made = _CALLS.get(name)
    value = None if made is None else made(name, arguments)
    if value is None:
        types = ", ".join(str(argument.type or "?") for argument in arguments)
        raise NotEmbeddedError(f"the function {name}({types})")
    return value


def named_decimal(datatype: Decimal) -> str:
    """The name of a decimal type in DuckDB's SQL."""
    return f"DECIMAL({datatype.precision}, {datatype.scale})"


def _first_known(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    types = {argument.type for argument in arguments}
    if len(types) != 1 or None in types or (name != "coalesce" and len(arguments) != 2):
        return None
    if len(arguments) == 1:
        # Trino and Snowflake want two.
        return EmbeddedValue(arguments[0].sql, arguments[0].type)
    return EmbeddedValue(f"coalesce({_listed(arguments)})", arguments[0].type)


def _null_where_equal(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    del name
    if len(arguments) != 2 or arguments[0].type != arguments[1].type:
        return None
    if arguments[0].type is None or not is_key(arguments[0].type):
        return None
    return EmbeddedValue(f"nullif({_listed(arguments)})", arguments[0].type)


def _concat(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    del name
    if not arguments or {argument.type for argument in arguments} != {STRING}:
        return None
    # DuckDB's own `concat` leaves NULLs out.
    return EmbeddedValue(f"({' || '.join(argument.sql for argument in arguments)})", STRING)


def _length(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    del name
    if [argument.type for argument in arguments] != [STRING]:
        return None
    return EmbeddedValue(f"CAST(length({arguments[0].sql}) AS INTEGER)", INT)


def _letters(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    """Java and DuckDB have the letters of ASCII in common; any other one is an error."""
    if [argument.type for argument in arguments] != [STRING]:
        return None
    text, function = arguments[0].sql, {"lcase": "lower", "ucase": "upper"}.get(name, name)
    only_ascii = f"length({text}) = strlen({text})"
    return EmbeddedValue(
        f"(CASE WHEN {text} IS NULL THEN NULL WHEN {only_ascii} THEN {function}({text}) "
        f"ELSE error('{name} of other letters than those of ASCII') END)",
        STRING,
    )


def _part_of_day(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    if [argument.type for argument in arguments] != [DATE]:
        return None
    part = "day" if name == "dayofmonth" else name
    return EmbeddedValue(f"CAST({part}({arguments[0].sql}) AS INTEGER)", INT)


def _part_of_text(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    """From a place that is counted from 1; engines differ in what 0 and less mean."""
    del name
    if len(arguments) not in {2, 3} or arguments[0].type != STRING:
        return None
    numbers = [argument.constant for argument in arguments[1:]]
    texts = [one.text for one in numbers if one is not None and not one.is_string]
    if len(texts) != len(numbers) or not all(map(_SMALL.fullmatch, texts)) or int(texts[0]) < 1:
        return None
    return EmbeddedValue(f"substring({arguments[0].sql}, {', '.join(texts)})", STRING)


def _days_between(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    del name
    if [argument.type for argument in arguments] != [DATE, DATE]:
        return None
    end, start = (argument.sql for argument in arguments)
    return EmbeddedValue(f"CAST(date_diff('day', {start}, {end}) AS INTEGER)", INT)


def _rounded(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    """Of decimals, half away from zero."""
    del name
    if len(arguments) not in {1, 2} or not isinstance(arguments[0].type, Decimal):
        return None
    digits = arguments[1].constant if len(arguments) == 2 else Constant("0", is_string=False)
    own = arguments[0].type
    if digits is None or digits.is_string or not _SMALL.fullmatch(digits.text):
        return None
    scale = min(own.scale, int(digits.text))
    result = Decimal(min(own.precision - own.scale + 1 + scale, MAX_DIGITS), scale)
    sql = f"CAST(round({arguments[0].sql}, {scale}) AS {named_decimal(result)})"
    return EmbeddedValue(sql, result)


def _day(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    del name
    if len(arguments) != 1 or arguments[0].type not in {DATE, TIMESTAMP, TIMESTAMP_NTZ}:
        return None
    return EmbeddedValue(f"CAST({arguments[0].sql} AS DATE)", DATE)


def _listed(arguments: Sequence[EmbeddedValue]) -> str:
    return ", ".join(argument.sql for argument in arguments)


_CALLS: Final[Mapping[str, Callable[[str, Sequence[EmbeddedValue]], EmbeddedValue | None]]] = {
    "coalesce": _first_known,
    "ifnull": _first_known,
    "nvl": _first_known,
    "nullif": _null_where_equal,
    "concat": _concat,
    **dict.fromkeys(("length", "char_length", "character_length"), _length),
    **dict.fromkeys(("lower", "lcase", "upper", "ucase"), _letters),
    **dict.fromkeys(("year", "month", "day", "dayofmonth"), _part_of_day),
    **dict.fromkeys(("nvl", "ifnull"), _first_known),
    **dict.fromkeys(("substring", "substr"), _part_of_text),
    "datediff": _days_between,
    "round": _rounded,
    "to_date": _day,
    "date": _day,
}
