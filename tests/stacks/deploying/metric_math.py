"""The types of CloudWatch's metric math, as AWS documents them, and what an expression has.

From "Using math expressions with CloudWatch metrics" (Amazon CloudWatch User Guide): a number is a
scalar, a metric is a time series, brackets make an array of time series and hold nothing else. An
expression ends as a time series. CloudWatch checks it only when an alarm is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any


class Type(StrEnum):
    SCALAR = "a number"
    SERIES = "a time series"
    ARRAY = "an array of time series"


_S, _TS, _ARRAY = Type.SCALAR, Type.SERIES, Type.ARRAY
# Return type by the types of the arguments; only what the templates use or could be tempted to.
_FUNCTIONS: dict[str, dict[tuple[Type, ...], Type]] = {
    "FILL": {(_TS, _S): _TS, (_ARRAY, _S): _ARRAY, (_ARRAY, _TS): _ARRAY},
    **{name: {(_TS,): _TS, (_ARRAY,): _ARRAY} for name in ("ABS", "CEIL", "FLOOR", "RATE", "DIFF")},
    **{name: {(_TS,): _S, (_ARRAY,): _TS} for name in ("MIN", "MAX", "SUM", "AVG", "STDDEV")},
    "IF": {(_TS, *rest): _TS for a in (_S, _TS) for rest in ((a,), (a, _S), (a, _TS))},
}
_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|[A-Za-z_]\w*|==|!=|<=|>=|&&|\|\||[-+*/^<>()\[\],])")
_LEVELS = (("OR", "||"), ("AND", "&&"), ("==", "!=", "<=", ">=", "<", ">"), ("+", "-"), ("*", "/"))


class MetricMathError(AssertionError):
    """Raised for what CloudWatch would refuse."""


def type_of(expression: str, series: Iterable[str]) -> Type:
    """The type of an expression over series of these ids.

    Raises:
        MetricMathError: for a text that is none, or operands of types that do not go together.
    """
    return _Parser(_tokens(expression), frozenset(series)).whole()


def expressions(template: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Logical id, expression and the ids it may use, of every alarm and policy of a template."""
    for name, resource in template.get("Resources", {}).items():
        for queries in _query_lists(resource.get("Properties", {})):
            ids = [query["Id"] for query in queries]
            yield from ((name, q["Expression"], ids) for q in queries if "Expression" in q)


def _query_lists(value: Any) -> Iterator[list[dict[str, Any]]]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "Metrics" and isinstance(part, list) and part and "Id" in part[0]:
                yield part
            else:
                yield from _query_lists(part)
    elif isinstance(value, list):
        for part in value:
            yield from _query_lists(part)


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise MetricMathError(f"{text!r} cannot be read from {text[at:]!r} on")
        found.append(match[1])
        at = match.end()
    return found


class _Parser:
    def __init__(self, tokens: list[str], series: frozenset[str]) -> None:
        self.tokens, self.series = tokens, series

    def whole(self) -> Type:
        found = self.level(0)
        if self.tokens:
            raise MetricMathError(f"nothing may follow: {self.tokens}")
        if found is _S:
            raise MetricMathError("the result is a number; it has to be a time series")
        return found

    def level(self, number: int) -> Type:
        if number == len(_LEVELS):
            return self.unary()
        left = self.level(number + 1)
        while self.tokens and self.tokens[0] in _LEVELS[number]:
            operator = self.tokens.pop(0)
            left = self.combined(left, operator, self.level(number + 1))
        return left

    def combined(self, left: Type, operator: str, right: Type) -> Type:
        kinds = {left, right}
        logic = operator in {*_LEVELS[0], *_LEVELS[1], *_LEVELS[2]}
        if _ARRAY in kinds and (logic or kinds == {_ARRAY}):
            raise MetricMathError(f"unsupported operand type(s): {left} {operator} {right}")
        return _ARRAY if _ARRAY in kinds else _TS if _TS in kinds else _S

    def unary(self) -> Type:
        if self.tokens and self.tokens[0] == "-":
            self.tokens.pop(0)
        return self.atom()

    def atom(self) -> Type:
        token = self.take()
        if token == "(":
            inner = self.level(0)
            self.take(")")
            return inner
        if token == "[":
            for kind in self.arguments("]"):
                if kind is _S:
                    raise MetricMathError("unsupported operand type(s): a number inside [...]")
            return _ARRAY
        if re.match(r"\d", token):
            return _S
        if self.tokens[:1] == ["("]:
            self.take("(")
            return self.called(token, tuple(self.arguments(")")))
        if token not in self.series:
            raise MetricMathError(f"there is no metric {token!r}")
        return _TS

    def called(self, name: str, arguments: tuple[Type, ...]) -> Type:
        if name not in _FUNCTIONS:
            raise MetricMathError(f"{name} is no function that is known here")
        if arguments not in _FUNCTIONS[name]:
            raise MetricMathError(f"unsupported operand type(s) for {name}: {', '.join(arguments)}")
        return _FUNCTIONS[name][arguments]

    def arguments(self, end: str) -> list[Type]:
        found = [self.level(0)]
        while self.tokens[:1] == [","]:
            self.take(",")
            found.append(self.level(0))
        self.take(end)
        return found

    def take(self, expected: str | None = None) -> str:
        token = self.tokens.pop(0) if self.tokens else "the end"
        if expected not in (None, token):
            raise MetricMathError(f"{token} where {expected} has to be")
        return token
