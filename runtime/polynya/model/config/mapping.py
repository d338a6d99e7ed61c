"""Which columns a table gets of a record that was read: names, expressions, types, keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from polynya.model.config.fields import Column, ColumnType, Expression, Frozen
from polynya.model.types import DataType, Struct

Nested: TypeAlias = Literal["keep", "expand"]
_COLUMN: Final = re.compile(r"\s*(?:([^\W\d]\w*)|`([^`]+)`)\s*")


class MappedColumn(Frozen):
    """A column of the table, and how its values are made of a record."""

    name: Column = Field(description="Name of the column in the table.")
    expression: Expression = Field(
        description="Spark SQL expression over the columns of the source, such as `user.id`. "
        "`items[].sku` makes a row of each element of the array `items`, `ordinal(items[])` is its "
        "number, from 1."
    )
    type: ColumnType | None = Field(
        default=None,
        description="Type of the column. A record with a value that does not fit it goes to "
        "quarantine. Default: the type of the expression.",
    )
    key: int | None = Field(
        default=None,
        ge=1,
        description="Ordinal in the key, from 1. With ordinals, `keys` is not needed.",
    )

    @property
    def source(self) -> str | None:
        """The column of the source that it only renames; None for a computed column."""
        match = _COLUMN.fullmatch(self.expression)
        return None if match is None else match[1] or match[2]

    def __str__(self) -> str:
        """On one line, as a plan shows it."""
        type_ = "" if self.type is None else f" {self.type}"
        ordinal = "" if self.key is None else f" key {self.key}"
        return f"{self.name}{type_}{ordinal} = {self.expression}"


def _kind_of_columns(value: object) -> str:
    return "mapping" if isinstance(value, list | tuple) else "map of types"


#: A map of declared types, or a list: a mapping.
ColumnSettings: TypeAlias = Annotated[
    Annotated[dict[Column, ColumnType], Tag("map of types")]
    | Annotated[tuple[MappedColumn, ...], Tag("mapping")],
    Discriminator(_kind_of_columns),
]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """What is made of a record before it is an event of its table.

    `columns` are those that the settings make, `nested` says what becomes of structs that none of
    them takes, `where` which events are kept. `declared` are types of columns of the source.
    """

    columns: tuple[MappedColumn, ...] = ()
    nested: Nested = "keep"
    where: str | None = None
    declared: Mapping[str, DataType] = field(default_factory=dict)

    @property
    def is_set(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.columns) or self.nested == "expand" or self.where is not None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that have an ordinal in the key, in its order."""
        numbered = sorted(
            (column.key, column.name) for column in self.columns if column.key is not None
        )
        return tuple(name for _, name in numbered)

    @property
    def names(self) -> frozenset[str]:
        """The names that the settings give."""
        return frozenset(column.name for column in self.columns)

    def of_source(self, names: Iterable[str]) -> tuple[str, ...]:
        """The columns of the source that columns of the table are, but for computed ones."""
        mapped = {column.name: column.source for column in self.columns}
        columns = (mapped.get(name, name) for name in names)
        return tuple(name for name in columns if name is not None)

    def of_table(self, source: str) -> str | None:
        """The column of the table that one of the source is; None where another has its name."""
        renamed = next((column.name for column in self.columns if column.source == source), None)
        return renamed or (None if source in self.names else source)

    @property
    def types(self) -> dict[str, DataType]:
        """The declared types of columns of the table."""
        mapped = {column.name: column.type for column in self.columns if column.type is not None}
        return {**self._declared_and_kept(), **mapped}

    def _declared_and_kept(self) -> dict[str, DataType]:
        """Declared types of columns of the source that the table has, too."""
        if self.nested == "keep":
            return dict(self.declared)
        return {name: kind for name, kind in self.declared.items() if not isinstance(kind, Struct)}


def mapping_of(
    columns: Mapping[str, DataType] | tuple[MappedColumn, ...] | None,
    nested: Nested | None,
    where: str | None,
) -> ColumnMapping:
    """The mapping that settings of a dataset make."""
    listed = columns if isinstance(columns, tuple) else ()
    declared = {} if columns is None or isinstance(columns, tuple) else dict(columns)
    return ColumnMapping(listed, nested or "keep", where, declared)
