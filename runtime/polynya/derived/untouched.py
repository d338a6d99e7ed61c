"""Leaves inputs without a change out of the query of affected keys.

Spark analyses all of a text, also what the emptiness of a view then takes away. A query that joins
ten tables of which one changed would be analysed for ten.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp


def without_empty(query: exp.Query, empty: Collection[str]) -> exp.Query:
    """The query without the branches of UNION and the CTEs that read one of the `empty` tables.

    Each branch of a query of affected keys has no row where one of its tables has none. A query
    without another branch stays as it is.
    """
    none, kept = set(empty), query.copy()
    clause = kept.args.get("with_")
    ctes: list[exp.CTE] = [] if clause is None else list(clause.expressions)
    left: list[exp.CTE] = []
    for cte in ctes:
        rest = _rest(cte.this, none)
        if rest is None:
            none.add(cte.alias)
        else:
            cte.set("this", rest)
            left.append(cte)
    kept.set("with_", None)
    body = _rest(kept, none)
    if body is None:
        return query.copy()
    read = _read(body)
    used: list[exp.CTE] = []
    # Each CTE reads only those before it.
    for cte in reversed(left):
        if cte.alias in read:
            used.append(cte)
            read |= _read(cte.this)
    if used:
        body.set("with_", exp.With(expressions=used[::-1]))
    return body


def _rest(query: exp.Expr, none: Collection[str]) -> exp.Query | None:
    """The branches of a query that read no empty table; None without any."""
    assert isinstance(query, exp.Query), "a CTE is a query"
    if not _read(query) & set(none):
        # It may be a state of a user's query, whose UNION keeps rows that are equal.
        return query
    branches = [one for one in _branches(query) if not _read(one) & set(none)]
    if not branches:
        return None
    rest = branches[0]
    for branch in branches[1:]:
        rest = exp.Union(this=rest, expression=branch, distinct=True)
    return rest


def _branches(query: exp.Expr) -> list[exp.Query]:
    if isinstance(query, exp.Union):
        return [*_branches(query.this), *_branches(query.expression)]
    assert isinstance(query, exp.Query), "a branch is a SELECT"
    return [query]


def _read(query: exp.Expr) -> set[str]:
    return {table.name for table in query.find_all(exp.Table)}
