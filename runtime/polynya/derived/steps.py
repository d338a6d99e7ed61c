"""One step of a flow while it becomes SQL: what it reads, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from polynya.derived.constants import ConstantValue, constant_sql
from polynya.derived.expressions import TypedSql, expression_sql, field_type
from polynya.derived.schema import FlowColumn, FlowSchema, common_type, is_orderable
from polynya.model.documents.problems import suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.flows import (
    FLOW_COLUMN_TWICE,
    FLOW_COLUMN_UNKNOWN,
    FLOW_ORDER_HAS_TIES,
    FLOW_TYPE_REFUSED,
    FLOW_TYPES_DIFFER,
    FLOW_VALUE_REFUSED,
)
from polynya.model.errors import ConfigError
from polynya.model.names import folded, quote, shown
from polynya.model.types import BOOLEAN, DataType, Void

#: `file:line:col` of a path below the flow: the number of the step from 0, its processor, its keys.
Place: TypeAlias = "Callable[[NodePath], str]"
#: SQL line by line. A line is never taken apart: a literal may hold a line break.
Lines: TypeAlias = "list[str]"
_SHOWN_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class FlowRelation:
    """Something that a step reads: a step before, a table, or a query in brackets."""

    name: str
    lines: tuple[str, ...]
    schema: FlowSchema

    def source(self) -> Lines:
        """It after `FROM`.

        A relation with the name of one of its columns gets an alias: `items.sku` is then the field
        of the column, never the column of the relation.
        """
        short = self.name.rpartition(".")[2]
        if not short or self.schema.find(short) is None:
            return list(self.lines)
        return [*self.lines[:-1], f"{self.lines[-1]} AS {quote(self.schema.free_name('input'))}"]


@dataclass(frozen=True, slots=True)
class FlowStepResult:
    """What a step becomes: its query, and the columns of its rows."""

    lines: Lines
    schema: FlowSchema


@dataclass(slots=True)
class FlowStepScope:
    """What a processor needs to become SQL. Errors are collected, each at its place.

    Attributes:
        path: of the settings below the flow.
        label: how messages call the step.
        place: `file:line:col` of a path.
        errors: what is wrong so far.
    """

    path: NodePath
    label: str
    place: Place
    errors: list[ConfigError] = field(default_factory=list)

    def where(self, *keys: str | int) -> str:
        """`file:line:col` of a setting of the step."""
        return self.place((*self.path, *keys))

    def column(self, relation: FlowRelation, name: str, *keys: str | int) -> FlowColumn:
        """The column of an input that a setting names."""
        found = relation.schema.find(name)
        if found is not None:
            return found
        self.errors.append(self._unknown(relation, name, self.where(*keys)))
        return FlowColumn(name)

    def columns(
        self, relation: FlowRelation, names: Iterable[str], *keys: str | int
    ) -> list[FlowColumn]:
        """The columns that a list names; one that is named twice is an error."""
        found = [self.column(relation, name, *keys, number) for number, name in enumerate(names)]
        self.distinct([column.name for column in found], *keys)
        return found

    def _unknown(self, relation: FlowRelation, name: str, where: str) -> ConfigError:
        names = relation.schema.names
        hint = suggest(name, names) or "the input has no columns"
        if len(names) > _SHOWN_COLUMNS:
            meant = hint.partition(" allowed here:")[0] if hint.startswith("did") else ""
            listed = ", ".join(names[:_SHOWN_COLUMNS])
            hint = f"{meant} it has {len(names)}: {listed}, …".strip()
        return FLOW_COLUMN_UNKNOWN(
            where=where,
            step=self.label,
            column=shown(name),
            source=shown(relation.name) if relation.name else "its input",
            fix=hint.replace("allowed here: ", "it has: "),
        )

    def distinct(self, names: Sequence[str], *keys: str | int) -> None:
        """Collect an error for names that are one name to an engine."""
        seen: set[str] = set()
        for number, name in enumerate(names):
            if folded(name) in seen:
                where = self.where(*keys, number)
                self.errors.append(
                    FLOW_COLUMN_TWICE(where=where, step=self.label, column=shown(name))
                )
            seen.add(folded(name))

    def expression(self, relation: FlowRelation, text: str, *keys: str | int) -> TypedSql:
        """The SQL of an expression over one input."""
        where = self.where(*keys)

        def resolve(
            path: tuple[str, ...], position: int | None
        ) -> tuple[tuple[str, ...], DataType | None]:
            return self.resolved(relation, path, position, where)

        return self.checked(text, resolve, [relation], where)

    def checked(
        self,
        text: str,
        resolve: Callable[[tuple[str, ...], int | None], tuple[tuple[str, ...], DataType | None]],
        relations: Sequence[FlowRelation],
        where: str,
    ) -> TypedSql:
        """The SQL of an expression; NULL if there is something wrong with it."""
        known = {
            column.name: column.type
            for relation in relations
            for column in relation.schema.columns
            if column.type is not None
        }
        try:
            return expression_sql(text, resolve, known, step=self.label, where=where)
        except ConfigError as error:
            self.errors.append(error)
            return TypedSql("NULL", None)

    def resolved(
        self,
        relation: FlowRelation,
        path: tuple[str, ...],
        position: int | None,
        where: str,
    ) -> tuple[tuple[str, ...], DataType | None]:
        """A path in an expression as the input spells it, with its type; raises ConfigError."""
        column = relation.schema.find(path[0])
        at = "" if position is None else f", at position {position + 1} of the expression"
        if column is None:
            error = self._unknown(relation, path[0], where)
            raise FLOW_COLUMN_UNKNOWN(f"{error.message}{at}", where=where, fix=error.fix)
        names, kind = [column.name], column.type
        for name in path[1:]:
            inner = field_type(kind, name)
            if inner is None:
                raise FLOW_COLUMN_UNKNOWN(
                    f"{self.label} names {shown('.'.join(path))}, and {shown('.'.join(names))} of "
                    f"type {kind} has no field {shown(name)}{at}",
                    where=where,
                    fix="look for its fields in `polynya flow show`",
                )
            names.append(inner[0])
            kind = inner[1]
        return tuple(names), kind

    def condition(self, relation: FlowRelation, text: str, *keys: str | int) -> str:
        """The SQL of a condition over one input."""
        found = self.expression(relation, text, *keys)
        self.is_condition(found, *keys)
        return found.sql

    def is_condition(self, found: TypedSql, *keys: str | int) -> None:
        """Collect an error for an expression that is neither true nor false."""
        if found.type not in {None, BOOLEAN, Void()}:
            self.refuse_type("a condition", "the expression", found.type, *keys)

    def refuse_type(self, needed: str, what: str, kind: DataType | None, *keys: str | int) -> None:
        """Collect the error of a type."""
        self.errors.append(
            FLOW_TYPE_REFUSED(
                where=self.where(*keys), step=self.label, needed=needed, what=what, type=kind
            )
        )

    def orderable(self, columns: Sequence[FlowColumn], *keys: str | int) -> None:
        """Collect an error for each column by which rows are neither grouped nor ordered."""
        for number, column in enumerate(columns):
            if not is_orderable(column.type):
                needed = "a type that can be compared"
                self.refuse_type(needed, shown(column.name), column.type, *keys, number)

    def total_order(
        self, relation: FlowRelation, columns: Iterable[FlowColumn], *keys: str | int
    ) -> None:
        """Collect an error if rows that differ may be equal in all of these columns."""
        names = list(dict.fromkeys(column.name for column in columns))
        if relation.schema.tells_apart(names) or not all(map(relation.schema.find, names)):
            return
        unique = [sorted(key - set(names)) for key in relation.schema.keys]
        missing = min(unique, key=len, default=None)
        add = (
            "add columns to `order` until it and the others name all columns of the input"
            if missing is None
            else f"add {', '.join(map(shown, missing))} to `order`"
        )
        self.errors.append(
            FLOW_ORDER_HAS_TIES(
                where=self.where(*keys),
                step=self.label,
                source=shown(relation.name) if relation.name else "its input",
                columns=", ".join(map(shown, names)),
                fix=add,
            )
        )

    def common(
        self, one: tuple[str, DataType | None], other: tuple[str, DataType | None], *keys: str | int
    ) -> DataType | None:
        """The type of two columns that meet; None where one of them is not known."""
        if one[1] is None or other[1] is None:
            return None
        kind = common_type(one[1], other[1])
        if kind is None:
            self.errors.append(
                FLOW_TYPES_DIFFER(
                    where=self.where(*keys),
                    step=self.label,
                    one=f"{shown(one[0])} ({one[1]})",
                    other=f"{shown(other[0])} ({other[1]})",
                )
            )
        return kind

    def constant(self, value: ConstantValue, column: FlowColumn, *keys: str | int) -> str:
        """A value as a literal of the type of a column."""
        sql = constant_sql(value, column.type)
        if sql is not None:
            return sql
        self.errors.append(
            FLOW_VALUE_REFUSED(
                where=self.where(*keys),
                step=self.label,
                column=shown(column.name),
                type=column.type,
                value=shown(str(value)),
            )
        )
        return "NULL"


def item(sql: str, name: str) -> str:
    """An entry of a SELECT list."""
    return sql if sql == quote(name) else f"{sql} AS {quote(name)}"


def indented(lines: Iterable[str]) -> Lines:
    """Lines two spaces to the right."""
    return [f"  {line}" for line in lines]


def select(
    items: Sequence[str], source: Sequence[str], *tail: str, distinct: bool = False
) -> Lines:
    """A SELECT, one line for each column."""
    listed = [f"{one}," for one in items[:-1]] + list(items[-1:])
    return [
        "SELECT DISTINCT" if distinct else "SELECT",
        *indented(listed),
        f"FROM {source[0]}",
        *source[1:],
        *tail,
    ]
