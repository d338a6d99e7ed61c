"""Which columns of the inputs a column of a query comes from, and which decide its rows.

An input column is in the lineage of a column of the result, or of its rows, wherever another value
in it could change the column. What cannot be told is said to be unknown and never left out.

The kinds are the subtypes of OpenLineage's column lineage facet, version 1-2-0:
https://openlineage.io/docs/spec/facets/dataset-facets/column_lineage_facet
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from sqlglot import exp

from polynya.derived.functions import GENERATORS
from polynya.derived.statement import DerivedStatement, group_keys
from polynya.derived.trees import is_aggregate, own_nodes, unwrapped
from polynya.model.names import shown


class LineageKind(StrEnum):
    """How an input column matters to a column of the result.

    The first three make its value (DIRECT), from the plainest to the least plain. The others only
    decide which rows, or which of several values, there are (INDIRECT).
    """

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    FILTER = "FILTER"
    SORT = "SORT"
    WINDOW = "WINDOW"
    CONDITIONAL = "CONDITIONAL"

    @property
    def is_direct(self) -> bool:
        """Whether the value is made of the column."""
        return self in _DIRECT


_DIRECT: Final = (LineageKind.IDENTITY, LineageKind.TRANSFORMATION, LineageKind.AGGREGATION)
#: A column of an input: the name of the input, and the column as the input writes it.
InputColumn: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ColumnOrigins:
    """The input columns that a column, or the rows, depend on.

    `unknown` says why some may be missing; empty where none is.
    """

    inputs: Mapping[InputColumn, frozenset[LineageKind]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def through(self, kind: LineageKind) -> ColumnOrigins:
        """The origins of something that uses the column in a way.

        A value that is computed of a computed one is of the less plain kind of both; what decides
        about the column decides about whatever is made of it.
        """
        return ColumnOrigins(
            {
                column: frozenset(_composed(one, kind) for one in kinds)
                for column, kinds in self.inputs.items()
            },
            self.unknown,
        )

    def __or__(self, other: ColumnOrigins) -> ColumnOrigins:
        inputs = dict(self.inputs)
        for column, kinds in other.inputs.items():
            inputs[column] = inputs.get(column, frozenset()) | kinds
        return ColumnOrigins(inputs, tuple(dict.fromkeys((*self.unknown, *other.unknown))))


def _composed(inner: LineageKind, outer: LineageKind) -> LineageKind:
    if not inner.is_direct:
        return inner
    if not outer.is_direct:
        return outer
    return max(inner, outer, key=_DIRECT.index)


NOTHING: Final = ColumnOrigins()


def origin_of(name: str, column: str) -> ColumnOrigins:
    """The origins of a column that is one of an input."""
    return ColumnOrigins({(name, column): frozenset({LineageKind.IDENTITY})})


def not_known(why: str) -> ColumnOrigins:
    """The origins of a column of which nothing can be told."""
    return ColumnOrigins(unknown=(why,))


@dataclass(frozen=True, slots=True)
class QueryLineage:
    """Each column of a result with its origins, and those of its rows as a whole."""

    columns: Mapping[str, ColumnOrigins]
    rows: ColumnOrigins


def lineage_of(statement: DerivedStatement) -> QueryLineage:
    """The lineage of a checked statement; its inputs are called as the statement calls them."""
    result = _Queries(statement).query(statement.tree, {}, {})
    names = [name for name, _ in result.outputs]
    if len(names) == len(statement.columns):
        names = list(statement.columns)
    origins = (origins for _, origins in result.outputs)
    return QueryLineage(dict(zip(names, origins, strict=True)), result.rows)


#: What a column that an expression names is made of.
Lookup: TypeAlias = Callable[[exp.Column], ColumnOrigins]
#: The columns of a relation, in small letters.
_Columns: TypeAlias = Mapping[str, ColumnOrigins]
_Scope: TypeAlias = Mapping[str, _Columns]


@dataclass(frozen=True, slots=True)
class _Result:
    """The columns of a query, which may have equal names, and what decides its rows."""

    outputs: tuple[tuple[str, ColumnOrigins], ...]
    rows: ColumnOrigins

    def named(self, alias: exp.Expr | None) -> dict[str, ColumnOrigins]:
        """The columns by the names that an alias such as `t(a, b)` gives them, if it does."""
        given = [column.name for column in alias.args.get("columns") or []] if alias else []
        names = [name for name, _ in self.outputs]
        if len(given) == len(names):
            names = given
        columns: dict[str, ColumnOrigins] = {}
        for name, (_, origins) in zip(names, self.outputs, strict=True):
            columns[name.lower()] = columns.get(name.lower(), NOTHING) | origins
        return columns


def union(origins: Iterable[ColumnOrigins]) -> ColumnOrigins:
    """All of some origins."""
    found = NOTHING
    for one in origins:
        found |= one
    return found


class ExpressionLineage:
    """What expressions are made of, by what the columns in them are made of."""

    def __init__(
        self,
        lookup: Lookup,
        windows: Mapping[str, exp.Window] | None = None,
        subquery: Callable[[exp.Expr], _Result] | None = None,
    ) -> None:
        self._lookup, self._windows, self._subquery = lookup, windows or {}, subquery

    def of(self, node: exp.Expr) -> ColumnOrigins:
        """The origins of the value of an expression."""
        if isinstance(node, exp.Column):
            return self._lookup(node)
        if isinstance(node, exp.Alias | exp.Aliases | exp.Paren):
            return self.of(node.this)
        if isinstance(node, exp.Query | exp.Exists):
            return self._of_query(node)
        if isinstance(node, exp.Case):
            return self._of_case(node)
        if isinstance(node, exp.Window):
            return self._of_window(node)
        if isinstance(node, exp.Filter):
            condition = self.of(node.expression).through(LineageKind.CONDITIONAL)
            return self.of(node.this) | condition
        if isinstance(node, exp.WithinGroup):
            # The values of a percentile are those of its ORDER BY.
            orders = node.this.name.lower() in {"listagg", "string_agg"}
            kind = LineageKind.SORT if orders else LineageKind.AGGREGATION
            return self.of(node.this) | self.of(node.expression).through(kind)
        return self._of_call(node)

    def _of_call(self, node: exp.Expr) -> ColumnOrigins:
        """The origins of an operator or a function."""
        aggregates = isinstance(node, exp.AggFunc)
        kind = LineageKind.AGGREGATION if aggregates else LineageKind.TRANSFORMATION
        name = node.name.lower() if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) else ""
        found = NOTHING
        for at, child in enumerate(node.iter_expressions()):
            how = _OTHER_ARGUMENTS.get((name, at), kind)
            found |= self.of(child).through(how)
        return found

    def _of_case(self, node: exp.Case) -> ColumnOrigins:
        branches = node.args.get("ifs") or []
        values = [branch.args.get("true") for branch in branches]
        conditions = [node.this, *(branch.this for branch in branches)]
        return self._all([*values, node.args.get("default")], LineageKind.TRANSFORMATION) | (
            self._all(conditions, LineageKind.CONDITIONAL)
        )

    def _of_window(self, node: exp.Window) -> ColumnOrigins:
        found = self.of(node.this).through(LineageKind.TRANSFORMATION)
        seen: set[str] = set()
        window: exp.Expr | None = node
        while window is not None:
            parts = [*(window.args.get("partition_by") or [])]
            parts += [window.args.get("order"), window.args.get("spec")]
            found |= self._all(parts, LineageKind.WINDOW)
            base = window.args.get("alias")
            if base is None or base.name.lower() in seen:
                break
            seen.add(base.name.lower())
            window = self._windows.get(base.name.lower())
            if window is None:
                found |= not_known(f"no window is called {shown(base.name)}")
        return found

    def _of_query(self, node: exp.Expr) -> ColumnOrigins:
        if isinstance(node, exp.Exists):
            if not isinstance(node.this, exp.Query):
                return self._of_call(node)
            # Whether there is a row depends on no column that the query selects.
            return self._result(node.this).rows
        result = self._result(node)
        return union(origins for _, origins in result.outputs) | result.rows

    def _result(self, node: exp.Expr) -> _Result:
        if self._subquery is None:
            return _Result((), not_known("a query in an expression"))
        return self._subquery(node)

    def _all(self, nodes: Iterable[exp.Expr | None], kind: LineageKind) -> ColumnOrigins:
        return union(self.of(node).through(kind) for node in nodes if node is not None)


#: Arguments that do not make the value of a call: its name and their places, from 0.
_OTHER_ARGUMENTS: Final[Mapping[tuple[str, int], LineageKind]] = {
    ("if", 0): LineageKind.CONDITIONAL,
    ("iff", 0): LineageKind.CONDITIONAL,
    ("nvl2", 0): LineageKind.CONDITIONAL,
    ("nullif", 1): LineageKind.CONDITIONAL,
    ("max_by", 1): LineageKind.SORT,
    ("min_by", 1): LineageKind.SORT,
}


class _Queries:
    """The lineage of the SELECTs of one statement, whose columns all have their table."""

    def __init__(self, statement: DerivedStatement) -> None:
        self._statement = statement

    def query(self, node: exp.Expr, ctes: Mapping[str, _Result], outer: _Scope) -> _Result:
        """The lineage of a query; `outer` has the relations around it that it may read."""
        node = unwrapped(node)
        clause = node.args.get("with_")
        if clause is not None:
            known = dict(ctes)
            for cte in clause.expressions:
                result = self.query(cte.this, known, {})
                named = result.named(cte.args.get("alias"))
                if len(named) == len(result.outputs):
                    result = _Result(tuple(named.items()), result.rows)
                known[cte.alias.lower()] = result
            ctes = known
        if isinstance(node, exp.SetOperation):
            return self._set(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, ctes, outer)
        return _Result((), not_known(f"{node.key.upper()} is not analysed"))

    def _set(self, node: exp.SetOperation, ctes: Mapping[str, _Result], outer: _Scope) -> _Result:
        left = self.query(node.this, ctes, outer)
        right = self.query(node.expression, ctes, outer)
        rows = left.rows | right.rows
        compared = union(origins for _, origins in (*left.outputs, *right.outputs))
        if not isinstance(node, exp.Union):
            # The rows that stay are those of the left side.
            rows |= compared.through(LineageKind.FILTER)
            outputs = left.outputs
        else:
            if node.args.get("distinct"):
                rows |= compared.through(LineageKind.GROUP_BY)
            outputs = tuple(
                (name, one | other)
                for (name, one), (_, other) in zip(left.outputs, right.outputs, strict=True)
            )
        expressions = ExpressionLineage(lambda column: _in_result(column, outputs))
        return _Result(outputs, rows | _cut(node, outputs, expressions))

    def _select(self, node: exp.Select, ctes: Mapping[str, _Result], outer: _Scope) -> _Result:
        scope: dict[str, _Columns] = dict(outer)
        expressions = ExpressionLineage(
            lambda column: _looked_up(column, scope),
            {window.this.name.lower(): window for window in node.args.get("windows") or []},
            lambda inner: self.query(inner, ctes, scope),
        )
        rows = NOTHING
        source = node.args.get("from_")
        joins = node.args.get("joins") or []
        for relation in [*([source.this] if source else []), *(join.this for join in joins)]:
            result = self._relation(relation, ctes, scope)
            scope[relation.alias_or_name.lower()] = result.named(relation.args.get("alias"))
            rows |= result.rows
        for lateral in node.args.get("laterals") or []:
            made = expressions.of(lateral.this)
            alias = lateral.args.get("alias")
            names = [column.name for column in alias.columns] if alias else []
            columns = made.through(LineageKind.TRANSFORMATION)
            scope[lateral.alias.lower()] = {n.lower(): columns for n in names or ["col"]}
            rows |= made.through(LineageKind.JOIN)
        for join in joins:
            if join.args.get("using") or join.args.get("method"):
                rows |= not_known("a join whose condition is not written out")
            if join.args.get("on") is not None:
                rows |= expressions.of(join.args["on"]).through(LineageKind.JOIN)
        for clause, kind in _CLAUSES.items():
            if node.args.get(clause) is not None:
                rows |= expressions.of(node.args[clause].this).through(kind)
        outputs = tuple(
            (name, origins)
            for item in node.expressions
            for origins in [expressions.of(item)]
            for name in _names(item)
        )
        rows |= _grouped(node, expressions) | _generated(node, expressions)
        distinct = node.args.get("distinct")
        if distinct is not None:
            rows |= union(origins for _, origins in outputs).through(LineageKind.GROUP_BY)
            if distinct.args.get("on"):
                rows |= not_known("DISTINCT ON is not analysed")
        return _Result(outputs, rows | _cut(node, outputs, expressions))

    def _relation(self, relation: exp.Expr, ctes: Mapping[str, _Result], scope: _Scope) -> _Result:
        if isinstance(relation, exp.Table):
            name = self._statement.tables.get(relation.name)
            if name is not None:
                columns = self._statement.inputs[name].columns
                return _Result(tuple((one, origin_of(name, one)) for one in columns), NOTHING)
            if relation.name.lower() in ctes:
                return ctes[relation.name.lower()]
        elif isinstance(relation, exp.Subquery):
            return self.query(relation.this, ctes, {})
        elif isinstance(relation, exp.Lateral) and isinstance(relation.this, exp.Subquery):
            return self.query(relation.this.this, ctes, scope)
        return _Result((), not_known(f"{relation.key.upper()} in FROM is not analysed"))


_CLAUSES: Final = {"where": LineageKind.FILTER, "having": LineageKind.FILTER}


def _names(item: exp.Expr) -> list[str]:
    if isinstance(item, exp.Aliases):
        return [alias.name for alias in item.aliases]
    return [item.alias_or_name]


def _looked_up(column: exp.Column, scope: _Scope) -> ColumnOrigins:
    found = scope.get(column.table.lower(), {}).get(column.name.lower())
    if found is not None and len(column.parts) == 2:
        return found
    return not_known(f"nothing tells where {shown('.'.join(p.name for p in column.parts))} is from")


def _in_result(column: exp.Column, outputs: Iterable[tuple[str, ColumnOrigins]]) -> ColumnOrigins:
    """The origins of a column of the result, which ORDER BY may name."""
    found = [origins for name, origins in outputs if name.lower() == column.name.lower()]
    return union(found) if found else not_known(f"no column is called {shown(column.name)}")


def _cut(
    node: exp.Query,
    outputs: Iterable[tuple[str, ColumnOrigins]],
    expressions: ExpressionLineage,
) -> ColumnOrigins:
    """What decides the rows that LIMIT leaves; without it the order decides nothing."""
    cuts = [node.args[name] for name in ("limit", "offset") if node.args.get(name) is not None]
    if not cuts:
        return NOTHING
    found = union(expressions.of(cut).through(LineageKind.FILTER) for cut in cuts)
    order = node.args.get("order")
    for key in order.expressions if order is not None else ():
        inner = key.this if isinstance(key, exp.Ordered) else key
        if isinstance(inner, exp.Column) and not inner.table:
            found |= _in_result(inner, outputs).through(LineageKind.SORT)
        else:
            found |= expressions.of(inner).through(LineageKind.SORT)
    return found


def _grouped(node: exp.Select, expressions: ExpressionLineage) -> ColumnOrigins:
    group = node.args.get("group")
    if group is None:
        return NOTHING
    keys = group_keys(group)
    if group.args.get("all"):
        keys += [item for item in node.expressions if not any(map(is_aggregate, own_nodes(item)))]
    return union(expressions.of(key).through(LineageKind.GROUP_BY) for key in keys)


def _generated(node: exp.Select, expressions: ExpressionLineage) -> ColumnOrigins:
    """What decides how many rows `SELECT explode(…)` makes of one."""
    return union(
        expressions.of(part).through(LineageKind.JOIN)
        for item in node.expressions
        for part in own_nodes(item)
        if isinstance(part, exp.Anonymous) and part.name.lower() in GENERATORS
    )
