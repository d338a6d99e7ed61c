"""Conditions that only compare one column with texts: what needs no Spark to be decided."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from polynya.transform.expressions import validate_expression
from polynya.transform.parsing import parse


@dataclass(frozen=True, slots=True)
class Choice:
    """True where the column is one of the texts, else false or NULL."""

    column: str
    texts: frozenset[str]


def choice_of(text: str) -> Choice | None:
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
    if not values or not all(isinstance(one, exp.Literal) and one.is_string for one in values):
        return None
    return Choice(column.name, frozenset(str(one.this) for one in values))
