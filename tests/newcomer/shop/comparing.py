"""Rows against rows, as multisets, and how large tables are told apart in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.newcomer.shop.feed import Table
from tests.oracle.fold import Folded, Version

Row = tuple[Any, ...]
#: Rows of each kind that a message shows.
_SHOWN = 3


def differences(what: str, wanted: Iterable[Sequence[Any]], got: Iterable[Sequence[Any]]) -> str:
    """What is missing and what is too much; an empty text when nothing differs."""
    left, right = Counter(map(_plain, wanted)), Counter(map(_plain, got))
    missing, extra = left - right, right - left
    if not missing and not extra:
        return ""
    lines = [f"{what}: {missing.total():,} rows missing, {extra.total():,} too many"]
    lines += [f"  missing {row}" for row in _some(missing)]
    lines += [f"  extra   {row}" for row in _some(extra)]
    return "\n".join(lines)


def current_rows(table: Table, folded: Folded) -> Iterator[Row]:
    """What the Current view has to show: keys, columns, and whether it is deleted if that shows."""
    for version in folded.current(soft=table.soft).values():
        yield (*_values(table, version), *((version.deleted,) if table.soft else ()))


def history_rows(table: Table, folded: Folded) -> Iterator[Row]:
    """What the History view has to show: keys, columns, operation, from and to."""
    for version in folded.history():
        yield (*_values(table, version), version.op, version.from_ts, version.to_ts)


def _values(table: Table, version: Version) -> Row:
    return (*version.key, *(version.values.get(name) for name in table.columns))


def _plain(row: Sequence[Any]) -> Row:
    """A row with one spelling of its times; numbers are equal whatever their type is."""
    return tuple(_utc(value) if isinstance(value, datetime) else value for value in row)


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _some(rows: Counter[Row]) -> list[Row]:
    return sorted(rows, key=repr)[:_SHOWN]
