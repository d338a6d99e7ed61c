"""Expressions of Qlik and Replicate in Spark's SQL, where both give the same values.

sqlglot reads the dialect; a list says which operators and functions have an equal. Anything else
is refused, since an expression that differs in a rare case is worse than a loss with its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError, UnsupportedError

from polynya.model.errors import ConfigError
from polynya.transform.expressions import validate_expression

#: `${NAME}`: a column or a table.
_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]{1,255})\}")
_MAX_LENGTH: Final = 20_000
#: The dialect of a project's platform. A lakehouse has functions of its own.
DIALECTS: Final[Mapping[str, str]] = {
    "SNOWFLAKE": "snowflake", "BIGQUERY": "bigquery", "SYNAPSE": "tsql", "DATABRICKS": "databricks",
    "REDSHIFT": "redshift", "MSSQL": "tsql", "FABRIC": "tsql",
}  # fmt: skip

_VALUES: Final[tuple[type[exp.Expr], ...]] = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In,
    exp.Between, exp.Case, exp.If, exp.Add, exp.Sub, exp.Mul, exp.DPipe, exp.Concat, exp.Coalesce,
    exp.Nullif, exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Length, exp.Abs, exp.Replace,
)  # fmt: skip
_STATEMENTS: Final[tuple[type[exp.Expr], ...]] = (
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Alias, exp.Where, exp.Group, exp.Having,
    exp.Join, exp.With, exp.CTE, exp.Subquery, exp.Union, exp.Distinct, exp.Count, exp.Sum, exp.Min,
    exp.Max, exp.Star,
)  # fmt: skip


class NoEqualError(Exception):
    """An expression has no equal; the text says which part."""


def column_expression(text: str, dialect: str, aliases: Mapping[str, str], where: str) -> str:
    """The expression of a column in Spark's SQL.

    Args:
        text: the expression; `${NAME}` stands for a column.
        dialect: the dialect of sqlglot in which it is written.
        aliases: the column of each name; without one the name itself.
        where: the place, for messages.

    Raises:
        NoEqualError: a part of it has no equal, or it is not readable.
    """
    tree = _parsed(_filled(text, aliases, dialect), dialect)
    _check(tree, _VALUES)
    made = tree.sql(dialect="spark", comments=False)
    try:
        validate_expression(made, where=where)
    except ConfigError as error:
        raise NoEqualError(error.message) from None
    return made


def statement(text: str, dialect: str, tables: Mapping[str, str]) -> tuple[str, bool]:
    """A SELECT in Spark's SQL, and whether an ORDER BY was taken off its end.

    Args:
        text: the statement; `${NAME}` stands for a table.
        dialect: the dialect of sqlglot in which it is written.
        tables: `schema.table` of each name.

    Raises:
        NoEqualError: a part of it has no equal, or it is not readable.
    """
    for name in _PLACEHOLDER.findall(text):
        if name not in tables:
            raise NoEqualError(f"`{name}` is no table of the project")
    tree = _parsed(_filled(text, tables), dialect)
    if not isinstance(tree, exp.Query):
        raise NoEqualError("it is not a SELECT")
    ordered = tree.args.get("order") is not None and tree.args.get("limit") is None
    if ordered:
        # A table has no order, and the engine would sort for nothing.
        tree.set("order", None)
    _check(tree, _VALUES + _STATEMENTS)
    return tree.sql(dialect="spark", comments=False, pretty=True), ordered


def constant(text: str) -> str | None:
    """The text of a literal, None for anything else."""
    try:
        tree = _parsed(text, "sqlite")
    except NoEqualError:
        return None
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string else None


def _filled(text: str, names: Mapping[str, str], dialect: str | None = None) -> str:
    """The text with names for its placeholders: columns of a dialect are quoted, tables are not."""

    def put(found: re.Match[str]) -> str:
        name = names.get(found[1], found[1])
        if dialect is None:
            return name
        return exp.to_identifier(name, quoted=True).sql(dialect=dialect)

    return _PLACEHOLDER.sub(put, text)


def _parsed(text: str, dialect: str) -> exp.Expr:
    if len(text) > _MAX_LENGTH:
        raise NoEqualError(f"longer than {_MAX_LENGTH} characters")
    if not text.strip():
        raise NoEqualError("it is empty")
    try:
        trees = [tree for tree in sqlglot.parse(text, read=dialect) if tree is not None]
    except (ParseError, TokenError, UnsupportedError, RecursionError, ValueError):
        raise NoEqualError("it is not readable as SQL") from None
    if len(trees) != 1:
        raise NoEqualError("it is not one expression")
    return trees[0]


def _check(tree: exp.Expr, allowed: tuple[type[exp.Expr], ...]) -> None:
    for node in tree.walk():
        if type(node) not in allowed:
            name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
            raise NoEqualError(f"`{name.upper()[:60]}` has no equal that is known to be the same")
        if isinstance(node, exp.Substring):
            start = node.args.get("start")
            if not (isinstance(start, exp.Literal) and start.is_int and int(start.name) > 0):
                raise NoEqualError("`SUBSTR` from another place than a positive number")
