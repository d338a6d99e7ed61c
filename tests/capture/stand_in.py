"""A database that is no database, and an engine that reads its log: as a capture meets them.

Its log is one of transactions with places that grow. The engine behaves as Debezium does for
PostgreSQL: it goes on after the end of the transaction that an offset names.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition
from polynya.capture.landing.stream import StreamEvent, TakeEvents
from polynya.capture.source import (
    CaptureStart,
    Chunk,
    ConnectionFinding,
    Key,
    Lag,
    Offset,
    SourceColumn,
    SourceDatabase,
    SourceTable,
    WholeTable,
)
from polynya.capture.wire import TableError
from polynya.model.errors import DependencyError, OperationError, PolynyaError

ENVELOPE = {
    "type": "struct",
    "fields": [
        {
            "type": "struct",
            "field": name,
            "optional": True,
            "fields": [
                {"type": "int32", "field": "id"},
                {"type": "string", "field": "v", "optional": True},
            ],
        }
        for name in ("before", "after")
    ],
}


def a_table(name: str, key: tuple[str, ...] = ("id",)) -> SourceTable:
    """A table of the stand-in: a number and a text."""
    columns = (
        SourceColumn("id", "int", nullable=False, connect={"type": "int32"}),
        SourceColumn("v", "text", nullable=True, connect={"type": "string"}),
    )
    return SourceTable(name, columns, key)


@dataclass(slots=True)
class StandIn:
    """A database with a log.

    Attributes:
        rows: of each table, by key.
        log: records of the stream in their order.
        kept_from: the log before this place is gone.
        identities: which table has a name.
        unfollowed: tables that somebody took out of the stream, until a view is made again.
        keyless: tables without key.
        filled: number of the newest column that has a default, of a table of two columns at first.
        between: is called between two chunks, for whoever writes meanwhile.
        views: that are open.
        outside: tables that cannot be captured.
        unreadable: texts that the engine cannot read, each in a change of one table.
    """

    rows: dict[str, dict[int, str]]
    log: list[StreamEvent] = field(default_factory=list)
    at: int = 1000
    transaction: int = 1
    kept_from: int = 0
    has_slot: bool = False
    identities: dict[str, str] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)
    unfollowed: set[str] = field(default_factory=set)
    keyless: set[str] = field(default_factory=set)
    between: Callable[[], None] = lambda: None
    failing: dict[str, list[PolynyaError]] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)
    connector: str = "postgresql"

    def commit(self, *changes: tuple[str, str, int, str]) -> None:
        """One transaction of changes `(operation, table, id, text)`; those of one call interleave.

        All changes of a pair of neighbours share one place in the log, as the rows of a COPY do.
        """
        with self.lock:
            before = self.at
            for order, (operation, table, key, text) in enumerate(changes, 1):
                if order % 2:
                    self.at += 10
                self._change(operation, table, key, text)
                self._log(before, order, operation, table, key, text)
            self.at += 10
            self.log.append(self._end())
            self.transaction += 1

    def forget(self, table: str, key: int) -> None:
        """A row goes, and nothing in the log says so."""
        self.rows[table].pop(key)
        self.at += 10

    def _change(self, operation: str, table: str, key: int, text: str) -> None:
        if operation == "d":
            self.rows[table].pop(key, None)
        elif operation == "t":
            self.rows[table].clear()
        else:
            self.rows[table][key] = text

    def _log(
        self, before: int, order: int, operation: str, table: str, key: int, text: str
    ) -> None:
        space, _, name = table.partition(".")
        source = {
            "connector": "postgresql", "schema": space, "table": name, "lsn": self.at,
            "sequence": json.dumps([str(before), str(self.at)]), "snapshot": "false",
            "txId": self.transaction,
        }  # fmt: skip
        row = {"id": key, "v": text}
        value = {
            "op": operation,
            "before": {"id": key, "v": None} if operation == "d" else None,
            "after": None if operation in "dt" else row,
            "source": source,
            "transaction": {"id": str(self.transaction), "total_order": order},
        }
        has_key = operation != "t" and table not in self.keyless
        line = json.dumps({"key": {"id": key} if has_key else None, "value": value})
        offset = {"lsn": self.at, "lsn_commit": before, "txId": self.transaction}
        self.log.append(
            StreamEvent(
                "row", line.encode() + b"\n", lambda: offset, table, ENVELOPE, lambda: offset
            )
        )

    def _end(self) -> StreamEvent:
        offset = {"lsn": self.at, "lsn_commit": self.at, "txId": self.transaction}
        return StreamEvent("end", b"", lambda: offset, record=lambda: offset)

    # The protocol.

    def findings(self) -> tuple[ConnectionFinding, ...]:
        return ()

    def tables(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[SourceTable, ...]:
        return tuple(
            replace(
                a_table(name, () if name in self.keyless else ("id",)),
                identity=self.identities.get(name, "first"),
                columns_made=max(2, self.filled.get(name, 0)),
                columns_filled=self.filled.get(name, 0),
                is_followed=name not in self.unfollowed,
            )
            for name in self.rows
        )

    def begin(self, tables: Sequence[SourceTable]) -> CaptureStart:
        with self.lock:
            self.has_slot = True
            self.kept_from = self.at
            offset = {"lsn": self.at, "lsn_commit": self.at, "txId": None}
            return CaptureStart(offset, View(self, self.at))

    def look(self, tables: Sequence[SourceTable], beyond: Offset | None) -> CaptureStart:
        with self.lock:
            self.at += 10
            return CaptureStart({"lsn": self.at, "lsn_commit": self.at}, View(self, self.at))

    def resume(self, tables: Sequence[SourceTable]) -> View:
        for one in tables:
            if one.name in self.outside:
                said = OperationError("POLYNYA-GTW-025", f"{one.name} has no replica identity")
                raise TableError.of(one.name, said)
        with self.lock:
            self.unfollowed.clear()
            place = self.at
            self.at += 10
            self.log.append(self._end())
            self.transaction += 1
            return View(self, place)

    def engine_properties(
        self, tables: Sequence[SourceTable], without: Collection[str] = ()
    ) -> Mapping[str, str]:
        return {}

    def lag(self, offset: Offset) -> Lag:
        return Lag(self.at - int(offset["lsn"]), None)

    def lost(self, offset: Offset) -> str | None:
        return None if offset["lsn"] >= self.kept_from else "the slot is gone"

    def drop(self) -> None:
        self.has_slot = False

    def close(self) -> None:
        return


class View:
    """The rows as they were."""

    def __init__(self, database: StandIn, place: int) -> None:
        self._database = database
        self._rows = {name: dict(rows) for name, rows in database.rows.items()}
        self._seen = {
            "lsn": database.at, "first": database.transaction, "end": database.transaction,
            "running": [],
        }  # fmt: skip
        database.views.append(self)
        self.source = {
            "connector": "postgresql", "lsn": place, "sequence": None, "snapshot": "true",
        }  # fmt: skip

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        return ENVELOPE

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        self._database.between()
        if errors := self._database.failing.get(table.name):
            raise errors.pop(0)
        begin = -1 if after is None else after[0]
        wanted = [key for key in sorted(self._rows[table.name]) if key > begin]
        taken = wanted[:rows]
        space, _, name = table.name.partition(".")
        source = {**self.source, "schema": space, "table": name}
        lines = []
        for key in taken:
            row = {"id": key, "v": self._rows[table.name][key]}
            value = {"op": "r", "before": None, "after": row, "source": source}
            event = {"key": {"id": key} if table.key else None, "value": value}
            lines.append(json.dumps(event).encode() + b"\n")
        last = (taken[-1],) if taken else None
        return Chunk(b"".join(lines), len(taken), last, len(wanted) == len(taken))

    @contextmanager
    def whole(self, table: SourceTable, rows: int, where: str | None) -> Iterator[WholeTable]:
        yield WholeTable(self._seen, self._chunks(table, rows, where))

    def _chunks(self, table: SourceTable, rows: int, where: str | None) -> Iterator[Chunk]:
        after, is_last = None, False
        while not is_last:
            chunk = self.read(table, after, rows, where)
            after, is_last = chunk.last, chunk.is_last
            yield chunk

    def close(self) -> None:
        self._database.views.remove(self)


class StandInEngine:
    """Reads the log from an offset on, so many records at a time."""

    def __init__(
        self,
        database: StandIn,
        position: CapturePosition,
        take: TakeEvents,
        ended: Callable[[], None],
        size: int,
    ) -> None:
        self.failure: PolynyaError | None = None
        self.told: list[Any] = []
        #: The place in the log up to which it has read, where its offsets do not say it.
        self.reads_to: Offset | None = None
        self._database, self._take, self._ended = database, take, ended
        self._offset, self._without, self._size = position.stream.offset, position.lacking, size
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def read_to(self) -> Offset | None:
        return self.reads_to

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        index, begin = 0, int(self._offset["lsn"])
        try:
            while not self._stop.is_set():
                with self._database.lock:
                    fresh = self._database.log[index : index + self._size]
                index += len(fresh)
                # The events of a transaction come after the end of the one before it.
                fresh = [one for one in fresh if _belongs_after(one, begin)]
                fresh = [one for one in fresh if one.table not in self._without]
                for one in fresh:
                    self._read(one)
                told = self._take(fresh)
                if told is not None:
                    self.told.append(told)
                if not fresh:
                    self._stop.wait(0.002)
        except Exception as error:
            self.failure = (
                error
                if isinstance(error, PolynyaError)
                else DependencyError("POLYNYA-GTW-006", str(error))
            )
        finally:
            self._ended()

    def _read(self, event: StreamEvent) -> None:
        if any(text.encode() in event.line for text in self._database.unreadable):
            said = OperationError("POLYNYA-GTW-057", f"a value of {event.table}")
            raise TableError.of(str(event.table), said)


def _belongs_after(event: StreamEvent, begin: int) -> bool:
    offset = event.offset()
    if event.kind == "end":
        return int(offset["lsn"]) > begin
    return int(offset["lsn_commit"]) >= begin


@dataclass(slots=True)
class StandInEngines:
    """Makes engines of the stand-in."""

    size: int = 3
    made: list[StandInEngine] = field(default_factory=list)

    def history(self, database: SourceDatabase, log: CaptureLog) -> None:
        return None

    def engine(
        self,
        database: SourceDatabase,
        tables: Sequence[SourceTable],
        position: CapturePosition,
        take: TakeEvents,
        ended: Callable[[], None],
    ) -> StandInEngine:
        assert isinstance(database, StandIn)
        engine = StandInEngine(database, position, take, ended, self.size)
        self.made.append(engine)
        return engine
