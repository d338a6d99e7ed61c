"""The columns of a step of a flow, their types as far as they are known, and its unique keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from polynya.model.headers import RESERVED_PREFIX
from polynya.model.names import folded
from polynya.model.promotion import unify
from polynya.model.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    STRING,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
    TypeSyntaxError,
    Void,
    parse_type,
)


@dataclass(frozen=True, slots=True)
class DerivedInput:
    """A table that a query reads.

    Attributes:
        name: as queries call it: `schema.table`, or `table`.
        columns: names and types in Spark's spelling, in order.
        keys: the columns that tell its rows apart; none where rows may be equal.
        is_open: it may have other columns, too: only files are known.
        lacks: names in small letters that it surely has no column of, where it is open.
    """

    name: str
    columns: Mapping[str, str]
    keys: tuple[str, ...] = ()
    is_open: bool = False
    lacks: frozenset[str] = frozenset()


def as_flow_input(table: DerivedInput) -> DerivedInput:
    """A table as flows read it: without the columns that Polynya adds."""
    columns = {
        name: kind for name, kind in table.columns.items() if not name.startswith(RESERVED_PREFIX)
    }
    return replace(table, columns=columns)


@dataclass(frozen=True, slots=True)
class FlowColumn:
    """A column of a step. `type` is None where only Spark's analyser will tell."""

    name: str
    type: DataType | None = None

    @property
    def type_text(self) -> str | None:
        """The type as Spark spells it."""
        return None if self.type is None else str(self.type)


@dataclass(frozen=True)
class FlowSchema:
    """Columns of a step, of which no two are one name to an engine.

    `keys` are sets of columns whose values no two rows share, NULL taken as a value. A set without
    a column means at most one row.
    """

    columns: tuple[FlowColumn, ...]
    keys: tuple[frozenset[str], ...] = ()

    @cached_property
    def _by_name(self) -> Mapping[str, FlowColumn]:
        return {folded(column.name): column for column in self.columns}

    def find(self, name: str) -> FlowColumn | None:
        """The column that an engine takes for `name`."""
        return self._by_name.get(folded(name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def free_name(self, base: str, others: Iterable[str] = ()) -> str:
        """A name that is not one of the columns, nor one of the others."""
        taken = {*self._by_name, *map(folded, others)}
        names = (base if number == 1 else f"{base}_{number}" for number in range(1, len(taken) + 2))
        return next(name for name in names if folded(name) not in taken)

    def tells_apart(self, columns: Iterable[str]) -> bool:
        """Whether no two rows that differ at all are equal in all of these columns."""
        given = set(columns)
        return given >= set(self.names) or any(key <= given for key in self.keys)

    def kept_keys(self, kept: Iterable[str]) -> tuple[frozenset[str], ...]:
        """The keys all of whose columns are among those that are kept unchanged."""
        there = set(kept)
        return tuple(key for key in self.keys if key <= there)


def schema_of_input(table: DerivedInput) -> FlowSchema:
    """The columns and the key of a table; a type that no table of ours has is not known."""
    columns = tuple(FlowColumn(name, known_type(text)) for name, text in table.columns.items())
    schema = FlowSchema(columns)
    key = [found.name for name in table.keys if (found := schema.find(name)) is not None]
    whole = bool(key) and len(key) == len(table.keys)
    return FlowSchema(columns, (frozenset(key),) if whole else ())


def known_type(text: str) -> DataType | None:
    """The type of a text in Spark's spelling, None for what is not a type of a table."""
    try:
        kind = parse_type(text)
    except (TypeSyntaxError, ValueError):
        return None
    return None if isinstance(kind, Void) else kind


def common_type(one: DataType, other: DataType) -> DataType | None:
    """The type that holds every value of both exactly, for columns that meet; None without one.

    Structs have to be equal: Spark casts their fields by position.
    """
    if one == other:
        return one
    if _has_struct(one) or _has_struct(other):
        return None
    common = unify(one, other)
    if common is None or _rounds(one, common) or _rounds(other, common):
        return None
    return common


def _has_struct(kind: DataType) -> bool:
    return any(isinstance(inner, Struct) for inner in parts_of(kind))


def _rounds(old: DataType, new: DataType) -> bool:
    """Whether a value may change: a double holds integers up to 2^53."""
    match old, new:
        case Array(x), Array(y):
            return _rounds(x, y)
        case MapType(key, value), MapType(other_key, other):
            return _rounds(key, other_key) or _rounds(value, other)
        case _:
            return old == BIGINT and new in {FLOAT, DOUBLE}


def parts_of(kind: DataType) -> Iterator[DataType]:
    """A type and all types inside of it."""
    yield kind
    match kind:
        case Array(element):
            yield from parts_of(element)
        case MapType(key, value):
            yield from parts_of(key)
            yield from parts_of(value)
        case Struct(fields):
            for _, inner in fields:
                yield from parts_of(inner)
        case _:
            return


def is_orderable(kind: DataType | None) -> bool:
    """Whether rows can be grouped and ordered by such values, as far as the type is known."""
    return kind is None or not any(isinstance(inner, MapType) for inner in parts_of(kind))


def is_number(kind: DataType | None) -> bool:
    """Whether sums can be made of such values, as far as the type is known."""
    if kind is None or isinstance(kind, Decimal):
        return True
    return isinstance(kind, Primitive) and kind.name in {"int", "bigint", "float", "double"}


def is_text(kind: DataType | None) -> bool:
    """Whether it is text, as far as the type is known."""
    return kind is None or kind == STRING
