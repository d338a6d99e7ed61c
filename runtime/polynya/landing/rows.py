"""Records (dictionaries) of one dataset become typed columns, with one fault a record at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, TypeAlias

from polynya.landing.columns import Column, Faults, build
from polynya.landing.names import NameSpace, column_problem
from polynya.model.datatypes import DataType, Void, widen

Record: TypeAlias = dict[str, Any]


class Builder(Protocol):
    """Types one column; see `columns.build`."""

    def __call__(
        self, values: Sequence[Any], known: DataType | None, *, declared: bool = False
    ) -> Column:
        """Build the column."""
        ...


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """What is known about the types before the records are looked at.

    Attributes:
        known: columns of the dataset so far.
        declared: columns of the configuration; they do not follow the data.
        observed: types that the files themselves give (parquet schema, Debezium schema).
    """

    known: Mapping[str, DataType]
    declared: Mapping[str, DataType] = field(default_factory=dict)
    observed: Mapping[str, DataType] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Every column that exists whether or not a record has it."""
        return list(dict.fromkeys([*self.known, *self.declared]))

    def before(self, name: str) -> DataType | None:
        """The type of a column before its values are seen."""
        kind = self.known.get(name)
        for source in (self.declared, self.observed):
            offered = source.get(name)
            if offered is not None and not isinstance(offered, Void):
                # A column keeps its type when the new one cannot be reached in place.
                kind = offered if kind is None else widen(kind, offered) or kind
        return kind


@dataclass(frozen=True, slots=True)
class TypedRecords:
    """Columns in the order of first sight, and for each bad record its first reason."""

    columns: dict[str, Column]
    faults: Faults

    def schema(self) -> dict[str, DataType]:
        """Name to type."""
        return {name: column.type for name, column in self.columns.items()}


def typed_records(
    records: Sequence[Record],
    types: ColumnTypes,
    builder: Builder = build,
    *,
    needed: Sequence[str] = (),
) -> TypedRecords:
    """Type every column of the records; columns of `needed` exist even when no record has them."""
    faults: Faults = {}
    names = dict.fromkeys([*_column_names(records, types, faults), *needed])
    columns: dict[str, Column] = {}
    for name in names:
        values = [record.get(name) for record in records]
        column = builder(values, types.before(name), declared=name in types.declared)
        columns[name] = column
        for index, (rule, error) in column.faults.items():
            faults.setdefault(index, (rule, f"column {name}: {error}"))
    return TypedRecords(columns, faults)


def _column_names(records: Sequence[Record], types: ColumnTypes, faults: Faults) -> list[str]:
    names = dict.fromkeys(types.names())
    space = NameSpace(names)
    bad: dict[str, str] = {}
    for name in dict.fromkeys(chain(types.observed, chain.from_iterable(records))):
        problem = None if name in names else column_problem(name) or space.clash(name)
        if problem:
            bad[name] = problem
        else:
            names[name] = None
    if bad:
        for index, record in enumerate(records):
            hit = next((name for name in record if name in bad), None)
            if hit is not None:
                faults[index] = ("bad_column", bad[hit])
    return list(names)
