"""The processors of a flow over several inputs: join, lookup, union."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from polynya.derived.processors import cast_to, new_names
from polynya.derived.schema import FlowColumn, FlowSchema
from polynya.derived.steps import FlowRelation, FlowStepResult, FlowStepScope, Lines, item, select
from polynya.model.config.flow import JoinStep, LookupStep, UnionStep
from polynya.model.error_catalogue.flows import FLOW_LOOKUP_NOT_BY_KEY, FLOW_SIDE_MISSING
from polynya.model.names import folded, literal, quote, quote_path, shown
from polynya.model.types import STRING, DataType

_JOINS: Final = {
    "inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN", "cross": "CROSS JOIN",
}  # fmt: skip
#: More keys than these of a join are not followed.
_MOST_KEYS: Final = 4


class _Sides:
    """The two inputs of a join, their names in it, and the columns that are equal."""

    def __init__(
        self,
        step: FlowStepScope,
        left: FlowRelation,
        right: FlowRelation,
        on: Sequence[str] | Mapping[str, str],
    ) -> None:
        self.step, self.left, self.right = step, left, right
        both = (*left.schema.names, *right.schema.names)
        self.l = FlowSchema(()).free_name("l", both)
        self.r = FlowSchema(()).free_name("r", both)
        written = list(on.items()) if isinstance(on, Mapping) else [(name, name) for name in on]
        self.pairs: list[tuple[FlowColumn, FlowColumn, DataType | None]] = []
        for number, (one, other) in enumerate(written):
            key = one if isinstance(on, Mapping) else number
            here = step.column(left, one, "on", key)
            there = step.column(right, other, "on", key)
            kind = step.common((one, here.type), (other, there.type), "on", key)
            step.orderable([here, there], "on")
            self.pairs.append((here, there, kind))

    def of_left(self, column: FlowColumn) -> str:
        """A column of the left input."""
        return quote_path(self.l, column.name)

    def of_right(self, column: FlowColumn) -> str:
        """A column of the right input."""
        return quote_path(self.r, column.name)

    def equal(self) -> list[str]:
        """The conditions of the columns that are equal, in the type of both."""
        return [
            f"{cast_to(self.of_left(one), one.type, kind)} = "
            f"{cast_to(self.of_right(other), other.type, kind)}"
            for one, other, kind in self.pairs
        ]

    def sources(self, join: str, conditions: Sequence[str]) -> tuple[Lines, Lines]:
        """What follows FROM, and the join below it."""
        first = [*self.left.lines[:-1], f"{self.left.lines[-1]} AS {quote(self.l)}"]
        lines = [f"{join} {self.right.lines[0]}", *self.right.lines[1:]]
        lines[-1] += f" AS {quote(self.r)}"
        lines += [
            f"  {'AND' if number else 'ON'} {condition}"
            for number, condition in enumerate(conditions)
        ]
        return first, lines

    @property
    def one_of_right(self) -> bool:
        """Whether a row of the left input matches at most one of the right."""
        return any(
            key <= {other.name for _, other, _ in self.pairs} for key in self.right.schema.keys
        )

    @property
    def one_of_left(self) -> bool:
        """Whether a row of the right input matches at most one of the left."""
        given = {one.name for one, _, _ in self.pairs}
        return any(key <= given for key in self.left.schema.keys)


def joined(
    step: FlowStepScope, settings: JoinStep, left: FlowRelation, right: FlowRelation
) -> FlowStepResult:
    """Rows of two inputs side by side."""
    sides = _Sides(step, left, right, settings.on or ())
    conditions = sides.equal()
    if settings.condition is not None:
        conditions.append(_condition(sides, settings.condition))
    first, join = sides.sources(_JOINS[settings.type], conditions)
    paired = {one.name: (other, kind) for one, other, kind in sides.pairs}
    items, columns = [], []
    for column in left.schema.columns:
        sql, kind = sides.of_left(column), column.type
        if column.name in paired and settings.type in {"right", "full"}:
            other, common = paired[column.name]
            there = cast_to(sides.of_right(other), other.type, common)
            here = cast_to(sql, column.type, common)
            sql = there if settings.type == "right" else f"COALESCE({here}, {there})"
            kind = common
        items.append(_named(sql, column.name))
        columns.append(FlowColumn(column.name, kind))
    names: dict[str, str] = {other.name: one.name for one, other, _ in sides.pairs}
    if settings.type not in {"semi", "anti"}:
        gone = set(names)
        added = [column for column in right.schema.columns if column.name not in gone]
        names |= {column.name: f"{settings.prefix}{column.name}" for column in added}
        new_names(step, columns, [names[column.name] for column in added], "with")
        items += [_named(sides.of_right(column), names[column.name]) for column in added]
        columns += [FlowColumn(names[column.name], column.type) for column in added]
    keys = _joined_keys(settings.type, sides, names)
    return FlowStepResult(select(items, first, *join), FlowSchema(tuple(columns), keys))


def _named(sql: str, name: str) -> str:
    """A column of an input in a SELECT list; its name follows where it is another one."""
    return sql if sql.endswith(f".{quote(name)}") else f"{sql} AS {quote(name)}"


def _condition(sides: _Sides, text: str) -> str:
    """A condition over both inputs, whose columns begin with `left.` or `right.`."""
    step, where = sides.step, sides.step.where("condition")

    def resolve(
        path: tuple[str, ...], position: int | None
    ) -> tuple[tuple[str, ...], DataType | None]:
        side = {"left": sides.left, "right": sides.right}.get(folded(path[0]))
        if side is None or len(path) == 1:
            raise FLOW_SIDE_MISSING(
                where=where, step=step.label, column=shown(".".join(path)), name=path[-1]
            )
        names, kind = step.resolved(side, path[1:], position, where)
        return (sides.l if side is sides.left else sides.r, *names), kind

    # Types of single names are not known here: each name stands for a side.
    found = step.checked(text, resolve, (), where)
    step.is_condition(found, "condition")
    return f"({found.sql})" if sides.pairs else found.sql


def _joined_keys(kind: str, sides: _Sides, names: Mapping[str, str]) -> tuple[frozenset[str], ...]:
    """Columns that tell the rows of a join apart; `names` are those of the right input's."""
    of_left = sides.left.schema.keys
    if kind in {"semi", "anti"}:
        return of_left
    of_right = tuple(frozenset(names[name] for name in key) for key in sides.right.schema.keys)
    if kind == "full":
        # Rows without a match of either side may both have NULL there.
        return ()
    keys = [one | other for one in of_left[:1] for other in of_right[:1]]
    if sides.one_of_right and kind in {"inner", "left"}:
        keys = [*of_left, *keys]
    if sides.one_of_left and kind in {"inner", "right"}:
        keys = [*of_right, *keys]
    return tuple(dict.fromkeys(keys))[:_MOST_KEYS]


def looked_up(
    step: FlowStepScope, settings: LookupStep, rows: FlowRelation, other: FlowRelation
) -> FlowStepResult:
    """Columns of the one row of another input, by a key of it."""
    sides = _Sides(step, rows, other, settings.on)
    known = all(other.schema.find(there.name) is not None for _, there, _ in sides.pairs)
    if known and not sides.one_of_right:
        keys = [", ".join(map(shown, sorted(key))) for key in other.schema.keys]
        step.errors.append(
            FLOW_LOOKUP_NOT_BY_KEY(
                where=step.where("on"),
                step=step.label,
                source=shown(other.name),
                columns=", ".join(shown(there.name) for _, there, _ in sides.pairs),
                fix=f"use its key: {' or '.join(keys)}" if keys else "use `join`: it has no key",
            )
        )
    wanted = settings.columns
    named = wanted if isinstance(wanted, dict) else {name: name for name in wanted}
    added = []
    for number, (name, column) in enumerate(named.items()):
        key = name if isinstance(wanted, dict) else number
        found = step.column(other, column, "columns", key)
        added.append((found, name if isinstance(wanted, dict) else found.name))
    if isinstance(wanted, dict):
        new_names(step, rows.schema.columns, [name for _, name in added], "columns")
    else:
        step.distinct([*rows.schema.names, *(name for _, name in added)], "columns")
    first, join = sides.sources("LEFT JOIN", sides.equal())
    items = [sides.of_left(column) for column in rows.schema.columns]
    items += [_named(sides.of_right(column), name) for column, name in added]
    columns = (*rows.schema.columns, *(FlowColumn(name, column.type) for column, name in added))
    return FlowStepResult(select(items, first, *join), FlowSchema(columns, rows.schema.keys))


def united(
    step: FlowStepScope, settings: UnionStep, inputs: Sequence[FlowRelation]
) -> FlowStepResult:
    """The rows of several inputs below each other, columns by name."""
    columns: dict[str, FlowColumn] = {}
    for number, relation in enumerate(inputs):
        for column in relation.schema.columns:
            name = folded(column.name)
            before = columns.get(name)
            if before is None:
                columns[name] = column
                continue
            types = (before.name, before.type), (column.name, column.type)
            columns[name] = FlowColumn(before.name, step.common(*types, "inputs", number))
    made = list(columns.values())
    if settings.source is not None:
        new_names(step, made, [settings.source], "source")
    lines: Lines = []
    for relation, written in zip(inputs, settings.inputs, strict=True):
        items = [] if settings.source is None else [item(literal(written), settings.source)]
        for name, column in columns.items():
            there = relation.schema.find(name)
            if there is None:
                sql = "NULL" if column.type is None else f"CAST(NULL AS {column.type})"
            else:
                sql = cast_to(quote(there.name), there.type, column.type)
            items.append(item(sql, column.name))
        lines += ["UNION ALL"] if lines else []
        lines += select(items, relation.source())
    if settings.source is None:
        return FlowStepResult(lines, FlowSchema(tuple(made)))
    schema = FlowSchema(
        (FlowColumn(settings.source, STRING), *made), _united_keys(settings, inputs, columns)
    )
    return FlowStepResult(lines, schema)


def _united_keys(
    settings: UnionStep, inputs: Sequence[FlowRelation], columns: Mapping[str, FlowColumn]
) -> tuple[frozenset[str], ...]:
    """A key that all inputs have, with the column that tells them apart."""
    if len({folded(name) for name in settings.inputs}) < len(settings.inputs):
        return ()
    shared: set[frozenset[str]] | None = None
    for relation in inputs:
        keys = {
            frozenset(columns[folded(name)].name for name in key) for key in relation.schema.keys
        }
        shared = keys if shared is None else shared & keys
    assert settings.source is not None
    return tuple(key | {settings.source} for key in sorted(shared or (), key=sorted))
