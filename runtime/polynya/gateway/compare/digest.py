"""Hashes of rows that come as Arrow: by ranges of keys, or row by row, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from polynya.gateway.compare.columns import Kind, Layout
from polynya.gateway.compare.ranges import Range, RowState

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
#: Kinds whose values are their bits, which Arrow reads without a copy.
_BITS: Final[Mapping[Kind, tuple[pa.DataType, pa.DataType]]] = {
    Kind.DOUBLE: (pa.float64(), pa.int64()),
    Kind.FLOAT: (pa.float32(), pa.int32()),
}


def digest_ranges(batches: Iterable[pa.RecordBatch], layout: Layout, bits: int) -> dict[int, Range]:
    """Number of rows and sum of hashes of each range that has rows."""
    found: dict[int, Range] = {}
    sql = (
        f"SELECT {_number(bits)} AS n, count(*), sum({_first_60('row_hash')})"
        f" FROM ({_hashed(layout)}) GROUP BY n"
    )
    for number, rows, total in _answers(batches, layout, sql):
        known = found.get(number, Range(0, 0))
        found[number] = Range(known.rows + rows, known.total + int(total))
    return found


def digest_rows(
    batches: Iterable[pa.RecordBatch], layout: Layout, bits: int, ranges: Collection[int]
) -> dict[str, RowState]:
    """The rows of some ranges by the hash of their key."""
    wanted = f"SELECT * FROM ({_hashed(layout)}) SEMI JOIN wanted ON {_number(bits)} = wanted.n"
    return _rows(batches, layout, wanted, pa.table({"n": pa.array(sorted(ranges), pa.int64())}))


def digest_keys(
    batches: Iterable[pa.RecordBatch], layout: Layout, keys: Collection[str]
) -> dict[str, RowState]:
    """The rows whose keys have one of the given hashes."""
    wanted = f"SELECT * FROM ({_hashed(layout)}) SEMI JOIN wanted ON key_hash = wanted.n"
    return _rows(batches, layout, wanted, pa.table({"n": pa.array(sorted(keys), pa.string())}))


def _rows(
    batches: Iterable[pa.RecordBatch], layout: Layout, sql: str, wanted: pa.Table
) -> dict[str, RowState]:
    found: dict[str, RowState] = {}
    grouped = (
        f"SELECT key_hash, any_value(key_text), min(row_hash), count(*) FROM ({sql}) GROUP BY 1"
    )
    for key, text, digest, copies in _answers(batches, layout, grouped, wanted):
        known = found.get(key)
        before = 0 if known is None else known.copies
        found[key] = RowState(text, digest, before + copies)
    return found


def _answers(
    batches: Iterable[pa.RecordBatch], layout: Layout, sql: str, wanted: pa.Table | None = None
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


def _prepared(batch: pa.RecordBatch, layout: Layout) -> pa.Table:
    """The compared columns, named `c0`, `c1` and so on."""
    arrays = [_array(batch.column(name), kind) for name, kind in layout.columns]
    # Without any column rows are still counted.
    arrays = arrays or [pa.nulls(batch.num_rows)]
    return pa.table(arrays, names=[f"c{number}" for number in range(len(arrays))])


def _array(array: pa.Array, kind: Kind) -> pa.Array:
    if kind not in _BITS:
        return array
    floats, whole = _BITS[kind]
    # Added to a zero the negative one is the positive, which it equals; a NaN is any NaN.
    plain = pc.add(array, pa.scalar(0.0, floats))
    plain = pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), floats), plain)
    return plain.view(whole)


def _hashed(layout: Layout) -> str:
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
    parts = [f"coalesce('+' || length({one}) || ':' || {one}, '-')" for one in texts]
    return " || ".join(parts) or "''"


def _number(bits: int) -> str:
    return f"(CAST('0x' || substr(key_hash, 1, 8) AS BIGINT) >> {32 - bits})"


def _first_60(text: str) -> str:
    return f"CAST('0x' || substr({text}, 1, 15) AS BIGINT)"


def _plain(column: str) -> str:
    text = f"CAST({column} AS VARCHAR)"
    trimmed = f"rtrim(rtrim({text}, '0'), '.')"
    return f"(CASE WHEN contains({text}, '.') THEN {trimmed} ELSE {text} END)"


_TEXTS: Final[Mapping[Kind, Callable[[str], str]]] = {
    Kind.WHOLE: lambda column: f"CAST({column} AS VARCHAR)",
    Kind.NUMBER: _plain,
    Kind.DOUBLE: lambda column: f"CAST({column} AS VARCHAR)",
    Kind.FLOAT: lambda column: f"CAST({column} AS VARCHAR)",
    Kind.BOOLEAN: lambda column: f"CAST({column} AS VARCHAR)",
    Kind.TEXT: lambda column: column,
    Kind.BYTES: lambda column: f"lower(hex({column}))",
    Kind.DATE: lambda column: f"CAST(({column} - DATE '1970-01-01') AS VARCHAR)",
    Kind.TIME: lambda column: column,
    Kind.MICROS: lambda column: f"CAST(epoch_us({column}) AS VARCHAR)",
}
