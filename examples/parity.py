"""Compare Current with the captured end state of the source database, value by value.

Knows nothing of Polynya: it reads the end state, the capture, and rows that somebody else queried.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of the source: its keys, columns that need care, and a column added with a default.

    A database fills such a column in all rows at once, and sends no event for it.
    """

    name: str
    keys: tuple[str, ...]
    instants: tuple[str, ...] = ()
    decimals: tuple[str, ...] = ()
    added: tuple[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Parity:
    """The outcome for one table; `unsent_defaults` are rows whose default no event told."""

    table: str
    source_rows: int
    current_rows: int
    unsent_defaults: int
    only_in_lake: tuple[str, ...]
    differences: tuple[str, ...]


def compare(
    table: SourceTable, truth: Sequence[Row], current: Sequence[Row], capture: Path
) -> Parity:
    """Compare all rows and all columns of the end state."""
    wanted, found = _by_key(table, truth), _by_key(table, current)
    differences = [f"{key}: not in Current" for key in wanted.keys() - found.keys()]
    differences += [f"{key}: not in the source" for key in found.keys() - wanted.keys()]
    if len(found) < len(current):
        differences.append(f"{len(current) - len(found)} rows of Current have a key twice")
    last_touch, first_seen = _touches(table, capture)
    defaults = 0
    for key in wanted.keys() & found.keys():
        for column, value in wanted[key].items():
            got = found[key].get(column)
            if _same(table, column, value, got):
                continue
            if (column, value) == table.added and got is None and last_touch[key] < first_seen:
                defaults += 1
                continue
            differences.append(f"{key}: {column} is {got!r}, in the source {value!r}")
    columns = [{name for row in rows for name in row} for rows in (current, truth)]
    return Parity(
        table=table.name,
        source_rows=len(truth),
        current_rows=len(current),
        unsent_defaults=defaults,
        only_in_lake=tuple(sorted(columns[0] - columns[1])),
        differences=tuple(sorted(differences)),
    )


def _by_key(table: SourceTable, rows: Sequence[Row]) -> dict[Key, Row]:
    return {tuple(row[name] for name in table.keys): row for row in rows}


def _same(table: SourceTable, column: str, a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if column in table.instants:
        return _instant(a) == _instant(b)
    if column in table.decimals:
        return Decimal(a) == Decimal(b)
    return type(a) is type(b) and bool(a == b)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _touches(table: SourceTable, capture: Path) -> tuple[dict[Key, int], int]:
    """Log position of the last event of each key, and of the first event with the added column.

    Adding a column locks the table, so positions before and after it do not mix.
    """
    last: dict[Key, int] = {}
    first = 0
    for key, position, after in _events(table, capture):
        last[key] = max(position, last.get(key, 0))
        if table.added is not None and table.added[0] in after:
            first = min(position, first or position)
    return last, first


def _events(table: SourceTable, capture: Path) -> Iterator[tuple[Key, int, Row]]:
    with gzip.open(capture, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            value = record["value"] or {}
            source = value.get("source")
            if source and source["table"] == table.name and record["key"]:
                key = tuple(record["key"][name] for name in table.keys)
                yield key, source["lsn"], value["after"] or {}
