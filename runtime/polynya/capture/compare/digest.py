"""Comparable columns of a table, and hashes of its rows by key range or row by row.

Both sides of a comparison write each value as the same text, whatever their types are called, and
hash it. A column without such a text is left out and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from polynya.capture.compare.ranges import Range, RowState
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)


class TextForm(StrEnum):
    """The text by which values of a column are compared."""

    WHOLE = "whole"  # digits, with a sign where it is negative
    NUMBER = "number"  # digits with a point, without trailing zeros
    DOUBLE = "double"  # the 64 bits of IEEE 754 as a signed whole number
    FLOAT = "float"  # the 32 bits, likewise
    BOOLEAN = "boolean"  # true, false
    TEXT = "text"  # itself
    BYTES = "bytes"  # lower-case hex
    DATE = "date"  # days since 1970-01-01
    TIME = "time"  # HH:MM:SS, with six digits of a fraction where there is one
    MICROS = "micros"  # microseconds since 1970-01-01T00:00:00


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of the source; `kind` None: it cannot be compared, for the reason `why`."""

    name: str
    kind: TextForm | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class SkippedColumn:
    """A column that is not compared, and why."""

    column: str
    why: str


@dataclass(frozen=True, slots=True)
class DigestLayout:
    """What of a table is compared.

    Attributes:
        columns: name and text of each column, in one order for both sides.
        key: the columns by which rows are told apart; () where rows are compared as a whole, each
            with the number of its copies.
        left_out: the others.
    """

    columns: tuple[tuple[str, TextForm], ...]
    key: tuple[str, ...]
    left_out: tuple[SkippedColumn, ...] = ()


def layout_of(
    source: Sequence[ComparedColumn],
    current: Mapping[str, DataType],
    *,
    key: Sequence[str],
    masked: Collection[str] = (),
) -> DigestLayout:
    """What of a table is compared, column by column.

    Args:
        source: columns as the database has them now.
        current: columns of the view Current with their types.
        key: primary key of the source.
        masked: columns that never leave the database as they are.
    """
    compared: list[tuple[str, TextForm]] = []
    left_out: list[SkippedColumn] = []
    for column in source:
        why = _why_not(column, current, masked)
        if why is None and column.kind is not None:
            compared.append((column.name, column.kind))
        else:
            left_out.append(SkippedColumn(column.name, why or column.why))
    source_names = {column.name for column in source}
    left_out += [
        SkippedColumn(name, "the source has no such column any more")
        for name in current
        if name not in source_names
    ]
    names = {name for name, _ in compared}
    usable = tuple(key) if key and names.issuperset(key) else ()
    return DigestLayout(tuple(compared), usable, tuple(left_out))


def _why_not(
    column: ComparedColumn, current: Mapping[str, DataType], masked: Collection[str]
) -> str | None:
    if column.name in masked:
        return "it is masked"
    if column.name not in current:
        return "Current has no such column yet: no event has told it"
    if column.kind is None:
        return column.why
    if not _holds(column.kind, current[column.name]):
        return f"it is {current[column.name]} in Current, which has no text in common with it"
    return None


def _holds(kind: TextForm, datatype: DataType) -> bool:
    """Whether values of a type of Current have the text of a kind."""
    if isinstance(datatype, Decimal):
        return kind is TextForm.NUMBER or (kind is TextForm.WHOLE and datatype.scale == 0)
    return datatype in _TYPES[kind]


_TYPES: Final[Mapping[TextForm, frozenset[DataType]]] = {
    TextForm.WHOLE: frozenset({INT, BIGINT}),
    TextForm.NUMBER: frozenset({STRING}),  # more digits than a decimal column holds
    TextForm.DOUBLE: frozenset({DOUBLE}),
    TextForm.FLOAT: frozenset({FLOAT}),
    TextForm.BOOLEAN: frozenset({BOOLEAN}),
    TextForm.TEXT: frozenset({STRING}),
    TextForm.BYTES: frozenset({BINARY}),
    TextForm.DATE: frozenset({DATE}),
    TextForm.TIME: frozenset({STRING}),
    TextForm.MICROS: frozenset({TIMESTAMP, TIMESTAMP_NTZ}),
}


_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
#: Kinds whose values are their bits, which Arrow reads without a copy.
_BITS: Final[Mapping[TextForm, tuple[pa.DataType, pa.DataType]]] = {
    TextForm.DOUBLE: (pa.float64(), pa.int64()),
    TextForm.FLOAT: (pa.float32(), pa.int32()),
}


def digest_ranges(
    batches: Iterable[pa.RecordBatch], layout: DigestLayout, bits: int
) -> dict[int, Range]:
    """Number of rows and sum of hashes of each range that has rows."""
    ranges: dict[int, Range] = {}
    sql = (
        f"SELECT {_number(bits)} AS n, count(*), sum({_first_60('row_hash')})"
        f" FROM ({_hashed(layout)}) GROUP BY n"
    )
    for number, rows, total in _answers(batches, layout, sql):
        before = ranges.get(number, Range(0, 0))
        ranges[number] = Range(before.rows + rows, before.total + int(total))
    return ranges


def digest_rows(
    batches: Iterable[pa.RecordBatch], layout: DigestLayout, bits: int, ranges: Collection[int]
) -> dict[str, RowState]:
    """The rows of some ranges by the hash of their key."""
    wanted = f"SELECT * FROM ({_hashed(layout)}) SEMI JOIN wanted ON {_number(bits)} = wanted.n"
    return _rows(batches, layout, wanted, pa.table({"n": pa.array(sorted(ranges), pa.int64())}))


def digest_keys(
    batches: Iterable[pa.RecordBatch], layout: DigestLayout, keys: Collection[str]
) -> dict[str, RowState]:
    """The rows whose keys have one of the given hashes."""
    wanted = f"SELECT * FROM ({_hashed(layout)}) SEMI JOIN wanted ON key_hash = wanted.n"
    return _rows(batches, layout, wanted, pa.table({"n": pa.array(sorted(keys), pa.string())}))


def _rows(
    batches: Iterable[pa.RecordBatch], layout: DigestLayout, sql: str, wanted: pa.Table
) -> dict[str, RowState]:
    states: dict[str, RowState] = {}
    grouped = (
        f"SELECT key_hash, any_value(key_text), min(row_hash), count(*) FROM ({sql}) GROUP BY 1"
    )
    for key, text, digest, copies in _answers(batches, layout, grouped, wanted):
        known = states.get(key)
        before = 0 if known is None else known.copies
        states[key] = RowState(text, digest, before + copies)
    return states


def _answers(
    batches: Iterable[pa.RecordBatch],
    layout: DigestLayout,
    sql: str,
    wanted: pa.Table | None = None,
) -> Iterable[tuple]:  # type: ignore[type-arg]
    with closing(duckdb.connect(":memory:", config=_SETTINGS)) as connection:
        if wanted is not None:
            connection.register("incoming", wanted)
            connection.execute("CREATE TABLE wanted AS FROM incoming")
            connection.unregister("incoming")
        for batch in batches:
            connection.register("rows_given", _prepared(batch, layout))
            yield from connection.execute(sql).fetchall()
            connection.unregister("rows_given")


def _prepared(batch: pa.RecordBatch, layout: DigestLayout) -> pa.Table:
    """The compared columns, named `c0`, `c1` and so on."""
    arrays = [_array(batch.column(name), kind) for name, kind in layout.columns]
    # Without any column rows are still counted.
    arrays = arrays or [pa.nulls(batch.num_rows)]
    return pa.table(arrays, names=[f"c{number}" for number in range(len(arrays))])


def _array(array: pa.Array, kind: TextForm) -> pa.Array:
    if kind not in _BITS:
        return array
    floats, whole = _BITS[kind]
    # Added to a zero the negative one is the positive, which it equals; a NaN is any NaN.
    plain = pc.add(array, pa.scalar(0.0, floats))
    plain = pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), floats), plain)
    return plain.view(whole)


def _hashed(layout: DigestLayout) -> str:
    """SQL of `key_hash`, `key_text` and `row_hash` of each row."""
    texts = {name: _TEXTS[kind](f"c{number}") for number, (name, kind) in enumerate(layout.columns)}
    row = _joined(list(texts.values()))
    key = _joined([texts[name] for name in layout.key]) if layout.key else row
    shown = ", ".join(f"coalesce({texts[name]}, 'NULL')" for name in layout.key)
    shown = f"concat_ws(', ', {shown})" if layout.key else "k"
    return (
        f"SELECT md5(k) AS key_hash, {shown} AS key_text, md5(r) AS row_hash"
        f" FROM (SELECT *, {key} AS k, {row} AS r FROM rows_given)"
    )


def _joined(texts: list[str]) -> str:
    """One text of several, from which each could be read again; NULL is one of its own."""
    parts = [f"coalesce('+' || length({text}) || ':' || {text}, '-')" for text in texts]
    return " || ".join(parts) or "''"


def _number(bits: int) -> str:
    return f"(CAST('0x' || substr(key_hash, 1, 8) AS BIGINT) >> {32 - bits})"


def _first_60(text: str) -> str:
    return f"CAST('0x' || substr({text}, 1, 15) AS BIGINT)"


def _plain(column: str) -> str:
    text = f"CAST({column} AS VARCHAR)"
    trimmed = f"rtrim(rtrim({text}, '0'), '.')"
    return f"(CASE WHEN contains({text}, '.') THEN {trimmed} ELSE {text} END)"


_TEXTS: Final[Mapping[TextForm, Callable[[str], str]]] = {
    TextForm.WHOLE: lambda column: f"CAST({column} AS VARCHAR)",
    TextForm.NUMBER: _plain,
    TextForm.DOUBLE: lambda column: f"CAST({column} AS VARCHAR)",
    TextForm.FLOAT: lambda column: f"CAST({column} AS VARCHAR)",
    TextForm.BOOLEAN: lambda column: f"CAST({column} AS VARCHAR)",
    TextForm.TEXT: lambda column: column,
    TextForm.BYTES: lambda column: f"lower(hex({column}))",
    TextForm.DATE: lambda column: f"CAST(({column} - DATE '1970-01-01') AS VARCHAR)",
    TextForm.TIME: lambda column: column,
    TextForm.MICROS: lambda column: f"CAST(epoch_us({column}) AS VARCHAR)",
}
