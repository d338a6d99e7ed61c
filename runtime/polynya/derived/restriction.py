"""Which rows of the inputs a recomputation needs: those whose columns have affected values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from polynya.derived.blocks import (
    Block,
    How,
    Kinds,
    SelectBlock,
    direct,
    relations_of,
    selects,
)
from polynya.derived.plans import IncrementalPlan


def restrictable_inputs(plan: IncrementalPlan) -> dict[str, dict[str, str]]:
    """The inputs of which the restricted query needs only rows with affected keys.

    Returns an input -> some of its columns -> the restriction column that has the same value in
    every row of the result. The input is read once in each branch of the statement, and these are
    columns of the result, or equal to one by the condition of a join. In the restricted query it
    may be replaced by its rows whose values are in those columns of the affected keys.
    """
    kinds = Kinds(plan.block, plan.statement)
    occurrences = Counter(
        relation.table for relation in relations_of(plan.block) if relation.table is not None
    )
    found: dict[str, list[dict[str, str]]] = {}
    for branch in selects(plan.block):
        for table, keys in _of_branch(branch, plan, kinds).items():
            found.setdefault(table, []).append(keys)
    tables = plan.statement.tables
    return {
        tables[table]: keys[0]
        for table, keys in found.items()
        if len(keys) == occurrences[table] and all(other == keys[0] for other in keys)
    }


def covered_inputs(plan: IncrementalPlan) -> dict[str, dict[str, str]]:
    """Those of `restrictable_inputs` that have a column for every restriction column.

    The affected keys of a change of such an input are among the values that its changed rows have
    in these columns, before and after the change. A condition or a join that drops some of these
    rows is left out, which finds more keys.
    """
    return {
        name: columns
        for name, columns in restrictable_inputs(plan).items()
        if set(columns.values()) == set(plan.columns)
    }


@dataclass(frozen=True, slots=True)
class MatchedInput:
    """Two inputs of a join, each read once: the second one tells which rows of the first count.

    These are the rows of `name` whose value in `column` a row of `other` has in `other_column`.
    """

    name: str
    column: str
    other: str
    other_column: str


def matched_inputs(plan: IncrementalPlan) -> list[MatchedInput]:
    """The inputs that joins let follow from others, so that these restrict them."""
    block = plan.block
    if not _is_plain_join(block):
        return []
    assert isinstance(block, SelectBlock), "a plain join is one SELECT"
    single = _read_once(plan)
    tables = {
        relation.alias: plan.statement.tables[relation.table]
        for relation in block.relations
        if relation.table in single
    }
    weak = block.weak
    return [
        MatchedInput(tables[target.table], target.name, tables[source.table], source.name)
        for one, other, only in equal_columns(block, Kinds(block, plan.statement))
        for source, target in ((one, other), (other, one))
        if {source.table, target.table} <= tables.keys()
        and source.table != target.table
        and (target.table == only if only is not None else target.table not in weak)
    ]


def told_inputs(plan: IncrementalPlan) -> dict[str, tuple[MatchedInput, ...]]:
    """For inputs that are not covered, the joins that lead from their rows to a covered input.

    A row of such an input only concerns rows of the result that it is joined into by the first of
    them. So the affected keys of its change are the values that rows of the last `other` have in
    their columns of `covered_inputs`, of those rows which the joins match with it before or after
    the change. Of the inputs between, the rows of one state suffice: those that differ in the other
    state tell their own affected keys.
    """
    paths: dict[str, tuple[MatchedInput, ...]] = dict.fromkeys(covered_inputs(plan), ())
    pairs = matched_inputs(plan)
    before = -1
    while before < len(paths):
        before = len(paths)
        for one in pairs:
            if one.other in paths and one.name not in paths:
                paths[one.name] = (one, *paths[one.other])
    return {name: path for name, path in paths.items() if path}


def makes_all_rows(plan: IncrementalPlan, name: str) -> bool:
    """Whether each row of the result is made of a row of an input that is read once."""
    block = plan.block
    if not _is_plain_join(block):
        return False
    assert isinstance(block, SelectBlock), "a plain join is one SELECT"
    single, weak = _read_once(plan), block.weak
    return any(
        relation.table in single
        and plan.statement.tables[relation.table or ""] == name
        and relation.alias not in weak
        for relation in block.relations
    )


def named_columns(plan: IncrementalPlan) -> frozenset[str]:
    """The names of all columns that a statement reads, in small letters; stars are lists in it."""
    return frozenset(column.name.lower() for column in plan.statement.tree.find_all(exp.Column))


def _is_plain_join(block: Block) -> bool:
    return isinstance(block, SelectBlock) and not (
        block.has_sets or any(one.how in {How.FULL, How.RIGHT} for one in block.relations)
    )


def _read_once(plan: IncrementalPlan) -> set[str]:
    """Tables that the whole statement reads in one place."""
    read = Counter(one.table for one in relations_of(plan.block) if one.table is not None)
    return {table for table, times in read.items() if times == 1}


def _of_branch(
    branch: SelectBlock, plan: IncrementalPlan, kinds: Kinds
) -> Mapping[str, dict[str, str]]:
    names = plan.block.names
    known: dict[tuple[str, str], str] = {}
    for at, (_, expression) in enumerate(branch.outputs):
        column = direct(expression)
        if names[at] in plan.columns and column is not None:
            known.setdefault((column.table, column.name), names[at])
    if any(relation.how in {How.FULL, How.RIGHT} for relation in branch.relations):
        return {}
    if branch.has_sets:
        # Its totals are of all rows.
        return {}
    _spread(branch, known, kinds)
    found = {}
    for relation in branch.relations:
        if relation.table is None:
            continue
        same = {column: name for (alias, column), name in known.items() if alias == relation.alias}
        if same:
            found[relation.table] = same
    return found


def _spread(branch: SelectBlock, known: dict[tuple[str, str], str], kinds: Kinds) -> None:
    """Add the columns that a condition makes equal to known ones, where both have one type.

    An inner join and WHERE tell it of both sides; an outer one of its optional side only.
    """
    equal = equal_columns(branch, kinds)
    weak = branch.weak
    grown = True
    while grown:
        grown = False
        for one, other, only in equal:
            for source, target in ((one, other), (other, one)):
                place = (target.table, target.name)
                if (source.table, source.name) not in known or place in known:
                    continue
                if only is None and target.table in weak:
                    # A condition after the join must not hide rows from the join.
                    continue
                if only is None or target.table == only:
                    known[place] = known[source.table, source.name]
                    grown = True


def equal_columns(
    branch: SelectBlock, kinds: Kinds
) -> list[tuple[exp.Column, exp.Column, str | None]]:
    """Pairs of columns of one type that a condition makes equal.

    With the alias of the optional side where it tells it of that side only.
    """
    conditions: list[tuple[exp.Expr, str | None]] = [(part, None) for part in branch.where]
    for relation in branch.relations:
        only = None if relation.how is How.INNER else relation.alias
        conditions += [(part, only) for part in relation.on]
    found = []
    for part, only in conditions:
        if not isinstance(part, exp.EQ):
            continue
        one, other = direct(part.this), direct(part.expression)
        if one is None or other is None or kinds.of(one) is None:
            continue
        if kinds.of(one) == kinds.of(other):
            found.append((one, other, only))
    return found
