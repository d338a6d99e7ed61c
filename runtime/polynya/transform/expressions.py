"""Users' SQL expressions: checked against an allow-list, then generated again as Spark SQL.

Spark gets text that is made from the checked tree, with every column quoted and every string
escaped again. So no difference between two SQL parsers can smuggle anything past the check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from polynya.model.error_catalogue.expressions import (
    EXPRESSION_TOO_LARGE,
    FUNCTION_NOT_ALLOWED,
    NOT_ALLOWED_IN_EXPRESSION,
    QUERY_IN_EXPRESSION,
)
from polynya.model.errors import ConfigError
from polynya.model.names import literal, shown
from polynya.model.types import Array, DataType, MapType, Struct, Void
from polynya.transform.functions.core import ExpressionContext
from polynya.transform.parsing import check_call, own_function, parse, refuse, rewrite

_ALLOWED_NODES: Final = frozenset(
    {
        # values and names
        *(exp.Literal, exp.RawString, exp.HexString, exp.Boolean, exp.Null, exp.Column),
        *(exp.Identifier, exp.Dot, exp.Bracket, exp.Interval, exp.Var, exp.IntervalSpan),
        # logic and comparison
        *(exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
        *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
        *(exp.RegexpLike, exp.Escape, exp.Case, exp.If),
        # arithmetic and text
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe),
        *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
        # casts and calls
        *(exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Anonymous),
    }
)
_QUERIES: Final = (exp.Query, exp.Table, exp.From, exp.Values, exp.Exists)
_CLOCKS: Final = ("current_", "localtime", "session_user")
_FILE_FORMATS: Final = frozenset(
    {"parquet", "orc", "csv", "json", "text", "avro", "binaryfile", "delta", "iceberg", "xml"}
)


class SparkWriter(SparkGenerator):
    """Writes string literals in the one form that Spark reads back as the same text."""

    def literal_sql(self, expression: exp.Literal) -> str:
        """A number as it stands, a text escaped."""
        text = str(expression.this or "")
        return literal(text) if expression.is_string else text

    def rawstring_sql(self, expression: exp.RawString) -> str:
        """A raw text as an escaped one."""
        return literal(str(expression.this))


def validate_expression(text: str, *, where: str | None = None) -> str:
    """Return the canonical Spark SQL of a user's expression, every column quoted.

    Args:
        text: one scalar expression, for example `operation = 'DELETE'`.
        where: `file:line:col` for the error.

    Raises:
        ConfigError: POLYNYA-EXP-001 to -007 and POLYNYA-FUN-001 to -003, with the position.
    """
    return _checked(text, where)[0]


def expression_over(
    text: str,
    columns: Mapping[str, DataType],
    *,
    where: str | None = None,
    place: ExpressionContext | None = None,
) -> str:
    """Return the canonical SQL for rows of these columns: what they do not have is NULL.

    A source that has sent no delete yet may never have sent the column that marks one. `place` is
    needed where the text calls functions of Polynya. Raises ConfigError as
    `validate_expression` does.
    """
    validate_expression(text, where=where)
    tree = exp.Paren(this=parse(text, where))
    for column in list(tree.find_all(exp.Column)):
        if not _is_there([part.name for part in column.parts], columns):
            node: exp.Expr = column
            while isinstance(node.parent, exp.Dot | exp.Bracket) and node.parent.this is node:
                node = node.parent
            node.replace(exp.Null())
    if place is not None:
        rewrite(tree, columns, place, canonical_sql, where)
    return canonical_sql(tree.this)


def has_all(text: str, columns: Mapping[str, DataType]) -> bool:
    """Whether rows of these columns have every column and field that an expression reads."""
    paths = (
        [part.name for part in column.parts] for column in parse(text, None).find_all(exp.Column)
    )
    return all(_is_there(path, columns) for path in paths)


def canonical_sql(tree: exp.Expr) -> str:
    """Return the text of a checked tree as Spark SQL, every name quoted and every text escaped."""
    return SparkWriter(dialect=Spark(), identify=True, comments=False).generate(tree)


def _is_there(path: Sequence[str], columns: Mapping[str, DataType]) -> bool:
    kind: DataType | None = columns.get(path[0])
    for name in path[1:]:
        # `items.price` of an array of structs is the array of its prices.
        while isinstance(kind, Array):
            kind = kind.element
        if isinstance(kind, MapType):
            return True
        kind = dict(kind.fields).get(name) if isinstance(kind, Struct) else None
    return kind is not None and (len(path) == 1 or not isinstance(kind, Void))


def expression_columns(text: str) -> frozenset[str]:
    """Return the top-level columns that an expression reads; raises ConfigError like the check."""
    return _checked(text, None)[1]


def tells_place(text: str) -> bool:
    """Whether the value of an expression depends on the record's place in the landing zone.

    Raises ConfigError like the check.
    """
    called = (
        own_function(node) for node in parse(text, None).walk() if isinstance(node, exp.Anonymous)
    )
    return any(function is not None and function.by_place for function in called)


@lru_cache(maxsize=1024)
def _checked(text: str, where: str | None) -> tuple[str, frozenset[str]]:
    try:
        tree = parse(text, where)
        nodes = list(tree.walk())
        for node in nodes:
            _check_node(node, where)
        sql = canonical_sql(tree)
    except RecursionError:
        raise refuse(EXPRESSION_TOO_LARGE, "nested too deep", where) from None
    return sql, frozenset(_columns(nodes))


def _columns(nodes: list[exp.Expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, exp.Column):
            # `a.b.c` parses as a qualified column, but only `a` can be a column of the batch.
            yield node.parts[0].name
        elif isinstance(node, exp.Anonymous):
            own = own_function(node)
            if own is not None and own.header is not None:
                yield own.header


def _check_node(node: exp.Expr, where: str | None) -> None:
    if isinstance(node, _QUERIES):
        raise refuse(QUERY_IN_EXPRESSION, "sub-queries and tables are not allowed", where)
    if isinstance(node, exp.Anonymous):
        check_call(node, where)
    elif isinstance(node, exp.Column):
        _check_column(node, where)
    elif isinstance(node, exp.DataType) and node.this == exp.DType.USERDEFINED:
        raise refuse(NOT_ALLOWED_IN_EXPRESSION, "unknown type in a cast", where)
    elif isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest")):
        raise refuse(QUERY_IN_EXPRESSION, "sub-queries and tables are not allowed", where)
    elif type(node) not in _ALLOWED_NODES:
        raise refuse(
            NOT_ALLOWED_IN_EXPRESSION,
            f"{type(node).__name__.lower()} is not allowed here",
            where,
            node.meta.get("start"),
        )


def _check_column(column: exp.Column, where: str | None) -> None:
    parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
    if len(parts) != len(column.parts):
        raise refuse(NOT_ALLOWED_IN_EXPRESSION, "`*` is not allowed here", where)
    if not all(part.name for part in parts):
        raise refuse(NOT_ALLOWED_IN_EXPRESSION, "a column name is empty", where)
    first, position = parts[0], parts[0].meta.get("start")
    if (
        len(parts) > 1
        and first.name.lower() in _FILE_FORMATS
        and "/" in "".join(part.name for part in parts[1:])
    ):
        raise refuse(QUERY_IN_EXPRESSION, "paths as tables are not allowed", where, position)
    if not first.quoted and first.name.lower().startswith(_CLOCKS):
        # Spark would fall back to the function of that name, which is not the same on every run.
        raise _clock(first.name, where, position)


def _clock(name: str, where: str | None, position: int | None) -> ConfigError:
    message = f"{shown(name)} is not allowed: it differs on every run; quote it if it is a column"
    return refuse(FUNCTION_NOT_ALLOWED, message, where, position)


def path_of(text: str) -> tuple[str, ...] | None:
    """The names of an expression that only names a column, or a field of it; None for all else.

    Raises ConfigError like the check.
    """
    _checked(text, None)
    node = parse(text, None)
    names: list[str] = []
    while isinstance(node, exp.Paren):
        node = node.this
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        names.append(node.expression.name)
        node = node.this
    if not isinstance(node, exp.Column):
        return None
    return (*(part.name for part in node.parts), *reversed(names))


def day_of(text: str) -> str | None:
    """The column of an expression that is only the day of a column; None for all else.

    Raises ConfigError like the check.
    """
    _checked(text, None)
    node = parse(text, None)
    if not isinstance(node, exp.Cast) or not node.to.is_type(exp.DataType.Type.DATE):
        return None
    column = node.this
    return column.name if isinstance(column, exp.Column) and len(column.parts) == 1 else None


@dataclass(frozen=True, slots=True)
class TextCondition:
    """True where the column is one of the texts, else false or NULL."""

    column: str
    texts: frozenset[str]


def choice_of(text: str) -> TextCondition | None:
    """The condition `column = 'text'` or `column IN ('text', …)`; None for any other one.

    Raises ConfigError as `validate_expression` does.
    """
    validate_expression(text)
    tree = parse(text, None)
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.EQ):
        column, values = tree.this, [tree.expression]
    elif isinstance(tree, exp.In):
        column, values = tree.this, list(tree.expressions)
    else:
        return None
    if not isinstance(column, exp.Column) or len(column.parts) != 1:
        return None
    if not values or not all(
        isinstance(value, exp.Literal) and value.is_string for value in values
    ):
        return None
    return TextCondition(column.name, frozenset(str(value.this) for value in values))
