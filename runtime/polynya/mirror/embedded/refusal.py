"""Why a statement is left to Spark."""

from __future__ import annotations

from sqlglot import exp


class NotEmbeddedError(Exception):
    """The embedded engine does not answer a statement; the text is the reason. Spark does."""


def only(node: exp.Expr, *names: str) -> None:
    """Raise NotEmbeddedError where a node says more than these of its parts."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise NotEmbeddedError(f"{kind(node)} with {name.rstrip('_').replace('_', ' ')}")


def kind(node: exp.Expr) -> str:
    """What a node is, for a reason."""
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name.lower()}"
    return type(node).__name__.upper()
