"""The first load of a PostgreSQL table: consistent views, pages of rows, event lines.

Loads without changes (`PostgresReloadSnapshot`) also read what the log has no changes of: views,
foreign and unlogged tables, tables without key. A cursor reads those without key, and the number of
a row is its key.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from polynya.capture.conditions import condition
from polynya.capture.postgresql import growing
from polynya.capture.postgresql.copied_lines import FORMAT, CopiedLines
from polynya.capture.postgresql.session import PostgresSession, identifier, literal, lsn_number
from polynya.capture.postgresql.slots import ExportedSnapshot, transactions_seen
from polynya.capture.postgresql.tables import PgColumn, PgTable, field_schema
from polynya.capture.postgresql.types import ROW_NUMBER_TYPE
from polynya.capture.reading_order import KeyChangedError, ReadingOrder, another_key
from polynya.capture.source import (
    ROW_NUMBER,
    Access,
    Chunk,
    GrowingColumn,
    Key,
    SourceTable,
    WholeTable,
)
from polynya.model.error_catalogue.capture_databases import (
    POSTGRESQL_TABLE_CHANGED,
    POSTGRESQL_UNREACHABLE,
)
from polynya.model.errors import OperationError, PolynyaError

#: What a row is called in statements.
ROW: Final = "t"

_MARKERS: Final = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)
_SOURCE_FIELDS: Final = (
    {"type": "string", "optional": False, "field": "version"},
    {"type": "string", "optional": False, "field": "connector"},
    {"type": "string", "optional": False, "field": "name"},
    {"type": "int64", "optional": False, "field": "ts_ms"},
    {
        "type": "string", "optional": True, "name": "io.debezium.data.Enum", "version": 1,
        "parameters": {"allowed": _MARKERS}, "default": "false", "field": "snapshot",
    },
    {"type": "string", "optional": False, "field": "db"},
    {"type": "string", "optional": True, "field": "sequence"},
    {"type": "int64", "optional": True, "field": "ts_us"},
    {"type": "int64", "optional": True, "field": "ts_ns"},
    {"type": "string", "optional": False, "field": "schema"},
    {"type": "string", "optional": False, "field": "table"},
    {"type": "int64", "optional": True, "field": "txId"},
    {"type": "int64", "optional": True, "field": "lsn"},
    {"type": "int64", "optional": True, "field": "xmin"},
    {"type": "string", "optional": True, "field": "origin"},
    {"type": "int64", "optional": True, "field": "origin_lsn"},
)  # fmt: skip
_TRANSACTION: Final = {
    "type": "struct",
    "fields": [
        {"type": "string", "optional": False, "field": "id"},
        {"type": "int64", "optional": False, "field": "total_order"},
        {"type": "int64", "optional": False, "field": "data_collection_order"},
    ],
    "optional": True, "name": "event.block", "version": 1, "field": "transaction",
}  # fmt: skip


def envelope(table: PgTable, prefix: str) -> dict[str, Any]:
    """The Connect schema of the value of a row's event; `prefix` is the capture's own name."""
    topic = f"{prefix}.{table.name}"
    row = {
        "type": "struct",
        "fields": [field_schema(column) for column in table.columns],
        "optional": True,
        "name": f"{topic}.Value",
    }
    source = {
        "type": "struct",
        "fields": list(_SOURCE_FIELDS),
        "optional": False,
        "name": "io.debezium.connector.postgresql.Source",
        "version": 1,
        "field": "source",
    }
    times = [
        {"type": "int64", "optional": True, "field": name} for name in ("ts_ms", "ts_us", "ts_ns")
    ]
    operation = {"type": "string", "optional": False, "field": "op"}
    return {
        "type": "struct",
        "fields": [
            {**row, "field": "before"}, {**row, "field": "after"},
            source, _TRANSACTION, operation, *times,
        ],
        "optional": False, "name": f"{topic}.Envelope", "version": 2,
    }  # fmt: skip


def source_of(*, database: str, prefix: str, lsn: int, micros: int, version: str) -> dict[str, Any]:
    """What rows of a consistent view carry as `source`, without their table."""
    return {
        "version": version, "connector": "postgresql", "name": prefix, "ts_ms": micros // 1000,
        "snapshot": "true", "db": database, "sequence": None, "ts_us": micros,
        "ts_ns": micros * 1000, "schema": "", "table": "", "txId": None, "lsn": lsn,
        "xmin": None, "origin": None, "origin_lsn": None,
    }  # fmt: skip


def line(table: PgTable, source: Mapping[str, Any]) -> str:
    """SQL of the event line of a row, without the end of line; it holds no control characters."""
    parts = line_parts(table, source)
    return " || ".join(literal(one) if isinstance(one, str) else value(one) for one in parts)


def line_parts(table: PgTable, source: Mapping[str, Any]) -> list[str | PgColumn]:
    """The event line of a row: texts, and columns whose `value` stands between them."""
    row_source = {**source, "schema": table.schema, "table": table.relation}
    by_name = {item.name: item for item in table.columns}
    key = _object(by_name[name] for name in table.key) if table.key else ["null"]
    times = {name: source[name] for name in ("ts_ms", "ts_us", "ts_ns")}
    rest = {"source": row_source, "transaction": None, "op": "r", **times}
    tail = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))[1:]
    return [
        '{"key":', *key, ',"value":{"before":null,"after":', *_object(table.columns), f",{tail}}}",
    ]  # fmt: skip


def value(item: PgColumn) -> str:
    """SQL of a value of a row as JSON; it holds no control characters and is never empty."""
    return f"coalesce({item.written.encode(column(item.name))}, 'null')"


def column(name: str) -> str:
    """SQL of a column of the row."""
    return f"{ROW}.{identifier(name)}"


def _object(columns: Iterable[PgColumn]) -> list[str | PgColumn]:
    parts: list[str | PgColumn] = []
    for item in columns:
        name = json.dumps(item.name, ensure_ascii=False)
        parts += [f"{',' if parts else '{'}{name}:", item]
    return [*parts, "}"] if parts else ["{}"]


#: Bytes of rows that are held in memory at a time; very long rows come in smaller chunks.
MOST_BYTES: Final = 32 << 20
#: Rows per block of 8 kB while there are no statistics.
_ROWS_A_BLOCK: Final = 50


def reading_order(table: PgTable) -> ReadingOrder:
    """The order of the pages, as a load remembers it."""
    types = {item.name: item.type_name for item in table.columns}
    return ReadingOrder(
        tuple(
            (name, f"{types[name]} {collation}".rstrip())
            for name, collation in zip(table.key, table.collations, strict=True)
        )
    )


def beyond(table: PgTable, values: Sequence[str] | None) -> list[str]:
    """Conditions for the rows after a key, in the order of the key's own index.

    The key's values are the texts that the server gave; it compares them by the types of the
    columns and the collations of the index, so the order of pages is that of the index, whatever
    it is.
    """
    if values is None:
        return []
    return [f"{_tuple(table)} > {_values(table, values)}"]


def up_to(table: PgTable, last: Sequence[str]) -> list[str]:
    """Conditions for the rows up to a key."""
    return [f"{_tuple(table)} <= {_values(table, last)}"]


def key_texts(table: PgTable) -> str:
    """The key of a row as texts, for a list of what is selected."""
    return ", ".join(f"{column(name)}::text" for name in table.key)


def key_order(table: PgTable, *, descending: bool = False) -> str:
    """The key as a list of what to order by."""
    end = " DESC" if descending else ""
    return ", ".join(f"{name}{end}" for name in _compared(table))


def blocks_for(table: PgTable, rows: int, blocks: int) -> int:
    """How many blocks of a table without key make about so many rows, at least one."""
    density = table.rows / blocks if table.rows and blocks else _ROWS_A_BLOCK
    return max(1, int(rows / max(density, 0.01)))


def in_blocks(first: int, end: int | None) -> list[str]:
    """Conditions for rows by their blocks, from the first up to before the end."""
    conditions = [f"{ROW}.ctid >= '({first},0)'::tid"]
    return conditions if end is None else [*conditions, f"{ROW}.ctid < '({end},0)'::tid"]


def affordable(table: PgTable, rows: int, seen: float | None) -> int:
    """How many rows are read at a time, so that they fit in memory.

    Args:
        table: with its statistics.
        rows: wanted.
        seen: bytes of an average line so far; None: by the statistics.
    """
    if seen is None and table.rows and table.bytes:
        # Lines are longer than stored rows: names of columns, and what is compressed.
        seen = 3 * table.bytes / table.rows
    return max(1, min(rows, int(MOST_BYTES / max(seen or 1.0, 1.0))))


def _compared(table: PgTable) -> list[str]:
    """The columns of the key as its index compares them."""
    return [
        f"{column(name)} COLLATE {collation}" if collation else column(name)
        for name, collation in zip(table.key, table.collations, strict=True)
    ]


def _tuple(table: PgTable) -> str:
    names = _compared(table)
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _values(table: PgTable, key: Sequence[str]) -> str:
    types = {item.name: item.type_name for item in table.columns}
    values = [
        f"{literal(str(value))}::{types[name]}" for name, value in zip(table.key, key, strict=True)
    ]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


# The view shows the files that a table had then, the functions those that it has now.
_REWRITTEN = """\
SELECT count(*) FROM pg_class c WHERE (c.oid = {oid} OR c.oid IN
  (SELECT p.relid FROM pg_partition_tree({oid}) p))
  AND c.relkind = 'r' AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid)
"""


class PostgresSnapshot:
    """What a database was at one place of its log. `source` is what its rows carry."""

    def __init__(
        self,
        access: Access,
        exported: ExportedSnapshot,
        tables: Mapping[str, PgTable],
        source: Mapping[str, Any],
    ) -> None:
        """Take over a view that was exported; it is closed with this."""
        self._access, self._exported, self._tables = access, exported, tables
        self._source = dict(source)
        self._idle: list[PostgresSession] = []
        self._open: set[PostgresSession] = set()
        self._lengths: dict[str, float] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def source(self) -> Mapping[str, Any]:
        """The place of its rows in the order of all changes."""
        return self._source

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        """The Connect schema of its rows of a table."""
        return envelope(self._tables[table.name], str(self._source["name"]))

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        """The next rows of a table.

        By its key; without one by blocks, and a partitioned table without one comes whole.

        Raises:
            DependencyError: POLYNYA-GTW-033, the table was rewritten since the view began, or
                changed its columns: it needs a later view. POLYNYA-GTW-020.
            OperationError: POLYNYA-GTW-047, its key is another one since `after` was read.
        """
        relation = self._tables[table.name]
        conditions = self._conditions(relation, where)
        rows = affordable(relation, rows, self._lengths.get(relation.name))
        with self._session() as session:
            if relation.key:
                chunk = self._by_key(session, relation, after, rows, conditions)
            elif relation.kind == "p":
                chunk = self._copied(session, relation, conditions, last=None, is_last=True)
            else:
                chunk = self._by_blocks(session, relation, after, rows, conditions)
            self._refuse_rewritten(session, relation)
        return chunk

    @contextmanager
    def whole(self, table: SourceTable, rows: int, where: str | None) -> Iterator[WholeTable]:
        """All rows of a table, and which transactions they have. Raises as `read`."""
        with self._session() as session:
            # The name of all releases; the numbers are whole, not their last 32 bits.
            (numbers,) = session.run("SELECT txid_current_snapshot()::text")[0]
        yield WholeTable(
            transactions_seen(self._exported.lsn, str(numbers)), self._chunks(table, rows, where)
        )

    def _chunks(self, table: SourceTable, rows: int, where: str | None) -> Iterator[Chunk]:
        after, is_last = None, False
        while not is_last:
            chunk = self.read(table, after, rows, where)
            after, is_last = chunk.last, chunk.is_last
            yield chunk

    def close(self) -> None:
        """End its sessions, also those that read."""
        with self._lock:
            self._is_closed = True
            ended, self._open, self._idle = [*self._open], set(), []
        for session in ended:
            session.close()
        self._exported.holder.close()

    def _conditions(self, table: PgTable, where: str | None) -> list[str]:
        given = (where, self._access.rows.get(table.name))
        return [condition(text, self._access, table.name) for text in given if text]

    def _refuse_rewritten(self, session: PostgresSession, table: PgTable) -> None:
        if session.run(_REWRITTEN.format(oid=table.oid)) != [[0]]:
            raise POSTGRESQL_TABLE_CHANGED(
                where=self._access.task, why=f"{table.name} was truncated or rewritten"
            )

    def _by_key(
        self,
        session: PostgresSession,
        table: PgTable,
        after: Key | None,
        rows: int,
        given: list[str],
    ) -> Chunk:
        order = reading_order(table)
        try:
            values = order.values(after)
        except KeyChangedError:
            raise another_key(self._access, table.name) from None
        conditions = [*given, *beyond(table, values)]
        texts, relation = key_texts(table), f"FROM {table.sql} {ROW}{_where(conditions)}"
        bound = session.run_alone(
            f"SELECT {texts} {relation} ORDER BY {key_order(table)} OFFSET {rows - 1} LIMIT 1"
        )
        if bound:
            conditions += up_to(table, bound[0])
            place_of_last = order.place(bound[0])
            return self._copied(session, table, conditions, last=place_of_last, is_last=False)
        end = session.run_alone(
            f"SELECT {texts} {relation} ORDER BY {key_order(table, descending=True)} LIMIT 1"
        )
        last = order.place(end[0]) if end else None
        return self._copied(session, table, conditions, last=last, is_last=True)

    def _by_blocks(
        self,
        session: PostgresSession,
        table: PgTable,
        after: Key | None,
        rows: int,
        given: list[str],
    ) -> Chunk:
        if after is not None and not isinstance(after[0], int):
            raise another_key(self._access, table.name)
        name = literal(table.sql.removeprefix("ONLY "))
        blocks = int(session.run(
            f"SELECT pg_relation_size({name}::regclass) / current_setting('block_size')::int"
        )[0][0])  # fmt: skip
        first, step = 0 if after is None else after[0], blocks_for(table, rows, blocks)
        while True:
            end = first + step
            is_last = end >= blocks
            conditions = [*given, *in_blocks(first, None if is_last else end)]
            chunk = self._copied(session, table, conditions, last=(end,), is_last=is_last)
            if chunk.rows or is_last:
                return chunk
            first = end

    def _copied(
        self,
        session: PostgresSession,
        table: PgTable,
        conditions: Sequence[str],
        *,
        last: Key | None,
        is_last: bool,
    ) -> Chunk:
        lines = CopiedLines(table.columns, line_parts(table, self._source))
        selected = ", ".join(map(value, table.columns))
        query = f"SELECT {selected} FROM {table.sql} {ROW}{_where(conditions)}"
        session.copy(f"COPY ({query}) TO STDOUT {FORMAT}", lines.write)
        content = lines.content()
        if lines.rows:
            self._lengths[table.name] = len(content) / lines.rows
        return Chunk(content, lines.rows, last if lines.rows else None, is_last)

    @contextmanager
    def _session(self) -> Iterator[PostgresSession]:
        """A session in the view; one that failed is not used again."""
        session = self._borrowed()
        try:
            yield session
        except BaseException:
            self._end(session)
            raise
        with self._lock:
            if not self._is_closed:
                self._idle.append(session)

    def _end(self, session: PostgresSession) -> None:
        with self._lock:
            self._open.discard(session)
        session.close()

    def _borrowed(self) -> PostgresSession:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        session = PostgresSession(self._access)
        try:
            session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                session.run(f"SET TRANSACTION SNAPSHOT {literal(self._exported.view)}")
            except OperationError as error:
                # The view went with the session that exported it, as when the server restarts.
                # Another try would meet this again: only a new round has another view.
                raise POSTGRESQL_UNREACHABLE(where=error.where, why=error.why) from error
            # A range of keys is read by the key's index, also before there are statistics.
            session.run("SET LOCAL enable_seqscan TO off")
        except PolynyaError:
            session.close()
            raise
        with self._lock:
            self._open.add(session)
        return session


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


#: Rows that are read first of what has no statistics; then their length is known.
_FIRST_ROWS: Final = 1_000
_CURSOR: Final = "polynya_rows"
# A server that follows another one has only replayed what that one wrote.
_PLACE: Final = (
    "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
    "ELSE pg_current_wal_insert_lsn() END)::text"
)


def export(access: Access) -> ExportedSnapshot:
    """A view of what is there now. Raises OperationError and DependencyError."""
    holder = PostgresSession(access)
    try:
        holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        view = holder.run("SELECT pg_export_snapshot()")[0][0]
        lsn = holder.run(_PLACE)[0][0]
    except BaseException:
        holder.close()
        raise
    return ExportedSnapshot(lsn_number(str(lsn)), str(view), holder)


def numbered(table: PgTable) -> PgTable:
    """A table whose rows have their number as key."""
    column = PgColumn(ROW_NUMBER, "bigint", nullable=False, written=ROW_NUMBER_TYPE)
    return replace(table, columns=(column, *table.columns), key=(ROW_NUMBER,))


class PostgresReloadSnapshot(PostgresSnapshot):
    """What a database was at one moment. A table without key is read by one thread at a time."""

    def __init__(
        self,
        access: Access,
        exported: ExportedSnapshot,
        tables: Mapping[str, PgTable],
        source: Mapping[str, Any],
    ) -> None:
        """Take over a view that was exported; it is closed with this."""
        # Settings may name a key that is none, or has NULLs: pages by it would skip rows.
        self._by_cursor = frozenset(
            name for name, table in tables.items() if not table.key or name in access.keys
        )
        shown = {name: table if table.key else numbered(table) for name, table in tables.items()}
        super().__init__(access, exported, shown, source)
        self._cursors: dict[str, tuple[PostgresSession, int]] = {}

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        """The next rows of a table. Raises as a view does."""
        if table.name not in self._by_cursor:
            return super().read(table, after, rows, where)
        relation, begin = self._tables[table.name], 0 if after is None else int(after[0])
        session = self._at(relation, begin)
        if session is None:
            query = _numbered_rows(relation, self._source, self._conditions(relation, where))
            session = self._opened(query)
            if begin:
                session.run(f"MOVE FORWARD {begin} IN {_CURSOR}")
        return self._next(session, relation, begin, rows)

    def newest(self, table: SourceTable, column: str) -> str | None:
        """The greatest value of a column as text; None: it has none."""
        relation = self._tables[table.name]
        name = growing.finite_value(relation, column)
        with self._session() as session:
            found = session.run_alone(f"SELECT max({name})::text FROM {relation.sql} {ROW}")
        greatest: str | None = found[0][0]
        return greatest

    def read_grown(
        self,
        table: SourceTable,
        column: GrowingColumn,
        after: Key | None,
        rows: int,
        where: str | None,
    ) -> Chunk:
        """The next rows in the order of a column, as `GrowingSnapshot` says. Raises as `read`."""
        relation, begin = self._tables[table.name], 0 if after is None else int(after[0])
        session = self._at(relation, begin)
        if session is None:
            conditions = [
                *self._conditions(relation, where), *growing.conditions(relation, column, after)
            ]  # fmt: skip
            name = growing.value(column.name)
            session = self._opened(
                f"SELECT {line(relation, self._source)}, {name}::text "
                f"FROM {relation.sql} {ROW}{_where(conditions)} ORDER BY {name}"
            )
        return self._next(session, relation, begin, rows)

    def lacks_index(self, table: SourceTable, column: str) -> str | None:
        """Why the database reads the whole table for each extraction; None: it has an index."""
        relation = self._tables[table.name]
        with self._session() as session:
            return growing.lacks_index(session, relation, column)

    def _next(self, session: PostgresSession, relation: PgTable, begin: int, rows: int) -> Chunk:
        """The next rows of the cursor of a session, which stays open for those after them."""
        if relation.name not in self._lengths:
            rows = min(rows, _FIRST_ROWS)
        rows = affordable(relation, rows, self._lengths.get(relation.name))
        try:
            chunk = self._fetched(session, relation, begin, rows)
            self._refuse_rewritten(session, relation)
        except BaseException:
            self._end(session)
            raise
        if chunk.is_last:
            self._end(session)
        else:
            self._cursors[relation.name] = session, begin + chunk.rows
        return chunk

    def _at(self, table: PgTable, begin: int) -> PostgresSession | None:
        """A session with a cursor that stands before a row; None: there is none."""
        session, at = self._cursors.pop(table.name, (None, 0))
        if session is not None and at != begin:
            self._end(session)
            session = None
        return session

    def _opened(self, query: str) -> PostgresSession:
        """A session with a cursor for a query."""
        session = self._borrowed()
        try:
            # What stands behind a view may need any plan.
            session.run("SET LOCAL enable_seqscan TO on")
            session.run("SET LOCAL cursor_tuple_fraction TO 1")
            session.run_alone(f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR {query}")
        except BaseException:
            self._end(session)
            raise
        return session

    def _fetched(self, session: PostgresSession, table: PgTable, begin: int, rows: int) -> Chunk:
        fetched = session.run(f"FETCH FORWARD {rows} FROM {_CURSOR}")
        content = "".join(f"{row[0]}\n" for row in fetched).encode()
        if fetched:
            self._lengths[table.name] = len(content) / len(fetched)
        # Behind the line is the value of a column that grows.
        last = (begin + len(fetched), *fetched[-1][1:]) if fetched else None
        return Chunk(content, len(fetched), last, is_last=len(fetched) < rows)


def _numbered_rows(table: PgTable, source: Mapping[str, Any], conditions: Sequence[str]) -> str:
    """Query of the lines of a table whose rows have their number."""
    rows = (
        f"SELECT {ROW}.*, row_number() OVER () AS {identifier(ROW_NUMBER)} "
        f"FROM {table.sql} {ROW}{_where(conditions)}"
    )
    return f"SELECT {line(table, source)} FROM ({rows}) {ROW}"
