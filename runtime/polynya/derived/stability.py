"""Which columns of a block have the same value whenever it is computed over the same rows.

`row_number` numbers ties anyhow, `first` takes the first row that it meets, and a sum of doubles
differs in its last bits with the order of its rows. Such a value restricts nothing and decides
nothing: what was stored may have come of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sqlglot import exp

from polynya.derived.blocks import (
    Block,
    BlockRelation,
    How,
    NestedQuery,
    NotIncrementalError,
    SelectBlock,
    SetBlock,
    direct,
    selects,
    tables_of,
)
from polynya.derived.functions import ORDERED_AGGREGATES, ORDERED_WINDOWS, SUMS
from polynya.derived.schema import DerivedInput
from polynya.derived.trees import unwrapped

_EXACT_TYPES: Final = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "long"})
_ADVICE: Final = "order its window by the key of the input"


class Stability:
    """Answers for the blocks of one statement; `inputs` has the input of each table."""

    def __init__(self, inputs: Mapping[str, DerivedInput]) -> None:
        self._inputs = inputs
        self._loose: dict[int, frozenset[str]] = {}
        self._inexact: dict[int, frozenset[str]] = {}
        self._unsettled: dict[int, bool] = {}

    def check(self, block: Block, *, top: bool = True) -> None:
        """Raise NotIncrementalError for a result that depends on loose values and is not followed.

        The affected keys are computed after the table: ties may be ordered in another way then. A
        block over the result of such an order is followed, since its terms drop what reads loose
        values. The next block on top of it is, if it reads nothing else: its affected keys are
        those of the one below.
        """
        if isinstance(block, SetBlock):
            if not top and self.is_unsettled(block):
                raise NotIncrementalError(
                    f"{self._why(block)} inside of a set operation: {_ADVICE}"
                )
            self.check(block.left, top=top)
            self.check(block.right, top=top)
            return
        for relation in block.relations:
            if relation.block is not None:
                self.check(relation.block, top=False)
        for nested in block.nested:
            self.check(nested.block, top=False)
            if self.is_unsettled(nested.block):
                raise NotIncrementalError(f"{self._why(nested.block)} in a subquery: {_ADVICE}")
        if self.unsettled(block):
            self._check_sources(block)

    def _check_sources(self, block: SelectBlock) -> None:
        """The same of a block that reads rows which depend on loose values."""
        sources = self.loose_sources(block)
        for nested in block.nested:
            if self.is_loose(_conditions(nested), sources):
                raise NotIncrementalError(
                    f"{self._why_source(block)} is compared with a subquery: {_ADVICE}"
                )
        if any(one.how is not How.INNER for one in self.unsettled(block)) or any(
            relation.how is not How.INNER and self.is_loose(relation.on, sources)
            for relation in block.relations
        ):
            raise NotIncrementalError(f"{self._why_source(block)} decides an outer join: {_ADVICE}")
        if block.has_sets:
            # A total is computed again with each of its groups, which may keep their rows.
            raise NotIncrementalError(f"{self._why_source(block)} below several sets of groups")
        if self.is_loose(block.laterals, sources):
            raise NotIncrementalError(f"{self._why_source(block)} in LATERAL VIEW: {_ADVICE}")
        if self.is_deep(block) and (len(block.relations) > 1 or block.nested):
            raise NotIncrementalError(
                f"{self._why_source(block)} two levels below a join: {_ADVICE}"
            )

    def unsettled(self, block: SelectBlock) -> list[BlockRelation]:
        """The relations of a block whose rows depend on a loose value."""
        return [
            relation
            for relation in block.relations
            if relation.block is not None and self.is_unsettled(relation.block)
        ]

    def is_unsettled(self, block: Block) -> bool:
        """Whether rows of a block depend on the order in which rows are read."""
        if block.number not in self._unsettled:
            self._unsettled[block.number] = bool(self.loose(block)) or any(
                self.unsettled(branch) for branch in selects(block)
            )
        return self._unsettled[block.number]

    def is_deep(self, block: SelectBlock) -> bool:
        """Whether loose values decide which rows one of its relations has."""
        return any(
            self.unsettled(branch)
            for relation in block.relations
            if relation.block is not None
            for branch in selects(relation.block)
        )

    def loose_sources(self, block: SelectBlock) -> dict[str, frozenset[str]]:
        """Aliases -> their loose columns, where they have some."""
        return {
            relation.alias: columns
            for relation in block.relations
            if relation.block is not None and (columns := self.loose(relation.block))
        }

    def is_loose(
        self, expressions: Iterable[exp.Expr], sources: Mapping[str, frozenset[str]]
    ) -> bool:
        """Whether an expression reads a loose column."""
        return any(
            column.name in sources.get(column.table, ())
            for expression in expressions
            for column in expression.find_all(exp.Column)
        )

    def loose(self, block: Block) -> frozenset[str]:
        """The columns of a block that depend on the order in which rows are read."""
        if block.number not in self._loose:
            self._loose[block.number] = self._by_position(block, self._loose_of)
        return self._loose[block.number]

    def inexact(self, block: Block) -> frozenset[str]:
        """The columns of a block whose last bits may differ."""
        if block.number not in self._inexact:
            self._inexact[block.number] = self._by_position(block, self._inexact_of)
        return self._inexact[block.number]

    def _by_position(
        self, block: Block, columns: Callable[[SelectBlock], Iterable[str]]
    ) -> frozenset[str]:
        found: set[str] = set()
        for branch in selects(block):
            names = branch.names
            found |= {block.names[names.index(name)] for name in columns(branch)}
        return frozenset(found)

    def _loose_of(self, block: SelectBlock) -> Iterable[str]:
        sources = self.loose_sources(block)
        for name, expression in block.outputs:
            if self.is_loose([expression], sources) or self._orders(expression, block):
                yield name

    def _orders(self, expression: exp.Expr, block: SelectBlock) -> bool:
        for part in expression.walk():
            if isinstance(part, exp.Window):
                if _follows_rows(part) and not self._is_total(part, block):
                    return True
            elif (
                isinstance(part, exp.AggFunc)
                and part.name.lower() in ORDERED_AGGREGATES
                and part.find_ancestor(exp.Window) is None
            ):
                return True
        return False

    def _is_total(self, window: exp.Window, block: SelectBlock) -> bool:
        """Whether a window's order leaves no ties: it has the keys of all that is joined."""
        order = window.args.get("order")
        parts = [part.this for part in order.expressions] if order is not None else []
        at = next((i for i, w in enumerate(block.windows) if w is window), None)
        parts += block.partitions[at] if at is not None else []
        columns = {(c.table, c.name) for part in parts if (c := direct(part)) is not None}
        if block.keys is not None:
            # One row for each group.
            return not block.has_sets and all(key in map(unwrapped, parts) for key in block.keys)
        if block.laterals:
            return False
        return all(self._has_key(relation, columns) for relation in block.relations)

    def _has_key(self, relation: BlockRelation, columns: set[tuple[str, str]]) -> bool:
        if relation.how not in {How.INNER, How.SEMI, How.ANTI}:
            return False
        if relation.how is not How.INNER:
            return True
        one = self._inputs.get(relation.table or "")
        keys = one.keys if one is not None else ()
        return bool(keys) and all((relation.alias, key.lower()) in columns for key in keys)

    def _inexact_of(self, block: SelectBlock) -> Iterable[str]:
        inexact = {
            relation.alias: self.inexact(relation.block)
            for relation in block.relations
            if relation.block is not None
        }
        for name, expression in block.outputs:
            if self.is_loose([expression], inexact) or any(
                isinstance(part, exp.AggFunc)
                and part.name.lower() in SUMS
                and not all(self._is_exact(argument, block) for argument in part.expressions)
                for part in expression.walk()
            ):
                yield name

    def _is_exact(self, node: exp.Expr, block: SelectBlock) -> bool:
        """Whether a sum of these numbers is the same in every order."""
        if isinstance(node, exp.Column):
            return self._is_exact_column(node, block)
        if isinstance(node, exp.Literal):
            return not node.is_string and "e" not in node.name.lower()
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Paren | exp.Distinct):
            return all(self._is_exact(part, block) for part in node.iter_expressions())
        if isinstance(node, exp.Case):
            values = [branch.args["true"] for branch in node.args["ifs"]]
            values += [node.args["default"]] if node.args.get("default") is not None else []
            return all(self._is_exact(value, block) for value in values)
        if isinstance(node, exp.Null):
            return True
        if isinstance(node, exp.AggFunc | exp.Anonymous):
            if node.name.lower() in {"count", "count_if"}:
                return True
            if node.name.lower() in {"min", "max", "sum", "coalesce"}:
                return all(self._is_exact(part, block) for part in node.expressions)
        return False

    def _is_exact_column(self, column: exp.Column, block: SelectBlock) -> bool:
        for relation in block.relations:
            if relation.alias != column.table:
                continue
            if relation.block is not None:
                at = relation.block.names.index(column.name)
                return all(
                    self._is_exact(branch.outputs[at][1], branch)
                    for branch in selects(relation.block)
                )
            columns = self._inputs[relation.table or ""].columns
            kinds = {name.lower(): kind.lower() for name, kind in columns.items()}
            kind = kinds.get(column.name, "")
            return kind in _EXACT_TYPES or kind.startswith(("decimal", "numeric"))
        return False

    def is_exact_sum(self, call: exp.Expr, block: SelectBlock) -> bool:
        """Whether the sum of an aggregate's argument is the same in every order."""
        return all(self._is_exact(argument, block) for argument in call.expressions)

    def is_reproducible(self, block: Block) -> bool:
        """Whether a block and all that it reads have the same rows whenever they are computed."""
        seen: set[int] = set()
        pending = [block]
        while pending:
            inner = pending.pop()
            if inner.number in seen:
                continue
            seen.add(inner.number)
            if self.loose(inner) or self.inexact(inner):
                return False
            for branch in selects(inner):
                if branch.having is not None and not self._is_decided(branch.having, branch):
                    return False
                pending += [nested.block for nested in branch.nested]
                pending += [r.block for r in branch.relations if r.block is not None]
        return True

    def _is_decided(self, condition: exp.Expr, block: SelectBlock) -> bool:
        """Whether the aggregates of HAVING are the same in every order."""
        return not self._orders(condition, block) and all(
            self.is_exact_sum(part, block)
            for part in condition.find_all(exp.AggFunc)
            if part.name.lower() in SUMS
        )

    def _why(self, block: Block) -> str:
        for branch in selects(block):
            for _, expression in branch.outputs:
                for part in expression.walk():
                    if isinstance(part, exp.Window) and _follows_rows(part):
                        return f"{part.this.name.lower() or part.this.key}() may order ties anyhow"
                    if isinstance(part, exp.AggFunc) and part.name.lower() in ORDERED_AGGREGATES:
                        return f"{part.name.lower()}() may take any row"
            for relation in branch.relations:
                if relation.block is not None and self.is_unsettled(relation.block):
                    return self._why(relation.block)
        return "an order of rows that nothing decides"

    def _why_source(self, block: SelectBlock) -> str:
        return next(
            self._why(relation.block)
            for relation in self.unsettled(block)
            if relation.block is not None
        )

    def why(self, block: SelectBlock) -> str:
        """The reason for a block that has no column by which loose values are decided."""
        return f"{self._why_source(block)}: {_ADVICE}, or keep its PARTITION BY in the result"


def _conditions(nested: NestedQuery) -> Iterator[exp.Expr]:
    """What a query in an expression compares with the rows around it."""
    for branch in selects(nested.block):
        yield from branch.where
        yield from nested.members.get(branch.number, [])
        for relation in branch.relations:
            yield from relation.on


def _follows_rows(window: exp.Window) -> bool:
    """Whether a window's value depends on the order of ties."""
    function = window.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    name = function.name.lower()
    if name in ORDERED_WINDOWS or name in ORDERED_AGGREGATES:
        return True
    spec = window.args.get("spec")
    return spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS"


def reads(expressions: Iterable[exp.Expr]) -> set[str]:
    """The aliases that some expressions read."""
    return {alias for expression in expressions for alias in tables_of(expression)}
