"""MongoDB's extended JSON: types that JSON lacks come as `{"$…": …}` objects."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from polynya.formats.errors import RecordError
from polynya.formats.records.json_text import parse_object, parse_value
from polynya.formats.values.instants import Micros, in_range, iso_micros


def document(text: Any) -> dict[str, Any]:
    """A document from its text. Raises RecordError."""
    if isinstance(text, dict):
        return _fields(text)
    if not isinstance(text, str):
        raise RecordError("bad_json", "a document comes as JSON text")
    return _fields(parse_object(text.encode()))


def identifier(text: Any) -> Any:
    """The `_id` that an event's key holds as extended JSON text; plain text stays what it is."""
    if not isinstance(text, str):
        return plain(text)
    try:
        return plain(parse_value(text.encode()))
    except RecordError:
        return text


def plain(value: Any) -> Any:
    """A value without `$` objects. Raises RecordError bad_value."""
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    name = next(iter(value), "")
    if name in _SPECIAL and len(value) == 1:
        try:
            return _SPECIAL[name](value[name])
        except (ValueError, TypeError, LookupError, InvalidOperation, binascii.Error):
            raise RecordError("bad_value", f"{str(value)[:80]} is not valid") from None
    return _fields(value)


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(inner) for name, inner in value.items()}


def _date(value: Any) -> Micros:
    inner = plain(value)
    return Micros(iso_micros(inner) if isinstance(inner, str) else in_range(int(inner) * 1000))


def _decimal(value: Any) -> Decimal:
    number = Decimal(str(value))
    if not number.is_finite():
        raise ValueError(f"{value} is not a number")
    return number


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "$oid": str,
    "$numberInt": int,
    "$numberLong": int,
    "$numberDouble": float,
    "$numberDecimal": _decimal,
    "$date": _date,
    "$uuid": str,
    "$symbol": str,
    "$binary": lambda value: base64.b64decode(
        value["base64"] if isinstance(value, dict) else value, validate=True
    ),
}
