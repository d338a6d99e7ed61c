"""Functions of numbers. Text that is a number counts as one; what does not fit is NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polynya.model.types import BIGINT, DOUBLE, FLOAT, INT, STRING, Decimal
from polynya.transform.functions.arrays import extreme
from polynya.transform.functions.coerce import as_kind, double, is_integral, joined, long, number
from polynya.transform.functions.core import (
    Build,
    ExpressionContext,
    Value,
    function,
    let,
    template,
)

_MAX_PLACES = 18
_EXACT_DIGITS = 34


def _operands(values: Sequence[Value]) -> list[Value]:
    """Numbers as Spark computes with them: whole ones, exact ones, or doubles."""
    numbers = [number(value) for value in values]
    kinds = [number.kind for number in numbers]
    if any(kind in (FLOAT, DOUBLE) for kind in kinds):
        return [double(number) for number in numbers]
    return [as_kind(number, BIGINT) if number.kind == INT else number for number in numbers]


def _try(called: str) -> Build:
    def build(values: Sequence[Value], place: ExpressionContext) -> Value:
        left, right = _operands(values)
        sql = f"{called}({left.sql}, {right.sql})"
        if isinstance(left.kind, Decimal) or isinstance(right.kind, Decimal):
            return place.typed(sql)
        whole = left.kind == BIGINT and called != "try_divide"
        return Value(sql, BIGINT if whole else DOUBLE)

    return build


def _integer_divide(values: Sequence[Value], _: ExpressionContext) -> Value:
    left, right = _operands(values)
    if left.kind == right.kind == BIGINT:
        # The one quotient that does not fit: -2^63 div -1.
        sql = let(
            "d", right,
            lambda d: f"IF({d.sql} = -1, try_subtract(0L, {left.sql}), "
            f"{left.sql} div nullif({d.sql}, 0))",
        )  # fmt: skip
        return Value(sql, BIGINT)
    quotient = f"try_divide({double(left).sql}, {double(right).sql})"
    return Value(f"TRY_CAST({quotient} AS BIGINT)", BIGINT)


def _real(called: str) -> Build:
    """A function that Spark defines for doubles."""

    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        return Value(f"{called}({', '.join(double(value).sql for value in values)})", DOUBLE)

    return build


def _whole(called: str) -> Build:
    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        value = number(values[0])
        if is_integral(value.kind):
            return long(value)
        if isinstance(value.kind, Decimal):
            return Value(f"TRY_CAST({called}({value.sql}) AS BIGINT)", BIGINT)
        # Spark gives the nearest number of 64 bits instead of an error.
        sql = let(
            "x", double(value),
            lambda x: f"{called}(IF(abs({x.sql}) < 9.2E18D, {x.sql}, NULL))",
        )  # fmt: skip
        return Value(sql, BIGINT)

    return build


def _negated(value: Value) -> Value:
    if is_integral(value.kind):
        return Value(f"try_subtract(0L, {long(value).sql})", BIGINT)
    if _is_long(value):
        return _signed(value, lambda t: f"IF(startswith({t}, '-'), substr({t}, 2), '-' || {t})")
    return Value(f"(- {value.sql})", value.kind)


def _is_long(value: Value) -> bool:
    """Whether Spark rounds a decimal to 34 digits when its sign changes, and may then fail."""
    return isinstance(value.kind, Decimal) and value.kind.precision > _EXACT_DIGITS


def _signed(value: Value, change: Callable[[str], str]) -> Value:
    text = Value(f"CAST({value.sql} AS STRING)", STRING)
    return Value(f"CAST({let('t', text, lambda t: change(t.sql))} AS {value.kind})", value.kind)


def _negate(values: Sequence[Value], _: ExpressionContext) -> Value:
    return _negated(number(values[0]))


def _abs(values: Sequence[Value], _: ExpressionContext) -> Value:
    value = number(values[0])
    if is_integral(value.kind):
        return Value(let("x", long(value), _size), BIGINT)
    if _is_long(value):
        return _signed(value, lambda t: f"IF(startswith({t}, '-'), substr({t}, 2), {t})")
    return Value(f"abs({value.sql})", value.kind)


def _size(x: Value) -> str:
    return f"IF({x.sql} < 0, try_subtract(0L, {x.sql}), {x.sql})"


def _places(values: Sequence[Value]) -> int:
    """Decimal places to keep, as the literal says; anything but a whole number counts as 0."""
    digits = values[1].constant if len(values) > 1 else None
    try:
        return max(-_MAX_PLACES, min(_MAX_PLACES, int(digits or "0")))
    except ValueError:
        return 0


def _round(values: Sequence[Value], _: ExpressionContext) -> Value:
    value, places = number(values[0]), _places(values)
    if is_integral(value.kind):
        whole = f"round(CAST({value.sql} AS DECIMAL(19, 0)), {min(places, 0)})"
        return Value(f"TRY_CAST({whole} AS BIGINT)", BIGINT)
    if isinstance(value.kind, Decimal):
        return Value(f"CAST(round({value.sql}, {places}) AS {value.kind})", value.kind)
    return Value(f"round({double(value).sql}, {places})", DOUBLE)


def _trunc(values: Sequence[Value], _: ExpressionContext) -> Value:
    value, places = number(values[0]), _places(values)

    def cut(x: Value) -> str:
        return f"IF({x.sql} < 0, ceil({x.sql}, {places}), floor({x.sql}, {places}))"

    if is_integral(value.kind):
        exact = Value(f"CAST({value.sql} AS DECIMAL(19, 0))", Decimal(19, 0))
        return Value(f"TRY_CAST({let('x', exact, cut)} AS BIGINT)", BIGINT)
    if isinstance(value.kind, Decimal):
        return Value(f"CAST({let('x', value, cut)} AS {value.kind})", value.kind)

    def real(x: Value) -> str:
        # By decimals: 1.15 * 100 is 114.99999999999999 in doubles. What they cannot hold is whole.
        exact = Value(f"TRY_CAST({x.sql} AS DECIMAL(38, 18))", Decimal(38, 18))
        return f"coalesce(CAST({let('d', exact, cut)} AS DOUBLE), {x.sql})"

    return Value(let("x", double(value), real), DOUBLE)


def _positive(called: str) -> Build:
    """A function of doubles that are not negative; Spark would give NaN."""

    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        sql = let("x", double(values[0]), lambda x: f"{called}(IF({x.sql} >= 0, {x.sql}, NULL))")
        return Value(sql, DOUBLE)

    return build


def _square(values: Sequence[Value], place: ExpressionContext) -> Value:
    (value,) = _operands(values)
    if isinstance(value.kind, Decimal):
        return place.typed(let("x", value, lambda x: f"try_multiply({x.sql}, {x.sql})"))
    return Value(let("x", value, lambda x: f"try_multiply({x.sql}, {x.sql})"), value.kind)


FUNCTIONS = (
    function(
        "abs", "number", _abs, "The absolute value.",
        "polynya.abs(-3) -> 3", "polynya.abs(3) -> 3", "polynya.abs('-2.5') -> 2.5",
        "polynya.abs('x') -> null",
    ),
    function(
        "add", "number number2", _try("try_add"),
        """The sum. Whole numbers are added as `bigint`, decimals exactly, all others as doubles;
        what does not fit is NULL.""",
        "add(5.1, 2.5) -> 7.6", "add(5, 2) -> 7", "add(9223372036854775807, 1) -> null",
    ),
    function(
        "subtract", "number number2", _try("try_subtract"), "The difference, computed as by `add`.",
        "subtract(5.1, 2.5) -> 2.6", "subtract(5, '2') -> 3.0",
    ),
    function(
        "multiply", "number number2", _try("try_multiply"), "The product, computed as by `add`.",
        "multiply(5, 2.5) -> 12.5", "multiply(5, 'x') -> null",
    ),
    function(
        "divide", "number number2", _try("try_divide"),
        "The quotient, exact for decimals, else a double; by 0 it is NULL.",
        "divide(5, 2) -> 2.5", "divide(5.1, 2.5) -> 2.04", "divide(5, 0) -> null",
    ),
    function(
        "integer_divide", "number number2", _integer_divide,
        "The quotient without what stands after the point (toward 0); by 0 it is NULL.",
        "integer_divide(5.1, 2.5) -> 2", "integer_divide(-5.1, 2.5) -> -2",
        "integer_divide(3, 0) -> null", "integer_divide(0, 3) -> 0",
    ),
    function(
        "mod", "number number2", _try("try_mod"),
        "The remainder of a division, with the sign of the first number; by 0 it is NULL.",
        "polynya.mod(5, 2) -> 1", "polynya.mod(5, -2) -> 1", "polynya.mod(-5, 2) -> -1",
        "polynya.mod(5, 0) -> null",
    ),
    function(
        "ceiling", "number", _whole("ceil"), "The lowest whole number that is not less.",
        "polynya.ceiling(5.9) -> 6", "polynya.ceiling(-5.9) -> -5",
        "polynya.ceiling('1e30') -> null",
    ),
    function(
        "floor", "number", _whole("floor"), "The highest whole number that is not greater.",
        "polynya.floor(5.9) -> 5", "polynya.floor(-5.9) -> -6",
    ),
    function(
        "round", "number 'places'?", _round,
        "Rounded to decimal places, 0 without them; halves away from 0. Whole places -18 to 18.",
        "polynya.round(2.365, 1) -> 2.4", "polynya.round(2.345, 2) -> 2.35",
        "polynya.round(2.345) -> 2.0", "polynya.round(1250, -2) -> 1300",
    ),
    function(
        "trunc", "number 'places'?", _trunc,
        "Cut to decimal places, 0 without them, toward 0. Whole places -18 to 18.",
        "polynya.trunc(2.365, 1) -> 2.3", "polynya.trunc('1.15', 2) -> 1.15",
        "polynya.trunc(-2.9) -> -2.0", "polynya.trunc(1299, -2) -> 1200",
    ),
    function(
        "exp", "number", _real("exp"), "e to the power of the number.",
        "polynya.exp(0) -> 1.0", "polynya.round(polynya.exp(1), 6) -> 2.718282",
        "polynya.exp('x') -> null",
    ),
    function(
        "ln", "number", _real("ln"), "The natural logarithm; NULL for 0 and less.",
        "polynya.ln(1) -> 0.0", "polynya.round(polynya.ln(10), 6) -> 2.302585",
        "polynya.ln(0) -> null", "polynya.ln(-1) -> null",
    ),
    function(
        "log", "number base", template("try_divide(ln({}), ln({}))", DOUBLE, double, double),
        "The logarithm to a base; NULL for 0 and less.",
        "polynya.log(8, 2) -> 3.0", "polynya.log(-2, 2) -> null", "polynya.log(8, 1) -> null",
    ),
    function(
        "power", "base exponent", _real("power"), "The base to the power of the exponent.",
        "polynya.power(2, 3) -> 8.0", "polynya.power(4, 0.5) -> 2.0",
    ),
    function(
        "sqrt", "number", _positive("sqrt"), "The square root; NULL for less than 0.",
        "polynya.sqrt(9) -> 3.0", "polynya.sqrt(-2) -> null",
    ),
    function(
        "square", "number", _square, "The square; NULL where it does not fit.",
        "square(-2) -> 4", "square(9223372036854775807) -> null",
    ),
    function(
        "reciprocal", "number", template("try_divide(1.0D, {})", DOUBLE, double),
        "1 divided by the number; of 0 it is NULL.",
        "reciprocal(4) -> 0.25", "reciprocal(0) -> null",
    ),
    function(
        "negate", "number", _negate, "The number with the other sign.",
        "negate(1) -> -1", "negate(-1.5) -> 1.5",
    ),
    function(
        "sign", "number", template("TRY_CAST(sign({}) AS INT)", INT, double), "1, 0 or -1.",
        "polynya.sign(5) -> 1", "polynya.sign(0) -> 0", "polynya.sign(-5.5) -> -1",
    ),
    function(
        "greatest", "value+", extreme("array_max", joined),
        "The highest of all values, and of the elements of all arrays, brought to a common type.",
        "polynya.greatest(to_array(1, 0.2), 30) -> 30.0",
    ),
    function(
        "degrees", "number", _real("degrees"), "Radians as degrees.",
        "degrees(0) -> 0.0", "polynya.round(degrees(1), 6) -> 57.29578",
    ),
    function(
        "radians", "number", _real("radians"), "Degrees as radians.",
        "radians(0) -> 0.0", "polynya.round(radians(180), 6) -> 3.141593",
    ),
    function(
        "sin", "number", _real("sin"), "The sine of radians.",
        "sin(0) -> 0.0", "polynya.round(sin(1), 6) -> 0.841471",
    ),
    function(
        "cos", "number", _real("cos"), "The cosine of radians.",
        "cos(0) -> 1.0", "polynya.round(cos(1), 6) -> 0.540302",
    ),
    function(
        "tan", "number", _real("tan"), "The tangent of radians.",
        "tan(0) -> 0.0", "polynya.round(tan(1), 6) -> 1.557408",
    ),
    function(
        "tan_h", "number", _real("tanh"), "The hyperbolic tangent of radians.",
        "tan_h(0) -> 0.0", "polynya.round(tan_h(1), 6) -> 0.761594", "tan_h('x') -> null",
    ),
)  # fmt: skip
