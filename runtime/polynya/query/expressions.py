"""Translate expressions from Spark's SQL to DuckDB's: an allow-list, with Spark's types.

An expression on the list has the same value in both engines for all values of its arguments, or
raises an error in DuckDB, and then Spark answers the statement. Everything else is refused and goes
to Spark too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

from sqlglot import exp
from typing_extensions import override

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
from polynya.query.translate import NotEmbeddedError, kind, only, start_of

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

    def check_function(self, name: str) -> None:
        """Raise NotEmbeddedError for a function that is another one there."""
        if name in self.functions:
            raise NotEmbeddedError(f"{name}: {self.functions[name]}")


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
_DECIMAL: Final = re.compile(r"DECIMAL\(([0-9]{1,2})(?:, ?([0-9]{1,2}))?\)")
_TIME: Final = re.compile(_DATE.pattern + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z?)")
#: The error of a mean that Spark may round otherwise.
LARGE_SUMS: Final = "avg of large sums"
#: Integers that a double holds exactly.
_EXACT: Final = 2**53


def number(text: str) -> EmbeddedValue:
    """A number as Spark reads it: int, bigint, or decimal, which takes the type of its company."""
    constant = Constant(text, is_string=False)
    if _INTEGER.fullmatch(text):
        for kind, bits, name in ((INT, 31, "INTEGER"), (BIGINT, 63, "BIGINT")):
            if -(2**bits) < int(text) < 2**bits:
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
    if datatype == DOUBLE and (not is_whole or abs(int(text)) <= _EXACT):
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


def _first_known(name: str, arguments: Sequence[EmbeddedValue]) -> EmbeddedValue | None:
    types = {argument.type for argument in arguments}
    if len(types) != 1 or None in types or (name != "coalesce" and len(arguments) != 2):
        return None
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
    result = Decimal(min(own.precision - own.scale + 1 + scale, _MAX_DIGITS), scale)
    sql = f"CAST(round({arguments[0].sql}, {scale}) AS {_named(result)})"
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


_COMPARISONS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip
_ARITHMETIC: Final[Mapping[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
#: What stands inside of a comparison only in parentheses: parsers differ in what binds first.
_LOOSE: Final = (exp.Predicate, exp.Not, exp.Connector)
_NULL: Final = EmbeddedValue("NULL", None)


class Expressions:
    """Translates the expressions over the rows of one scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def value(self, node: exp.Expr) -> EmbeddedValue:
        """An expression. Raises NotEmbeddedError, with the place of the innermost part."""
        try:
            return self._value(node)
        except NotEmbeddedError as error:
            if error.start is None:
                error.start = start_of(node)
            raise

    def _value(self, node: exp.Expr) -> EmbeddedValue:
        made = _TRANSLATIONS.get(type(node))
        if made is not None:
            return made(self, node)
        if type(node) in _COMPARISONS:
            only(node, "this", "expression")
            return self._comparison(node.this, node.expression, _COMPARISONS[type(node)])
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        raise NotEmbeddedError(kind(node))

    def condition(self, node: exp.Expr) -> str:
        """An expression that is true, false or NULL."""
        value = self.value(node)
        if value.type != BOOLEAN:
            raise NotEmbeddedError(f"{kind(node)} as a condition")
        return value.sql

    def _column(self, node: exp.Column) -> EmbeddedValue:
        only(node, "this", "table", "db", "catalog")
        return self._scope.resolve(node)

    def _paren(self, node: exp.Paren) -> EmbeddedValue:
        only(node, "this")
        inner = self.value(node.this)
        return EmbeddedValue(f"({inner.sql})", inner.type, None, inner.constant)

    def _literal(self, node: exp.Literal) -> EmbeddedValue:
        text = str(node.this)
        return string(text) if node.is_string else number(text)

    def _negative(self, node: exp.Neg) -> EmbeddedValue:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            value = number(f"-{node.this.this}")
            return EmbeddedValue(value.sql, value.type, None, value.constant)
        inner = self.value(node.this)
        if inner.known not in INTEGERS:
            raise NotEmbeddedError(f"the negative of a value of type {inner.type}")
        return EmbeddedValue(f"CAST((0 - {inner.sql}) AS {_NAMES[inner.known]})", inner.type)

    def _boolean(self, node: exp.Boolean) -> EmbeddedValue:
        return EmbeddedValue("TRUE" if node.this else "FALSE", BOOLEAN)

    def _null(self, node: exp.Null) -> EmbeddedValue:
        del node
        return _NULL

    def _connected(self, node: exp.And | exp.Or) -> EmbeddedValue:
        only(node, "this", "expression")
        word = "AND" if isinstance(node, exp.And) else "OR"
        left, right = self.condition(node.this), self.condition(node.expression)
        return EmbeddedValue(f"({left} {word} {right})", BOOLEAN)

    def _not(self, node: exp.Not) -> EmbeddedValue:
        only(node, "this")
        return EmbeddedValue(f"(NOT {self.condition(node.this)})", BOOLEAN)

    def _is(self, node: exp.Is) -> EmbeddedValue:
        only(node, "this", "expression", "negate")
        if not isinstance(node.expression, exp.Null) or isinstance(node.this, _LOOSE):
            raise NotEmbeddedError("IS with something else than NULL")
        inner = self.value(node.this)
        word = "IS NOT NULL" if node.args.get("negate") else "IS NULL"
        # NULL itself has no type, but is as much NULL as anything.
        return EmbeddedValue(f"({inner.sql if inner.type else inner.known} {word})", BOOLEAN)

    def _in(self, node: exp.In) -> EmbeddedValue:
        only(node, "this", "expressions")
        tests = [
            self._comparison(node.this, expression, "=").sql for expression in node.expressions
        ]
        if not tests or not all(
            isinstance(_bare(expression), exp.Literal) for expression in node.expressions
        ):
            raise NotEmbeddedError("IN with something else than literals")
        return EmbeddedValue(f"({' OR '.join(tests)})", BOOLEAN)

    def _between(self, node: exp.Between) -> EmbeddedValue:
        only(node, "this", "low", "high")
        low = self._comparison(node.this, node.args["low"], ">=")
        high = self._comparison(node.this, node.args["high"], "<=")
        return EmbeddedValue(f"({low.sql} AND {high.sql})", BOOLEAN)

    def _like(self, node: exp.Like) -> EmbeddedValue:
        self._scope.limits.check_function("LIKE")
        only(node, "this", "expression", "negate")
        value, pattern = self.value(node.this), node.expression
        if value.type != STRING or not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise NotEmbeddedError("LIKE with something else than a text and a literal")
        word = "NOT LIKE" if node.args.get("negate") else "LIKE"
        return EmbeddedValue(f"({value.sql} {word} {text_literal(str(pattern.this))})", BOOLEAN)

    def _case(self, node: exp.Case) -> EmbeddedValue:
        only(node, "ifs", "default")
        given = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
        return self._branches(given, node.args.get("default"))

    def _branches(
        self, given: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None
    ) -> EmbeddedValue:
        branches = [(self.condition(test), self.value(value)) for test, value in given]
        last = _NULL if default is None else self.value(default)
        result = one_type([*(value for _, value in branches), last])
        cases = " ".join(f"WHEN {when} THEN {value.sql}" for when, value in branches)
        return EmbeddedValue(f"(CASE {cases} ELSE {last.sql} END)", result)

    def _concatenated(self, node: exp.DPipe) -> EmbeddedValue:
        only(node, "this", "expression", "safe")
        left, right = self.value(node.this), self.value(node.expression)
        if (left.type, right.type) != (STRING, STRING):
            raise NotEmbeddedError("`||` of something else than texts")
        return EmbeddedValue(f"({left.sql} || {right.sql})", STRING)

    def _call(self, node: exp.Anonymous) -> EmbeddedValue:
        if isinstance(node.this, exp.Identifier):
            raise NotEmbeddedError(f"the function {node.name}")
        name = node.name.lower()
        self._scope.limits.check_function(name)
        if name == "if" and len(node.expressions) in {2, 3}:
            test, *branches = node.expressions
            return self._branches([(test, branches[0])], (branches[1:] or [None])[0])
        arguments = [self.value(expression) for expression in node.expressions]
        if name in {"to_date", "date"}:
            self._check_day(arguments)
        if name == "nullif" and len(arguments) == 2 and arguments[0].type is not None:
            self._scope.limits.check_compared(arguments[0].type)
        return call(name, arguments)

    def _check_day(self, arguments: Sequence[EmbeddedValue]) -> None:
        if any(argument.type == TIMESTAMP for argument in arguments):
            self._scope.limits.check_function("day of a time")

    def _windowed(self, node: exp.Window) -> EmbeddedValue:
        """A function over a partition; all engines have the same frame where none is named."""
        only(node, "this", "partition_by", "order", "over")
        call_ = node.this
        if not isinstance(call_, exp.Anonymous) or isinstance(call_.this, exp.Identifier):
            raise NotEmbeddedError(f"{kind(call_)} OVER")
        parts = []
        keys = [self.value(one) for one in node.args.get("partition_by") or []]
        for key in keys:
            if key.constant or not self._scope.is_key(key.known):
                raise NotEmbeddedError(f"PARTITION BY a value of type {key.type}")
        if keys:
            parts.append(f"PARTITION BY {', '.join(key.sql for key in keys)}")
        order = node.args.get("order")
        if order is not None:
            only(order, "this", "expressions")
            items = [ordered(one, self.value(one.this), self._scope) for one in order.expressions]
            parts.append(f"ORDER BY {', '.join(items)}")
        name = call_.name.lower()
        self._scope.limits.check_function(f"{name} OVER")
        if order is not None and name in {"count", *_AGGREGATES}:
            self._scope.limits.check_function("an aggregate over an ordered window")
        made = self._window_function(name, call_, is_ordered_window=order is not None)
        sql = f"{made.sql} OVER ({' '.join(parts)})"
        if made.type in INTEGERS and name not in {"lag", "lead"}:
            sql = f"CAST({sql} AS {_NAMES[made.known]})"
        elif isinstance(made.type, Decimal) and name == "sum":
            sql = f"CAST({sql} AS {_named(made.type)})"
        return EmbeddedValue(sql, made.type)

    def _window_function(
        self, name: str, node: exp.Anonymous, *, is_ordered_window: bool
    ) -> EmbeddedValue:
        """A function that stands before OVER, without a cast around it."""
        given = node.expressions
        if name in {"row_number", "rank", "dense_rank"} and is_ordered_window and not given:
            return EmbeddedValue(f"{name}()", INT)
        if name in {"lag", "lead"} and is_ordered_window and len(given) in {1, 2}:
            value = self.value(given[0])
            step = given[1].this if len(given) == 2 and isinstance(given[1], exp.Literal) else "1"
            if value.constant or not str(step).isdigit() or len(str(step)) > 6:
                raise NotEmbeddedError(f"{name} of something else than a column and a number")
            value.known  # noqa: B018 - NULL has no type
            return EmbeddedValue(f"{name}({value.sql}, {int(step)})", value.type)
        if name == "count" and len(given) == 1 and not isinstance(given[0], exp.Distinct):
            is_star = isinstance(given[0], exp.Star)
            inner = None if is_star else self.value(given[0])
            return EmbeddedValue(f"count({'*' if inner is None else inner.sql})", BIGINT)
        if name in {"sum", "min", "max"} and len(given) == 1:
            value = self.value(given[0])
            if name != "sum" and self._scope.is_ordered(value.known):
                return EmbeddedValue(f"{name}({value.sql})", value.type)
            summed = _sum(value) if name == "sum" else None
            if summed is not None:
                return EmbeddedValue(f"sum({value.sql})", summed.type)
        raise NotEmbeddedError(f"{name}() OVER such a window")

    def _cast(self, node: exp.Cast | exp.TryCast) -> EmbeddedValue:
        only(node, "this", "to", "safe", "requires_string")
        target = _CAST_TYPES.get(node.args["to"].sql(dialect="spark").upper())
        inner = self.value(node.this)
        if target in {DATE, TIMESTAMP, TIMESTAMP_NTZ} and inner.constant and target is not None:
            return EmbeddedValue(moment(inner.constant.text, target), target)
        wanted = _decimal_named(node.args["to"])
        if wanted is not None:
            return EmbeddedValue(f"CAST({as_decimal(inner, wanted)} AS {_named(wanted)})", wanted)
        if target == DOUBLE and inner.type in INTEGERS:
            return EmbeddedValue(f"CAST({inner.sql} AS DOUBLE)", DOUBLE)
        if inner.constant is not None and not inner.constant.is_string and target == BIGINT:
            return EmbeddedValue(f"CAST({inner.constant.text} AS BIGINT)", BIGINT)
        pair = (inner.known, target)
        if pair == (INT, BIGINT):
            return EmbeddedValue(f"CAST({inner.sql} AS BIGINT)", BIGINT)
        if pair in {(INT, STRING), (BIGINT, STRING)}:
            return EmbeddedValue(f"CAST({inner.sql} AS VARCHAR)", STRING)
        if target == DATE:
            self._check_day([inner])
            return call("to_date", [inner])
        raise NotEmbeddedError(f"a cast of {inner.type} to {node.args['to'].sql(dialect='spark')}")

    def _comparison(self, left: exp.Expr, right: exp.Expr, sign: str) -> EmbeddedValue:
        if isinstance(left, _LOOSE) or isinstance(right, _LOOSE):
            raise NotEmbeddedError("a comparison of comparisons without parentheses")
        one, other = self.value(left), self.value(right)
        for side in (one, other):
            if side.type is not None and not side.constant:
                self._scope.limits.check_compared(side.type)
        if sign == "IS NOT DISTINCT FROM":
            self._scope.limits.check_function("<=>")
        return EmbeddedValue(f"({compared(one, other, sign)})", BOOLEAN)

    def _arithmetic(self, node: exp.Expr) -> EmbeddedValue:
        only(node, "this", "expression")
        left, right = self.value(node.this), self.value(node.expression)
        sign = _ARITHMETIC[type(node)]
        if any(isinstance(side.type, Decimal) or side.type is None for side in (left, right)):
            self._scope.limits.check_function("arithmetic of decimals")
            return _of_decimals(sign, left, right)
        if not {left.known, right.known} <= INTEGERS:
            raise NotEmbeddedError(f"{kind(node)} of {left.type} and {right.type}")
        result = BIGINT if BIGINT in {left.type, right.type} else INT
        # An overflow, which wraps around in Spark, is an error here. Engines that compute in a
        # wider type find it by the cast.
        sql = f"CAST(({left.sql} {sign} {right.sql}) AS {_NAMES[result]})"
        return EmbeddedValue(sql, result)

    def _divided(self, node: exp.Div) -> EmbeddedValue:
        only(node, "this", "expression", "typed", "safe")
        left, right = self.value(node.this), self.value(node.expression)
        if not {left.known, right.known} <= INTEGERS:
            raise NotEmbeddedError(f"`/` of {left.type} and {right.type}")
        # By zero Spark gives NULL.
        divisor = f"nullif(CAST({right.sql} AS DOUBLE), 0)"
        return EmbeddedValue(f"(CAST({left.sql} AS DOUBLE) / {divisor})", DOUBLE)


def ordered(node: exp.Expr, value: EmbeddedValue, scope: Scope) -> str:
    """An item of ORDER BY with the value that it orders by.

    Raises NotEmbeddedError where engines differ in the order of such values.
    """
    only(node, "this", "desc", "nulls_first")
    # Of doubles DuckDB puts -0.0 before 0.0, which are one and the same for Spark.
    if value.constant or (value.type != BOOLEAN and not scope.is_ordered(value.known)):
        raise NotEmbeddedError(f"ORDER BY a value of type {value.type}")
    return f"{value.sql} {direction(node)}"


def direction(node: exp.Expr) -> str:
    """In which direction an item of ORDER BY orders, and where NULL stands."""
    way = "DESC" if node.args.get("desc") else "ASC"
    return f"{way} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


_NAMES: Final[Mapping[DataType, str]] = {INT: "INTEGER", BIGINT: "BIGINT"}
_DIGITS: Final[Mapping[DataType, int]] = {INT: 10, BIGINT: 20}


def _named(datatype: Decimal) -> str:
    return f"DECIMAL({datatype.precision}, {datatype.scale})"


def _decimal_named(node: exp.Expr) -> Decimal | None:
    """The type that a cast names, if it is a decimal one."""
    match = _DECIMAL.fullmatch(node.sql(dialect="spark").upper())
    return None if match is None else Decimal(int(match[1]), int(match[2] or 0))


def as_decimal(value: EmbeddedValue, wanted: Decimal) -> str:
    """SQL of a value that a decimal type surely holds as it is.

    Raises:
        NotEmbeddedError: it might round, or give NULL.
    """
    own = _decimal_of(value)
    if own.scale > wanted.scale or own.precision - own.scale > wanted.precision - wanted.scale:
        raise NotEmbeddedError(f"a cast of {value.type} to {wanted}, which may round")
    return f"'{value.constant.text}'" if value.constant else value.sql


def _decimal_of(value: EmbeddedValue) -> Decimal:
    """The decimal type that Spark computes with in the place of a value's own."""
    if value.constant is not None and not value.constant.is_string:
        whole, _, rest = value.constant.text.partition(".")
        if whole.startswith("-"):
            raise NotEmbeddedError("decimals and a negative literal, whose type Spark knows")
        digits = len(whole.lstrip("0")) + len(rest)
        return Decimal(max(digits, len(rest), 1), len(rest))
    if isinstance(value.type, Decimal):
        return value.type
    if value.type is not None and value.type in _DIGITS:
        return Decimal(_DIGITS[value.type], 0)
    raise NotEmbeddedError(f"decimals and a value of type {value.type}")


def _of_decimals(sign: str, left: EmbeddedValue, right: EmbeddedValue) -> EmbeddedValue:
    """Arithmetic whose result has all of its digits, in every engine."""
    one, other = _decimal_of(left), _decimal_of(right)
    if sign == "*":
        result = Decimal(one.precision + other.precision + 1, one.scale + other.scale)
    else:
        scale = max(one.scale, other.scale)
        whole = max(one.precision - one.scale, other.precision - other.scale)
        result = Decimal(whole + scale + 1, scale)
    if result.precision > _MAX_DIGITS:
        raise NotEmbeddedError(f"{one} {sign} {other}, whose result Spark rounds")
    sides = [
        f"CAST({as_decimal(value, kind_)} AS {_named(kind_)})"
        for value, kind_ in ((left, one), (right, other))
    ]
    return EmbeddedValue(f"CAST(({sides[0]} {sign} {sides[1]}) AS {_named(result)})", result)


def compared(left: EmbeddedValue, right: EmbeddedValue, sign: str) -> str:
    """A comparison whose sides Spark compares in the type of one of them.

    Raises:
        NotEmbeddedError: it would compare them in another type, or the type has no one order.
    """
    if left.constant and not right.constant:
        return f"{as_type(left.constant, right.known)} {sign} {right.sql}"
    if right.constant and not left.constant:
        return f"{left.sql} {sign} {as_type(right.constant, left.known)}"
    same = left.known == right.known or {left.known, right.known} <= INTEGERS
    if not same or not (is_key(left.known) or left.known == DOUBLE):
        raise NotEmbeddedError(f"a comparison of {left.type} and {right.type}")
    return f"{left.sql} {sign} {right.sql}"


def one_type(values: list[EmbeddedValue]) -> DataType:
    """The type of values that all have the same one, or are NULL."""
    types = {value.known for value in values if value != _NULL}
    if len(types) != 1:
        raise NotEmbeddedError("branches of more than one type")
    return types.pop()


def _bare(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Neg) else node


_CAST_TYPES: Final[Mapping[str, DataType]] = {
    "BIGINT": BIGINT, "STRING": STRING, "DATE": DATE, "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ, "DOUBLE": DOUBLE,
}  # fmt: skip
_TRANSLATIONS: Final[Mapping[type[exp.Expr], Callable[[Expressions, Any], EmbeddedValue]]] = {
    exp.Column: Expressions._column,
    exp.Paren: Expressions._paren,
    exp.Literal: Expressions._literal,
    exp.Neg: Expressions._negative,
    exp.Boolean: Expressions._boolean,
    exp.Null: Expressions._null,
    exp.And: Expressions._connected,
    exp.Or: Expressions._connected,
    exp.Not: Expressions._not,
    exp.Is: Expressions._is,
    exp.In: Expressions._in,
    exp.Between: Expressions._between,
    exp.Like: Expressions._like,
    exp.Case: Expressions._case,
    exp.Div: Expressions._divided,
    exp.Window: Expressions._windowed,
    exp.DPipe: Expressions._concatenated,
    exp.Anonymous: Expressions._call,
    exp.Cast: Expressions._cast,
    # What sqlglot makes of CAST, which gives NULL in Spark where it fails; none of ours fails.
    exp.TryCast: Expressions._cast,
}


_MAX_DIGITS: Final = 38


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate that is known here."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in {"count", *_AGGREGATES}


class Grouped(Expressions):
    """Expressions over groups: aggregates, what the groups are made by, and what follows."""

    def __init__(self, scope: Scope, groups: frozenset[str]) -> None:
        super().__init__(scope)
        self._rows, self._groups = Expressions(scope), groups

    @override
    def _value(self, node: exp.Expr) -> EmbeddedValue:
        if is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, exp.Window):
            raise NotEmbeddedError("a window over groups")
        if not any(is_aggregate(part) for part in node.walk()):
            row = self._rows.value(node)
            if row.sql in self._groups or not any(node.find_all(exp.Column)):
                return row
            if isinstance(node, exp.Column):
                raise NotEmbeddedError(f"the column {node.name}, which is not grouped by")
        return super()._value(node)

    def _aggregate(self, node: exp.Expr) -> EmbeddedValue:
        only(node, "this", "expressions")
        name, arguments = node.name.lower(), node.expressions
        if isinstance(node.this, exp.Identifier) or len(arguments) != 1:
            raise NotEmbeddedError(f"{name} of {len(arguments)} arguments")
        argument = arguments[0]
        self._scope.limits.check_function(name)
        if name == "count":
            return self._count(argument)
        inner = self._rows.value(argument)
        if name in {"min", "max"}:
            self._scope.limits.check_compared(inner.known)
        made = _AGGREGATES[name](inner)
        if made is None:
            raise NotEmbeddedError(f"{name} of a value of type {inner.type}")
        return EmbeddedValue(
            made.sql, made.type, None if inner.name is None else f"{name}({inner.name})"
        )

    def _count(self, argument: exp.Expr) -> EmbeddedValue:
        if isinstance(argument, exp.Star):
            only(argument)
            return EmbeddedValue("count(*)", BIGINT, "count(1)")
        if isinstance(argument, exp.Distinct):
            only(argument, "expressions")
            if len(argument.expressions) != 1:
                raise NotEmbeddedError("count(DISTINCT …) of several expressions")
            inner = self._rows.value(argument.expressions[0])
            if not self._scope.is_key(inner.known):
                raise NotEmbeddedError(f"DISTINCT over a value of type {inner.type}")
            sql, shown = f"count(DISTINCT {inner.sql})", "count(DISTINCT {})"
        else:
            inner = self._rows.value(argument)
            inner.known  # noqa: B018 - NULL has no type
            sql, shown = f"count({inner.sql})", "count({})"
        return EmbeddedValue(sql, BIGINT, None if inner.name is None else shown.format(inner.name))


def _extreme(function: str) -> Callable[[EmbeddedValue], EmbeddedValue | None]:
    def made(value: EmbeddedValue) -> EmbeddedValue | None:
        return (
            EmbeddedValue(f"{function}({value.sql})", value.type)
            if is_ordered(value.known)
            else None
        )

    return made


def _sum(value: EmbeddedValue) -> EmbeddedValue | None:
    # What overflows is an error here; Spark wraps it around, or gives NULL.
    if value.known in INTEGERS:
        return EmbeddedValue(f"CAST(sum({value.sql}) AS BIGINT)", BIGINT)
    if isinstance(value.known, Decimal):
        digits = min(_MAX_DIGITS, value.known.precision + 10)
        scale = value.known.scale
        return EmbeddedValue(
            f"CAST(sum({value.sql}) AS DECIMAL({digits}, {scale}))", Decimal(digits, scale)
        )
    return None


def _average(value: EmbeddedValue) -> EmbeddedValue | None:
    if value.known not in INTEGERS:
        return None
    # Spark adds doubles, whose sum depends on the order once it is no longer exact.
    exact = f"coalesce(sum(abs(CAST({value.sql} AS HUGEINT))), 0) < {_EXACT}"
    average = f"CAST(sum({value.sql}) AS DOUBLE) / count({value.sql})"
    return EmbeddedValue(
        f"(CASE WHEN {exact} THEN {average} ELSE error('{LARGE_SUMS}') END)", DOUBLE
    )


_AGGREGATES: Final[Mapping[str, Callable[[EmbeddedValue], EmbeddedValue | None]]] = {
    "sum": _sum,
    "avg": _average,
    "min": _extreme("min"),
    "max": _extreme("max"),
}
