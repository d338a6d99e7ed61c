"""Which columns a table gets of a record that was read: names, expressions, types, keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Column, ColumnType, Expression, Frozen, TimeFormatText
from polynya.model.config.rules import TransformationRule
from polynya.model.names import shown
from polynya.model.time_patterns import EPOCHS, time_pattern
from polynya.model.types import DataType, Struct, parse_type

Nested: TypeAlias = Literal["keep", "expand"]
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""", re.DOTALL)
_PAIR: Final = re.compile(r"\[\s*\]")
_COLUMN: Final = re.compile(r"\s*(?:([^\W\d]\w*)|`([^`]+)`)\s*")


def reads_elements(expression: str) -> bool:
    """Whether an expression reads elements of an array, such as `items[].sku`."""
    return _PAIR.search(_QUOTED.sub("", expression)) is not None


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

    @property
    def reads_elements(self) -> bool:
        """Whether its value is of an element, such as `items[].sku`."""
        return reads_elements(self.expression)

    def __str__(self) -> str:
        """On one line, as a plan shows it."""
        type_ = "" if self.type is None else f" {self.type}"
        ordinal = "" if self.key is None else f" key {self.key}"
        return f"{self.name}{type_}{ordinal} = {self.expression}"


_TIMES: Final = ("date", "timestamp", "timestamp_ntz")


class TimeColumn(Frozen):
    """A declared column whose dates or times are not written in ISO 8601."""

    type: Literal["date", "timestamp", "timestamp_ntz"] = Field(description="Type of the column.")
    format: TimeFormatText = Field(
        description="For `json` and `csv`: how its values are written. A pattern with the letters "
        "of Spark and Java, such as `dd.MM.yyyy`, `MM/dd/yyyy hh:mm a` or "
        "`yyyy-MM-dd HH:mm:ss[.SSS]XXX`; or `epoch_seconds` or `epoch_milliseconds` for numbers. "
        "Times without an offset are UTC. A value that does not have the format goes to "
        "quarantine."
    )

    @model_validator(mode="after")
    def _has_a_place_for_all(self) -> Self:
        if self.format in EPOCHS or self.type == "timestamp":
            return self
        if "offset" in time_pattern(self.format).parts:
            message = f"{shown(self.format)} has an offset from UTC, which a {self.type} lacks"
            raise PydanticCustomError(
                "polynya_value",
                "{message}",
                {"message": message, "fix": "declare the column as `timestamp`"},
            )
        return self

    def __str__(self) -> str:
        """As a plan shows it."""
        return f"{self.type} in the format {self.format}"


def _kind_of_type(value: object) -> str:
    written = value if isinstance(value, dict) else {}
    timed = isinstance(value, TimeColumn) or "format" in written or written.get("type") in _TIMES
    return "time with its format" if timed else "only a type"


#: The type of a declared column, for dates and times also with their format.
DeclaredColumn: TypeAlias = Annotated[
    Annotated[ColumnType, Tag("only a type")] | Annotated[TimeColumn, Tag("time with its format")],
    Discriminator(_kind_of_type),
]


def _kind_of_columns(value: object) -> str:
    return "mapping" if isinstance(value, list | tuple) else "map of types"


#: A map of declared types, or a list: a mapping.
ColumnSettings: TypeAlias = Annotated[
    Annotated[dict[Column, DeclaredColumn], Tag("map of types")]
    | Annotated[tuple[MappedColumn, ...], Tag("mapping")],
    Discriminator(_kind_of_columns),
]


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """What is made of a record before it is an event of its table.

    `columns` are those that the settings make, `nested` says what becomes of structs that none of
    them takes, `where` which events are kept. `declared` are types of columns of the source, and
    `formats` how those of dates and times are written. `rules` are those for the dataset, in their
    order; once they are resolved (`transform/rules.py`), `left_out` are the columns, or fields,
    of the source that they drop.
    """

    columns: tuple[MappedColumn, ...] = ()
    nested: Nested = "keep"
    where: str | None = None
    declared: Mapping[str, DataType] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[TransformationRule, ...] = ()
    left_out: frozenset[tuple[str, ...]] = frozenset()

    @property
    def is_set(self) -> bool:
        """Whether there is anything to do."""
        changes = bool(self.columns) or self.nested == "expand" or self.where is not None
        return changes or bool(self.rules)

    @property
    def hides(self) -> bool:
        """Whether a rule masks columns, so that no record may be stored as it was read."""
        return any(rule.mask is not None for rule in self.rules)

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

    def of_records(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the columns of the table that are the same for all elements of a record."""
        of_elements = {column.name for column in self.columns if column.reads_elements}
        return tuple(name for name in names if name not in of_elements)

    def of_source(self, names: Iterable[str]) -> tuple[str, ...]:
        """The columns of the source that columns of the table are, but for computed ones."""
        mapped = {column.name: column.source for column in self.columns}
        columns = (mapped.get(name, name) for name in names)
        return tuple(name for name in columns if name is not None)

    def of_table(self, source: str) -> str | None:
        """The column of the table that one of the source is; None where another has its name."""
        renamed = next((column.name for column in self.columns if column.source == source), None)
        is_gone = source in self.names or (source,) in self.left_out
        return renamed or (None if is_gone else source)

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
    columns: Mapping[str, DataType | TimeColumn] | tuple[MappedColumn, ...] | None,
    nested: Nested | None,
    where: str | None,
    rules: tuple[TransformationRule, ...] = (),
) -> ColumnMapping:
    """The mapping that settings of a dataset make."""
    listed = columns if isinstance(columns, tuple) else ()
    written = {} if columns is None or isinstance(columns, tuple) else columns
    declared = {
        name: parse_type(column.type) if isinstance(column, TimeColumn) else column
        for name, column in written.items()
    }
    formats = {
        name: column.format for name, column in written.items() if isinstance(column, TimeColumn)
    }
    return ColumnMapping(listed, nested or "keep", where, declared, formats, rules)
