"""What an expression of CloudWatch's metric math comes to in one minute.

From "Using math expressions with CloudWatch metrics" (Amazon CloudWatch User Guide): arithmetic
takes a missing value for 0, unless all are missing; FILL gives one to a minute that has none. IF
is 0 where its condition is true and its second argument has no value ("has the value of 0, if the
corresponding data point of metric1 is TRUE and the corresponding data point does not exist in
metric2"); where its condition is not true, it has the value of the third argument, or none. A
division by zero has no value. The types of expressions are checked by `deploying/metric_math.py`.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

Value: TypeAlias = float | None

_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[float, float], bool]]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def value_of(expression: str, values: Mapping[str, Value]) -> Value:
    """The value of an expression over values of one minute, None when there is none."""
    return _value(_parsed(expression), values)


def invented_zeros(expression: str, names: Iterable[str]) -> Iterator[str]:
    """Each IF that can be 0 because a value is missing, with the values of such a minute.

    Tried with every metric missing, 0, 1 and much.
    """
    tree = _parsed(expression)
    branches = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "IF"
    ]
    known = list(names)
    for tried in itertools.product((None, 0.0, 1.0, 1e6), repeat=len(known)):
        values = dict(zip(known, tried, strict=True))
        for node in branches:
            condition, then = node.args[:2]
            if _value(condition, values) and _value(then, values) is None:
                yield f"{ast.unparse(node)} where {values}"


def _parsed(expression: str) -> ast.expr:
    logic = {"AND": "and", "OR": "or"}
    text = re.sub(r"\b(AND|OR)\b", lambda found: logic[found[1]], expression)
    return ast.parse(text, mode="eval").body


def _value(node: ast.expr, values: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _both(operator.sub, 0.0, _value(inner, values))
        case ast.BinOp(left=left, op=op, right=right):
            return _both(_ARITHMETIC[type(op)], _value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _both(_COMPARISONS[type(op)], _value(left, values), _value(right, values))
        case ast.BoolOp(op=op, values=parts):
            found = [_value(part, values) for part in parts]
            return float((all if isinstance(op, ast.And) else any)(found))
        case ast.Call(func=ast.Name(id="FILL"), args=[inner, other]):
            known = _value(inner, values)
            return _value(other, values) if known is None else known
        case ast.Call(func=ast.Name(id="IF"), args=[condition, then, *otherwise]):
            if _value(condition, values):
                value = _value(then, values)
                return 0.0 if value is None else value
            return _value(otherwise[0], values) if otherwise else None
    raise AssertionError(f"not known here: {ast.unparse(node)}")


def _both(done: Callable[[float, float], float], left: Value, right: Value) -> Value:
    if left is None and right is None:
        return None
    try:
        return float(done(left or 0.0, right or 0.0))
    except ZeroDivisionError:
        return None
