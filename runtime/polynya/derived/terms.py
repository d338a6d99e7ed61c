"""The rows of a block that a touched row of one of its relations may concern.

A term is a FROM and conditions: the relations of the block in one state, one of them replaced by
its touched rows. It may find too many rows, never too few:

- A relation that no outer join fills: all joins as they are, and every condition without subquery.
- The optional side of a join (also of SEMI and ANTI): the joins before it as they are, its own join
  as an inner one; afterwards only what no other optional side decides, since the row may have stood
  there with NULL in its place.
- A query in an expression: the block's rows, joined with the terms of that query by the conditions
  that it has, those that correlate among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from polynya.derived.blocks import (
    BlockRelation,
    How,
    NestedQuery,
    NotIncrementalError,
    SelectBlock,
    is_plain,
    selects,
    tables_of,
)
from polynya.derived.functions import GENERATORS
from polynya.derived.stability import Stability, reads


@dataclass(frozen=True, slots=True)
class Step:
    """A relation of a term, and how it joins those before it."""

    relation: BlockRelation
    how: How
    on: tuple[exp.Expr, ...]
    touched: bool


@dataclass(frozen=True, slots=True)
class Term:
    """A FROM and its conditions."""

    steps: tuple[Step, ...]
    laterals: tuple[exp.Lateral, ...]
    where: tuple[exp.Expr, ...]


def terms(
    block: SelectBlock,
    stability: Stability,
    *,
    members: Sequence[exp.Expr] = (),
    needed: frozenset[str] = frozenset(),
) -> Iterator[Term]:
    """The terms of a block.

    Args:
        block: a SELECT.
        stability: which of its columns decide nothing.
        members: conditions that it has besides its own.
        needed: aliases whose columns are read from the rows.
    """
    conditions = _usable([*block.where, *members], block, stability)
    for at in range(len(block.relations)):
        yield _touched(block, at, conditions, needed, stability)
    for nested in block.nested:
        yield from _nested(block, nested, conditions, needed, stability)


def _usable(
    conditions: Sequence[exp.Expr], block: SelectBlock, stability: Stability
) -> list[exp.Expr]:
    """Without those that a row alone does not decide: to drop a condition finds more rows."""
    loose = stability.loose_sources(block)
    return [
        part
        for part in conditions
        if is_plain(part) and not _generates(part) and not stability.is_loose([part], loose)
    ]


def _generates(part: exp.Expr) -> bool:
    return any(call.name.lower() in GENERATORS for call in part.find_all(exp.Anonymous))


def _touched(
    block: SelectBlock,
    at: int,
    conditions: list[exp.Expr],
    needed: frozenset[str],
    stability: Stability,
) -> Term:
    relations, weak = block.relations, block.weak
    chosen = relations[at]
    if any(relation.how is How.FULL for relation in relations):
        # The rows of either side whose keys these are; the columns are those of this side.
        return Term((Step(chosen, How.INNER, (), touched=True),), (), ())
    if chosen.alias not in weak:
        steps = [Step(r, r.how, _kept(r, block, stability), touched=r is chosen) for r in relations]
        laterals = tuple(block.laterals)
        return _without_unused(steps, laterals, conditions, needed)
    joined = at
    if chosen.how not in {How.LEFT, How.SEMI, How.ANTI}:
        joined = next(n for n in range(at, len(relations)) if relations[n].how is How.RIGHT)
    steps = []
    for number, relation in enumerate(relations):
        on, how = _kept(relation, block, stability), relation.how
        if number == joined:
            how = How.INNER
        elif number > joined:
            if how is not How.INNER:
                continue
            on = tuple(part for part in on if not tables_of(part) & weak)
        steps.append(Step(relation, how, on, touched=relation is chosen))
    kept = [part for part in conditions if not tables_of(part) & weak]
    return _without_unused(steps, (), kept, needed, relaxed_after=joined)


def _kept(
    relation: BlockRelation, block: SelectBlock, stability: Stability
) -> tuple[exp.Expr, ...]:
    loose = stability.loose_sources(block)
    return tuple(part for part in relation.on if not stability.is_loose([part], loose))


def _without_unused(
    steps: list[Step],
    laterals: tuple[exp.Lateral, ...],
    conditions: list[exp.Expr],
    needed: frozenset[str],
    relaxed_after: int | None = None,
) -> Term:
    """Leave out relations whose columns nobody reads, and that hide no row, or seldom one.

    An inner join with a whole table, by columns of both sides, is such a one: to read that table
    costs more than the keys of rows without a partner.
    """
    steps = list(steps)
    for number in range(len(steps) - 1, 0, -1):
        step = steps[number]
        later = [part for other in steps[number + 1 :] for part in other.on]
        read = needed | reads([*conditions, *later, *laterals])
        optional = (
            step.how is How.LEFT
            or (relaxed_after is not None and number > relaxed_after and not step.on)
            or _only_looks_up(step)
        )
        if optional and not step.touched and step.relation.alias not in read:
            del steps[number]
    return Term(tuple(steps), laterals, tuple(conditions))


def _only_looks_up(step: Step) -> bool:
    """Whether a join finds a row of a table for each row before it, and has no other condition."""
    alias = step.relation.alias
    return (
        step.how is How.INNER
        and step.relation.table is not None
        and bool(step.on)
        and all({alias} < tables_of(part) for part in step.on)
    )


def _nested(
    block: SelectBlock,
    nested: NestedQuery,
    conditions: list[exp.Expr],
    needed: frozenset[str],
    stability: Stability,
) -> Iterator[Term]:
    if any(relation.how is How.FULL for relation in block.relations):
        raise NotIncrementalError("FULL OUTER JOIN together with a subquery in an expression")
    around = [
        Step(relation, relation.how, _kept(relation, block, stability), touched=False)
        for relation in block.relations
    ]
    for branch in selects(nested.block):
        if any(relation.how is How.RIGHT for relation in branch.relations):
            raise NotIncrementalError("RIGHT JOIN in a subquery of an expression")
        for term in terms(branch, stability, members=nested.members.get(branch.number, [])):
            read = reads([*term.where, *(part for step in term.steps for part in step.on)])
            read |= reads(term.laterals)
            outer = _without_unused(
                around, tuple(block.laterals), conditions, needed | frozenset(read)
            )
            first = term.steps[0]
            steps = (
                *outer.steps,
                Step(first.relation, How.INNER, first.on, first.touched),
                *term.steps[1:],
            )
            yield Term(steps, (*outer.laterals, *term.laterals), (*outer.where, *term.where))
