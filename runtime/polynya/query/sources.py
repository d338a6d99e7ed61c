"""The FROM clause of a query: views, subqueries, names of WITH, and joins on equal values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from polynya.query.expressions import Expressions
from polynya.query.translate import NotEmbeddedError, only
from polynya.query.values import AliasedRelation, EngineLimits, Relation, Scope, same

_JOINS: Final[Mapping[tuple[str, str], str]] = {
    ("", ""): "JOIN", ("", "INNER"): "JOIN",
    ("LEFT", ""): "LEFT JOIN", ("LEFT", "OUTER"): "LEFT JOIN",
    ("RIGHT", ""): "RIGHT JOIN", ("RIGHT", "OUTER"): "RIGHT JOIN",
    ("FULL", ""): "FULL JOIN", ("FULL", "OUTER"): "FULL JOIN",
    ("LEFT", "SEMI"): "SEMI JOIN", ("", "SEMI"): "SEMI JOIN",
    ("LEFT", "ANTI"): "ANTI JOIN", ("", "ANTI"): "ANTI JOIN",
}  # fmt: skip
#: Joins whose condition stands in WHERE.
_PRODUCTS: Final = frozenset({("", ""), ("", "CROSS")})
_NOT_EQUAL: Final = "a join that is not on equal values"
#: As `EngineLimits` calls them.
FULL_JOIN: Final = "a FULL JOIN on more than equal columns"
SEMI_JOIN: Final = "a SEMI or ANTI JOIN"


@dataclass(frozen=True, slots=True)
class Names:
    """What the names of relations mean at one place of a statement."""

    views: Callable[[str], Relation]
    named: Mapping[str, Relation] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    limits: EngineLimits = field(default_factory=EngineLimits)

    def find(self, table: exp.Table) -> tuple[str, Relation]:
        """The own name of a relation, and the relation."""
        only(table, "this", "db", "alias", "joins")
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            raise NotEmbeddedError(f"the relation {table.sql(dialect='spark')}")
        if table.db:
            return table.name, self.views(f"{table.db}.{table.name}")
        for name, relation in self.named.items():
            if same(name, table.name):
                return name, relation
        raise NotEmbeddedError(f"the relation {table.name}")


def sources(
    tree: exp.Select, names: Names, nested: Callable[[exp.Expr], Relation]
) -> tuple[str, Scope]:
    """The FROM clause of a SELECT and what its names mean; `nested` answers a subquery."""
    start = tree.args.get("from_")
    if start is None:
        return "", Scope((), names.limits)
    only(start, "this")
    text, first = _source(start.this, names, nested)
    scope, conditions, after_comma = Scope((first,), names.limits), [], 0
    for join in [*(start.this.args.get("joins") or []), *(tree.args.get("joins") or [])]:
        only(join, "this", "on", "side", "kind")
        word, condition = _JOINS.get((join.side, join.kind)), join.args.get("on")
        if join.this.args.get("joins"):
            raise NotEmbeddedError("a join inside of a join")
        is_product = condition is None and (join.side, join.kind) in _PRODUCTS
        if not is_product and (word is None or condition is None or not _has_equality(condition)):
            raise NotEmbeddedError(_NOT_EQUAL)
        if after_comma and word in {"RIGHT JOIN", "FULL JOIN"}:
            # It binds before the comma, which the parser takes for a CROSS JOIN.
            raise NotEmbeddedError(f"a {word} behind a comma")
        more, source = _source(join.this, names, nested)
        if any(same(source.name, other.name) for other in scope.sources):
            raise NotEmbeddedError(f"two relations of the name {source.name}")
        if is_product:
            after_comma = len(scope.sources)
        scope = Scope((*scope.sources, source), names.limits)
        if is_product:
            text += f" CROSS JOIN {more}"
            continue
        # What stands before a comma has no name behind it.
        on = Expressions(replace(scope, sources=scope.sources[after_comma:])).condition(condition)
        if word == "FULL JOIN" and not _has_only_pairs(condition, scope, source):
            names.limits.check_function(FULL_JOIN, condition)
        text += f" {word} {more} ON {on}"
        if word in {"SEMI JOIN", "ANTI JOIN"}:
            # Its columns have no name from here on.
            names.limits.check_function(SEMI_JOIN, condition)
            scope = Scope(scope.sources[:-1], names.limits)
        else:
            conditions.append(condition)
    if len(conditions) < len(scope.sources) - 1:
        where = tree.args.get("where")
        _refuse_products(scope, conditions if where is None else [*conditions, where.this])
    return f" FROM {text}", scope


def _source(
    node: exp.Expr, names: Names, nested: Callable[[exp.Expr], Relation]
) -> tuple[str, AliasedRelation]:
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")
    if isinstance(node, exp.Table):
        own, relation = names.find(node)
    elif isinstance(node, exp.Subquery):
        only(node, "this", "alias", "joins")
        own, relation = "", nested(node.this)
    else:
        raise NotEmbeddedError("FROM something else than a view or a subquery")
    place = f"t{next(names.numbers)}"
    shown = alias.name if alias is not None else own
    return f"{relation.sql} AS {place}", AliasedRelation(shown, place, relation)


def _refuse_products(scope: Scope, conditions: Sequence[exp.Expr]) -> None:
    """Raise NotEmbeddedError unless columns that must be equal bring all relations together."""
    together = [{source.alias} for source in scope.sources]
    for condition in conditions:
        for pair in _equal_columns(condition):
            aliases = {scope.resolve(column).sql.partition(".")[0] for column in pair}
            linked = [group for group in together if group & aliases]
            together = [group for group in together if not group & aliases]
            together.append(set().union(*linked))
    if len(together) > 1:
        raise NotEmbeddedError(_NOT_EQUAL)


def _equal_columns(condition: exp.Expr) -> Iterator[tuple[exp.Column, exp.Column]]:
    """The pairs of columns that must be equal for a condition to hold."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        yield from _equal_columns(condition.this)
        yield from _equal_columns(condition.expression)
    sides = (condition.args.get("this"), condition.args.get("expression"))
    if isinstance(condition, exp.EQ) and all(isinstance(side, exp.Column) for side in sides):
        yield condition.this, condition.expression


def _has_only_pairs(condition: exp.Expr, scope: Scope, source: AliasedRelation) -> bool:
    """Whether all that must hold is that columns of a relation equal columns of those before it."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        sides = (condition.this, condition.expression)
        return all(_has_only_pairs(side, scope, source) for side in sides)
    if not _has_equality(condition):
        return False
    first, second = (
        scope.resolve(side).sql.startswith(f"{source.alias}.")
        for side in (condition.this, condition.expression)
    )
    return first != second


def _has_equality(condition: exp.Expr) -> bool:
    """Whether one of the conditions that must hold is that two columns are equal."""
    return next(_equal_columns(condition), None) is not None
