"""Totals: a result of one row whose values are kept by adding and taking away what changed.

An aggregate without GROUP BY has one row, which depends on every row of its FROM and WHERE. Let R
be columns of one relation of that FROM, the *anchor*, and A the affected keys of these rows by R
(`affected.py`). The rows with R outside of A are the same in the state before and in the state now,
so for an aggregate f that adds up over parts of the rows,

    f(rows now) = f(rows before) - f(rows before with R in A) + f(rows now with R in A)

f(rows before) is what the table shows. The two other values are the whole statement over the
anchor's rows with R in A: each row of FROM is made of exactly one row of an anchor that no outer
join fills or hides, so to leave out rows of the anchor leaves out the same rows of FROM. Of FULL
OUTER JOIN both sides are left with the rows whose compared columns are in A, where matches stay
together.

What adds up: COUNT; SUM of integers and decimals, whose sums are the same in every order; both with
DISTINCT where R are among the columns that they count, since equal values then are in or outside of
A together. A sum is NULL without values, which the sum itself does not tell: where all values that
are known to be there went, the step computes all. MIN and MAX stay unless the value itself goes,
which is computed as a whole too. AVG and quotients of sums cannot be had from their own value.

The sums before are computed again from the old state, not stored. Whatever another computation may
answer in another way (ties, sums of doubles) would stay in the total, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, localcontext
from enum import StrEnum
from typing import Any, Final

from sqlglot import exp

from polynya.derived.blocks import (
    Block,
    BlockRelation,
    How,
    Kinds,
    NotIncrementalError,
    SelectBlock,
    compared_columns,
    direct,
    is_constant,
    is_plain,
    selects,
)
from polynya.derived.stability import Stability
from polynya.derived.statement import DerivedStatement
from polynya.derived.trees import unwrapped

_ORDERED_KINDS: Final = frozenset(
    {"tinyint", "smallint", "int", "integer", "bigint", "date", "string"}
)
#: More digits than any sum of decimals has.
_EXACT: Final = Context(prec=100)


class Merge(StrEnum):
    """How the value of a column follows: from that before, and those of the rows with keys in A."""

    SAME = "same"
    COUNT = "count"
    SUM = "sum"
    LEAST = "least"
    GREATEST = "greatest"


class UnknownTotalError(Exception):
    """A total cannot be told from its last value; the text is the reason."""


@dataclass(frozen=True, slots=True)
class NarrowedRelation:
    """A relation of the text of which only rows with keys in A are read.

    Characters `start` to `end`, the last one not included, are the relation; `alias` is what its
    columns may be qualified with where the text gives none. `columns` are compared with the keys,
    in their order.
    """

    start: int
    end: int
    alias: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TotalRows:
    """The rows that a total is of, with R as their columns, and the relations to narrow."""

    rows: SelectBlock
    relations: tuple[NarrowedRelation, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """The columns of a result of one row, and the aggregates without GROUP BY that make it."""

    merges: tuple[Merge, ...]
    groups: tuple[SelectBlock, ...]


def totals_of(top: Block, stability: Stability, kinds: Kinds) -> Totals | None:
    """How a result of one row follows; None for other results.

    Raises NotIncrementalError for a result of one row whose values do not add up.
    """
    if not isinstance(top, SelectBlock):
        return None
    if top.keys == []:
        groups = {"": top}
    elif top.relations and all(_is_total(relation.block) for relation in top.relations):
        groups = {r.alias: r.block for r in top.relations if isinstance(r.block, SelectBlock)}
        hows = {relation.how for relation in top.relations}
        if hows != {How.INNER} or top.where or top.nested or any(r.on for r in top.relations):
            raise NotIncrementalError("totals that a condition joins")
        if top.keys is not None or top.windows or top.laterals:
            return None
    else:
        return None
    for group in groups.values():
        _check(group, top, stability)
    merges = []
    for name, expression in top.outputs:
        column, merge = direct(expression), None
        if top.keys == []:
            merge = _merge(expression, top, stability, kinds)
        elif column is not None:
            group = groups[column.table]
            merge = _merge(dict(group.outputs)[column.name], group, stability, kinds)
        elif is_constant(expression):
            merge = Merge.SAME
        if merge is None:
            raise NotIncrementalError(f"the column {name} cannot be told from its last value")
        merges.append(merge)
    unique = {group.number: group for group in groups.values()}
    return Totals(tuple(merges), tuple(unique.values()))


def _is_total(block: Block | None) -> bool:
    return isinstance(block, SelectBlock) and block.keys == []


def _check(group: SelectBlock, top: SelectBlock, stability: Stability) -> None:
    """Raise NotIncrementalError for a total whose rows are not all it is made of."""
    if group.having is not None or group.windows or group.laterals:
        raise NotIncrementalError("a total with HAVING, a window or LATERAL VIEW")
    if not group.relations:
        raise NotIncrementalError("a total without FROM")
    if not stability.is_reproducible(group):
        raise NotIncrementalError("its rows depend on a sum of doubles or an order of ties")
    # Narrowed for itself, it must not be what something else reads.
    for block in _blocks(top):
        inner = [relation.block for relation in block.relations if block is not top]
        inner += [nested.block for nested in block.nested]
        if any(group is one for one in inner):
            raise NotIncrementalError("a total that other parts of the query read")


def _blocks(top: Block) -> Iterator[SelectBlock]:
    """All SELECTs of a statement, each once."""
    seen: set[int] = set()
    pending = list(selects(top))
    while pending:
        block = pending.pop()
        if block.number in seen:
            continue
        seen.add(block.number)
        yield block
        inner = [nested.block for nested in block.nested]
        inner += [relation.block for relation in block.relations if relation.block is not None]
        pending += [branch for one in inner for branch in selects(one)]


def _merge(
    expression: exp.Expr, block: SelectBlock, stability: Stability, kinds: Kinds
) -> Merge | None:
    """How the value of an aggregate follows; None where its own value does not tell."""
    node = unwrapped(expression)
    if is_constant(node):
        return Merge.SAME
    if isinstance(node, exp.Anonymous) and node.name.lower() in {"coalesce", "ifnull", "nvl"}:
        first, *others = node.expressions
        zero = len(others) == 1 and isinstance(others[0], exp.Literal) and others[0].name == "0"
        # A sum that begins with 0 adds up like a count.
        inner = _merge(first, block, stability, kinds) if zero else None
        return Merge.COUNT if inner is Merge.SUM else None
    if isinstance(node, exp.Filter):
        if not is_plain(node.expression):
            return None
        node = unwrapped(node.this)
    if not isinstance(node, exp.AggFunc) or not all(map(is_plain, node.expressions)):
        return None
    distinct = _distinct(node)
    if distinct is not None and any(direct(part) is None for part in distinct):
        return None
    return _merge_of_call(node, block, stability, kinds, distinct=distinct is not None)


def _merge_of_call(
    call: exp.AggFunc, block: SelectBlock, stability: Stability, kinds: Kinds, *, distinct: bool
) -> Merge | None:
    name = call.name.lower()
    if name == "count" or (name == "count_if" and not distinct):
        return Merge.COUNT
    if name == "sum" and len(call.expressions) == 1 and stability.is_exact_sum(call, block):
        return Merge.SUM
    if name in {"min", "max"} and not distinct and len(call.expressions) == 1:
        column = direct(call.expressions[0])
        kind = kinds.of(column) if column is not None else None
        if kind is not None and (kind in _ORDERED_KINDS or kind.startswith("decimal")):
            return Merge.LEAST if name == "min" else Merge.GREATEST
    return None


def _distinct(call: exp.Expr) -> list[exp.Expr] | None:
    """What an aggregate with DISTINCT takes each value of once."""
    first = call.expressions[0] if call.expressions else None
    return list(first.expressions) if isinstance(first, exp.Distinct) else None


def rows_of(
    group: SelectBlock, kinds: Kinds, statement: DerivedStatement
) -> Iterator[tuple[TotalRows, bool]]:
    """Ways to narrow the rows of a total; whether R has to be all that is allowed of its columns.

    For a subquery the columns are all of its own, of which those that restrict it are chosen.
    """
    counted = _counted(group)
    if any(relation.how is How.FULL for relation in group.relations):
        if counted is None:
            yield from _of_full_join(group, kinds)
        return
    for relation in group.relations:
        if relation.how not in {How.INNER, How.RIGHT} or relation.alias in group.weak:
            continue
        if relation.table is not None:
            name = statement.tables[relation.table]
            columns = [key.lower() for key in statement.inputs[name].keys]
        else:
            assert relation.block is not None, "a relation is a table or a block"
            columns = list(relation.block.names)
        if counted is not None:
            columns = [name for alias, name in sorted(counted) if alias == relation.alias]
        if columns and relation.place is not None:
            whole = relation.table is not None or counted is not None
            yield narrowed(group, relation, columns), whole


def narrowed(group: SelectBlock, relation: BlockRelation, columns: Sequence[str]) -> TotalRows:
    """The rows of a total by columns of one of its relations."""
    assert relation.place is not None, "its place is known"
    start, end, alias = relation.place
    outputs = [(name, exp.column(name, table=relation.alias)) for name in columns]
    return TotalRows(_block(group, outputs), (NarrowedRelation(start, end, alias, tuple(columns)),))


def _counted(group: SelectBlock) -> set[tuple[str, str]] | None:
    """The columns that every aggregate with DISTINCT takes; None without one."""
    found: set[tuple[str, str]] | None = None
    for _, expression in group.outputs:
        for call in expression.find_all(exp.AggFunc):
            distinct = _distinct(call)
            if distinct is None:
                continue
            columns = {(c.table, c.name) for part in distinct if (c := direct(part)) is not None}
            found = columns if found is None else found & columns
    return found


def _of_full_join(group: SelectBlock, kinds: Kinds) -> Iterator[tuple[TotalRows, bool]]:
    left, right = group.relations
    pairs = [
        (one, other)
        for one, other in compared_columns(group)
        if kinds.of(one) is not None and kinds.of(one) == kinds.of(other)
    ]
    if not pairs or left.place is None or right.place is None:
        return
    outputs = [
        (f"k{at}", exp.Coalesce(this=one.copy(), expressions=[other.copy()]))
        for at, (one, other) in enumerate(pairs)
    ]
    places = (left.place, right.place)
    sides = tuple(
        NarrowedRelation(*place, tuple(pair[side].name for pair in pairs))
        for side, place in enumerate(places)
    )
    yield TotalRows(_block(group, outputs), sides), True


def _block(group: SelectBlock, outputs: Sequence[tuple[str, exp.Expr]]) -> SelectBlock:
    """The rows of FROM and WHERE of a total, with other columns."""
    return SelectBlock(
        -1,
        group.node,
        relations=group.relations,
        where=group.where,
        outputs=list(outputs),
        nested=group.nested,
    )


# Values


def merged(
    merges: Sequence[Merge], stored: Sequence[Any], before: Sequence[Any], now: Sequence[Any]
) -> list[Any]:
    """The row of totals now.

    Args:
        merges: how each column follows.
        stored: its values in the table.
        before: those of the statement over the narrowed relations, in the state of `stored`.
        now: the same in the state of this step.

    Raises UnknownTotalError.
    """
    return [_merged(*four) for four in zip(merges, stored, before, now, strict=True)]


def _merged(how: Merge, stored: Any, before: Any, now: Any) -> Any:
    match how:
        case Merge.SAME:
            return now
        case Merge.COUNT:
            return _added(stored, before, now)
        case Merge.SUM:
            if stored is None and before is None:
                return now
            if stored is not None and now is not None:
                return _added(stored, before or 0, now)
            if stored is not None and before is None:
                return stored
            raise UnknownTotalError("whether a value is left to add up cannot be told")
    if stored is None and before is None:
        return now
    if stored is not None:
        sign = 1 if how is Merge.GREATEST else -1
        if before is None or _order(before, stored) * sign < 0:
            return stored if now is None or _order(now, stored) * sign <= 0 else now
        if now is not None and _order(now, stored) * sign >= 0:
            return now
    raise UnknownTotalError(f"the {how.value} value has changed")


def _added(stored: Any, before: Any, now: Any) -> Any:
    with localcontext(_EXACT):
        return stored - before + now


def _order(one: Any, other: Any) -> int:
    assert isinstance(one, int | Decimal | str | date), "only these types are compared"
    return int(one > other) - int(one < other)
