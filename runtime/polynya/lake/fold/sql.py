"""SQL that must read the same wherever it stands: sequences, deletes, partitions, rows, times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal

from polynya.lake.fold.shape import Shape
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote


def sequence(identifier: str, tail: str) -> str:
    """The place of an event in the order of events, as one text."""
    return f"concat({identifier}, coalesce({tail}, ''))"


#: Sequence of an event as landing and the fold know it.
SEQUENCE = sequence("__ci", "__tail")
#: Sequence of a row of the internal table.
STORED_SEQUENCE = sequence(h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL)


#: Conditions that are joined side by side. Spark makes a tree of them that is as deep as they are
#: many, and walks it by recursion: some fifteen hundred end its stack.
_SIDE_BY_SIDE: Final = 16


def joined(conditions: Iterable[str], operator: Literal["AND", "OR"]) -> str:
    """Conditions joined by one operator, those of a wide table in parentheses that keep it flat."""
    terms = list(conditions)
    while len(terms) > _SIDE_BY_SIDE:
        groups = (
            terms[start : start + _SIDE_BY_SIDE] for start in range(0, len(terms), _SIDE_BY_SIDE)
        )
        terms = [f"({f' {operator} '.join(group)})" for group in groups]
    return f" {operator} ".join(terms)


def timestamp_literal(moment: datetime) -> str:
    """SQL literal of a UTC time with microseconds."""
    return f"TIMESTAMP '{moment.astimezone(UTC).isoformat(sep=' ')}'"


def is_delete(operation: str = h.OPERATION) -> str:
    """Condition that an operation is a delete, captured or found by a reload."""
    return f"{operation} IN ('D', 'd')"


def live_current(shape: Shape) -> str:
    """Condition that a row of the internal table is a record that Current shows."""
    current = within(Partition.CURRENT)
    if shape.soft_delete or not shape.holds_deletes:
        return current
    return f"{current} AND NOT coalesce({is_delete()}, false)"


#: A delete that no version follows. Without history the end of a version is not known.
IS_OPEN_DELETE = f"{is_delete()} AND {h.TO_TIMESTAMP} IS NULL"


def within(*partitions: Partition) -> str:
    """Condition that a row of the internal table is in one of these partitions."""
    if len(partitions) == 1:
        return f"{h.PARTITION} = '{partitions[0]}'"
    listed = ", ".join(f"'{one}'" for one in partitions)
    return f"{h.PARTITION} IN ({listed})"


def table_row(
    shape: Shape, headers: Mapping[str, str], data: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Column → expression for a row of the internal table, in the order of its columns.

    `headers` are the header columns that the row has, all others are NULL. `data` are the data
    columns, by default as they are.
    """
    nothing = {header.name: f"CAST(NULL AS {header.type})" for header in h.HEADERS}
    if data is None:
        data = {name: quote(name) for name in shape.data}
    return {**nothing, **headers, **data}


def selected(columns: Mapping[str, str]) -> str:
    """Select list of expressions by the name of their column."""
    return ", ".join(f"{expression} AS {quote(name)}" for name, expression in columns.items())
