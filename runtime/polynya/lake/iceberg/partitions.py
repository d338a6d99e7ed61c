"""Partition specs of a table, and the partition values of Arrow rows.

Changes, states and all other rows that are found by `PARTITION` alone are written with the spec
that tables are created with. Current and Prior are written with the newest spec, which may
partition them by more columns (docs/adr/0032-partitioning-and-sorting.md). `Parting` does for Arrow
rows what Iceberg's Java side does for Spark.

Values of Iceberg's partition transforms are written as single-value JSON. Times are transformed for
every year that a column can hold, and each distinct value is transformed once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.files import FilePartition
from polynya.model.headers import PARTITION, Partition

_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_TIMES: Final = frozenset({"year", "month", "day", "hour"})
NULL: Final = "null"
#: Partitions whose files are written with the newest spec.
LAID_OUT: Final = frozenset({str(Partition.CURRENT), str(Partition.PRIOR)})


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a spec, as Iceberg's specification writes it in JSON."""

    number: int
    source: int
    transform: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """A partition spec: its id, and its fields in their order."""

    number: int
    fields: tuple[PartitionField, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """A spec out of its JSON."""
        document = json.loads(text)
        fields = (
            PartitionField(field["field-id"], field["source-id"], field["transform"], field["name"])
            for field in document["fields"]
        )
        return cls(document["spec-id"], tuple(fields))

    @property
    def is_plain(self) -> bool:
        """Whether it has one field only, which is that of `PARTITION`."""
        return len(self.fields) == 1

    def slot(self, values: str) -> FilePartition:
        """The partition of Iceberg with these values, a list in JSON."""
        at = next(n for n, field in enumerate(self.fields) if field.name == PARTITION)
        return FilePartition(str(json.loads(values)[at]), self.number, values)


@dataclass(frozen=True, slots=True)
class Parting:
    """How rows in Arrow are partitioned by a spec; `sources` are column and type of each field."""

    spec: Spec
    sources: tuple[tuple[str, str], ...]

    @classmethod
    def by(cls, spec: Spec, columns: Sequence[Mapping[str, Any]]) -> Self:
        """By a spec of a table with these columns, in JSON as Iceberg's specification has them."""
        columns_by_id = {column["id"]: column for column in columns}
        sources = (columns_by_id[field.source] for field in spec.fields)
        return cls(spec, tuple((field["name"], str(field["type"])) for field in sources))

    def parts(self, rows: pa.Table) -> Iterator[tuple[FilePartition, pa.Table]]:
        """The rows of each partition of Iceberg, in the order that they have in `rows`.

        Their columns are as `as_stored` gives them; one that is not there is NULL.
        """
        codes, slots = self.numbered(rows)
        ordered = pc.sort_indices(codes)
        at = 0
        for number, count in _counted(codes.take(ordered)):
            yield slots[number], rows.take(ordered.slice(at, count))
            at += count

    def numbered(self, rows: pa.Table) -> tuple[pa.Array, list[FilePartition]]:
        """Partitions of Iceberg, and the number of its partition for each row."""
        columns = [self._values(rows, number) for number in range(len(self.spec.fields))]
        codes = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        for values in columns:
            codes = pc.add(pc.multiply(codes, len(values.dictionary)), values.indices)
            # Small again, however many columns there are.
            codes = codes.dictionary_encode().indices.cast(pa.int64())
        # Numbers are given in the order in which they are met.
        firsts = pc.index_in(pa.arange(0, len(pc.unique(codes))), value_set=codes).to_pylist()
        slots = [
            self.spec.slot(f"[{','.join(values[first].as_py() for values in columns)}]")
            for first in firsts
        ]
        return codes, slots

    def _values(self, rows: pa.Table, number: int) -> pa.DictionaryArray:
        name, kind = self.sources[number]
        if name not in rows.column_names:
            return pa.repeat(pa.scalar(NULL), rows.num_rows).dictionary_encode()
        column = rows.column(name).combine_chunks()
        return json_values(column, self.spec.fields[number].transform, kind)


def _counted(ordered: pa.Array) -> Iterator[tuple[int, int]]:
    """Each number of ascending ones, and how often it is there."""
    for count in pc.value_counts(ordered).to_pylist():
        yield count["values"], count["counts"]


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
    """Times as numbers, coarse where the transform is coarse, so that few differ."""
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
        return partial(_of_time, transform=transform, unit=1 if kind == "date" else _DAY)
    if transform.startswith("bucket"):
        return partial(_of_bucket, bucket=_bucket(transform, kind))
    if transform.startswith("truncate"):
        return partial(_of_start, width=_width(transform), kind=kind)
    if transform == "void":
        return lambda _: NULL
    return partial(_single, kind=kind)


def _of_time(value: int, transform: str, unit: int) -> str:
    if transform == "hour":
        return str(value // _HOUR)
    days = value // unit
    if transform == "day":
        return json.dumps(_day(days))
    year, month, _ = _civil(days)
    return str(year - 1970 if transform == "year" else (year - 1970) * 12 + month - 1)


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


def _of_bucket(value: Any, bucket: Callable[[Any], int | None]) -> str:
    return str(bucket(value))


def _bucket(transform: str, kind: str) -> Callable[[Any], int | None]:
    # Late: nothing else needs PyIceberg here, and it takes a third of a second to load.
    from pyiceberg.transforms import BucketTransform
    from pyiceberg.types import NestedField

    source = NestedField(field_id=1, name="x", field_type=kind, required=False).field_type
    made: Callable[[Any], int | None] = BucketTransform(_width(transform)).transform(source)
    return made


def _of_start(value: Any, width: int, kind: str) -> str:
    return _single(_truncated(value, width), kind)


def _width(transform: str) -> int:
    return int(transform.partition("[")[2].rstrip("]"))


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
