"""Moments of PostgreSQL: a snapshot of one transaction, and hashes that the server computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from polynya.capture.compare.digest import ComparedColumn, DigestLayout, TextForm
from polynya.capture.compare.ranges import Range, RowState
from polynya.capture.postgresql.session import (
    MESSAGE_PREFIX,
    POSITION_REQUEST,
    PostgresSession,
    identifier,
    literal,
    lsn_number,
    qualified,
)
from polynya.capture.source import Access
from polynya.formats.values import times
from polynya.model.errors import PolynyaError
from polynya.transform.source_conditions import checked_condition

_HASH: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


class ComparedPostgres:
    """See `ComparedDatabase`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def moment(self) -> PostgresMoment:
        """What is committed now. Raises what `PostgresSession` raises."""
        found = PostgresMoment(PostgresSession(self._access))
        # A database in which nothing happens has no stream that would reach the position. The
        # capture lands it as soon as it has read this. Where this is not allowed, as on a standby,
        # it is reached with the next change.
        with suppress(PolynyaError), PostgresSession(self._access) as nudge:
            message = f"{literal(MESSAGE_PREFIX)}, {literal(POSITION_REQUEST)}"
            nudge.run(f"SELECT pg_logical_emit_message(true, {message})::text")
        return found


class PostgresMoment:
    """A snapshot, in a session of its own."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        # The snapshot is taken first: whatever it shows was committed before this position.
        ((position, encoding),) = session.run(
            "SELECT pg_current_wal_insert_lsn()::text, current_setting('server_encoding')"
        )
        self.position = str(position)
        self._lsn = lsn_number(self.position)
        self._is_utf8 = encoding == "UTF8"

    def is_reached(self, offset: Mapping[str, Any]) -> bool:
        """Transactions come in the order of their commits: one place behind it suffices."""
        lsns = (offset.get(name) for name in ("lsn", "lsn_commit", "lsn_proc"))
        return max((lsn for lsn in lsns if isinstance(lsn, int)), default=-1) >= self._lsn

    def columns(self, table: str) -> tuple[ComparedColumn, ...]:
        """Columns of a table; of a domain the type below it counts."""
        rows = self._session.run(
            "SELECT a.attname::text, coalesce(b.typname, t.typname)::text,"
            " coalesce(b.typtype, t.typtype)::text, a.attgenerated::text"
            " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
            " LEFT JOIN pg_type b ON b.oid = nullif(t.typbasetype, 0)"
            f" WHERE a.attrelid = {literal(_relation(table))}::regclass"
            " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )
        return tuple(_column(*row) for row in rows)

    def count(self, table: str, where: str | None) -> int:
        """Number of rows."""
        ((rows,),) = self._session.run_alone(f"SELECT count(*) FROM {_from(table, where)}")
        return int(rows)

    def ranges(
        self, table: str, layout: DigestLayout, bits: int, where: str | None
    ) -> dict[int, Range]:
        """Number of rows and sum of hashes of each range that has rows."""
        total = "sum(('x' || substr(row_hash, 1, 15))::bit(60)::bigint)"
        rows = self._session.run_alone(
            f"SELECT {_number(bits)}, count(*), {total}::text"
            f" FROM ({self._hashed(table, layout, where)}) h GROUP BY 1"
        )
        return {int(number): Range(int(count), int(total)) for number, count, total in rows}

    def rows(
        self,
        table: str,
        layout: DigestLayout,
        bits: int,
        ranges: Collection[int],
        where: str | None,
    ) -> dict[str, RowState]:
        """The rows of some ranges by the hash of their key."""
        listed = ",".join(str(int(number)) for number in ranges)
        wanted = f"{_number(bits)} = ANY ('{{{listed}}}'::bigint[])"
        return self._states(table, layout, where, wanted)

    def keys(
        self, table: str, layout: DigestLayout, keys: Collection[str], where: str | None
    ) -> dict[str, RowState]:
        """The rows whose keys have one of the given hashes."""
        listed = ",".join(digest for digest in keys if _HASH.fullmatch(digest))
        return self._states(table, layout, where, f"key_hash = ANY ('{{{listed}}}'::text[])")

    def close(self) -> None:
        """End the transaction with its session."""
        self._session.close()

    def _states(
        self, table: str, layout: DigestLayout, where: str | None, wanted: str
    ) -> dict[str, RowState]:
        rows = self._session.run_alone(
            "SELECT key_hash, min(key_text), min(row_hash), count(*), min(version)"
            f" FROM ({self._hashed(table, layout, where)}) h WHERE {wanted} GROUP BY key_hash"
        )
        return {
            key: RowState(text, digest, int(copies), str(version))
            for key, text, digest, copies, version in rows
        }

    def _hashed(self, table: str, layout: DigestLayout, where: str | None) -> str:
        texts = {name: _TEXTS[kind](identifier(name)) for name, kind in layout.columns}
        row = _joined(list(texts.values()))
        key = _joined([texts[name] for name in layout.key]) if layout.key else row
        shown = ", ".join(f"coalesce({texts[name]}, 'NULL')" for name in layout.key)
        shown = f"concat_ws(', ', {shown})" if layout.key else key
        # The transaction that wrote the row: it changes with every change.
        version = "xmin::text" if layout.key else "''"
        # Of columns in several collations the texts would have none, and could not be grouped.
        return (
            f'SELECT {self._md5(key)} AS key_hash, ({shown}) COLLATE "C" AS key_text,'
            f" {self._md5(row)} AS row_hash, {version} AS version FROM {_from(table, where)}"
        )

    def _md5(self, text: str) -> str:
        text = f'({text}) COLLATE "C"'
        return f"md5({text})" if self._is_utf8 else f"md5(convert_to({text}, 'UTF8'))"


def _column(name: str, typname: str, typtype: str, generated: str) -> ComparedColumn:
    if generated:
        return ComparedColumn(name, None, "it is generated, and generated columns are not streamed")
    kind = TextForm.TEXT if typtype == "e" else _KINDS.get(typname)
    if kind is None:
        return ComparedColumn(name, None, f"values of type {typname} are not compared")
    return ComparedColumn(name, kind)


def _relation(table: str) -> str:
    schema, _, name = table.partition(".")
    return qualified(schema, name)


def _from(table: str, where: str | None) -> str:
    if not where:
        return _relation(table)
    return f"{_relation(table)} WHERE {checked_condition(where, 'postgresql', f'table {table}')}"


def _number(bits: int) -> str:
    return f"(('x' || substr(key_hash, 1, 8))::bit(32)::bigint >> {32 - bits})"


def _joined(texts: list[str]) -> str:
    """One text of several, from which each could be read again; NULL is one of its own."""
    parts = [f"coalesce('+' || length({text}) || ':' || {text}, '-')" for text in texts]
    return " || ".join(parts) or "''"


def _finite(column: str, text: str, bounds: tuple[int, int]) -> str:
    """A text; of infinities that of the first and last moment that a table has in their place."""
    first, last = bounds
    return (
        f"(CASE WHEN isfinite({column}) THEN {text} WHEN {column}::text = 'infinity'"
        f" THEN '{last}' WHEN {column} IS NOT NULL THEN '{first}' END)"
    )


def _bits(send: str, cast: str, bits: str, whole: str) -> Callable[[str], str]:
    """The bits of a floating number; the negative zero is the positive one."""
    return lambda column: (
        f"(('x' || encode({send}({column}::{cast} + 0::{cast}), 'hex'))"
        f"::bit({bits})::{whole}::text)"
    )


def _output(column: str) -> str:
    """What the type itself writes; a cast to text takes blanks from char(n)."""
    return f"(CASE WHEN {column} IS NOT NULL THEN concat({column}) END)"


_TEXTS: Final[Mapping[TextForm, Callable[[str], str]]] = {
    TextForm.WHOLE: lambda column: f"{column}::text",
    TextForm.NUMBER: lambda column: f"trim_scale({column}::numeric)::text",
    TextForm.DOUBLE: _bits("float8send", "float8", "64", "bigint"),
    TextForm.FLOAT: _bits("float4send", "float4", "32", "int"),
    TextForm.BOOLEAN: lambda column: f"{column}::text",
    TextForm.TEXT: _output,
    TextForm.BYTES: lambda column: f"encode({column}, 'hex')",
    TextForm.DATE: lambda column: _finite(
        column,
        f"({column} - date '1970-01-01')::text",
        (times.MIN_DAYS, times.MAX_DAYS),
    ),
    TextForm.TIME: lambda column: f"replace(to_char({column}, 'HH24:MI:SS.US'), '.000000', '')",
    TextForm.MICROS: lambda column: _finite(
        column,
        f"(extract(epoch FROM {column}) * 1000000)::bigint::text",
        (times.MIN_MICROS, times.MAX_MICROS),
    ),
}
_KINDS: Final[Mapping[str, TextForm]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), TextForm.WHOLE),
    **dict.fromkeys(("numeric", "money"), TextForm.NUMBER),
    "float8": TextForm.DOUBLE,
    "float4": TextForm.FLOAT,
    "bool": TextForm.BOOLEAN,
    **dict.fromkeys(
        ("text", "varchar", "bpchar", "name", "citext", "uuid", "json", "jsonb", "xml",
         "inet", "cidr", "macaddr", "macaddr8"),
        TextForm.TEXT,
    ),
    "bytea": TextForm.BYTES,
    "date": TextForm.DATE,
    "time": TextForm.TIME,
    **dict.fromkeys(("timestamp", "timestamptz"), TextForm.MICROS),
}  # fmt: skip
