"""Expressions of one row in DuckDB's SQL: an allow-list, with the types that Spark gives.

What is here has the same value in both engines for every value of its arguments, or an error in
DuckDB, with which the statement goes to Spark. Everything else is refused, and goes there too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlglot import exp

from polynya.mirror.embedded.calls import call
from polynya.mirror.embedded.literals import as_type, moment, number, string
from polynya.mirror.embedded.refusal import NotEmbeddedError, kind, only
from polynya.mirror.embedded.typed import (
    INTEGERS,
    Scope,
    Value,
    is_key,
    text_literal,
)
from polynya.model.datatypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)

_COMPARISONS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip
_ARITHMETIC: Final[Mapping[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
#: What stands inside of a comparison only in parentheses: parsers differ in what binds first.
_LOOSE: Final = (exp.Predicate, exp.Not, exp.Connector)
_NULL: Final = Value("NULL", None)


class Expressions:
    """Translates the expressions over the rows of one scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def value(self, node: exp.Expr) -> Value:
        """An expression. Raises NotEmbeddedError."""
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

    def _column(self, node: exp.Column) -> Value:
        only(node, "this", "table", "db", "catalog")
        return self._scope.resolve(node)

    def _paren(self, node: exp.Paren) -> Value:
        only(node, "this")
        inner = self.value(node.this)
        return Value(f"({inner.sql})", inner.type, None, inner.constant)

    def _literal(self, node: exp.Literal) -> Value:
        text = str(node.this)
        return string(text) if node.is_string else number(text)

    def _negative(self, node: exp.Neg) -> Value:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            value = number(f"-{node.this.this}")
            return Value(value.sql, value.type, None, value.constant)
        inner = self.value(node.this)
        if inner.known not in INTEGERS:
            raise NotEmbeddedError(f"the negative of a value of type {inner.type}")
        return Value(f"(-{inner.sql})", inner.type)

    def _boolean(self, node: exp.Boolean) -> Value:
        return Value("TRUE" if node.this else "FALSE", BOOLEAN)

    def _null(self, node: exp.Null) -> Value:
        del node
        return _NULL

    def _connected(self, node: exp.And | exp.Or) -> Value:
        only(node, "this", "expression")
        word = "AND" if isinstance(node, exp.And) else "OR"
        left, right = self.condition(node.this), self.condition(node.expression)
        return Value(f"({left} {word} {right})", BOOLEAN)

    def _not(self, node: exp.Not) -> Value:
        only(node, "this")
        return Value(f"(NOT {self.condition(node.this)})", BOOLEAN)

    def _is(self, node: exp.Is) -> Value:
        only(node, "this", "expression", "negate")
        if not isinstance(node.expression, exp.Null) or isinstance(node.this, _LOOSE):
            raise NotEmbeddedError("IS with something else than NULL")
        inner = self.value(node.this)
        word = "IS NOT NULL" if node.args.get("negate") else "IS NULL"
        # NULL itself has no type, but is as much NULL as anything.
        return Value(f"({inner.sql if inner.type else inner.known} {word})", BOOLEAN)

    def _in(self, node: exp.In) -> Value:
        only(node, "this", "expressions")
        found = [self._comparison(node.this, one, "=").sql for one in node.expressions]
        if not found or not all(isinstance(_bare(one), exp.Literal) for one in node.expressions):
            raise NotEmbeddedError("IN with something else than literals")
        return Value(f"({' OR '.join(found)})", BOOLEAN)

    def _between(self, node: exp.Between) -> Value:
        only(node, "this", "low", "high")
        low = self._comparison(node.this, node.args["low"], ">=")
        high = self._comparison(node.this, node.args["high"], "<=")
        return Value(f"({low.sql} AND {high.sql})", BOOLEAN)

    def _like(self, node: exp.Like) -> Value:
        only(node, "this", "expression", "negate")
        value, pattern = self.value(node.this), node.expression
        if value.type != STRING or not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise NotEmbeddedError("LIKE with something else than a text and a literal")
        word = "NOT LIKE" if node.args.get("negate") else "LIKE"
        return Value(f"({value.sql} {word} {text_literal(str(pattern.this))})", BOOLEAN)

    def _case(self, node: exp.Case) -> Value:
        only(node, "ifs", "default")
        branches = [(self.condition(one.this), self.value(one.args["true"]))
                    for one in node.args["ifs"]]  # fmt: skip
        default = node.args.get("default")
        last = _NULL if default is None else self.value(default)
        result = one_type([*(value for _, value in branches), last])
        cases = " ".join(f"WHEN {when} THEN {value.sql}" for when, value in branches)
        return Value(f"(CASE {cases} ELSE {last.sql} END)", result)

    def _concatenated(self, node: exp.DPipe) -> Value:
        only(node, "this", "expression", "safe")
        left, right = self.value(node.this), self.value(node.expression)
        if (left.type, right.type) != (STRING, STRING):
            raise NotEmbeddedError("`||` of something else than texts")
        return Value(f"({left.sql} || {right.sql})", STRING)

    def _call(self, node: exp.Anonymous) -> Value:
        if isinstance(node.this, exp.Identifier):
            raise NotEmbeddedError(f"the function {node.name}")
        arguments = [self.value(one) for one in node.expressions]
        return call(node.name.lower(), arguments)

    def _cast(self, node: exp.Cast | exp.TryCast) -> Value:
        only(node, "this", "to", "safe", "requires_string")
        target = _CAST_TYPES.get(node.args["to"].sql(dialect="spark").upper())
        inner = self.value(node.this)
        if target in {DATE, TIMESTAMP, TIMESTAMP_NTZ} and inner.constant and target is not None:
            return Value(moment(inner.constant.text, target), target)
        if inner.constant is not None and not inner.constant.is_string and target == BIGINT:
            return Value(f"CAST({inner.constant.text} AS BIGINT)", BIGINT)
        pair = (inner.known, target)
        if pair == (INT, BIGINT):
            return Value(f"CAST({inner.sql} AS BIGINT)", BIGINT)
        if pair in {(INT, STRING), (BIGINT, STRING)}:
            return Value(f"CAST({inner.sql} AS VARCHAR)", STRING)
        if target == DATE:
            return call("to_date", [inner])
        raise NotEmbeddedError(f"a cast of {inner.type} to {node.args['to'].sql(dialect='spark')}")

    def _comparison(self, left: exp.Expr, right: exp.Expr, sign: str) -> Value:
        if isinstance(left, _LOOSE) or isinstance(right, _LOOSE):
            raise NotEmbeddedError("a comparison of comparisons without parentheses")
        one, other = self.value(left), self.value(right)
        return Value(f"({compared(one, other, sign)})", BOOLEAN)

    def _arithmetic(self, node: exp.Expr) -> Value:
        only(node, "this", "expression")
        left, right = self.value(node.this), self.value(node.expression)
        if not {left.known, right.known} <= INTEGERS:
            raise NotEmbeddedError(f"{kind(node)} of {left.type} and {right.type}")
        result = BIGINT if BIGINT in {left.type, right.type} else INT
        # An overflow, which wraps around in Spark, is an error here.
        return Value(f"({left.sql} {_ARITHMETIC[type(node)]} {right.sql})", result)


def compared(left: Value, right: Value, sign: str) -> str:
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


def one_type(values: list[Value]) -> DataType:
    """The type of values that all have the same one, or are NULL."""
    types = {value.known for value in values if value != _NULL}
    if len(types) != 1:
        raise NotEmbeddedError("branches of more than one type")
    return types.pop()


def _bare(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Neg) else node


_CAST_TYPES: Final[Mapping[str, DataType]] = {
    "BIGINT": BIGINT, "STRING": STRING, "DATE": DATE, "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}  # fmt: skip
_TRANSLATIONS: Final[Mapping[type[exp.Expr], Callable[[Expressions, Any], Value]]] = {
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
    exp.DPipe: Expressions._concatenated,
    exp.Anonymous: Expressions._call,
    exp.Cast: Expressions._cast,
    # What sqlglot makes of CAST, which gives NULL in Spark where it fails; none of ours fails.
    exp.TryCast: Expressions._cast,
}
