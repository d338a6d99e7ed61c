"""Aggregates whose results do not depend on the order of rows, nor on the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from polynya.mirror.embedded.expressions import Expressions
from polynya.mirror.embedded.refusal import NotEmbeddedError, only
from polynya.mirror.embedded.typed import INTEGERS, Scope, Value, is_key, is_ordered
from polynya.model.datatypes import BIGINT, DOUBLE, Decimal

_MOST_DIGITS: Final = 38
#: Up to here a double adds integers exactly, in whatever order.
_EXACT: Final = 2**53


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate that is known here."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in {"count", *_AGGREGATES}


class Grouped(Expressions):
    """Expressions over groups: aggregates, what the groups are made by, and what follows."""

    def __init__(self, scope: Scope, groups: frozenset[str]) -> None:
        super().__init__(scope)
        self._rows, self._groups = Expressions(scope), groups

    def value(self, node: exp.Expr) -> Value:
        """An expression. Raises NotEmbeddedError."""
        if is_aggregate(node):
            return self._aggregate(node)
        if not any(is_aggregate(one) for one in node.walk()):
            row = self._rows.value(node)
            if row.sql in self._groups or not any(node.find_all(exp.Column)):
                return row
            if isinstance(node, exp.Column):
                raise NotEmbeddedError(f"the column {node.name}, which is not grouped by")
        return super().value(node)

    def _aggregate(self, node: exp.Expr) -> Value:
        only(node, "this", "expressions")
        name, arguments = node.name.lower(), node.expressions
        if isinstance(node.this, exp.Identifier) or len(arguments) != 1:
            raise NotEmbeddedError(f"{name} of {len(arguments)} arguments")
        argument = arguments[0]
        if name == "count":
            return self._count(argument)
        inner = self._rows.value(argument)
        made = _AGGREGATES[name](inner)
        if made is None:
            raise NotEmbeddedError(f"{name} of a value of type {inner.type}")
        return Value(made.sql, made.type, None if inner.name is None else f"{name}({inner.name})")

    def _count(self, argument: exp.Expr) -> Value:
        if isinstance(argument, exp.Star):
            only(argument)
            return Value("count(*)", BIGINT, "count(1)")
        if isinstance(argument, exp.Distinct):
            only(argument, "expressions")
            if len(argument.expressions) != 1:
                raise NotEmbeddedError("count(DISTINCT …) of several expressions")
            inner = self._rows.value(argument.expressions[0])
            if not is_key(inner.known):
                raise NotEmbeddedError(f"DISTINCT over a value of type {inner.type}")
            sql, shown = f"count(DISTINCT {inner.sql})", "count(DISTINCT {})"
        else:
            inner = self._rows.value(argument)
            inner.known  # noqa: B018 - NULL has no type
            sql, shown = f"count({inner.sql})", "count({})"
        return Value(sql, BIGINT, None if inner.name is None else shown.format(inner.name))


def _extreme(function: str) -> Callable[[Value], Value | None]:
    def made(value: Value) -> Value | None:
        return Value(f"{function}({value.sql})", value.type) if is_ordered(value.known) else None

    return made


def _sum(value: Value) -> Value | None:
    # What overflows is an error here; Spark wraps it around, or gives NULL.
    if value.known in INTEGERS:
        return Value(f"CAST(sum({value.sql}) AS BIGINT)", BIGINT)
    if isinstance(value.known, Decimal):
        digits = min(_MOST_DIGITS, value.known.precision + 10)
        scale = value.known.scale
        return Value(
            f"CAST(sum({value.sql}) AS DECIMAL({digits}, {scale}))", Decimal(digits, scale)
        )
    return None


def _average(value: Value) -> Value | None:
    if value.known not in INTEGERS:
        return None
    # Spark adds doubles, whose sum depends on the order once it is no longer exact.
    exact = f"coalesce(sum(abs(CAST({value.sql} AS HUGEINT))), 0) < {_EXACT}"
    average = f"CAST(sum({value.sql}) AS DOUBLE) / count({value.sql})"
    return Value(f"(CASE WHEN {exact} THEN {average} ELSE error('avg of large sums') END)", DOUBLE)


_AGGREGATES: Final[Mapping[str, Callable[[Value], Value | None]]] = {
    "sum": _sum,
    "avg": _average,
    "min": _extreme("min"),
    "max": _extreme("max"),
}
