"""The rows of the inputs that a row of a result was made of, found backwards along equalities.

It begins with the values of the row. A column of the result that is a column of a relation gives
the value of that column; conditions of joins and of WHERE that say two columns are equal give it
further columns; rows that were found give the values of all of their columns. A subquery is traced
with what is known of its columns. So the rows that are found hold all that made the row, unless an
outer join found none, and may hold more: rows that a condition leaves out, or that lie in other
groups. Where a SELECT reads tables only, `Evaluate` leaves those that meet its conditions, and the
answer is exact.

What no equality leads to is said, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from sqlglot import exp

from polynya.derived.blocks import (
    Block,
    BlockRelation,
    How,
    NotIncrementalError,
    SelectBlock,
    SetBlock,
    blocks_of,
    direct,
    relations_of,
    selects,
    tables_of,
)
from polynya.derived.statement import DerivedStatement
from polynya.derived.trees import unwrapped

#: Rows by the names of their columns in small letters, with their number as `ROW_NUMBER`.
Rows: TypeAlias = Sequence[Mapping[str, Any]]
#: The rows of an input whose columns have one of some values each; a sentence: why they are not
#: read.
ReadRows: TypeAlias = Callable[[str, Mapping[str, Sequence[Any]]], Rows | str]
#: The rows of a statement over some rows, by the names of the tables in it; None: not here.
Evaluate: TypeAlias = Callable[[str, Mapping[str, tuple[str, Rows]]], Rows | None]

#: The column that tells the rows of a table apart while a statement is evaluated.
ROW_NUMBER: Final = "row__number"
#: The schema of the tables of a statement that is evaluated.
EVALUATED: Final = "traced"
#: With more values of a column nothing is looked for by it.
MOST_VALUES: Final = 1000
_Place: TypeAlias = tuple[str, str]
_UNREACHED: Final = "no condition of equality leads from the row to rows of it"


@dataclass(frozen=True, slots=True)
class TracedInput:
    """What a row was made of in one input.

    Attributes:
        name: of the input, as the query calls it.
        rows: that made it; None where they are not known.
        by: the columns by which they were found.
        exact: these rows and no others; else they may be more.
        reason: why they are not known, or not exact.
    """

    name: str
    rows: Rows | None
    by: tuple[str, ...] = ()
    exact: bool = False
    reason: str | None = None


@dataclass(slots=True)
class _Found:
    rows: dict[Any, Mapping[str, Any]] = field(default_factory=dict)
    by: dict[str, None] = field(default_factory=dict)
    exact: bool = True
    is_read: bool = False
    reasons: dict[str, None] = field(default_factory=dict)


def trace(
    statement: DerivedStatement, row: Mapping[str, Any], read: ReadRows, evaluate: Evaluate
) -> list[TracedInput]:
    """The rows of each input that a row of the result was made of, in the order of the inputs.

    Args:
        statement: the query.
        row: of its result, by the names of its columns.
        read: reads rows of an input.
        evaluate: answers a statement over rows.
    """
    names = list(dict.fromkeys(statement.tables.values()))
    try:
        block, _ = blocks_of(statement)
    except (NotIncrementalError, RecursionError) as error:
        reason = f"the query is not analysed: {error}"
        return [TracedInput(name, None, reason=reason) for name in names]
    tracer = _Tracer(statement, read, evaluate)
    tracer.block(block, {name.lower(): [value] for name, value in row.items()}, {})
    return [tracer.of(name) for name in names]


class _Tracer:
    def __init__(self, statement: DerivedStatement, read: ReadRows, evaluate: Evaluate) -> None:
        self._statement, self._read, self._evaluate = statement, read, evaluate
        self._found: dict[str, _Found] = {}

    def of(self, name: str) -> TracedInput:
        found = self._found.get(name, _Found(reasons={_UNREACHED: None}))
        reason = "; ".join(found.reasons) or None
        if not found.is_read:
            return TracedInput(name, None, reason=reason or _UNREACHED)
        rows = list(found.rows.values())
        return TracedInput(name, rows, tuple(found.by), found.exact, reason)

    def block(
        self, block: Block, wanted: Mapping[str, Sequence[Any]], outer: Mapping[_Place, list[Any]]
    ) -> dict[str, list[Any]]:
        """Trace rows of a block with these values; what is known of all its columns then."""
        if isinstance(block, SelectBlock):
            return self._select(block, wanted, outer)
        left, right = block.left, block.right
        positions = {name.lower(): at for at, name in enumerate(block.names)}
        given = {positions[name]: values for name, values in wanted.items() if name in positions}
        found: dict[str, list[Any]] = {}
        for side in (left, right):
            if self._is_other_branch(side, given):
                continue
            names = [name.lower() for name in side.names]
            known = self.block(side, {names[at]: some for at, some in given.items()}, outer)
            for at, name in enumerate(names):
                own = block.names[at].lower()
                found[own] = _distinct([*found.get(own, []), *known.get(name, [])])
        return found

    @staticmethod
    def _is_other_branch(block: Block, given: Mapping[int, Sequence[Any]]) -> bool:
        """Whether a constant of a branch tells that the row did not come of it."""
        if isinstance(block, SetBlock):
            return False
        for at, values in given.items():
            literal = unwrapped(block.outputs[at][1])
            if isinstance(literal, exp.Literal) and literal.this not in map(str, values):
                return True
        return False

    def _select(
        self,
        block: SelectBlock,
        wanted: Mapping[str, Sequence[Any]],
        outer: Mapping[_Place, list[Any]],
    ) -> dict[str, list[Any]]:
        known: dict[_Place, list[Any]] = dict(outer)
        for name, part in block.outputs:
            values = wanted.get(name.lower())
            column = None if values is None else _told_by(part, values)
            if column is not None and values is not None:
                known.setdefault((column.table, column.name), list(values))
        rows = self._reach(block, known)
        self._nested(block, known)
        exact = self._exact(block, rows)
        for relation in block.relations:
            if relation.alias in rows:
                self._add(relation, rows[relation.alias], exact)
        if exact is not None:
            for alias, kept in exact.items():
                known |= _values_of(alias, kept)
        return {
            name.lower(): known[column.table, column.name]
            for name, part in block.outputs
            if (column := direct(part)) is not None and (column.table, column.name) in known
        }

    def _reach(self, block: SelectBlock, known: dict[_Place, list[Any]]) -> dict[str, Rows]:
        """The rows of the tables of a SELECT by alias, as far as equalities lead; grows `known`."""
        pending = [one for one in block.relations if one.how is not How.ANTI]
        rows: dict[str, Rows] = {}
        while pending:
            _spread(block, known)
            ready = next((one for one in pending if _usable(known, one.alias)), None)
            if ready is None:
                ready = next((one for one in pending if _is_filled(known, one)), None)
                if ready is None or ready.table is None:
                    break
                # An outer join found none.
                self._found.setdefault(self._statement.tables[ready.table], _Found())
                rows[ready.alias] = []
                pending.remove(ready)
                continue
            pending.remove(ready)
            values = _usable(known, ready.alias)
            if ready.block is not None:
                inner = self.block(ready.block, values, {})
                known |= {
                    (ready.alias, name): some
                    for name, some in inner.items()
                    if (ready.alias, name) not in known
                }
                continue
            found = self._rows(ready, values)
            if found is not None:
                rows[ready.alias] = found
                known |= _values_of(ready.alias, found)
        for relation in pending:
            self._unreached(relation)
        return rows

    def _rows(self, relation: BlockRelation, values: Mapping[str, Sequence[Any]]) -> Rows | None:
        name = self._statement.tables[relation.table or ""]
        found = self._found.setdefault(name, _Found())
        read = self._read(name, values)
        if isinstance(read, str):
            found.reasons[read] = None
            found.exact = False
            return None
        found.by |= dict.fromkeys(values)
        return read

    def _add(self, relation: BlockRelation, rows: Rows, exact: Mapping[str, Rows] | None) -> None:
        found = self._found[self._statement.tables[relation.table or ""]]
        found.is_read = True
        kept = rows if exact is None or relation.alias not in exact else exact[relation.alias]
        if exact is None or relation.alias not in exact:
            found.exact = False
            found.reasons["other conditions of the query may leave some of them out"] = None
        found.rows |= {row[ROW_NUMBER]: row for row in kept}

    def _unreached(self, relation: BlockRelation) -> None:
        tables = [relation.table] if relation.block is None else []
        if relation.block is not None:
            tables = [one.table for one in relations_of(relation.block)]
        for table in tables:
            if table is not None:
                found = self._found.setdefault(self._statement.tables[table], _Found())
                found.reasons[_UNREACHED], found.exact = None, False

    def _nested(self, block: SelectBlock, known: Mapping[_Place, list[Any]]) -> None:
        """Trace the queries in expressions by what they have in common with the row."""
        for nested in block.nested:
            context = dict(known)
            for branch in selects(nested.block):
                for member in nested.members.get(branch.number, ()):
                    _equal([member], context)
            self.block(nested.block, {}, context)

    def _exact(self, block: SelectBlock, rows: Mapping[str, Rows]) -> Mapping[str, Rows] | None:
        """The rows that meet all conditions of a SELECT together; None where that is not known."""
        conditions = [*block.where, *(part for one in block.relations for part in one.on)]
        own = {one.alias for one in block.relations}
        # A query in an expression may have conditions on the rows around it.
        simple = all(tables_of(part) <= own for part in conditions) and not (
            block.nested or block.laterals or block.windows or block.has_sets
        )
        if not simple or any(one.table is None for one in block.relations):
            return None
        shown = [one for one in block.relations if one.how not in {How.SEMI, How.ANTI}]
        if len(shown) < len(block.relations) or any(one.alias not in rows for one in shown):
            return None
        text, tables = _evaluated(block, self._statement)
        answer = self._evaluate(
            text, {name: (tables[name], rows[one.alias]) for name, one in _named(block)}
        )
        if answer is None:
            return None
        kept = {}
        for at, one in enumerate(block.relations):
            numbers = {row[f"r{at}"] for row in answer}
            kept[one.alias] = [row for row in rows[one.alias] if row[ROW_NUMBER] in numbers]
        return kept


def _told_by(part: exp.Expr, values: Sequence[Any]) -> exp.Column | None:
    """The column whose values are those of an output; None where they do not tell it.

    `coalesce(column, 'x')`, as facts of marts have their keys, is the column unless it is `x`.
    """
    inner = unwrapped(part)
    if isinstance(inner, exp.Anonymous) and inner.name.lower() == "coalesce":
        if len(inner.expressions) != 2:
            return None
        constant = unwrapped(inner.expressions[1])
        texts = [_as_literal(value) for value in values]
        is_known = isinstance(constant, exp.Literal | exp.Neg) and None not in texts
        if not is_known or constant.sql("spark") in texts:
            return None
        inner = inner.expressions[0]
    return direct(inner)


def _as_literal(value: Any) -> str | None:
    """A text or an integer as SQL; None for what SQL writes in several ways."""
    if isinstance(value, str):
        return exp.Literal.string(value).sql("spark")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _named(block: SelectBlock) -> list[tuple[str, BlockRelation]]:
    return [(f"t{at}", one) for at, one in enumerate(block.relations)]


def _evaluated(block: SelectBlock, statement: DerivedStatement) -> tuple[str, dict[str, str]]:
    """A SELECT that gives the numbers of the rows that come together, and its tables' inputs."""
    node = block.node.copy()
    for part in ("group", "having", "order", "distinct", "windows", "sort", "cluster"):
        node.set(part, None)
    source = node.args["from_"]
    places = [source.this, *(join.this for join in node.args.get("joins") or [])]
    tables, outputs = {}, []
    for at, (place, relation) in enumerate(zip(places, block.relations, strict=True)):
        alias = place.alias_or_name
        place.set("this", exp.to_identifier(f"t{at}"))
        place.set("db", exp.to_identifier(EVALUATED))
        place.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        tables[f"t{at}"] = statement.tables[relation.table or ""]
        column = exp.column(ROW_NUMBER, table=alias)
        outputs.append(exp.alias_(column, f"r{at}"))
    node.set("expressions", outputs)
    return node.sql(dialect="spark"), tables


def _spread(block: SelectBlock, known: dict[_Place, list[Any]]) -> None:
    """Give what is known of a column to those that a condition makes equal to it."""
    conditions = [*block.where, *(part for one in block.relations for part in one.on)]
    _equal(conditions, known)


def _equal(conditions: Iterable[exp.Expr], known: dict[_Place, list[Any]]) -> None:
    parts = [pair for part in conditions if (pair := _sides(part)) is not None]
    grown = True
    while grown:
        grown = False
        for one, other in parts:
            for source, target in ((one, other), (other, one)):
                place = (target.table, target.name)
                values = known.get((source.table, source.name))
                if values is not None and place not in known:
                    known[place] = values
                    grown = True


def _sides(part: exp.Expr) -> tuple[exp.Column, exp.Column] | None:
    """The two columns that a condition says are equal; None for another one."""
    if isinstance(part, exp.EQ | exp.NullSafeEQ):
        sides = (part.this, part.expression)
    elif isinstance(part, exp.In) and len(part.expressions) == 1:
        # What a row and one of `IN (SELECT …)` have in common.
        sides = (part.this, part.expressions[0])
    else:
        return None
    one, other = map(direct, sides)
    return None if one is None or other is None else (one, other)


def _usable(known: Mapping[_Place, list[Any]], alias: str) -> dict[str, list[Any]]:
    """The columns of a relation by which rows of it can be looked for."""
    found = {
        column: [value for value in values if value is not None]
        for (table, column), values in known.items()
        if table == alias
    }
    return {column: values for column, values in found.items() if 0 < len(values) <= MOST_VALUES}


def _is_filled(known: Mapping[_Place, list[Any]], relation: BlockRelation) -> bool:
    """Whether NULL on the other side of its condition tells that no row of a relation joined."""
    values = [some for (table, _), some in known.items() if table == relation.alias]
    return relation.how is How.LEFT and any(some and set(some) == {None} for some in values)


def _values_of(alias: str, rows: Rows) -> dict[_Place, list[Any]]:
    columns = {name for row in rows for name in row if name != ROW_NUMBER}
    return {(alias, name): _distinct(row.get(name) for row in rows) for name in columns}


def _distinct(values: Iterable[Any]) -> list[Any]:
    """The values, each once: lists and structs are not hashable."""
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(repr(value) if isinstance(value, list | dict) else value, value)
    return list(found.values())
