"""Values as JSON that loses nothing: decimals as text, instants in UTC with `Z`, binary as hex."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum


def to_json(value: object) -> str:
    """Return a value as one line of JSON in plain ASCII, valid on every terminal and pipe."""
    text = json.dumps(jsonable(value), separators=(",", ":"), allow_nan=False)
    # JSON leaves this control character as it is; it can only stand in a string.
    return text.replace("\x7f", "\\u007f")


def jsonable(value: object) -> object:  # noqa: PLR0911 - one line per type
    """Return a value made of what JSON has.

    Instants (aware) become ISO 8601 in UTC with `Z`, wall-clock times (naive) have no zone,
    decimals and non-finite numbers become text, binary lower-case hex, durations seconds as text.
    """
    match value:
        case None | bool() | int() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return jsonable(value.value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return _instant(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return f"{value.total_seconds():f}"
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case Mapping():
            return {_key(key): jsonable(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [jsonable(inner) for inner in value]
        case _:
            return str(value)


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _key(key: object) -> str:
    simple = jsonable(key)
    return simple if isinstance(simple, str) else json.dumps(simple)
