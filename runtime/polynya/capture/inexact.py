"""Values of captured databases that have no exact form in an event, by the type of their column.

Databases and Debezium have such values; what lands in their place is documented in
`docs/data-types.md`. `polynya landing preview` names them for each column, and the status of a
capture for each table. Every other value lands exactly, or ends in an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

#: What becomes of which values, by the word that the position of a capture has for it.
EXPLAINED: Final[Mapping[str, str]] = {
    "array_bounds": "lower bounds of lists other than 1 are lost",
    "array_nulls": "a list with a NULL element, or of several dimensions, becomes NULL",
    "array_times": "times in lists have milliseconds",
    "bit_length": "the number of bits is lost",
    "infinite_dates": "infinite dates become the first and the last moment of the years 1 to 9999",
    "infinite_intervals": "infinite intervals become NULL",
    "not_a_number": "a load makes NaN and infinities NULL; in a change they are an error",
    "time_offset": "times have UTC and not their offset",
    "zero_dates": "dates with a zero part become NULL, or 1970-01-01 where the column is NOT NULL",
    "zero_timestamps": "zero timestamps become 1970-01-01",
    "zero_years": "the year 0000 becomes 1900",
    "byte_order_mark": "a change drops a byte order mark at the beginning of a text",
    "json_parts": "in JSON, a change has times without trailing zeros and bytes without their type",
}

_TIME: Final = "io.debezium.time."
_NUMBERS: Final = frozenset({
    "org.apache.kafka.connect.data.Decimal", "io.debezium.data.VariableScaleDecimal"
})  # fmt: skip
_MOMENTS: Final = frozenset(
    _TIME + name for name in ("Date", "Timestamp", "MicroTimestamp", "ZonedTimestamp")
)
_BITS: Final = "io.debezium.data.Bits"


def of_postgresql(type_name: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The words for a column of PostgreSQL; `schema` is its Connect schema."""
    return tuple(_of_postgresql(type_name, schema))


def _of_postgresql(type_name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") == "array":
        items = schema["items"]
        yield "array_bounds"
        if not items.get("optional"):
            yield "array_nulls"
        if items.get("name") == f"{_TIME}MicroTime":
            yield "array_times"
        yield from _of_postgresql(type_name, items)
        return
    name = schema.get("name")
    if name in _NUMBERS and not type_name.startswith("money"):
        yield "not_a_number"
    elif name in _MOMENTS:
        yield "infinite_dates"
    elif name == f"{_TIME}Interval":
        yield "infinite_intervals"
    elif name == f"{_TIME}ZonedTime":
        yield "time_offset"
    elif name == _BITS:
        yield "bit_length"


_ZERO: Final[Mapping[str, str]] = {
    "date": "zero_dates", "datetime": "zero_dates", "timestamp": "zero_timestamps",
    "year": "zero_years", "json": "json_parts",
}  # fmt: skip


def of_mysql(type_name: str, charset: str | None) -> tuple[str, ...]:
    """The words for a column of MariaDB or MySQL, by the word of its type."""
    if charset in {"utf16", "utf16le"}:
        return ("byte_order_mark",)
    return (_ZERO[type_name],) if type_name in _ZERO else ()
