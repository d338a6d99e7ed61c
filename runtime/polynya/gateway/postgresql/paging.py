"""Which rows of a table are read next, by its key or by their place on disk: pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from polynya.gateway.postgresql.lines import ROW, column
from polynya.gateway.postgresql.sql import literal
from polynya.gateway.postgresql.tables import PgTable
from polynya.gateway.reading_order import ReadingOrder

#: Bytes of rows that are held in memory at a time; very long rows come in smaller chunks.
MOST_BYTES: Final = 32 << 20
#: Rows per block of 8 kB while there are no statistics.
_ROWS_A_BLOCK: Final = 50


def reading_order(table: PgTable) -> ReadingOrder:
    """The order of the pages, as a load remembers it."""
    types = {one.name: one.type_name for one in table.columns}
    return ReadingOrder(
        tuple(
            (name, f"{types[name]} {collation}".rstrip())
            for name, collation in zip(table.key, table.collations, strict=True)
        )
    )


def beyond(table: PgTable, values: Sequence[str] | None) -> list[str]:
    """Conditions for the rows after a key, in the order of the key's own index.

    The key's values are the texts that the server gave; it compares them by the types of the
    columns and the collations of the index, so the order of pages is that of the index, whatever
    it is.
    """
    if values is None:
        return []
    return [f"{_tuple(table)} > {_values(table, values)}"]


def up_to(table: PgTable, last: Sequence[str]) -> list[str]:
    """Conditions for the rows up to a key."""
    return [f"{_tuple(table)} <= {_values(table, last)}"]


def key_texts(table: PgTable) -> str:
    """The key of a row as texts, for a list of what is selected."""
    return ", ".join(f"{column(name)}::text" for name in table.key)


def key_order(table: PgTable, *, descending: bool = False) -> str:
    """The key as a list of what to order by."""
    end = " DESC" if descending else ""
    return ", ".join(f"{one}{end}" for one in _compared(table))


def blocks_for(table: PgTable, rows: int, blocks: int) -> int:
    """How many blocks of a table without key make about so many rows, at least one."""
    density = table.rows / blocks if table.rows and blocks else _ROWS_A_BLOCK
    return max(1, int(rows / max(density, 0.01)))


def in_blocks(first: int, end: int | None) -> list[str]:
    """Conditions for rows by their blocks, from the first up to before the end."""
    conditions = [f"{ROW}.ctid >= '({first},0)'::tid"]
    return conditions if end is None else [*conditions, f"{ROW}.ctid < '({end},0)'::tid"]


def affordable(table: PgTable, rows: int, seen: float | None) -> int:
    """How many rows are read at a time, so that they fit in memory.

    Args:
        table: with its statistics.
        rows: wanted.
        seen: bytes of an average line so far; None: by the statistics.
    """
    if seen is None and table.rows and table.bytes:
        # Lines are longer than stored rows: names of columns, and what is compressed.
        seen = 3 * table.bytes / table.rows
    return max(1, min(rows, int(MOST_BYTES / max(seen or 1.0, 1.0))))


def _compared(table: PgTable) -> list[str]:
    """The columns of the key as its index compares them."""
    return [
        f"{column(name)} COLLATE {collation}" if collation else column(name)
        for name, collation in zip(table.key, table.collations, strict=True)
    ]


def _tuple(table: PgTable) -> str:
    names = _compared(table)
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _values(table: PgTable, key: Sequence[str]) -> str:
    types = {one.name: one.type_name for one in table.columns}
    values = [
        f"{literal(str(value))}::{types[name]}" for name, value in zip(table.key, key, strict=True)
    ]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
