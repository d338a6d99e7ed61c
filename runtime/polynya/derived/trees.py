"""Walks over the trees of statements."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def unwrapped(node: exp.Expr) -> exp.Expr:
    """A node without the brackets around it."""
    while isinstance(node, exp.Paren) or (isinstance(node, exp.Subquery) and not node.alias):
        node = node.this
    return node


def projections(query: exp.Expr) -> list[exp.Expr]:
    """The items that a query selects; of a set operation those of its first branch."""
    while not isinstance(query, exp.Select):
        query = query.this
    return query.expressions


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node computes one value of the rows of a group."""
    if not isinstance(node, exp.AggFunc):
        return False
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node, parent = parent, parent.parent
    return not (isinstance(parent, exp.Window) and parent.this is node)


def own_nodes(root: exp.Expr) -> Iterator[exp.Expr]:
    """A node and all below it, but nothing of a query inside; the query itself is one of them."""
    yield from root.walk(prune=lambda node: isinstance(node, exp.Query))


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND joins."""
    if condition is None:
        return []
    found: list[exp.Expr] = []
    pending = [condition]
    while pending:
        node = unwrapped(pending.pop())
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            found.append(node)
    return found
