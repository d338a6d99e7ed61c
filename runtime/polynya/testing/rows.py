"""Compare the rows that a test expects with the actual rows: which agree, how others differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.types as kinds

#: Column → value as JSON has it: decimals and times as text.
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One row that is not as expected.

    `number` is the index of the expected row in its list, None for an unexpected row;
    `columns` are those in which the two differ.
    """

    kind: Literal["different", "missing", "unexpected"]
    expected: Row | None = None
    found: Row | None = None
    number: int | None = None
    columns: tuple[str, ...] = field(default=())


def differences(
    expected: Sequence[Row], actual: Sequence[Row], keys: Sequence[str] = ()
) -> list[RowDifference]:
    """Compare rows in any order, by the columns that an expected row names.

    As many rows as possible are matched. The rest are paired where `keys` agree, or
    else where any column does.
    """
    matched = _matched([_texts(row) for row in expected], [_texts(row) for row in actual])
    left = [number for number in range(len(expected)) if number not in matched]
    spare = [index for index in range(len(actual)) if index not in set(matched.values())]
    result = []
    for number in left:
        row = expected[number]
        index = _nearest(row, actual, spare, keys)
        if index is None:
            result.append(RowDifference("missing", row, number=number))
            continue
        spare.remove(index)
        there = _texts(actual[index])
        differing = tuple(name for name, text in _texts(row).items() if there.get(name) != text)
        result.append(RowDifference("different", row, actual[index], number, differing))
    return [*result, *(RowDifference("unexpected", found=actual[index]) for index in spare)]


def as_column(value: Any, kind: pa.DataType) -> Any:
    """Return an expected value as a column of this type would show it.

    What the type cannot hold stays as it is, and so differs.
    """
    try:
        return _converted(value, kind)
    except (ValueError, InvalidOperation):
        return value


def _converted(value: Any, kind: pa.DataType) -> Any:  # noqa: PLR0911 - one line per type
    if isinstance(value, bool) or value is None:
        return value
    if kinds.is_decimal(kind) and isinstance(value, str | int | float):
        number = Decimal(str(value))
        exact = number.quantize(Decimal(1).scaleb(-kind.scale))
        return format(exact if exact == number else number, "f")
    if kinds.is_floating(kind) and isinstance(value, int):
        return float(value)
    if kinds.is_timestamp(kind) and isinstance(value, str):
        time = datetime.fromisoformat(value)
        clock = (time.astimezone(UTC) if time.tzinfo else time).replace(tzinfo=None).isoformat()
        return clock if kind.tz is None else f"{clock}Z"
    if kinds.is_date(kind) and isinstance(value, str):
        return date.fromisoformat(value).isoformat()
    if kinds.is_struct(kind) and isinstance(value, dict):
        types = {member.name: member.type for member in kind}
        return {
            name: as_column(inner, types[name]) if name in types else inner
            for name, inner in value.items()
        }
    if kinds.is_map(kind) and isinstance(value, dict):
        return {name: as_column(inner, kind.item_type) for name, inner in value.items()}
    if (kinds.is_list(kind) or kinds.is_large_list(kind)) and isinstance(value, list):
        return [as_column(inner, kind.value_type) for inner in value]
    return value


def _matched(expected: Sequence[Row], actual: Sequence[Row]) -> dict[int, int]:
    """Match each expected row with a row of its own, as many as possible (augmenting paths)."""
    fits = [
        [index for index, row in enumerate(actual) if _agrees(wanted, row)] for wanted in expected
    ]
    owners: dict[int, int] = {}
    matched: dict[int, int] = {}
    for number in range(len(expected)):
        asked: dict[int, int] = {}
        asking = [number]
        for asker in asking:
            new = [index for index in fits[asker] if index not in asked]
            asked |= dict.fromkeys(new, asker)
            free = next((index for index in new if index not in owners), None)
            if free is not None:
                _hand_over(free, asked, owners, matched)
                break
            asking += [owners[index] for index in new]
    return matched


def _hand_over(
    free: int, asked: Mapping[int, int], owners: dict[int, int], matched: dict[int, int]
) -> None:
    """Give a free row to its requester, the requester's old row to the next one, and so on."""
    index: int | None = free
    while index is not None:
        asker = asked[index]
        before = matched.get(asker)
        owners[index], matched[asker] = asker, index
        index = before


def _agrees(wanted: Row, row: Row) -> bool:
    return all(row.get(name) == text for name, text in wanted.items())


def _nearest(
    wanted: Row, actual: Sequence[Row], spare: Sequence[int], keys: Sequence[str]
) -> int | None:
    """The spare row of the same record, else the one that agrees in most columns, if in any."""
    texts = _texts(wanted)
    named = [key for key in keys if key in texts]

    def likeness(index: int) -> tuple[bool, int]:
        row = _texts(actual[index])
        same = {name for name, text in texts.items() if row.get(name) == text}
        return bool(named) and same.issuperset(named), len(same)

    nearest = max(spare, key=likeness, default=None)
    return nearest if nearest is not None and any(likeness(nearest)) else None


def _texts(row: Row) -> dict[str, str]:
    """The values as JSON, because Python considers 1, 1.0 and True equal."""
    return {name: json.dumps(value, sort_keys=True) for name, value in row.items()}
