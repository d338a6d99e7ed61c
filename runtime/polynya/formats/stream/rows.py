"""The rows of a batch: header columns beside the typed ones, and rows of pieces between others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from polynya.formats.batch import OLD_KEY_FIELD, SERVICE_FIELDS
from polynya.formats.landed.messages import Messages
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.columns import Column, Faults
from polynya.model.contract.stream_headers import TIME_HEADERS
from polynya.model.datatypes import DataType

#: Rows of a piece, or records of the buffer from one index to another.
Part: TypeAlias = "pa.Table | tuple[int, int]"

_RAW = "__raw"


@dataclass(slots=True)
class HeaderColumns:
    """The header columns of records, taken from those of their messages."""

    _groups: list[tuple[Messages, list[int]]] = field(default_factory=list)

    def note(self, messages: Messages, index: int) -> None:
        """The next record came from the message at an index."""
        if not self._groups or self._groups[-1][0] is not messages:
            self._groups.append((messages, []))
        self._groups[-1][1].append(index)

    def columns(self) -> dict[str, Column]:
        """A column for each header of a source that was met."""
        types: dict[str, DataType] = {}
        for messages, _ in self._groups:
            types |= messages.types
        return {name: Column(kind, self._column(name, kind), {}) for name, kind in types.items()}

    def taken(self) -> list[int | None]:
        """When the source took each message, in microseconds; None where it does not say."""
        times: list[int | None] = []
        for messages, indexes in self._groups:
            name = TIME_HEADERS.get(messages.source)
            if name is None:
                times += [None] * len(indexes)
            else:
                column = messages.headers[name].view(pa.int64())
                times += column.take(pa.array(indexes, pa.int64())).to_pylist()
        return times

    def _column(self, name: str, kind: DataType) -> pa.Array:
        parts = [
            messages.headers[name].take(pa.array(indexes, pa.int64()))
            if name in messages.headers
            else pa.nulls(len(indexes), arrow_type(kind))
            for messages, indexes in self._groups
        ]
        return pa.concat_arrays(parts)


def with_headers(
    rows: pa.Table, headers: Mapping[str, Column], schema: Mapping[str, DataType], faults: Faults
) -> pa.Table:
    """The good rows with their header columns, in the order of a schema; raw bytes are left out.

    `rows` are without the records of `faults`, `headers` with them.
    """
    count = rows.num_rows
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {
        name: rows.column(name) for name in rows.column_names
    }
    arrays[_RAW] = pa.nulls(count, pa.binary())
    for name, column in headers.items():
        good = [index not in faults for index in range(len(column.array))]
        arrays[name] = column.array.filter(pa.array(good, pa.bool_())) if faults else column.array
    names = [*(one.name for one in SERVICE_FIELDS), OLD_KEY_FIELD, *schema]
    columns = [
        arrays[name] if name in arrays else pa.nulls(count, arrow_type(schema[name]))
        for name in names
    ]
    return pa.table(columns, names=names)


def in_order(rows: pa.Table, parts: Sequence[Part], faults: Faults) -> pa.Table:
    """All rows in the order of the messages; `rows` are those of the records in the buffer.

    Pieces have no column that `rows` lack; what they lack is NULL.
    """
    if len(parts) == 1 and isinstance(parts[0], tuple):
        return rows
    found = [rows.schema.empty_table()]
    begin = 0
    for part in parts:
        if isinstance(part, tuple):
            first, after = part
            count = after - first
            if faults:
                count = sum(index not in faults for index in range(first, after))
            found.append(rows.slice(begin, count))
            begin += count
        else:
            found.append(_conformed(part, rows.schema))
    return pa.concat_tables(found)


def _conformed(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        piece.column(one.name).cast(one.type)
        if one.name in piece.column_names
        else pa.nulls(piece.num_rows, one.type)
        for one in schema
    ]
    return pa.table(columns, schema=schema)
