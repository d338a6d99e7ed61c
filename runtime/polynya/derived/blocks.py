"""A statement as blocks: each SELECT with its relations, conditions and columns.

Every relation of the whole statement gets an alias of its own, so that a subquery and what it
correlates with can stand in one FROM. A CTE is one block, however often it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from sqlglot import exp

from polynya.derived.functions import NOT_DETERMINISTIC
from polynya.derived.statement import DerivedStatement, group_keys
from polynya.derived.trees import conjuncts, is_aggregate, own_nodes, unwrapped

MAX_BLOCKS: Final = 500


class NotIncrementalError(Exception):
    """A statement has to be computed as a whole; the text is the reason."""


class How(StrEnum):
    """How a relation joins those before it."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(eq=False, slots=True)
class BlockRelation:
    """A relation of FROM: a table of the tree, or a block.

    `place` is where the text names it or has its query: the first character, the one after the
    last, and the name of a table without an alias. None where it is not known.
    """

    alias: str
    table: str | None
    block: Block | None
    how: How
    on: list[exp.Expr]
    place: tuple[int, int, str | None] | None = None


@dataclass(eq=False, slots=True)
class NestedQuery:
    """A query in an expression.

    `members` are conditions that IN adds to a branch: by the SELECT that they belong to.
    """

    block: Block
    members: dict[int, list[exp.Expr]]


@dataclass(eq=False, slots=True)
class SelectBlock:
    """One SELECT. Expressions are copies with the aliases of this module."""

    number: int
    node: exp.Select
    relations: list[BlockRelation] = field(default_factory=list)
    laterals: list[exp.Lateral] = field(default_factory=list)
    where: list[exp.Expr] = field(default_factory=list)
    having: exp.Expr | None = None
    outputs: list[tuple[str, exp.Expr]] = field(default_factory=list)
    group: exp.Group | None = None
    #: The keys of GROUP BY; None where rows stay rows.
    keys: list[exp.Expr] | None = None
    windows: list[exp.Window] = field(default_factory=list)
    partitions: list[list[exp.Expr]] = field(default_factory=list)
    nested: list[NestedQuery] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _ in self.outputs]

    @property
    def has_sets(self) -> bool:
        """Whether it groups by several sets of keys."""
        return self.group is not None and (
            any(self.group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
            or any(
                isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets)
                for key in self.group.expressions
            )
        )

    @property
    def weak(self) -> set[str]:
        """Aliases whose columns a join may fill with NULL, or hide; then lateral ones too."""
        found: set[str] = set()
        seen: list[str] = []
        for relation in self.relations:
            if relation.how is How.RIGHT:
                found |= set(seen)
            if relation.how in {How.LEFT, How.SEMI, How.ANTI}:
                found.add(relation.alias)
            seen.append(relation.alias)
        return found | ({lateral.alias for lateral in self.laterals} if found else set())


@dataclass(eq=False, slots=True)
class SetBlock:
    """UNION, INTERSECT or EXCEPT of two blocks."""

    number: int
    node: exp.SetOperation
    left: Block
    right: Block

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return self.left.names


Block: TypeAlias = SelectBlock | SetBlock
_Aliases: TypeAlias = Mapping[str, str]
_Ctes: TypeAlias = Mapping[str, "Block"]


def tables_of(expression: exp.Expr) -> set[str]:
    """The aliases of the relations that an expression reads."""
    return {column.table for column in expression.find_all(exp.Column)}


def direct(expression: exp.Expr) -> exp.Column | None:
    """The column that an expression is; None for what is computed."""
    inner = unwrapped(expression)
    return inner if isinstance(inner, exp.Column) else None


def selects(block: Block) -> Iterator[SelectBlock]:
    """The branches of a block."""
    if isinstance(block, SetBlock):
        yield from selects(block.left)
        yield from selects(block.right)
    else:
        yield block


def relations_of(block: Block) -> Iterator[BlockRelation]:
    """The relations of a block, of those inside, and of those in its expressions."""
    seen: set[int] = set()
    pending = [block]
    while pending:
        inner = pending.pop()
        if inner.number in seen:
            continue
        seen.add(inner.number)
        for branch in selects(inner):
            pending += [nested.block for nested in branch.nested]
            for relation in branch.relations:
                yield relation
                if relation.block is not None:
                    pending.append(relation.block)


class Kinds:
    """The types of columns that come from inputs as they are."""

    def __init__(self, block: Block, statement: DerivedStatement) -> None:
        self._relations = {relation.alias: relation for relation in relations_of(block)}
        self._columns = {
            table: {
                column.lower(): kind.lower()
                for column, kind in statement.inputs[name].columns.items()
            }
            for table, name in statement.tables.items()
        }

    def of(self, column: exp.Column) -> str | None:
        """The type of a column, as text in small letters; None where it is computed."""
        relation = self._relations.get(column.table)
        if relation is None:
            return None
        if relation.table is not None:
            return self._columns[relation.table].get(column.name)
        assert relation.block is not None, "a relation is a table or a block"
        at = relation.block.names.index(column.name)
        origins = [direct(branch.outputs[at][1]) for branch in selects(relation.block)]
        kinds = {None if origin is None else self.of(origin) for origin in origins}
        return kinds.pop() if len(kinds) == 1 else None


def blocks_of(statement: DerivedStatement) -> tuple[Block, dict[str, Block]]:
    """The block of a statement, and those that stand for the CTEs in its nodes.

    Raises NotIncrementalError.
    """
    builder = _Builder()
    tree = statement.tree.copy()
    _check_deterministic(tree)
    top = builder.block(tree, {}, {}, top=True)
    return top, builder.ctes


def _check_deterministic(tree: exp.Expr) -> None:
    for node in tree.walk():
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        clock = name == "unix_timestamp" and not node.expressions
        if name in NOT_DETERMINISTIC or clock:
            raise NotIncrementalError(f"{name}() gives another value at another time")
        if isinstance(
            node,
            exp.CurrentDate
            | exp.CurrentTimestamp
            | exp.CurrentUser
            | exp.CurrentRole
            | exp.SessionUser,
        ):
            raise NotIncrementalError(
                f"{node.sql(dialect='spark')} gives another value at another time"
            )


class _Builder:
    def __init__(self) -> None:
        self._count = 0
        self.ctes: dict[str, Block] = {}

    def _next(self) -> int:
        self._count += 1
        if self._count > MAX_BLOCKS:
            raise NotIncrementalError(
                f"the statement has more than {MAX_BLOCKS} tables and subqueries"
            )
        return self._count

    def block(self, query: exp.Expr, ctes: _Ctes, outer: _Aliases, *, top: bool = False) -> Block:
        query = unwrapped(query)
        clause = query.args.get("with_")
        if clause is not None:
            known = dict(ctes)
            for cte in clause.expressions:
                known[cte.alias] = self.block(cte.this, known, {})
            ctes = known
            clause.pop()
        if query.args.get("limit") or query.args.get("offset"):
            raise NotIncrementalError(
                "LIMIT and OFFSET: a change of one row decides about others that it says nothing of"
            )
        if isinstance(query, exp.SetOperation):
            left = self.block(query.this, ctes, outer, top=top)
            right = self.block(query.expression, ctes, outer, top=top)
            return SetBlock(self._next(), query, left, right)
        if not isinstance(query, exp.Select):
            raise NotIncrementalError(f"{query.key.upper()} is not analysed")
        return self._select(query, ctes, outer)

    def _select(self, node: exp.Select, ctes: _Ctes, outer: _Aliases) -> SelectBlock:
        block = SelectBlock(self._next(), node)
        aliases = dict(outer)
        if isinstance(node.args.get("distinct"), exp.Distinct) and node.args["distinct"].args.get(
            "on"
        ):
            raise NotIncrementalError("DISTINCT ON is not analysed")
        source = node.args.get("from_")
        joins = node.args.get("joins") or []
        relations = [(source.this, None)] if source is not None else []
        for relation, join in [*relations, *((join.this, join) for join in joins)]:
            alias = f"s{self._next()}"
            place = relation.meta.get("place")
            table, inner = self._source(relation, ctes)
            aliases[relation.alias_or_name] = alias
            how = _how(join)
            block.relations.append(BlockRelation(alias, table, inner, how, [], place))
        _check_joins(block)
        for lateral in node.args.get("laterals") or []:
            aliases[lateral.alias] = f"s{self._next()}"
        for relation, (_, join) in zip(
            block.relations[len(relations) :], ((j.this, j) for j in joins), strict=True
        ):
            on = join.args.get("on")
            if on is not None and any(isinstance(part, exp.Query) for part in own_nodes(on)):
                raise NotIncrementalError("a subquery in the ON of a join")
            relation.on = [_copy(part, aliases) for part in conjuncts(on)]
        for lateral in node.args.get("laterals") or []:
            copied = _copy(lateral, aliases)
            assert isinstance(copied, exp.Lateral), "a copy is of the same kind"
            copied.args["alias"].set("this", exp.to_identifier(aliases[lateral.alias]))
            block.laterals.append(copied)
        self._clauses(block, node, aliases)
        self._nested(block, node, aliases, ctes)
        return block

    def _source(self, relation: exp.Expr, ctes: _Ctes) -> tuple[str | None, Block | None]:
        alias = relation.args.get("alias")
        if isinstance(relation, exp.Table):
            if alias is not None and alias.args.get("columns"):
                raise NotIncrementalError("names of columns after the alias of a table")
            inner = ctes.get(relation.name)
            if inner is None:
                return relation.name, None
            name = f"__q{inner.number}"
            self.ctes[name] = inner
            relation.set("this", exp.to_identifier(name))
            return None, inner
        if isinstance(relation, exp.Subquery):
            return None, self.block(relation.this, ctes, {})
        raise NotIncrementalError("LATERAL with a subquery")

    def _clauses(self, block: SelectBlock, node: exp.Select, aliases: _Aliases) -> None:
        where, having, group = (node.args.get(name) for name in ("where", "having", "group"))
        block.where = [_copy(part, aliases) for part in conjuncts(where and where.this)]
        block.having = _copy(having.this, aliases) if having is not None else None
        block.outputs = [
            (item.alias_or_name, _copy(item.this if isinstance(item, exp.Alias) else item, aliases))
            for item in node.expressions
        ]
        roots = [item for _, item in block.outputs]
        if group is not None:
            copied = _copy(group, aliases)
            assert isinstance(copied, exp.Group), "a copy is of the same kind"
            block.group = copied
            block.keys = [unwrapped(key) for key in group_keys(copied)]
            if group.args.get("all"):
                block.keys = [
                    unwrapped(root)
                    for root in roots
                    if not any(is_aggregate(part) for part in own_nodes(root))
                ]
                block.group = exp.Group(expressions=[key.copy() for key in block.keys])
        elif having is not None or any(is_aggregate(p) for r in roots for p in own_nodes(r)):
            block.keys = []
        named = {
            window.this.name: window.args.get("partition_by") or []
            for window in node.args.get("windows") or []
            if isinstance(window.this, exp.Identifier)
        }
        for root in roots:
            for part in own_nodes(root):
                if isinstance(part, exp.Window):
                    block.windows.append(part)
                    keys = part.args.get("partition_by") or [
                        _copy(key, aliases) for key in named.get(part.alias, [])
                    ]
                    block.partitions.append([unwrapped(key) for key in keys])

    def _nested(self, block: SelectBlock, node: exp.Select, aliases: _Aliases, ctes: _Ctes) -> None:
        where = node.args.get("where")
        positive = {id(part) for part in conjuncts(where.this)} if where is not None else set()
        roots = [*node.expressions]
        clauses = (node.args.get(name) for name in ("where", "group", "having"))
        roots += [clause for clause in clauses if clause is not None]
        for root in roots:
            for part in list(own_nodes(root)):
                if not isinstance(part, exp.Query):
                    continue
                inner = self.block(part, ctes, aliases)
                parent = part.parent
                while isinstance(parent, exp.Paren | exp.Subquery):
                    parent = parent.parent
                members: dict[int, list[exp.Expr]] = {}
                if isinstance(parent, exp.In):
                    value = _copy(parent.this, aliases)
                    for branch in selects(inner):
                        members[branch.number] = _members(
                            value, branch, positive=id(parent) in positive
                        )
                block.nested.append(NestedQuery(inner, members))


def _how(join: exp.Join | None) -> How:
    if join is None:
        return How.INNER
    side = str(join.args.get("side") or "").upper()
    kind = str(join.args.get("kind") or "").upper()
    if join.args.get("using") or join.args.get("method"):
        raise NotIncrementalError("a join whose condition is not written out")
    if kind in {"SEMI", "ANTI"}:
        return How(kind.lower())
    if side in {"LEFT", "RIGHT", "FULL"}:
        return How(side.lower())
    if side or kind not in {"", "INNER", "CROSS"}:
        raise NotIncrementalError(f"{side} {kind} JOIN is not analysed")
    return How.INNER


def _check_joins(block: SelectBlock) -> None:
    hows = [relation.how for relation in block.relations]
    if How.FULL in hows and len(hows) != 2:
        raise NotIncrementalError("FULL OUTER JOIN among more than two tables")
    for at, how in enumerate(hows):
        if how is How.RIGHT and any(before is not How.INNER for before in hows[:at]):
            raise NotIncrementalError("RIGHT JOIN after another outer join")


def _copy(node: exp.Expr, aliases: _Aliases) -> exp.Expr:
    copied = node.copy()
    for column in list(copied.find_all(exp.Column)):
        if column.table in aliases:
            column.set("table", exp.to_identifier(aliases[column.table]))
    return copied


def _members(value: exp.Expr, branch: SelectBlock, *, positive: bool) -> list[exp.Expr]:
    """What a row of the outer query and one of `IN (SELECT …)` have in common, if it matters.

    Where only true counts, they are equal. Elsewhere a NULL on either side matters too.
    """
    values = value.expressions if isinstance(value, exp.Tuple) else [value]
    if len(values) != len(branch.outputs) or (len(values) > 1 and not positive):
        return []
    found = []
    for one, (_, other) in zip(values, branch.outputs, strict=True):
        if not is_plain(one) or not is_plain(other):
            continue
        # Not `=`, which compares values of different types in another way than IN.
        equal: exp.Expr = exp.In(this=one.copy(), expressions=[other.copy()])
        if not positive:
            equal = exp.or_(
                equal,
                exp.Is(this=one.copy(), expression=exp.Null()),
                exp.Is(this=other.copy(), expression=exp.Null()),
            )
        found.append(equal)
    return found


def is_plain(expression: exp.Expr) -> bool:
    """Whether an expression is computed from one row, without aggregate, window or subquery."""
    return not any(
        isinstance(part, exp.AggFunc | exp.Window | exp.Query) for part in expression.walk()
    )


def is_constant(expression: exp.Expr) -> bool:
    """Whether an expression has one value for all rows."""
    return not any(
        isinstance(part, exp.Column | exp.AggFunc | exp.Window | exp.Query | exp.Anonymous)
        for part in expression.walk()
    )


def compared_columns(block: SelectBlock) -> list[tuple[exp.Column, exp.Column]]:
    """The columns that the condition of a FULL OUTER JOIN compares: left, right."""
    left = block.relations[0].alias
    found = []
    for part in block.relations[1].on:
        if isinstance(part, exp.EQ):
            one, other = direct(part.this), direct(part.expression)
            if one is not None and other is not None and one.table != other.table:
                found.append((one, other) if one.table == left else (other, one))
    return found
