"""Translate expressions from Spark's SQL to DuckDB's: an allow-list, with Spark's types.

An expression on the list has the same value in both engines for all values of its arguments, or
raises an error in DuckDB, and then Spark answers the statement. Everything else is refused and goes
to Spark too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlglot import exp
from typing_extensions import override

from polynya.model.types import (
    BIGINT,
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
from polynya.query.values import (
    EXACT,
    INTEGERS,
    LARGE_SUMS,
    MAX_DIGITS,
    EmbeddedValue,
    Scope,
    as_type,
    call,
    is_key,
    is_ordered,
    moment,
    named_decimal,
    number,
    string,
    text_literal,
)

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
        if inner.known == DOUBLE:
            self._scope.limits.check_function("arithmetic of doubles")
            return EmbeddedValue(f"(- {inner.sql})", DOUBLE)
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
        if self.value(node.this).type in {TIMESTAMP, TIMESTAMP_NTZ}:
            # Of a date Spark's text is the only one that a literal may have.
            raise NotEmbeddedError("IN of times, which Spark compares by their texts")
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
            sql = f"CAST({sql} AS {named_decimal(made.type)})"
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
            return EmbeddedValue(
                f"CAST({as_decimal(inner, wanted)} AS {named_decimal(wanted)})", wanted
            )
        if target == DOUBLE:
            return EmbeddedValue(as_double(inner), DOUBLE)
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
        if DOUBLE in {left.type, right.type}:
            # One rounding by IEEE 754 each; infinity and NaN are values.
            self._scope.limits.check_function("arithmetic of doubles")
            return EmbeddedValue(f"({as_double(left)} {sign} {as_double(right)})", DOUBLE)
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
        if DOUBLE in {left.type, right.type}:
            self._scope.limits.check_function("arithmetic of doubles")
        elif not {left.known, right.known} <= INTEGERS:
            raise NotEmbeddedError(f"`/` of {left.type} and {right.type}")
        # By zero Spark gives NULL.
        return EmbeddedValue(f"({as_double(left)} / nullif({as_double(right)}, 0))", DOUBLE)


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
_DECIMAL: Final = re.compile(r"DECIMAL\(([0-9]{1,2})(?:, ?([0-9]{1,2}))?\)")
_DIGITS: Final[Mapping[DataType, int]] = {INT: 10, BIGINT: 20}
_DIGITS_OF_64_BITS: Final = 18


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


def as_double(value: EmbeddedValue) -> str:
    """SQL of a number as a double, which every engine rounds alike.

    Raises:
        NotEmbeddedError: it is another value, or a decimal, which engines round in two ways.
    """
    if value.constant is not None and not value.constant.is_string:
        return as_type(value.constant, DOUBLE)
    if value.type in INTEGERS:
        return f"CAST({value.sql} AS DOUBLE)"
    if value.type == DOUBLE:
        return value.sql
    raise NotEmbeddedError(f"a value of type {value.type} as a double")


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
        digits, scale = one.precision + other.precision + 1, one.scale + other.scale
    else:
        scale = max(one.scale, other.scale)
        whole = max(one.precision - one.scale, other.precision - other.scale)
        digits = whole + scale + 1
    if digits > MAX_DIGITS:
        raise NotEmbeddedError(f"{one} {sign} {other}, whose result Spark rounds")
    result = Decimal(digits, scale)
    if max(one.precision, other.precision) <= _DIGITS_OF_64_BITS < result.precision:
        # From sides of 64 bits DuckDB makes no wider result, and reports an overflow.
        one = Decimal(_DIGITS_OF_64_BITS + 1, one.scale)
    sides = [
        f"CAST({as_decimal(value, kind_)} AS {named_decimal(kind_)})"
        for value, kind_ in ((left, one), (right, other))
    ]
    return EmbeddedValue(f"CAST(({sides[0]} {sign} {sides[1]}) AS {named_decimal(result)})", result)


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
        digits = min(MAX_DIGITS, value.known.precision + 10)
        scale = value.known.scale
        return EmbeddedValue(
            f"CAST(sum({value.sql}) AS DECIMAL({digits}, {scale}))", Decimal(digits, scale)
        )
    return None


def _average(value: EmbeddedValue) -> EmbeddedValue | None:
    if value.known not in INTEGERS:
        return None
    # Spark adds doubles, whose sum depends on the order once it is no longer exact.
    exact = f"coalesce(sum(abs(CAST({value.sql} AS HUGEINT))), 0) < {EXACT}"
    average = f"CAST(sum({value.sql}) AS DOUBLE) / nullif(count({value.sql}), 0)"
    return EmbeddedValue(
        f"(CASE WHEN {exact} THEN {average} ELSE error('{LARGE_SUMS}') END)", DOUBLE
    )


_AGGREGATES: Final[Mapping[str, Callable[[EmbeddedValue], EmbeddedValue | None]]] = {
    "sum": _sum,
    "avg": _average,
    "min": _extreme("min"),
    "max": _extreme("max"),
}
