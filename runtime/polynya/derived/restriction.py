"""Which rows of the inputs a recomputation needs: those whose columns have affected values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sqlglot import exp

from polynya.derived.blocks import (
    How,
    Kinds,
    SelectBlock,
    direct,
    is_plain,
    relations_of,
    selects,
)
from polynya.derived.functions import GENERATORS
from polynya.derived.plans import IncrementalPlan
from polynya.derived.trees import own_nodes


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
    equal: list[tuple[exp.Expr, str | None]] = [(part, None) for part in branch.where]
    for relation in branch.relations:
        only = None if relation.how is How.INNER else relation.alias
        equal += [(part, only) for part in relation.on]
    weak = branch.weak
    grown = True
    while grown:
        grown = False
        for part, only in equal:
            if not isinstance(part, exp.EQ):
                continue
            one, other = direct(part.this), direct(part.expression)
            if one is None or other is None or kinds.of(one) is None:
                continue
            if kinds.of(one) != kinds.of(other):
                continue
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


def is_map(plan: IncrementalPlan) -> bool:
    """Whether a row of the result is made of one row of the only input, and has its key."""
    return map_keys(plan) is not None


def map_keys(plan: IncrementalPlan) -> dict[str, str] | None:
    """The columns of the result that have the key of the only input, by the key's columns.

    Where `is_map`, the affected keys are the changed keys of the input, under these names. None for
    another plan.
    """
    block, statement = plan.block, plan.statement
    if not isinstance(block, SelectBlock) or len(block.relations) != 1:
        return None
    relation = block.relations[0]
    simple = (
        relation.table is not None
        and not (block.nested or block.laterals or block.windows)
        and block.keys is None
        and not block.node.args.get("distinct")
    )
    if not simple or not all(is_plain(part) and not _generates(part) for _, part in block.outputs):
        return None
    names = {
        column.name: name for name, part in block.outputs if (column := direct(part)) is not None
    }
    keys = statement.inputs[statement.tables[relation.table or ""]].keys
    if not keys or not all(key.lower() in names for key in keys):
        return None
    return {key: names[key.lower()] for key in keys}


def _generates(expression: exp.Expr) -> bool:
    return any(
        isinstance(part, exp.Anonymous) and part.name.lower() in GENERATORS
        for part in own_nodes(expression)
    )
