"""Reading a table in the order of its key: the conditions of a chunk. Pure.

A comparison of whole tuples would not use the index, so each is written out. A constant takes the
collation of the column that it is compared with; what is beyond a key is so in the order of the
index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polynya.gateway.mysql.catalog import Table
from polynya.gateway.mysql.quoting import literal, quoted
from polynya.gateway.source import Key


def key_kinds(table: Table) -> tuple[str, ...] | None:
    """How the values of a table's key stand in SQL; None: it is read as a whole.

    That is so without a key, and with one whose order is not that of its constants: labels are
    ordered by number, rounded numbers equal nothing, long texts are in no index.
    """
    codings = {facts.name: coding for facts, coding in table.captured}
    kinds = tuple(codings[name].key if name in codings else None for name in table.key)
    return tuple(kind for kind in kinds if kind) if kinds and all(kinds) else None


def beyond(table: Table, kinds: Sequence[str], after: Key) -> str:
    """The condition for rows after a key."""
    return _compared(table, kinds, after, ">", last=">")


def up_to(table: Table, kinds: Sequence[str], bound: Key) -> str:
    """The condition for rows up to a key and with it."""
    return _compared(table, kinds, bound, "<", last="<=")


def order(table: Table) -> str:
    """The columns of the key, as a list in SQL."""
    return ", ".join(quoted(name) for name in table.key)


def key_values(kinds: Sequence[str], row: Sequence[str | bytes | None]) -> tuple[Any, ...]:
    """A key from a row of its columns, as JSON has it: numbers as text too, they may be long."""
    found = []
    for kind, value in zip(kinds, row, strict=True):
        assert value is not None
        found.append(value.hex() if isinstance(value, bytes) and kind == "bytes" else _str(value))
    return tuple(found)


def _str(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _compared(table: Table, kinds: Sequence[str], key: Key, sign: str, last: str) -> str:
    columns = [quoted(name) for name in table.key]
    values = [_constant(kind, value) for kind, value in zip(kinds, key, strict=True)]
    parts = []
    for place, (column, value) in enumerate(zip(columns, values, strict=True)):
        equal = [f"{c} = {v}" for c, v in zip(columns[:place], values[:place], strict=True)]
        is_last = place == len(columns) - 1
        parts.append(" AND ".join([*equal, f"{column} {last if is_last else sign} {value}"]))
    whole = " OR ".join(f"({part})" for part in parts)
    if len(parts) == 1:
        return whole
    # Says again what the rest says, for the range of the index.
    return f"{columns[0]} {sign}= {values[0]} AND ({whole})"


def _constant(kind: str, value: Any) -> str:
    if kind == "number":
        return _number(str(value))
    return f"X'{bytes.fromhex(str(value)).hex()}'" if kind == "bytes" else literal(str(value))


def _number(text: str) -> str:
    digits = text.removeprefix("-").replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text[:60]!r} is no number of a key")
    return text
