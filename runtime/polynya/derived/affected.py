"""Which rows of a statement's result can change when some rows of its inputs do.

For a block with restriction columns R, the affected keys are a superset of the values of R for
which its rows differ between two states of the inputs. They are the values of R in the rows that a
touched row of some relation concerns, in either state; touched rows of a subquery in FROM are its
rows with affected keys, so that blocks nest. Rows with other values of R come of untouched rows
only, which are equal in both states: only rows with affected keys have to be computed again.

R may be: columns that are functions of the keys of GROUP BY and of each window's PARTITION BY, and
that no outer join fills with NULL; of a set operation what every branch allows. Whatever is unsure
drops a condition, which finds more keys, or makes the plan a `FullPlan`, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generators.duckdb import DuckDBGenerator

from polynya.derived.blocks import (
    Block,
    BlockRelation,
    How,
    Kinds,
    NotIncrementalError,
    SelectBlock,
    SetBlock,
    blocks_of,
    compared_columns,
    direct,
    is_constant,
    is_plain,
    selects,
    tables_of,
)
from polynya.derived.functions import GENERATORS, MAPS, SAME_IN_DUCKDB
from polynya.derived.plans import FullPlan, IncrementalPlan, Plan, TotalPart, TotalsPlan
from polynya.derived.restriction import equal_columns, restrictable_inputs
from polynya.derived.schema import DerivedInput
from polynya.derived.stability import Stability
from polynya.derived.statement import DerivedStatement, parse
from polynya.derived.tables import ParsedQuery
from polynya.derived.terms import Step, Term, terms
from polynya.derived.totals import TotalRows, narrowed, rows_of, totals_of
from polynya.derived.trees import unwrapped
from polynya.derived.untouched import without_empty
from polynya.model.errors import ConfigError
from polynya.query.translate import NotEmbeddedError
from polynya.transform.expressions import canonical_sql

_STATES: Final = ("old", "new")
_TOUCHED: Final = "touched_"
_CHANGED: Final = "changed"
#: A longer text costs more to plan than the rows that it saves.
_MAX_NODES: Final = 200_000
_ONE_ROW: Final = "an aggregate without GROUP BY: its one row depends on every row"


__all__ = [
    "FullPlan",
    "IncrementalPlan",
    "Plan",
    "affected_keys_sql",
    "analyse",
    "plan_of",
    "restrictable_inputs",
    "restricted_sql",
    "statement_sql",
]


def analyse(statement: DerivedStatement, *, prefer: Sequence[str] = ()) -> Plan:
    """Say by which columns a recomputation is restricted, or why it cannot be.

    Args:
        statement: a checked statement.
        prefer: columns of the result, mostly its keys, that restrict it where all of them may.
    """
    try:
        return _analysed(statement, prefer)
    except NotIncrementalError as reason:
        return _totals(statement) or FullPlan(str(reason))
    except RecursionError:
        return FullPlan("the statement has too many levels, one in another")


def plan_of(query: ParsedQuery, inputs: Mapping[str, DerivedInput], prefer: Sequence[str]) -> Plan:
    """The same of a query over its inputs; one that is not a statement is computed as a whole."""
    try:
        return analyse(parse(query.text, inputs, "the query"), prefer=prefer)
    except ConfigError as error:
        return FullPlan(f"it is not analysed: {error.message}")


def _analysed(statement: DerivedStatement, prefer: Sequence[str]) -> IncrementalPlan:
    block, ctes = blocks_of(statement)
    stability = _stability(statement)
    stability.check(block)
    kinds = Kinds(block, statement)
    planner = _Planner(stability, kinds, ctes, statement)
    allowed = planner.allowed(block)
    wanted = {name.lower() for name in prefer}
    preferred = [at for at in allowed if block.names[at].lower() in wanted]
    if len(preferred) < len(wanted):
        preferred = []
    # Where they are computed, such as surrogate keys, no input is read by them.
    direct_ones = preferred if all(_is_direct(block, at) for at in preferred) else []
    chosen = direct_ones or planner.keys_among(block, allowed) or preferred or allowed
    if not chosen:
        raise NotIncrementalError(planner.why_nothing_restricts(block))
    if all(_is_label(block, at) for at in chosen):
        raise NotIncrementalError("constants that tell branches apart, not rows, restrict it")
    columns = tuple(block.names[at] for at in chosen)
    query = planner.keys(block, chosen, columns)
    return IncrementalPlan(statement, columns, planner.with_ctes(query), block, stability)


def _stability(statement: DerivedStatement) -> Stability:
    return Stability({table: statement.inputs[name] for table, name in statement.tables.items()})


def _totals(statement: DerivedStatement) -> TotalsPlan | FullPlan | None:
    """The plan of a result of one row; None for other results."""
    try:
        block, ctes = blocks_of(statement)
        stability, kinds = _stability(statement), Kinds(block, statement)
        found = totals_of(block, stability, kinds)
        if found is None:
            return None
        parts, columns = [], []
        for group in found.groups:
            # Each has a planner of its own: the queries of two parts stand in two texts.
            planner = _Planner(stability, kinds, ctes, statement)
            rows = _total_rows(group, planner, kinds, statement)
            names = [f"k{at}" for at in range(len(rows.rows.outputs))]
            query = planner.keys(rows.rows, range(len(names)), names)
            parts.append(TotalPart(statement, planner.with_ctes(query), rows.relations))
            columns += [name for one in rows.relations for name in one.columns]
    except NotIncrementalError as reason:
        return FullPlan(f"{_ONE_ROW}, and {reason}")
    return TotalsPlan(statement, tuple(dict.fromkeys(columns)), found.merges, tuple(parts))


def _total_rows(
    group: SelectBlock, planner: _Planner, kinds: Kinds, statement: DerivedStatement
) -> TotalRows:
    """The first way to narrow the rows of a total that the analysis allows."""
    for rows, whole in rows_of(group, kinds, statement):
        allowed = planner.of_rows(rows.rows)
        if whole and len(allowed) == len(rows.rows.outputs):
            return rows
        if not whole:
            at = rows.relations[0].start
            relation = next(r for r in group.relations if r.place and r.place[0] == at)
            assert relation.block is not None, "a table has its key"
            own = planner.chosen(relation.block, planner.allowed(relation.block))
            chosen = [at for at in own if at in allowed]
            if chosen:
                return narrowed(group, relation, [relation.block.names[at] for at in chosen])
    raise NotIncrementalError("no relation of it has columns by which its rows may be told apart")


class _Planner:
    """Writes the queries of affected keys; shares those of subqueries as CTEs."""

    def __init__(
        self,
        stability: Stability,
        kinds: Kinds,
        ctes: Mapping[str, Block],
        statement: DerivedStatement,
    ) -> None:
        self._stability = stability
        self._blocks = ctes
        self._statement = statement
        self._kinds = kinds
        self._written: dict[str, exp.Query] = {}
        self._allowed: dict[int, list[int]] = {}
        self._size = 0

    # Restriction columns

    def of_rows(self, block: SelectBlock) -> list[int]:
        """The same as `allowed` of a block that is not one of the statement's."""
        return self._allowed_of(block)

    def allowed(self, block: Block) -> list[int]:
        """The positions of the columns that may restrict a block."""
        if block.number not in self._allowed:
            self._allowed[block.number] = self._allowed_of(block)
        return self._allowed[block.number]

    def _allowed_of(self, block: Block) -> list[int]:
        if isinstance(block, SetBlock):
            # A constant restricts its branch, too: to all rows or to none.
            branches = list(selects(block))
            return [
                at
                for at in range(len(block.names))
                if all(at in self.allowed(b) or is_constant(b.outputs[at][1]) for b in branches)
                and not all(is_constant(b.outputs[at][1]) for b in branches)
            ]
        lone = {
            relation.alias
            for relation in block.relations
            if relation.block is not None and not self.allowed(relation.block)
        }
        weak, loose = block.weak, self._stability.loose_sources(block)
        inexact = {
            relation.alias: self._stability.inexact(relation.block)
            for relation in block.relations
            if relation.block is not None
        }
        merged = _merged(block, self._kinds)
        unsettled = self._stability.unsettled(block)
        equal = equal_columns(block, self._kinds) if unsettled else []
        found = []
        for at, (_, expression) in enumerate(block.outputs):
            if not tables_of(expression) or not is_plain(expression):
                continue
            if not _is_comparable(expression, self._kinds):
                continue
            # Of a relation that nothing restricts, any change may change all rows.
            if tables_of(expression) & weak or tables_of(expression) <= lone:
                continue
            if self._stability.is_loose([expression], loose):
                continue
            if self._stability.is_loose([expression], inexact):
                continue
            if merged is not None and not _covered(expression, merged):
                continue
            if block.keys is not None and not _covered(expression, block.keys):
                continue
            if not all(_covered(expression, keys) for keys in block.partitions):
                continue
            if not all(self._is_of(expression, relation, equal) for relation in unsettled):
                continue
            found.append(at)
        return found

    def _is_of(
        self,
        expression: exp.Expr,
        relation: BlockRelation,
        equal: Sequence[tuple[exp.Column, exp.Column, str | None]],
    ) -> bool:
        """Whether an expression is a column by which the affected rows of a relation are found.

        Where loose values decide which rows the relation has, these are found as a whole then: no
        part of what was decided is kept, and none of it computed again.
        """
        names = self._found_by(relation)
        column = direct(expression)
        known = set() if column is None else {(column.table, column.name)}
        before = -1
        while before < len(known):
            before = len(known)
            for one, other, only in equal:
                pair = {(one.table, one.name), (other.table, other.name)}
                if only is None and pair & known:
                    known |= pair
        return any(alias == relation.alias and name in names for alias, name in known)

    def chosen(self, block: Block, allowed: Sequence[int]) -> list[int]:
        """Of the allowed columns, those that are keys of tables, where whole keys are there."""
        return self.keys_among(block, allowed) or list(allowed)

    def keys_among(self, block: Block, allowed: Sequence[int]) -> list[int]:
        """The positions of whole keys of tables among some; of a set operation in each branch."""
        if isinstance(block, SetBlock):
            branches = [branch for branch in selects(block) if branch.relations]
            found = [self.keys_among(branch, allowed) for branch in branches]
            return found[0] if found and all(one == found[0] for one in found) else []
        places: dict[tuple[str, str], int] = {}
        for at in allowed:
            column = direct(block.outputs[at][1])
            if column is not None:
                places.setdefault((column.table, column.name), at)
        positions: set[int] = set()
        for relation in block.relations:
            wanted = [(relation.alias, key) for key in self._keys_of(relation)]
            if wanted and all(key in places for key in wanted):
                positions |= {places[key] for key in wanted}
        return sorted(positions)

    def _keys_of(self, relation: BlockRelation) -> list[str]:
        """The key of a table, or whole keys of tables that a subquery has among its columns."""
        inner = relation.block
        if inner is None:
            return self._found_by(relation)
        return [inner.names[at] for at in self.keys_among(inner, self.allowed(inner))]

    def _chosen(self, block: Block) -> list[int]:
        return self.chosen(block, self.allowed(block))

    def why_nothing_restricts(self, block: Block) -> str:
        """The reason why no column restricts a recomputation."""
        branches = list(selects(block))
        if any(branch.keys == [] for branch in branches):
            return _ONE_ROW
        for branch in branches:
            if self._stability.unsettled(branch):
                return self._stability.why(branch)
        if isinstance(block, SetBlock):
            return "no column may restrict every branch of the set operation"
        return self._why_join(block) or self._why_group(block) or self._why_columns(block)

    def _why_join(self, block: SelectBlock) -> str | None:
        if any(relation.how is How.FULL for relation in block.relations):
            return (
                "FULL OUTER JOIN, and no column of the result is coalesce() of the columns that "
                "its condition compares"
            )
        return None

    def _why_group(self, block: SelectBlock) -> str | None:
        if any(not keys for keys in block.partitions):
            return "a window without PARTITION BY: each row may change every other"
        if block.partitions:
            return "no column of the result is in PARTITION BY of every window"
        if any(r.block is not None and self._stability.inexact(r.block) for r in block.relations):
            return "a sum of doubles may differ in its last bits, so that it restricts nothing"
        if block.keys is not None:
            return "no column of the result is computed from the columns of GROUP BY alone"
        return None

    def _why_columns(self, block: SelectBlock) -> str:
        for relation in block.relations:
            if relation.block is not None and not self.allowed(relation.block):
                inner = self.why_nothing_restricts(relation.block)
                return f"a subquery in FROM is computed as a whole ({inner})"
        if not any(is_plain(part) and tables_of(part) for _, part in block.outputs):
            return "no column of the result is computed from the columns of its tables alone"
        return "every column of the result may be NULL by an outer join, or is not comparable"

    # Queries

    def keys(self, block: Block, chosen: Sequence[int], names: Sequence[str]) -> exp.Query:
        """The affected keys of a block: the columns at some positions, or 1 where they are none."""
        queries = self._keys(block, chosen, names)
        if not queries:
            raise NotIncrementalError("no SELECT of it has a FROM")
        union: exp.Query = queries[0]
        for query in queries[1:]:
            union = exp.Union(this=union, expression=query, distinct=True)
        return union

    def _keys(self, block: Block, chosen: Sequence[int], names: Sequence[str]) -> list[exp.Query]:
        if isinstance(block, SetBlock):
            left = self._keys(block.left, chosen, names)
            return [*left, *self._keys(block.right, chosen, names)]
        expressions = [block.outputs[at][1] for at in chosen]
        needed = frozenset(alias for part in expressions for alias in tables_of(part))
        queries: list[exp.Query] = []
        for term in terms(block, self._stability, needed=needed):
            of_keys = self._of_keys(block, term, expressions, names)
            if of_keys is not None:
                queries.append(of_keys)
            elif self._stability.is_deep(block):
                # Its rows would tell others: what they depend on may be decided in another way now.
                raise NotIncrementalError(self._stability.why(block))
            else:
                queries += [
                    self._query(block, term, state, expressions, names) for state in _STATES
                ]
        # None for a SELECT without FROM, whose row never changes.
        return queries

    def _of_keys(
        self, block: SelectBlock, term: Term, expressions: Sequence[exp.Expr], names: Sequence[str]
    ) -> exp.Query | None:
        """The query of a term from the keys of what is touched, without any row; None for others.

        These are the changed keys of a table, or the affected keys of a subquery. They are more
        than conditions would leave, but no table is read for them, and no query stands in two
        states in the next one, of which each would be computed again.
        """
        (touched,) = (step.relation for step in term.steps if step.touched)
        columns = [direct(part) for part in expressions]
        if block.has_sets or not columns:
            return None
        keys = self._found_by(touched)
        if not {(touched.alias, key) for key in keys} >= {
            ("", "") if column is None else (column.table, column.name) for column in columns
        }:
            return None
        query = exp.Select(
            expressions=[
                exp.Alias(this=part.copy(), alias=exp.to_identifier(name))
                for part, name in zip(expressions, names, strict=True)
            ]
        )
        inner = touched.block
        name = f"{_CHANGED}:{touched.table}" if inner is None else self._affected(inner)
        query.set("from_", exp.From(this=_table(name, touched.alias)))
        query.set("distinct", exp.Distinct())
        return query

    def _found_by(self, relation: BlockRelation) -> list[str]:
        """The columns of a relation that its changed or affected keys have."""
        if relation.block is not None:
            return [relation.block.names[at] for at in self._chosen(relation.block)]
        keys = self._statement.inputs[self._statement.tables[relation.table or ""]].keys
        return [key.lower() for key in keys]

    def _query(
        self,
        block: SelectBlock,
        term: Term,
        state: str,
        expressions: Sequence[exp.Expr],
        names: Sequence[str],
    ) -> exp.Query:
        lateral = {part.alias for part in term.laterals}
        if any(tables_of(part) & lateral for step in term.steps for part in step.on):
            raise NotIncrementalError("a join by a column of LATERAL VIEW")
        parts = [part.copy() for part in expressions]
        if _merged(block, self._kinds) is not None:
            side = term.steps[0].relation
            parts = [_of_side(part, side, block, self._kinds) for part in parts]
        query = exp.Select(
            expressions=[
                exp.Alias(this=part, alias=exp.to_identifier(name))
                for part, name in zip(parts, names, strict=True)
            ]
            or [exp.Alias(this=exp.Literal.number(1), alias=exp.to_identifier("any"))]
        )
        query.set("from_", exp.From(this=self._relation(term.steps[0], state)))
        for step in term.steps[1:]:
            join = exp.Join(this=self._relation(step, state))
            if step.how in {How.SEMI, How.ANTI}:
                join.set("side", "LEFT")
                join.set("kind", step.how.value.upper())
            elif step.how is not How.INNER:
                join.set("side", step.how.value.upper())
            elif not step.on:
                join.set("kind", "CROSS")
            if step.on or step.how is not How.INNER:
                join.set("on", _all(step.on))
            query.append("joins", join)
        for part in term.laterals:
            query.append("laterals", part.copy())
        if term.where:
            query.set("where", exp.Where(this=_all(term.where)))
        if block.has_sets and parts and block.group is not None:
            query.set("group", _sets_of(block.group, parts, block.keys or []))
        else:
            query.set("distinct", exp.Distinct())
        self._size += sum(1 for _ in query.walk())
        self._check_size()
        return query

    def _check_size(self) -> None:
        if self._size > _MAX_NODES:
            raise NotIncrementalError("the query of its affected keys would be too large")

    def _relation(self, step: Step, state: str) -> exp.Expr:
        relation, touched = step.relation, step.touched
        if relation.table is not None:
            name = f"{_TOUCHED if touched else ''}{state}:{relation.table}"
        else:
            assert relation.block is not None, "a relation is a table or a block"
            name = (self._touched if touched else self._state)(relation.block, state)
        return _table(name, relation.alias)

    def _state(self, block: Block, state: str) -> str:
        """The CTE of a block in a state."""
        name = f"q{block.number}_{state}"
        if name not in self._written:
            query = block.node.copy()
            for table in list(query.find_all(exp.Table)):
                if table.name in self._blocks:
                    inner = self._state(self._blocks[table.name], state)
                    table.set("this", exp.to_identifier(inner))
                else:
                    table.set("this", exp.to_identifier(f"{state}:{table.name}"))
            self._size += sum(1 for _ in query.walk())
            self._check_size()
            self._written[name] = query
        return name

    def _touched(self, block: Block, state: str) -> str:
        """The CTE of a block's rows in a state that have affected keys."""
        name = f"t{block.number}_{state}"
        if name not in self._written:
            columns = [block.names[at] for at in self._chosen(block)]
            affected = self._affected(block)
            whole = self._state(block, state)
            same = [
                exp.NullSafeEQ(
                    this=exp.column(column, table="k"), expression=exp.column(column, table="d")
                )
                for column in columns
            ]
            inside = exp.Select(expressions=[exp.Literal.number(1)])
            inside.set("from_", exp.From(this=_table(affected, "k")))
            if same:
                inside.set("where", exp.Where(this=_all(same)))
            query = exp.Select(
                expressions=[exp.column(column, table="d") for column in block.names]
            )
            query.set("from_", exp.From(this=_table(whole, "d")))
            query.set("where", exp.Where(this=exp.Exists(this=inside)))
            self._written[name] = query
        return name

    def _affected(self, block: Block) -> str:
        """The CTE of the affected keys of a block."""
        name = f"a{block.number}"
        if name not in self._written:
            chosen = self._chosen(block)
            self._written[name] = self.keys(block, chosen, [block.names[at] for at in chosen])
        return name

    def with_ctes(self, query: exp.Query) -> exp.Query:
        """A query after the CTEs that it reads, in an order in which each finds those before it."""
        ctes = [
            exp.CTE(this=written, alias=exp.TableAlias(this=exp.to_identifier(name)))
            for name, written in self._written.items()
        ]
        if ctes:
            query.set("with_", exp.With(expressions=ctes))
        return query


def _table(name: str, alias: str) -> exp.Table:
    return exp.Table(
        this=exp.to_identifier(name), alias=exp.TableAlias(this=exp.to_identifier(alias))
    )


def _all(conditions: Sequence[exp.Expr]) -> exp.Expr:
    if not conditions:
        return exp.Boolean(this=True)
    return exp.and_(*(exp.paren(part.copy()) for part in conditions), copy=False)


def _covered(expression: exp.Expr, keys: Sequence[exp.Expr]) -> bool:
    """Whether an expression is a function of some keys."""
    inner = unwrapped(expression)
    if inner in keys:
        return True
    if isinstance(inner, exp.Column):
        return False
    return all(_covered(part, keys) for part in inner.iter_expressions())


def _is_direct(block: Block, at: int) -> bool:
    """Whether a column is one of a table in each branch, or a constant."""
    expressions = [branch.outputs[at][1] for branch in selects(block)]
    return all(direct(one) is not None or is_constant(one) for one in expressions)


def _is_label(block: Block, at: int) -> bool:
    """Whether a column is a constant in each branch that it comes from."""
    for branch in selects(block):
        expression = branch.outputs[at][1]
        column = direct(expression)
        if column is None:
            if not is_constant(expression):
                return False
            continue
        inner = next((r.block for r in branch.relations if r.alias == column.table), None)
        if inner is None or not _is_label(inner, inner.names.index(column.name)):
            return False
    return True


def _sets_of(
    group: exp.Expr, expressions: Sequence[exp.Expr], keys: Sequence[exp.Expr]
) -> exp.Expr:
    """The sets of GROUP BY with those keys only that some expressions are computed from."""
    used = [key for key in keys if any(key in part.walk() for part in expressions)]

    def kept(node: exp.Expr) -> exp.Expr | None:
        inner = unwrapped(node)
        if not isinstance(inner, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            if inner in used:
                return inner.copy()
            # In GROUPING SETS a set without keys is one, too.
            return exp.Tuple() if isinstance(node.parent, exp.GroupingSets) else None
        parts = [part for item in inner.expressions if (part := kept(item)) is not None]
        if not parts and not isinstance(node.parent, exp.GroupingSets):
            return None
        return type(inner)(expressions=parts)

    fresh = exp.Group(expressions=[p for e in group.expressions if (p := kept(e)) is not None])
    for name in ("rollup", "cube", "grouping_sets"):
        parts = [p for e in group.args.get(name) or [] if (p := kept(e)) is not None]
        if parts:
            fresh.set(name, parts)
    return fresh


def _is_comparable(expression: exp.Expr, kinds: Kinds) -> bool:
    """Whether values can be grouped: maps cannot, nor is a generator a value."""
    for part in expression.walk():
        if isinstance(part, exp.Lambda | exp.Star):
            return False
        if isinstance(part, exp.Anonymous) and part.name.lower() in MAPS | GENERATORS:
            return False
        if isinstance(part, exp.Column):
            text = kinds.of(part) or ""
            if "map<" in text or "variant" in text or "geo" in text:
                return False
    return True


def _arguments_of_coalesce(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of `coalesce`, or of a CASE that is the same: the first one if it is there."""
    if isinstance(node, exp.Case) and len(node.args["ifs"]) == 1 and not node.this:
        branch, default = node.args["ifs"][0], node.args.get("default")
        there = exp.Not(this=exp.Is(this=branch.args["true"], expression=exp.Null()))
        same = str(unwrapped(branch.this)) == str(there)
        return [branch.args["true"], default] if same and default is not None else []
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Anonymous) and node.name.lower() in {"coalesce", "ifnull", "nvl"}:
        return list(node.expressions)
    return []


def _merged(block: SelectBlock, kinds: Kinds) -> list[exp.Expr] | None:
    """Of a FULL OUTER JOIN what has the key of either side; None for other blocks."""
    if not any(relation.how is How.FULL for relation in block.relations):
        return None
    # Of columns of two types, equal values may be written differently.
    pairs = {
        frozenset((str(one), str(other)))
        for one, other in compared_columns(block)
        if kinds.of(one) is not None and kinds.of(one) == kinds.of(other)
    }
    return [
        node
        for _, expression in block.outputs
        for node in expression.walk()
        if len(arguments := _arguments_of_coalesce(node)) == 2
        and all(isinstance(argument, exp.Column) for argument in arguments)
        and frozenset(map(str, arguments)) in pairs
    ]


def _of_side(
    expression: exp.Expr, side: BlockRelation, block: SelectBlock, kinds: Kinds
) -> exp.Expr:
    """An expression of merged keys, from the columns of one side."""
    merged = _merged(block, kinds) or []

    def replaced(node: exp.Expr) -> exp.Expr:
        if node in merged:
            arguments = _arguments_of_coalesce(node)
            return next(a for a in arguments if isinstance(a, exp.Column) and a.table == side.alias)
        return node

    return expression.transform(replaced)


# Texts


class _DuckDBWriter(DuckDBGenerator):
    """DuckDB has no LEFT before SEMI and ANTI."""

    def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
        if expression.args.get("kind") in {"SEMI", "ANTI"}:
            expression = expression.copy()
            expression.set("side", None)
        return super().join_sql(expression, join_op)


def affected_keys_sql(
    plan: IncrementalPlan | TotalPart,
    old: Mapping[str, str],
    new: Mapping[str, str],
    touched_old: Mapping[str, str],
    touched_new: Mapping[str, str],
    *,
    changed: Mapping[str, str],
    unchanged: Collection[str] = (),
    dialect: str = "spark",
) -> str:
    """SQL of the affected keys: the columns `plan.columns`, each row once.

    Args:
        plan: of a statement, or of one of its totals, with the columns `k0`, `k1` ….
        old: the name of an input -> the relation that has its rows before the changes.
        new: those with its rows after them.
        touched_old: those with the rows of `old` that were changed or deleted; more is allowed.
        touched_new: those with the rows of `new` that were changed or inserted; more is allowed.
        changed: those with the keys of the rows of both, under the names of their columns.
        unchanged: inputs of which no row changed; the text does without what they would touch.
        dialect: `spark` or `duckdb`.

    Relations are written as they stand in SQL: `name` or `schema.name`, quoted where they need it.
    Raises NotEmbeddedError: DuckDB may give another answer.
    """
    relations = {
        "old": old,
        "new": new,
        f"{_TOUCHED}old": touched_old,
        f"{_TOUCHED}new": touched_new,
        _CHANGED: changed,
    }
    still = [table for table, name in plan.statement.tables.items() if name in unchanged]
    states = (f"{_TOUCHED}old", f"{_TOUCHED}new", _CHANGED)
    query = without_empty(plan.keys, {f"{one}:{table}" for one in states for table in still})
    for table in list(query.find_all(exp.Table)):
        state, found, name = table.name.partition(":")
        if found:
            _read(table, relations[state][plan.statement.tables[name]], dialect)
    return _text(query, dialect)


def statement_sql(
    statement: DerivedStatement, relations: Mapping[str, str], *, dialect: str = "spark"
) -> str:
    """SQL of the whole statement, over the relations of its inputs.

    Raises NotEmbeddedError: DuckDB may give another answer.
    """
    return _text(_over(statement, relations, dialect), dialect)


def restricted_sql(
    plan: IncrementalPlan, new: Mapping[str, str], affected: str, *, dialect: str = "spark"
) -> str:
    """SQL of the statement's rows that have affected keys.

    `affected` is a relation with the columns `plan.columns`; a key occurs in it once or oftener.
    NULL is a key like others. Raises NotEmbeddedError: DuckDB may give another answer.
    """
    inner = _over(plan.statement, new, dialect)
    query = exp.Select(expressions=[exp.column(name, table="q") for name in plan.statement.columns])
    query.set(
        "from_",
        exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("q")))),
    )
    keys = _table("affected", "k")
    _read(keys, affected, dialect)
    same = [
        exp.NullSafeEQ(this=exp.column(name, table="q"), expression=exp.column(name, table="k"))
        for name in plan.columns
    ]
    query.append("joins", exp.Join(this=keys, side="LEFT", kind="SEMI", on=_all(same)))
    return _text(query, dialect)


def _over(statement: DerivedStatement, relations: Mapping[str, str], dialect: str) -> exp.Query:
    query = statement.tree.copy()
    for table in list(query.find_all(exp.Table)):
        if table.name in statement.tables:
            _read(table, relations[statement.tables[table.name]], dialect)
    return query


def _read(table: exp.Table, relation: str, dialect: str) -> None:
    """Let a table of a query be another relation, under the alias that it has."""
    other = exp.to_table(relation, dialect=dialect)
    for part in ("this", "db", "catalog"):
        table.set(part, other.args.get(part))


def _text(query: exp.Expr, dialect: str) -> str:
    if dialect == "spark":
        return canonical_sql(query)
    if dialect != "duckdb":
        raise ValueError(dialect)
    for node in query.walk():
        _check_same_in_duckdb(node)
    try:
        return _DuckDBWriter(
            dialect=DuckDB(),
            identify=True,
            comments=False,
            unsupported_level=ErrorLevel.RAISE,
        ).generate(query)
    except SqlglotError as error:
        raise NotEmbeddedError("SQL that DuckDB does not have") from error


def _check_same_in_duckdb(node: exp.Expr) -> None:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        if node.name.lower() not in SAME_IN_DUCKDB:
            raise NotEmbeddedError(f"the function {node.name.lower()}")
    elif isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return
    elif isinstance(node, exp.Lateral | exp.Div | exp.Cast | exp.Bracket | exp.Interval | exp.Like):
        raise NotEmbeddedError(node.key.upper())
