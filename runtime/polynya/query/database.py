"""A DuckDB database in memory that reaches nothing outside itself but the files that it is told.

It gets rows as Arrow, or as names of data files, and gives answers as Arrow. It reaches no other
file, loads no extension and sees no environment variable. It never runs a user's text, only SQL
that this package makes.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import Lock
from typing import Final

import duckdb
import pyarrow as pa

from polynya.query.file_rows import FileRows
from polynya.query.statement_stop import current_stop
from polynya.query.translate import NotEmbeddedError
from polynya.query.values import quoted, text_literal

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # These make `n > 4` of `n + 1 > 5` and `sum(n) + count(n)` of `sum(n + 1)`: an overflow that
    # must be an error would pass.
    "disabled_optimizers": "expression_rewriter,statistics_propagation,sum_rewriter",
    # The tables change: what was read of their files is not worth its memory.
    "enable_external_file_cache": "false",
    "memory_limit": "2GB",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
#: Rows of an answer; a longer one is streamed by Spark.
MAX_ROWS: Final = 1_000_000
_BATCH_ROWS: Final = 100_000
#: Rows that a thread of DuckDB works on at a time.
_STREAMED_ROWS: Final = 128 * 1024


#: Empty databases for the next users, by the files that they reach: to make one takes longer than
#: to fold a few changes. By process, since a fork has none of their threads.
_idle: defaultdict[tuple[int, frozenset[str]], list[duckdb.DuckDBPyConnection]] = defaultdict(list)
#: More than one thread at a time seldom needs a database.
_MOST_IDLE: Final = 2


class EmbeddedDatabase:
    """A database in memory; `close` ends it. All raise NotEmbeddedError for what DuckDB refuses.

    `files` are paths of those that it may read.
    """

    def __init__(self, files: Collection[str] = ()) -> None:
        self._views: set[str] = set()
        self._loaded: set[str] = set()
        self._streams: list[_Stream] = []
        self._place = (os.getpid(), frozenset(files))
        try:
            self._connection = _idle[self._place].pop()
        except IndexError:
            self._connection = duckdb.connect(":memory:", config=_SETTINGS)
            if files:
                self._run(f"SET allowed_paths = [{', '.join(map(text_literal, files))}]")
            self._run("SET enable_external_access = false")
            self._run("SET TimeZone = 'UTC'")
            self._run("SET lock_configuration = true")

    def close(self) -> None:
        """Forget everything."""
        for stream in self._streams:
            stream.close()
        if self._place[1]:
            _end_others(self._place)
        idle = _idle[self._place]
        try:
            for view in self._views:
                self._connection.execute(f"DROP VIEW IF EXISTS {view}")
            for relation in self._loaded:
                self._connection.unregister(relation)
        except duckdb.Error:
            # Nothing is known about a database that cannot be emptied.
            self._connection.close()
            return
        if len(idle) < _MOST_IDLE:
            idle.append(self._connection)
        else:
            self._connection.close()

    def load(self, table: str, rows: pa.Table) -> None:
        """Make a relation of rows, in place of the former one. `table` is a plain name of ours."""
        # Not copied: that takes longer than most queries of the rows.
        self._register(f"{table}_rows", rows)
        self._show(table, rows.schema, f"{table}_rows")

    def stream(self, table: str, rows: pa.RecordBatchReader) -> None:
        """The same of rows that one query reads once, in batches, as it needs them."""
        stream = _Stream(rows)
        self._streams.append(stream)
        # As a bare stream: of a reader DuckDB would make a scan of Arrow with its own threads.
        self._register(f"{table}_rows", stream.exported())
        self._show(table, rows.schema, f"{table}_rows")

    def read(self, table: str, rows: FileRows, *, filtered: bool = True) -> None:
        """The same of rows of files, which must be among those that it may read.

        `filtered`: a query may choose among the rows.
        """
        for relation, loaded in rows.loaded(table).items():
            self._register(relation, loaded)
        self._show(table, rows.schema, f"({rows.sql(table)})", filtered=filtered)

    def _register(self, relation: str, rows: object) -> None:
        self._loaded.add(relation)
        with self._running():
            self._connection.register(relation, rows)

    def _show(self, table: str, schema: pa.Schema, source: str, *, filtered: bool = True) -> None:
        # Through an expression: Arrow would apply filters of plain columns with its own rules for
        # NaN, and DuckDB 1.4.4 skips files without statistics for IS NULL. It costs a copy.
        value = "CASE WHEN true THEN {0} END AS {0}" if filtered else "{0}"
        shown = (value.format(quoted(name)) for name in schema.names)
        self._views.add(table)
        self._run(f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT {', '.join(shown)} FROM {source}")

    def has_rows(self, sql: str) -> bool:
        """Whether a query has any row."""
        with self._running():
            found = self._connection.execute(f"SELECT 1 FROM ({sql}) LIMIT 1").fetchone()
        return found is not None

    def answer(self, sql: str, schema: pa.Schema, limit: int | None) -> list[pa.RecordBatch]:
        """The rows of a query with the names and types of a schema; at most `limit` of them.

        Raises what stops the statement, also where its rows take too much memory.
        """
        batches: list[pa.RecordBatch] = []
        stop, rows = current_stop(), 0
        for batch in self.batches(sql, schema, min(_BATCH_ROWS, limit or _BATCH_ROWS)):
            batches.append(batch)
            stop.count(batch.nbytes)
            rows += batch.num_rows
            if limit is not None and rows >= limit:
                batches[-1] = batches[-1].slice(0, batch.num_rows - (rows - limit))
                break
            if rows > MAX_ROWS:
                raise NotEmbeddedError(f"an answer of more than {MAX_ROWS:,} rows")
        return batches

    def batches(
        self, sql: str, schema: pa.Schema, size: int = _BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a query as they come, with the names and types of a schema."""
        with self._running():
            for batch in self._connection.execute(sql).fetch_record_batch(size):
                yield cast_to(batch, schema)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Ask DuckDB in the block, where the statement can be stopped."""
        stop = current_stop()
        try:
            with stop.interrupting(self._connection.interrupt):
                yield
        except (duckdb.Error, pa.ArrowException) as error:
            stop.check()
            for stream in self._streams:
                stream.check()
            raise _refused(error) from error

    def _run(self, sql: str) -> None:
        with self._running():
            self._connection.execute(sql)


def _end_others(place: tuple[int, frozenset[str]]) -> None:
    """End idle databases for other files: a table gets new ones with each commit."""
    for other in [one for one in list(_idle) if one[1] and one != place]:
        for connection in _idle.pop(other, []):
            connection.close()


class _Stream:
    """Batches that DuckDB asks for from its own threads, in the context of the statement."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._rows, self._context = rows, copy_context()
        self._lock, self._ended = Lock(), False
        self._error: Exception | None = None

    def exported(self) -> object:
        """A stream of Arrow's C interface, which is read once."""
        reader = pa.RecordBatchReader.from_batches(self._rows.schema, self._batches())
        return reader.__arrow_c_stream__()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            yield from (
                batch.slice(at, _STREAMED_ROWS) for at in range(0, batch.num_rows, _STREAMED_ROWS)
            )

    def _next(self) -> pa.RecordBatch | None:
        with self._lock:
            if self._ended:
                return None
            try:
                return self._context.run(next, self._rows, None)
            except Exception as error:
                # What reaches DuckDB is only its text.
                self._error = error
                raise

    def check(self) -> None:
        """Raise what ended the rows."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Read no more rows; those that are being read are waited for."""
        with self._lock:
            self._ended = True
            self._rows.close()


def cast_to(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a batch, in their order, with the names and types of a schema.

    Raises pyarrow.ArrowException for a value that a type cannot hold.
    """
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _refused(error: BaseException) -> NotEmbeddedError:
    text = str(error).splitlines()
    return NotEmbeddedError(f"DuckDB: {text[0] if text else type(error).__name__}")
