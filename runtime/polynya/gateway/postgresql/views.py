"""A consistent view of a database, which several threads read tables from."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from polynya.gateway.conditions import condition
from polynya.gateway.postgresql import lines, paging
from polynya.gateway.postgresql.errors import changed
from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.slots import Exported, transactions_seen
from polynya.gateway.postgresql.sql import literal
from polynya.gateway.postgresql.tables import PgTable
from polynya.gateway.reading_order import KeyChangedError, another_key
from polynya.gateway.source import Access, Chunk, Key, SourceTable, Whole
from polynya.model.errors import PolynyaError

# Control characters stand in no JSON, so nothing is ever quoted and each row is a line as it is.
_FORMAT = "(FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01', ENCODING 'UTF8')"
# The view shows the files that a table had then, the functions those that it has now.
_REWRITTEN = """\
SELECT count(*) FROM pg_class c WHERE (c.oid = {oid} OR c.oid IN
  (SELECT p.relid FROM pg_partition_tree({oid}) p))
  AND c.relkind = 'r' AND c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid)
"""


class View:
    """What a database was at one place of its log. `source` is what its rows carry."""

    def __init__(
        self,
        access: Access,
        exported: Exported,
        tables: Mapping[str, PgTable],
        source: Mapping[str, Any],
    ) -> None:
        """Take over a view that was exported; it is closed with this."""
        self._access, self._exported, self._tables = access, exported, tables
        self._source = dict(source)
        self._idle: list[Session] = []
        self._open: set[Session] = set()
        self._lengths: dict[str, float] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def source(self) -> Mapping[str, Any]:
        """The place of its rows in the order of all changes."""
        return self._source

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        """The Connect schema of its rows of a table."""
        return lines.envelope(self._tables[table.name], str(self._source["name"]))

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        """The next rows of a table.

        By its key; without one by blocks, and a partitioned table without one comes whole.

        Raises:
            DependencyError: POLYNYA-GTW-033, the table was written anew since the view began, or
                changed its columns: it needs a later view. POLYNYA-GTW-020.
            OperationError: POLYNYA-GTW-047, its key is another one since `after` was read.
        """
        found = self._tables[table.name]
        conditions = self._conditions(found, where)
        rows = paging.affordable(found, rows, self._lengths.get(found.name))
        with self._session() as session:
            if found.key:
                chunk = self._by_key(session, found, after, rows, conditions)
            elif found.kind == "p":
                chunk = self._copied(session, found, conditions, last=None, is_last=True)
            else:
                chunk = self._by_blocks(session, found, after, rows, conditions)
            self._refuse_rewritten(session, found)
        return chunk

    @contextmanager
    def whole(self, table: SourceTable, rows: int, where: str | None) -> Iterator[Whole]:
        """All rows of a table, and which transactions they have. Raises as `read`."""
        with self._session() as session:
            # The name of all releases; the numbers are whole, not their last 32 bits.
            (numbers,) = session.run("SELECT txid_current_snapshot()::text")[0]
        yield Whole(
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
        for one in ended:
            one.close()
        self._exported.holder.close()

    def _conditions(self, table: PgTable, where: str | None) -> list[str]:
        given = (where, self._access.rows.get(table.name))
        return [condition(one, self._access, table.name) for one in given if one]

    def _refuse_rewritten(self, session: Session, table: PgTable) -> None:
        if session.run(_REWRITTEN.format(oid=table.oid)) != [[0]]:
            raise changed(self._access, f"{table.name} was truncated or rewritten")

    def _by_key(
        self, session: Session, table: PgTable, after: Key | None, rows: int, given: list[str]
    ) -> Chunk:
        order = paging.reading_order(table)
        try:
            values = order.values(after)
        except KeyChangedError:
            raise another_key(self._access, table.name) from None
        conditions = [*given, *paging.beyond(table, values)]
        texts, place = paging.key_texts(table), f"FROM {table.sql} {lines.ROW}{_where(conditions)}"
        bound = session.run_alone(
            f"SELECT {texts} {place} ORDER BY {paging.key_order(table)} OFFSET {rows - 1} LIMIT 1"
        )
        if bound:
            conditions += paging.up_to(table, bound[0])
            place_of_last = order.place(bound[0])
            return self._copied(session, table, conditions, last=place_of_last, is_last=False)
        end = session.run_alone(
            f"SELECT {texts} {place} ORDER BY {paging.key_order(table, descending=True)} LIMIT 1"
        )
        last = order.place(end[0]) if end else None
        return self._copied(session, table, conditions, last=last, is_last=True)

    def _by_blocks(
        self, session: Session, table: PgTable, after: Key | None, rows: int, given: list[str]
    ) -> Chunk:
        if after is not None and not isinstance(after[0], int):
            raise another_key(self._access, table.name)
        name = literal(table.sql.removeprefix("ONLY "))
        blocks = int(session.run(
            f"SELECT pg_relation_size({name}::regclass) / current_setting('block_size')::int"
        )[0][0])  # fmt: skip
        first, step = 0 if after is None else after[0], paging.blocks_for(table, rows, blocks)
        while True:
            end = first + step
            is_last = end >= blocks
            conditions = [*given, *paging.in_blocks(first, None if is_last else end)]
            chunk = self._copied(session, table, conditions, last=(end,), is_last=is_last)
            if chunk.rows or is_last:
                return chunk
            first = end

    def _copied(
        self, session: Session, table: PgTable, conditions: Sequence[str], *, last: Key | None,
        is_last: bool,
    ) -> Chunk:  # fmt: skip
        taken: list[bytes] = []
        query = f"SELECT {lines.line(table, self._source)} FROM {table.sql} {lines.ROW}"
        session.copy(f"COPY ({query}{_where(conditions)}) TO STDOUT {_FORMAT}", taken.append)
        content = b"".join(taken)
        if taken:
            self._lengths[table.name] = len(content) / len(taken)
        return Chunk(content, len(taken), last if taken else None, is_last)

    @contextmanager
    def _session(self) -> Iterator[Session]:
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

    def _end(self, session: Session) -> None:
        with self._lock:
            self._open.discard(session)
        session.close()

    def _borrowed(self) -> Session:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        session = Session(self._access)
        try:
            session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            session.run(f"SET TRANSACTION SNAPSHOT {literal(self._exported.view)}")
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
