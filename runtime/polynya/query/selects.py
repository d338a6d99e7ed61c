"""Translate one query to DuckDB's SQL: its sources, its rows or groups, and their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from polynya.model.types import BOOLEAN
from polynya.query.expressions import Expressions, Grouped, direction, is_aggregate
from polynya.query.sources import Names, sources
from polynya.query.translate import NotEmbeddedError, kind, only
from polynya.query.values import (
    EmbeddedValue,
    EngineLimits,
    Relation,
    RelationColumn,
    Scope,
    is_key,
    is_ordered,
    same,
)

_CLAUSES = ("from_", "joins", "where", "group", "having", "order", "limit", "distinct", "with_")


@dataclass(frozen=True, slots=True)
class Query:
    """A query: its SQL, and the names and types of its columns; they are called c0, c1 ….

    Names need not be different.
    """

    sql: str
    columns: tuple[RelationColumn, ...]


def translate(
    tree: exp.Query, views: Callable[[str], Relation], limits: EngineLimits | None = None
) -> Query:
    """A statement in DuckDB's SQL; `views` gives the view of a name.

    `limits` are those of another engine, whose view it becomes: such a view has no LIMIT.

    Raises:
        NotEmbeddedError: something of it is not surely the same in DuckDB. `views` may raise it.
    """
    try:
        names = Names(views, limits=limits or EngineLimits())
        return _query(tree, names, top=limits is None)
    except RecursionError as error:
        raise NotEmbeddedError("a statement that is nested too deep") from error


def _query(tree: exp.Expr, names: Names, *, top: bool = False) -> Query:
    if not isinstance(tree, exp.Select | exp.Union):
        raise NotEmbeddedError(kind(tree))
    if tree.args.get("limit") and not top:
        # Which rows these are is for the engine to choose.
        raise NotEmbeddedError("LIMIT in a view or a subquery")
    names = _with(tree, names)
    return _select(tree, names) if isinstance(tree, exp.Select) else _union(tree, names)


def _with(tree: exp.Expr, names: Names) -> Names:
    clause = tree.args.get("with_")
    if clause is None:
        return names
    only(clause, "expressions")
    for expression in clause.expressions:
        only(expression, "this", "alias")
        only(expression.args["alias"], "this")
        relation = _nested(expression.this, names)
        names = replace(
            names, named={expression.alias: relation, **_without(names, expression.alias)}
        )
    return names


def _without(names: Names, name: str) -> dict[str, Relation]:
    return {other: relation for other, relation in names.named.items() if not same(other, name)}


def _nested(tree: exp.Expr, names: Names) -> Relation:
    query = _query(tree, names)
    return Relation(f"({query.sql})", query.columns)


def _select(tree: exp.Select, names: Names) -> Query:
    only(tree, "expressions", *_CLAUSES)
    text, scope = sources(tree, names, lambda inner: _nested(inner, names))
    groups = _groups(tree, scope)
    rows: Expressions = Expressions(scope) if groups is None else Grouped(scope, frozenset(groups))
    values = [
        value for expression in tree.expressions for value in _selected(expression, rows, scope)
    ]
    if not values:
        raise NotEmbeddedError("a query without columns")
    distinct = tree.args.get("distinct")
    if distinct is not None:
        only(distinct)
        _check_keys(values, names)
    where, having = tree.args.get("where"), tree.args.get("having")
    if where is not None:
        text += f" WHERE {Expressions(scope).condition(where.this)}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if having is not None:
        if groups is None or not groups:
            raise NotEmbeddedError("HAVING without GROUP BY")
        _check_names(having, tree)
        text += f" HAVING {rows.condition(having.this)}"
    text += _ordered(tree, values, None if distinct is not None else rows) + _limited(tree)
    shown = ", ".join(f"{value.sql} AS c{number}" for number, value in enumerate(values))
    return Query(f"SELECT {'DISTINCT ' if distinct else ''}{shown}{text}", _columns(values))


def _union(tree: exp.Union, names: Names) -> Query:
    only(tree, "this", "expression", "distinct", "order", "limit", "with_")
    parts = [_query(side, names) for side in (tree.this, tree.expression)]
    types = [[column.type for column in part.columns] for part in parts]
    if types[0] != types[1]:
        raise NotEmbeddedError("UNION of different types")
    values = [EmbeddedValue(column.sql, column.type, column.name) for column in parts[0].columns]
    if tree.args.get("distinct"):
        _check_keys(values, names)
    word = "UNION" if tree.args.get("distinct") else "UNION ALL"
    text = f"({parts[0].sql}) {word} ({parts[1].sql})"
    return Query(f"{text}{_ordered(tree, values, None)}{_limited(tree)}", parts[0].columns)


def _selected(node: exp.Expr, rows: Expressions, scope: Scope) -> list[EmbeddedValue]:
    """The columns that one item of a SELECT gives."""
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and _is_star(node)):
        if isinstance(rows, Grouped):
            raise NotEmbeddedError("`*` in a grouped query")
        return _all_columns(node, scope)
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        return [replace(rows.value(node.this), name=node.alias)]
    return [rows.value(node)]


def _all_columns(node: exp.Expr, scope: Scope) -> list[EmbeddedValue]:
    if isinstance(node, exp.Star):
        only(node)
        return [value for source in scope.sources for value in source.columns()]
    only(node.this)
    only(node, "this", "table")
    sources = [source for source in scope.sources if same(source.name, node.text("table"))]
    if len(sources) != 1:
        raise NotEmbeddedError(f"the relation {node.text('table')}")
    return sources[0].columns()


def _is_star(column: exp.Column) -> bool:
    return isinstance(column.this, exp.Star)


def _groups(tree: exp.Select, scope: Scope) -> list[str] | None:
    """What a query groups by, nothing for one group of all; None where rows stay rows."""
    clause, rows = tree.args.get("group"), Expressions(scope)
    if clause is None:
        parts = (part for item in tree.expressions for part in item.walk())
        is_group = any(
            is_aggregate(part) and not isinstance(part.parent, exp.Window) for part in parts
        )
        return [] if is_group else None
    only(clause, "expressions")
    groups = []
    for node in clause.expressions:
        value = rows.value(_group(node, tree, scope))
        if value.constant or not scope.is_key(value.known):
            raise NotEmbeddedError(f"GROUP BY a value of type {value.type}")
        groups.append(value.sql)
    if not groups:
        raise NotEmbeddedError("GROUP BY nothing")
    return groups


def _group(node: exp.Expr, tree: exp.Select, scope: Scope) -> exp.Expr:
    """The expression that an item of GROUP BY stands for: a column comes before an alias."""
    selected = tree.expressions
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this) if node.this.isdigit() else 0
        if not 1 <= number <= len(selected) or any(column.is_star for column in selected):
            raise NotEmbeddedError(f"GROUP BY {node.this}")
        return _unnamed(selected[number - 1])
    if not isinstance(node, exp.Column) or len(node.parts) > 1:
        return node
    columns = [column.name for source in scope.sources for column in source.relation.columns]
    if any(same(name, node.name) for name in columns):
        return node
    named = [
        column
        for column in selected
        if isinstance(column, exp.Alias) and same(column.alias, node.name)
    ]
    if len(named) != 1:
        raise NotEmbeddedError(f"GROUP BY {node.name}")
    return _unnamed(named[0])


def _check_names(having: exp.Expr, tree: exp.Select) -> None:
    """HAVING may mean a column of the result where that has the name of another one."""
    renamed = [
        expression.alias
        for expression in tree.expressions
        if isinstance(expression, exp.Alias)
        and not (
            isinstance(expression.this, exp.Column) and same(expression.this.name, expression.alias)
        )
    ]
    for column in having.find_all(exp.Column):
        if any(same(name, column.name) for name in renamed):
            raise NotEmbeddedError(f"HAVING with {column.name}, which has two meanings")


def _unnamed(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this if isinstance(node, exp.Alias) else node
    return inner


def _ordered(tree: exp.Expr, values: Sequence[EmbeddedValue], rows: Expressions | None) -> str:
    """ORDER BY; without `rows` only by columns of the result."""
    clause = tree.args.get("order")
    if clause is None:
        return ""
    only(clause, "expressions")
    items = []
    for expression in clause.expressions:
        only(expression, "this", "desc", "nulls_first")
        sql, value = _order(expression.this, values, rows)
        # Of doubles DuckDB puts -0.0 before 0.0, which are one and the same for Spark.
        if value.type != BOOLEAN and not is_ordered(value.known):
            raise NotEmbeddedError(f"ORDER BY a value of type {value.type}")
        items.append(f"{sql} {direction(expression)}")
    return f" ORDER BY {', '.join(items)}"


def _order(
    node: exp.Expr, values: Sequence[EmbeddedValue], rows: Expressions | None
) -> tuple[str, EmbeddedValue]:
    if isinstance(node, exp.Literal):
        number = int(node.this) if not node.is_string and node.this.isdigit() else 0
        if not 1 <= number <= len(values):
            raise NotEmbeddedError(f"ORDER BY {node.this}")
        return str(number), values[number - 1]
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        matches = [at for at, value in enumerate(values, 1) if same(value.name or "", node.name)]
        if len(matches) == 1:
            return str(matches[0]), values[matches[0] - 1]
        if matches:
            raise NotEmbeddedError(f"more than one column of the name {node.name}")
    if rows is None:
        raise NotEmbeddedError("ORDER BY something else than a column of the result")
    for column in node.find_all(exp.Column):
        # A name in an expression may be that of a column of the result, or of what is behind it.
        if len(column.parts) == 1 and any(same(value.name or "", column.name) for value in values):
            raise NotEmbeddedError("ORDER BY an expression of columns of the result")
    value = rows.value(node)
    if value.constant:
        raise NotEmbeddedError("ORDER BY a literal")
    return value.sql, value


def _limited(tree: exp.Expr) -> str:
    clause = tree.args.get("limit")
    if clause is None:
        return ""
    if not isinstance(clause, exp.Limit):
        raise NotEmbeddedError(kind(clause))
    only(clause, "expression")
    number = clause.expression
    if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit():
        raise NotEmbeddedError("LIMIT with something else than a number")
    return f" LIMIT {int(number.this)}"


def _check_keys(values: Sequence[EmbeddedValue], names: Names) -> None:
    for value in values:
        names.limits.check_compared(value.known)
        if not is_key(value.known):
            raise NotEmbeddedError(f"DISTINCT over a value of type {value.type}")


def _columns(values: Sequence[EmbeddedValue]) -> tuple[RelationColumn, ...]:
    columns = []
    for number, value in enumerate(values):
        if value.name is None:
            raise NotEmbeddedError("an expression without a name: give it one with AS")
        columns.append(RelationColumn(value.name, value.known, f"c{number}"))
    return tuple(columns)
