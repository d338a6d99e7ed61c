"""What an expression of CloudWatch's metric math comes to in one minute.

From "Using math expressions with CloudWatch metrics" (Amazon CloudWatch User Guide): arithmetic
takes a missing value for 0, unless all are missing; FILL gives one to a minute that has none; IF
without a third argument has no value where its condition is not true, and neither has a division
by zero. The types of expressions are checked by `deploying/metric_math.py`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
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
    logic = {"AND": "and", "OR": "or"}
    text = re.sub(r"\b(AND|OR)\b", lambda found: logic[found[1]], expression)
    return _value(ast.parse(text, mode="eval").body, values)


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
                return _value(then, values)
            return _value(otherwise[0], values) if otherwise else None
    raise AssertionError(f"not known here: {ast.unparse(node)}")


def _both(done: Callable[[float, float], float], left: Value, right: Value) -> Value:
    if left is None and right is None:
        return None
    try:
        return float(done(left or 0.0, right or 0.0))
    except ZeroDivisionError:
        return None
