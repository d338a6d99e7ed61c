"""The statement of a derived dataset: one SELECT in Spark's dialect over named inputs.

It is checked without Spark: tables, columns, functions, names of the result. sqlglot makes all
names full and all stars lists; what a name means where a column of a table and an alias share it is
decided here, by Spark's rules. Types are not: Spark knows them when the statement is prepared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.optimizer.qualify import qualify
from sqlglot.parsers.spark import SparkParser
from sqlglot.schema import MappingSchema
from sqlglot.tokenizer_core import Token, TokenType

from polynya.derived.functions import AGGREGATES, STATEMENT_FUNCTIONS
from polynya.derived.names import ANY_COLUMNS, RelationColumns, StatementNames, StatementText
from polynya.derived.schema import DerivedInput
from polynya.derived.trees import is_aggregate, own_nodes, projections, unwrapped
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.transforms import (
    CLAUSE_NOT_ALLOWED,
    FUNCTION_NOT_IN_STATEMENTS,
    NOT_GROUPED,
    NOT_ONE_SELECT,
    OUTPUT_NAMES,
    STATEMENT_NOT_SQL,
    STATEMENT_TOO_LARGE,
    TABLE_NOT_ALLOWED,
    UNKNOWN_COLUMN,
)
from polynya.model.errors import ConfigError
from polynya.model.names import shown
from polynya.query.translate import MAX_LENGTH, MAX_TOKENS
from polynya.transform.parsing import PlainParser, with_spark_strings

MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class DerivedStatement:
    """A checked statement.

    Attributes:
        text: as the user wrote it.
        tree: every column with its table, every star a list; an input is the table `tables` names.
        inputs: the inputs that it reads, by their names.
        tables: the name of the table in `tree` -> the name of its input.
        columns: the names of the result, in order, as they are written.
    """

    text: str
    tree: exp.Query
    inputs: Mapping[str, DerivedInput]
    tables: Mapping[str, str]
    columns: tuple[str, ...]


class StatementParser(PlainParser):
    """Keeps functions as they are written; knows the four that have a syntax of their own."""

    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "POSITION")
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = SparkParser.NO_PAREN_FUNCTIONS

    def _parse_subquery(self, this: exp.Expr | None, *given: Any, **named: Any) -> Any:
        """Note which characters a query in brackets is, with them."""
        end = self._index - 1
        made = super()._parse_subquery(this, *given, **named)
        start = self._opening(end)
        if made is not None and start is not None:
            made.meta["place"] = (self._tokens[start].start, self._tokens[end].end + 1, None)
        return made

    def _opening(self, end: int) -> int | None:
        """The number of the bracket that a closing one belongs to."""
        depth = 0
        for number in range(end, -1, -1):
            kind = self._tokens[number].token_type
            depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
            if depth <= 0:
                return number if number < end else None
        return None


_OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
#: What has no place in a statement, and what a message calls it.
_REFUSED: Final[Mapping[type[exp.Expr], str]] = {
    exp.Hint: "a hint",
    exp.Parameter: "a parameter",
    exp.Placeholder: "a parameter",
    exp.SessionParameter: "a parameter",
    exp.QueryTransform: "TRANSFORM",
    exp.Qualify: "QUALIFY",
    exp.Sort: "SORT BY",
    exp.Cluster: "CLUSTER BY",
    exp.Distribute: "DISTRIBUTE BY",
    exp.Into: "INTO",
    exp.Lock: "FOR UPDATE",
    exp.Command: "a command",
    exp.DML: "a change of a table",
    exp.DDL: "a change of a table",
}
_NO_TABLES: Final[Mapping[type[exp.Expr], str]] = {
    exp.Values: "VALUES",
    exp.TableSample: "a sample",
    exp.Version: "another version of a table",
    exp.TableFromRows: "a function that gives a table",
}


def parse(text: str, inputs: Mapping[str, DerivedInput], path: str) -> DerivedStatement:
    """Check a statement.

    Args:
        text: one SELECT in Spark's dialect.
        inputs: what it may read, by `task.dataset` or a view of it.
        path: the file, for messages.

    Raises:
        ConfigError: POLYNYA-TRF-001 to 011, with file, line and column.
    """
    source = StatementText(text, path)
    try:
        return _parse(source, inputs)
    except RecursionError:
        raise STATEMENT_TOO_LARGE(
            problem="too many levels, one in another", where=source.start
        ) from None


def result_columns(text: str, inputs: Mapping[str, DerivedInput], path: str) -> RelationColumns:
    """The columns of the result of any query, as far as names tell; arguments as for `parse`.

    Where an analysis refuses the statement its columns stay open, as do those of a table that
    `inputs` lacks.

    Raises:
        ConfigError: POLYNYA-TRF-006 or 007, with file, line and column, for a column that no table
            has, or several have, and 011 for a UNION whose sides have different numbers of columns;
            ConfigErrors for several of them.
    """
    source = StatementText(text, path)
    try:
        tree = _tree(source)
    except (ConfigError, RecursionError):
        return ANY_COLUMNS
    try:
        return StatementNames(source, inputs, names_only=True).resolve(tree)
    except RecursionError:
        return ANY_COLUMNS


def _parse(source: StatementText, inputs: Mapping[str, DerivedInput]) -> DerivedStatement:
    tree = _tree(source)
    _check_nodes(tree, source)
    _mark_aggregates(tree)
    _check_named(tree, source)
    names = StatementNames(source, inputs)
    outputs = names.resolve(tree).names
    schema = MappingSchema(
        {
            table: {column.lower(): kind for column, kind in inputs[name].columns.items()}
            for table, name in names.tables.items()
        },
        dialect="spark",
        normalize=False,
    )
    try:
        tree = qualify(
            tree,
            schema=schema,
            dialect="spark",
            validate_qualify_columns=False,
            identify=False,
            quote_identifiers=False,
        )
    except SqlglotError as error:
        problem = str(error).splitlines()[0]
        raise STATEMENT_NOT_SQL(problem=problem, where=source.start) from None
    assert isinstance(tree, exp.Query), "qualify keeps the kind"
    _check_qualified(tree, source)
    columns = _outputs(tree, outputs, source)
    _check_groups(tree, source)
    tables = {
        table.name: names.tables[table.name]
        for table in tree.find_all(exp.Table)
        if table.name in names.tables
    }
    used = {name: inputs[name] for name in tables.values()}
    return DerivedStatement(source.text, tree, used, tables, columns)


def _tree(source: StatementText) -> exp.Query:
    if len(source.text) > MAX_LENGTH:
        raise STATEMENT_TOO_LARGE(
            problem=f"more than {MAX_LENGTH:,} characters", where=source.start
        )
    try:
        tokens = Spark().tokenize(source.text)
    except TokenError:
        raise STATEMENT_NOT_SQL(problem="a quote is not closed", where=source.start) from None
    _check_tokens(tokens, source)
    if not tokens:
        raise NOT_ONE_SELECT(found="empty", where=source.start)
    try:
        trees = StatementParser(dialect=Spark()).parse(
            with_spark_strings(tokens, source.text), source.text
        )
    except ParseError as error:
        details = error.errors[0] if error.errors else {}
        line, column = details.get("line", 1), details.get("col", 1)
        problem = str(details.get("description", "syntax error")).rstrip(".")
        raise STATEMENT_NOT_SQL(problem=problem, where=f"{source.path}:{line}:{column}") from None
    if len(trees) != 1:
        raise NOT_ONE_SELECT(found=f"{len(trees)} statements", where=source.start)
    tree = trees[0]
    while isinstance(tree, exp.Subquery) and not tree.args.get("alias"):
        tree = tree.this
    if not isinstance(tree, exp.Select | exp.SetOperation):
        found = type(tree).__name__.upper() if tree is not None else "empty"
        raise NOT_ONE_SELECT(found=found, where=source.start)
    return tree


def _check_tokens(tokens: list[Token], source: StatementText) -> None:
    if len(tokens) > MAX_TOKENS:
        raise STATEMENT_TOO_LARGE(
            problem=f"more than {MAX_TOKENS:,} words and symbols", where=source.start
        )
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    depth = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth > MAX_DEPTH:
            raise STATEMENT_TOO_LARGE(
                problem=f"more than {MAX_DEPTH} levels", where=source.at(token.start)
            )
        if kind is TokenType.HINT:
            raise CLAUSE_NOT_ALLOWED(what="a hint", where=source.at(token.start))
        if kind is TokenType.SEMICOLON:
            raise NOT_ONE_SELECT(found="more than one statement", where=source.at(token.start))


def _check_nodes(tree: exp.Expr, source: StatementText) -> None:
    for node in tree.walk():
        for kind, what in _REFUSED.items():
            if isinstance(node, kind):
                raise CLAUSE_NOT_ALLOWED(what=what, where=source.of(node))
        for kind, what in _NO_TABLES.items():
            if isinstance(node, kind):
                raise TABLE_NOT_ALLOWED(what=what, where=source.of(node))
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise CLAUSE_NOT_ALLOWED(what="WITH RECURSIVE", where=source.of(node))
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            raise TABLE_NOT_ALLOWED(what="a function that gives a table", where=source.of(node))
        if isinstance(node, exp.Select) and node.args.get("kind"):
            raise CLAUSE_NOT_ALLOWED(what="SELECT AS", where=source.of(node))
        if isinstance(node, exp.Anonymous):
            _check_call(node, source)


def _check_call(call: exp.Anonymous, source: StatementText) -> None:
    name = call.name
    plain = not isinstance(call.parent, exp.Dot) or call.parent.expression is not call
    if plain and not isinstance(call.this, exp.Identifier) and name.lower() in STATEMENT_FUNCTIONS:
        return
    raise FUNCTION_NOT_IN_STATEMENTS(
        name=shown(name), where=source.of(call), fix=_nearest(name.lower())
    )


def _nearest(name: str) -> str | None:
    hint, _, _ = (suggest(name, sorted(STATEMENT_FUNCTIONS)) or "").partition("allowed here:")
    return hint.strip() or None


def _mark_aggregates(tree: exp.Expr) -> None:
    """Mark aggregates for sqlglot, which keeps aliases out of them."""
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() in AGGREGATES:
            marked = exp.AnonymousAggFunc(this=call.name, expressions=call.expressions)
            marked.meta.update(call.meta)
            call.replace(marked)


def _check_named(tree: exp.Query, source: StatementText) -> None:
    for item in projections(tree):
        if not isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Star | exp.Dot):
            raise OUTPUT_NAMES(problem="a column of the result has no name", where=source.of(item))


def _check_qualified(tree: exp.Query, source: StatementText) -> None:
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or not (column.table or _orders(column)):
            raise UNKNOWN_COLUMN(name=shown(column.name), where=source.of(column))
    for select in tree.find_all(exp.Select):
        if any(isinstance(item, exp.Star) for item in select.expressions):
            raise CLAUSE_NOT_ALLOWED(what="this `*`", where=source.of(select))


def _orders(column: exp.Column) -> bool:
    """Whether a column stands in ORDER BY and is one of the result."""
    order = column.find_ancestor(exp.Order, exp.Query)
    query = order.parent if isinstance(order, exp.Order) else None
    return isinstance(query, exp.Query) and column.name.lower() in {
        item.alias_or_name.lower() for item in projections(query)
    }


def _outputs(tree: exp.Query, written: Sequence[str], source: StatementText) -> tuple[str, ...]:
    """Give the columns of the result the names that the user wrote."""
    items = projections(tree)
    names = written if len(written) == len(items) else [item.alias_or_name for item in items]
    columns = [name or item.alias_or_name for name, item in zip(names, items, strict=True)]
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            raise OUTPUT_NAMES(
                problem=f"two columns of the result are called {shown(column)}",
                where=source.start,
            )
        seen.add(column.lower())
    for item, column in zip(items, columns, strict=True):
        if isinstance(item, exp.Alias):
            item.set("alias", exp.to_identifier(column))
    return tuple(columns)


def _check_groups(tree: exp.Expr, source: StatementText) -> None:
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        having = select.args.get("having")
        roots = [*select.expressions, *([having.this] if having else [])]
        if group is None and not any(is_aggregate(n) for r in roots for n in own_nodes(r)):
            continue
        if group is not None and group.args.get("all"):
            continue
        aliases = own_aliases(select)
        for root in roots:
            lone = _not_grouped(root, _keys(group), aliases)
            if lone is not None:
                raise NOT_GROUPED(name=shown(lone.name), where=source.of(lone))


def own_aliases(select: exp.Select) -> set[str]:
    """The names of the tables of a SELECT itself, not of those inside."""
    found = [select.args["from_"].this] if select.args.get("from_") else []
    found += [join.this for join in select.args.get("joins") or []]
    found += select.args.get("laterals") or []
    return {relation.alias_or_name for relation in found}


def _keys(group: exp.Expr | None) -> list[exp.Expr]:
    return [] if group is None else [unwrapped(key) for key in group_keys(group)]


def group_keys(group: exp.Expr) -> list[exp.Expr]:
    """The expressions of GROUP BY, those of ROLLUP, CUBE and GROUPING SETS among them."""
    keys: list[exp.Expr] = []
    pending = [
        *group.expressions,
        *(
            part
            for name in ("rollup", "cube", "grouping_sets")
            for part in group.args.get(name) or []
        ),
    ]
    while pending:
        node = unwrapped(pending.pop(0))
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            pending = [*node.expressions, *pending]
        else:
            keys.append(node)
    return keys


def _not_grouped(node: exp.Expr, keys: list[exp.Expr], aliases: set[str]) -> exp.Column | None:
    """A column of the rows that stands outside of aggregates and keys."""
    counted = node
    while isinstance(counted, exp.Filter | exp.WithinGroup):
        counted = counted.this
    if unwrapped(node) in keys or is_aggregate(counted) or isinstance(node, exp.Query):
        return None
    if isinstance(node, exp.Column):
        return node if node.table in aliases else None
    if isinstance(node, exp.Window):
        # `sum(sum(x)) OVER (…)`: the outer one is computed over the groups.
        parts = [part for part in node.iter_expressions() if part is not node.this]
        children = [*node.this.iter_expressions(), *parts]
    else:
        children = list(node.iter_expressions())
    for child in children:
        lone = _not_grouped(child, keys, aliases)
        if lone is not None:
            return lone
    return None
