"""Expressions with their types, and the columns that a name may mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.model.datatypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

#: Integers that Spark and DuckDB compute with alike, but for an overflow, which is an error here.
INTEGERS: Final = frozenset({INT, BIGINT})
_ORDERED: Final = frozenset({INT, BIGINT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ})
_KEYS: Final = _ORDERED | {BOOLEAN, BINARY}


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of the statement: its text without quotes, with its sign."""

    text: str
    is_string: bool


@dataclass(frozen=True, slots=True)
class Value:
    """An expression in DuckDB's SQL.

    `type` is None for what has none by itself: NULL, and a number with a point. `name` is what
    Spark calls the expression where nobody gives it a name; None where we do not know.
    """

    sql: str
    type: DataType | None
    name: str | None = None
    constant: Constant | None = None

    @property
    def known(self) -> DataType:
        """Its type. Raises NotEmbeddedError where it has none."""
        if self.type is None:
            raise NotEmbeddedError("a literal whose type depends on what is around it")
        return self.type


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation; `sql` is how the relation itself calls it."""

    name: str
    type: DataType
    sql: str


@dataclass(frozen=True, slots=True)
class Relation:
    """Something to select from: DuckDB's SQL, which stands behind FROM, and its columns."""

    sql: str
    columns: tuple[Column, ...]
    use: Callable[[str], None] = field(default=lambda _: None, compare=False)


@dataclass(frozen=True, slots=True)
class Source:
    """A relation under the name that a statement gives it, and under ours."""

    name: str
    alias: str
    relation: Relation

    def columns(self) -> list[Value]:
        """All of its columns, as `*` shows them."""
        return [self.column(column) for column in self.relation.columns]

    def column(self, column: Column) -> Value:
        """One of its columns."""
        self.relation.use(column.name)
        return Value(f"{self.alias}.{column.sql}", column.type, column.name)


@dataclass(frozen=True, slots=True)
class Scope:
    """What names may mean in one SELECT."""

    sources: tuple[Source, ...]

    def resolve(self, column: exp.Column) -> Value:
        """The column that is meant, with its name as it was written, which is Spark's for it."""
        parts = [part.name for part in column.parts]
        if len(parts) > 2 or not all(isinstance(part, exp.Identifier) for part in column.parts):
            raise NotEmbeddedError(f"the name {column.sql(dialect='spark')}")
        sources = [one for one in self.sources if len(parts) == 1 or same(one.name, parts[0])]
        found = [
            (source, one)
            for source in sources
            for one in source.relation.columns
            if same(one.name, parts[-1])
        ]
        if len(found) != 1:
            many = "more than one column" if found else "no column"
            raise NotEmbeddedError(f"{many} of the name {column.sql(dialect='spark')}")
        value = found[0][0].column(found[0][1])
        return Value(value.sql, value.type, parts[-1])


def same(left: str, right: str) -> bool:
    """Whether two names are one for Spark; of others than ASCII only what is surely the same."""
    return left == right or (left.isascii() and right.isascii() and left.lower() == right.lower())


def distinct_names(names: Sequence[str]) -> bool:
    """Whether no two names may be one, for Spark or for DuckDB."""
    return len({name.casefold() for name in names}) == len(names)


def is_ordered(datatype: DataType) -> bool:
    """Whether both engines have one and the same smallest and largest of such values."""
    return datatype in _ORDERED or isinstance(datatype, Decimal)


def is_key(datatype: DataType) -> bool:
    """Whether both engines see the same ones of such values as equal."""
    return datatype in _KEYS or isinstance(datatype, Decimal)


def quoted(name: str) -> str:
    """An identifier in DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """A text in DuckDB's SQL, which knows no escapes but that of the quote."""
    return "'" + text.replace("'", "''") + "'"
