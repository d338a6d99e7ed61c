"""How sequence values become times and how values of different readers are compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def to_time(value: Any) -> datetime | None:
    """Time that a sequence value stands for: a timestamp itself, a number seconds after EPOCH."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:  # a sequence of plain text says nothing about time
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return EPOCH + timedelta(seconds=value)


def to_iso(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with `Z`."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def canonical(value: Any) -> Any:
    """One spelling per value: times as microsecond UTC text, decimals as text, binary as hex."""
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {name: canonical(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(inner) for inner in value]
    return value


def as_time(value: Any) -> Any:
    """A time read as text, in one spelling; anything else unchanged."""
    return to_iso(datetime.fromisoformat(value)) if isinstance(value, str) else canonical(value)


def bag(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Rows as a sorted list of JSON texts: equal lists mean equal multisets of rows."""
    return sorted(json.dumps(canonical(list(row)), sort_keys=True) for row in rows)


def difference(expected: Iterable[str], got: Iterable[str]) -> str:
    """What is missing and what is too much, or an empty text."""
    missing, extra = list(expected), []
    for row in got:
        if row in missing:
            missing.remove(row)
        else:
            extra.append(row)
    lines = [f"  missing {row}" for row in missing] + [f"  extra   {row}" for row in extra]
    return "\n".join(lines)
