"""Values of Iceberg's partition transforms for columns in Arrow, as JSON of single values.

Times are transformed for every year that a column can hold. Each distinct value is transformed
once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_TIMES: Final = frozenset({"year", "month", "day", "hour"})
NULL: Final = "null"


def json_values(column: pa.Array, transform: str, kind: str) -> pa.DictionaryArray:
    """The transformed value of each row, as JSON.

    `transform` and `kind`, the type of the column, are as Iceberg's specification has them.
    """
    values = _numbers(column, transform)
    encoded = values.dictionary_encode(null_encoding="encode")
    texts = pa.array(_texts(encoded.dictionary.to_pylist(), transform, kind), pa.string())
    # Different values may have the same text.
    again = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(again.indices.take(encoded.indices), again.dictionary)


def _numbers(column: pa.Array, transform: str) -> pa.Array:
    """Times as numbers, of which few are different where the transform asks for no more."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    if not pa.types.is_timestamp(column.type):
        return column
    if transform not in _TIMES:
        return column.cast(pa.int64())
    # Without its zone, which is UTC: nobody has to look that up.
    plain = column.cast(pa.int64()).cast(pa.timestamp("us"))
    unit = "hour" if transform == "hour" else "day"
    return pc.floor_temporal(plain, unit=unit).cast(pa.int64())


def _texts(values: list[Any], transform: str, kind: str) -> Iterator[str]:
    of = _transformed(transform, kind)
    return (NULL if value is None else of(value) for value in values)


def _transformed(transform: str, kind: str) -> Callable[[Any], str]:
    """What gives the JSON of a transformed value."""
    if transform in _TIMES:
        return partial(_of_time, transform=transform, each=1 if kind == "date" else _DAY)
    if transform.startswith("bucket"):
        return partial(_of_bucket, bucket=_bucket(transform, kind))
    if transform.startswith("truncate"):
        return partial(_of_start, width=_width(transform), kind=kind)
    if transform == "void":
        return lambda _: NULL
    return partial(_single, kind=kind)


def _of_bucket(value: Any, bucket: Callable[[Any], int | None]) -> str:
    return str(bucket(value))


def _of_start(value: Any, width: int, kind: str) -> str:
    return _single(_truncated(value, width), kind)


def _width(transform: str) -> int:
    return int(transform.partition("[")[2].rstrip("]"))


def _bucket(transform: str, kind: str) -> Callable[[Any], int | None]:
    # Late: nothing else needs PyIceberg here, and it takes a third of a second to load.
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import NestedField

    source = NestedField(field_id=1, name="x", field_type=kind, required=False).field_type
    made: Callable[[Any], int | None] = BucketTransform(_width(transform)).transform(source)
    return made


def _truncated(value: Any, width: int) -> Any:
    match value:
        case Decimal():
            # Not by arithmetic of decimals, which rounds to 28 digits.
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            unscaled -= unscaled % width
            return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), int(exponent)))
        case int():
            return value - value % width
        case _:
            return value[:width]


def _of_time(value: int, transform: str, each: int) -> str:
    if transform == "hour":
        return str(value // _HOUR)
    days = value // each
    if transform == "day":
        return json.dumps(_day(days))
    year, month, _ = _civil(days)
    return str(year - 1970 if transform == "year" else (year - 1970) * 12 + month - 1)


def _single(value: Any, kind: str) -> str:
    """A value as JSON."""
    if kind == "date":
        return json.dumps(_day(value))
    if kind.startswith("timestamp"):
        seconds, micros = divmod(value % _DAY, 1_000_000)
        time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
        zone = "+00:00" if kind == "timestamptz" else ""
        return json.dumps(f"{_day(value // _DAY)}T{time}{zone}")
    if isinstance(value, Decimal):
        return json.dumps(f"{value:f}")
    return json.dumps(value.hex().upper() if isinstance(value, bytes) else value)


def _day(days: int) -> str:
    """A day as ISO 8601 has it, also before year 0 and after year 9999."""
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the Gregorian calendar, of a day counted from 1970-01-01."""
    # Years that begin in March, in eras of 400 years: the leap day comes last.
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year + era * 400 + (month <= 2), month, day
