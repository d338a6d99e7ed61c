"""The position of a capture: place in the stream, progress of loads, binlog epochs.

The position stands in the header of every landed batch and nowhere else, so it cannot differ from
what has landed. All values are immutable: each change makes a new position.

After a reset, or on another server, the files of a binlog start at 1 again. Tables order events by
the number of the file and the offset in it. To keep later events later, each such restart begins an
epoch, which raises the file numbers that land.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from pydantic import TypeAdapter

from polynya.capture.source import Chunk, Offset, SeenTransactions, SourceTable
from polynya.model.config.fields import ReloadMode
from polynya.model.config.schedule import AT_ONCE, Schedules
from polynya.model.errors import PolynyaError

LogPosition: TypeAlias = tuple[int, ...]

#: Connectors whose places are files and bytes in them.
BINLOGS: Final = frozenset({"mariadb", "mysql"})
#: Of other connectors it is only known whether Debezium's own load is over.
_AFTER_LOAD: Final = 1


def position_of_offset(connector: str, offset: Offset) -> LogPosition:
    """How far a stream was read. Raises ValueError or LookupError."""
    if connector == "postgresql":
        return (int(offset["lsn"]),)
    if connector in BINLOGS:
        return (_file_number(offset["file"]), int(offset["pos"]))
    return (_AFTER_LOAD if offset and "snapshot" not in offset else 0,)


def offset_to_resume(connector: str, offset: Offset) -> Offset:
    """The offset with which Debezium brings all that comes after a position, and nothing else.

    For PostgreSQL, Debezium looks for a message with the offset's LSN and goes on after it; if it
    finds none, it begins with the first transaction that commits after `lsn_commit`
    (`WalPositionLocator`). A commit ends where the next record of the log begins. That may be in
    the middle of a transaction that commits later, and Debezium would leave out all before it in
    that transaction. Records begin at multiples of 8, so it looks for the last byte before the
    position, at which none begins. The server sends the same from there: a commit that ends at the
    position began before it.
    """
    if connector != "postgresql" or not offset:
        return offset
    before = (int(offset["lsn"]) - 1) | 7
    return {**offset, "lsn": before, "lsn_proc": before}


def position_of_rows(connector: str, source: Mapping[str, Any]) -> LogPosition:
    """Where the rows of a view stand. Raises ValueError or LookupError."""
    if connector == "postgresql":
        return (int(source["lsn"]),)
    if connector in BINLOGS:
        return (_file_number(source["file"]), int(source["pos"]))
    return (_AFTER_LOAD,)


def truncation(connector: str, table: str, source: Mapping[str, Any]) -> bytes:
    """An event line that empties a table right before the rows of a view.

    Before a reload, a table may still have rows that the source deleted while no capture ran.

    Args:
        connector: of the database.
        table: `SPACE.NAME`.
        source: what the rows of the view carry.
    """
    space, _, name = table.partition(".")
    before: dict[str, Any]
    if connector == "postgresql":
        lsn = int(source["lsn"])
        before = {"schema": space, "sequence": json.dumps([str(lsn - 1), str(lsn)])}
    else:
        before = {"db": space, "pos": int(source["pos"]) - 1}
    value = {
        "before": None,
        "after": None,
        "source": {**source, **before, "table": name, "snapshot": "false"},
        "transaction": None,
        "op": "t",
    }
    event = {"key": None, "value": value}
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def _file_number(name: Any) -> int:
    """The number in the name of a binlog file."""
    return int(str(name).rpartition(".")[2])


TableState: TypeAlias = Literal["queued", "loading", "loaded", "suspended"]
_ALWAYS_STORED: Final = frozenset({"state", "rows", "chunks"})
#: Value of `columns_made` after a statement filled a column.
_FILLED: Final = -1


@dataclass(frozen=True, slots=True)
class TableProgress:
    """How far a table is loaded.

    Attributes:
        after: key after which the next chunk begins; None: at the beginning.
        rows: that have landed.
        chunks: that have landed.
        why: it is suspended.
        identity: of the table that was loaded; None: nobody knows.
        columns_made: how many columns it had had when its load began; None: nobody knows; below 0:
            since then a statement filled a column, which no row reports.
        changes: events of the stream that landed before its load had ended.
        ended: number of the batch with which its load ended; None: it did not, or nobody knows.
        seen: of a table without key, what its rows have of the stream that is still to come; None:
            nothing.
        lacks_changes: it was suspended because of its changes, and none has landed since.
        since: in a binlog, the place that all views of its load are behind; None: nobody knows.
        is_replaced: since then its rows were exchanged for others, of which the stream has nothing.
        was_loaded: an earlier load of it, by a capture that follows no changes, was complete.
        inexact: words of `polynya.capture.inexact` for values that its columns do not keep exactly.
        load: number of the load that is under way, whose rows readers compare with what they have;
            None: they copy them.
        mode: what readers do with the rows of that load.
        loaded_at: when its last load of all rows began, ISO 8601; None: nobody knows.
        column: by which its new rows are found, where a capture follows no changes.
        mark: the greatest value of that column that has landed, as the database writes it.
        next_mark: likewise after a load of all rows that is under way.
    """

    state: TableState = "queued"
    after: tuple[Any, ...] | None = None
    rows: int = 0
    chunks: int = 0
    why: str | None = None
    identity: str | None = None
    columns_made: int | None = None
    changes: int = 0
    ended: int | None = None
    seen: SeenTransactions | None = None
    lacks_changes: bool = False
    since: LogPosition | None = None
    is_replaced: bool = False
    was_loaded: bool = False
    inexact: tuple[str, ...] = ()
    load: int | None = None
    mode: ReloadMode | None = None
    loaded_at: str | None = None
    column: str | None = None
    mark: str | None = None
    next_mark: str | None = None

    def reload_due(self, schedule: Schedules) -> datetime | None:
        """When all its rows are to be loaded again; None: never, or it is not loaded yet."""
        if self.state != "loaded" or self.load is not None:
            return None
        if self.loaded_at is None:
            return AT_ONCE
        return schedule.next_after(datetime.fromisoformat(self.loaded_at))

    def with_chunk(self, chunk: Chunk, batch: int | None = None) -> TableProgress:
        """After a chunk has landed, in a batch of this number."""
        return replace(
            self,
            state="loaded" if chunk.is_last else "loading",
            after=self.after if chunk.last is None else chunk.last,
            rows=self.rows + chunk.rows,
            chunks=self.chunks + 1,
            why=None,
            ended=batch if chunk.is_last else None,
            **self._after_all() if chunk.is_last else {},
        )

    def _after_all(self) -> dict[str, Any]:
        """What changes with the last chunk of a load."""
        return {
            "load": None,
            "mode": None,
            "mark": self.next_mark or self.mark,
            "next_mark": None,
        }

    def with_whole(
        self, rows: int, seen: SeenTransactions, batch: int | None = None
    ) -> TableProgress:
        """After all of a table without key has landed at once, in a batch of this number."""
        return replace(self, state="loaded", rows=rows, chunks=1, why=None, seen=seen, ended=batch)

    def of_table(self, table: SourceTable) -> TableProgress:
        """With what is known of the table; what was known of its rows stays."""
        made = table.columns_made if self.columns_made is None else self.columns_made
        inexact = tuple(sorted({word for column in table.columns for word in column.inexact}))
        identity = self.identity or table.identity
        return replace(self, identity=identity, columns_made=made, inexact=inexact)

    def suspended(self, why: PolynyaError) -> TableProgress:
        """Given up, until an operator resumes it."""
        return replace(self, state="suspended", why=f"{why.code}: {why.message}")

    def without_changes(self, why: PolynyaError) -> TableProgress:
        """Given up because of a change: from now on none of its changes lands."""
        return replace(self.suspended(why), lacks_changes=True)

    def is_another(self, table: SourceTable) -> bool:
        """Whether what was loaded is of another table."""
        other = self.identity is not None and self.identity != table.identity
        return other or self.is_replaced

    def replaced(self, position: LogPosition) -> TableProgress:
        """After its rows were exchanged at a place of the binlog. Its load may be behind that."""
        return replace(self, is_replaced=True) if self._began_before(position) else self

    def filled(self, position: LogPosition) -> TableProgress:
        """After a column was filled in all of its rows at a place of the binlog."""
        return replace(self, columns_made=_FILLED) if self._began_before(position) else self

    @property
    def is_other(self) -> bool:
        """Whether its rows are others now, which the stream does not report."""
        return self.is_replaced or self.columns_made == _FILLED

    def _began_before(self, position: LogPosition) -> bool:
        return self.since is None or position >= self.since

    def is_stale(self, table: SourceTable) -> bool:
        """Whether what was loaded is of another table, or changes since then were not followed."""
        return self.is_another(table) or (self.chunks > 0 and not table.is_followed)

    def lacks_defaults(self, table: SourceTable) -> bool:
        """Whether a column came since the load began that filled the rows that were there."""
        return self.columns_made is not None and table.columns_filled > self.columns_made

    def as_dict(self) -> dict[str, Any]:
        """As JSON, without the fields that have their defaults."""
        shown: dict[str, Any] = {"state": self.state, "rows": self.rows, "chunks": self.chunks}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name not in shown and value != item.default:
                shown[item.name] = list(value) if isinstance(value, tuple) else value
        return shown


@dataclass(frozen=True, slots=True)
class Passed:
    """Events beyond an offset that have landed: those of a transaction up to a place in the log.

    The connector restarts exactly at the end of a transaction only, and a batch may end inside.
    """

    transaction: str
    lsn: int


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where the stream continues: from an offset of the connector, without what it has passed."""

    offset: Offset
    passed: Passed | None = None


@dataclass(frozen=True, slots=True)
class CapturePosition:
    """Where a capture continues.

    Attributes:
        stream: place in the stream.
        tables: progress by table.
        history: number of the newest history of schemas that was put, 0 for none.
        epoch: how often the places of the stream began again, see `epochs`.
        left_out: of tables without key that are not loaded, the place of the newest event that did
            not land: the view of their load has to have it.
        gone: tables that are there no more, and of which rows have landed.
        read_to: a place in a binlog up to which all has landed, where it is behind that of the
            offset; None: that of the offset.
    """

    stream: ResumePoint
    tables: Mapping[str, TableProgress] = field(default_factory=dict)
    history: int = 0
    epoch: int = 0
    left_out: Mapping[str, LogPosition] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    read_to: Offset | None = None

    def with_table(self, name: str, progress: TableProgress) -> CapturePosition:
        """With another progress of one table."""
        return replace(self, tables={**self.tables, name: progress})

    @property
    def lacking(self) -> frozenset[str]:
        """The tables whose changes do not land."""
        return frozenset(name for name, table in self.tables.items() if table.lacks_changes)

    def with_changes(self, counts: Mapping[str, int]) -> CapturePosition:
        """After events of the stream have landed, so many by table: tables in their load count."""
        tables = {
            name: replace(self.tables[name], changes=self.tables[name].changes + count)
            for name, count in counts.items()
            if name in self.tables and self.tables[name].state in {"queued", "loading"}
        }
        return replace(self, tables={**self.tables, **tables}) if tables else self

    @property
    def replaced(self) -> bool:
        """Whether a table waits for being loaded again, since its rows are others now."""
        return any(table.is_other and table.state != "suspended" for table in self.tables.values())

    def with_replaced(self, positions: Mapping[str, LogPosition]) -> CapturePosition:
        """After rows of tables were exchanged, each at a place of the binlog."""
        tables = self.tables
        return self._with(
            {
                name: tables[name].replaced(position)
                for name, position in positions.items()
                if name in tables
            }
        )

    def with_filled(self, positions: Mapping[str, LogPosition]) -> CapturePosition:
        """After a column was filled in the rows of tables, likewise."""
        tables = self.tables
        return self._with(
            {
                name: tables[name].filled(position)
                for name, position in positions.items()
                if name in tables
            }
        )

    def _with(self, tables: Mapping[str, TableProgress]) -> CapturePosition:
        return replace(self, tables={**self.tables, **tables}) if tables else self

    def loaded_from(self, position: LogPosition) -> CapturePosition:
        """Before tables are loaded from views that do not begin before a place of the binlog."""
        tables = {
            name: replace(table, since=position)
            if table.state in {"queued", "loading"} and table.chunks == 0
            else table
            for name, table in self.tables.items()
        }
        return replace(self, tables=tables)

    def with_tables(self, names: Iterable[str], again: Iterable[str] = ()) -> CapturePosition:
        """With the tables that there are now: new ones wait for their load, as do those `again`."""
        renewed, present = frozenset(again), frozenset(names)
        tables = {
            name: TableProgress() if name in renewed else self.tables.get(name, TableProgress())
            for name in sorted(present)
        }
        left = {name for name, table in self.tables.items() if table.chunks or table.changes}
        return replace(self, tables=tables, gone=(self.gone | left) - present)

    def as_dict(self) -> dict[str, Any]:
        """As JSON, for the header of a batch."""
        passed = self.stream.passed
        stream: dict[str, Any] = {"offset": dict(self.stream.offset)}
        if passed is not None:
            stream["passed"] = {"transaction": passed.transaction, "lsn": passed.lsn}
        shown: dict[str, Any] = {
            "stream": stream,
            "tables": {name: table.as_dict() for name, table in self.tables.items()},
            "history": self.history,
        }
        if self.epoch:
            shown["epoch"] = self.epoch
        if self.left_out:
            shown["left_out"] = {name: list(position) for name, position in self.left_out.items()}
        if self.gone:
            shown["gone"] = sorted(self.gone)
        if self.read_to is not None:
            shown["read_to"] = dict(self.read_to)
        return shown

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> CapturePosition:
        """From its JSON. Raises ValueError, TypeError or LookupError when it is none."""
        tables = stored["tables"].values()
        if "history" not in stored or any(_ALWAYS_STORED - table.keys() for table in tables):
            raise ValueError("a position without its history, or a table without its state")
        return _adapter().validate_python(stored)


#: What tells a place in the log of PostgreSQL, or in a binlog.
PLACE_NAMES: Final = ("lsn_commit", "lsn", "file", "pos")


def log_place(
    position: CapturePosition, log_position: Callable[[Offset], LogPosition]
) -> dict[str, Any]:
    """The place in the database's log up to which all has landed, as JSON.

    `lsn_commit` and `lsn`, or `file` and `pos`, are those of the offset; `passed` is the
    transaction of which more has landed, and up to which place. Empty of other databases.
    """
    offsets = [offset for offset in (position.stream.offset, position.read_to) if offset]
    if not offsets:
        return {}
    newest = max(offsets, key=log_position)
    place: dict[str, Any] = {name: newest[name] for name in PLACE_NAMES if name in newest}
    if place and position.stream.passed is not None:
        place["passed"] = [position.stream.passed.transaction, position.stream.passed.lsn]
    return place


@cache
def _adapter() -> TypeAdapter[CapturePosition]:
    return TypeAdapter(CapturePosition)


#: What a user may say of a table, in the order of loading.
PRIORITIES: Final = ("highest", "high", "normal", "low", "lowest")
_NORMAL: Final = PRIORITIES.index("normal")


def next_table(
    position: CapturePosition,
    running: Collection[str],
    *,
    parallel: int = 5,
    order: Mapping[str, str] | None = None,
) -> str | None:
    """The table that a free thread loads; None: there is none, or enough are being loaded.

    A table whose load has begun comes first, then priority decides, then the name.

    Args:
        position: of the capture.
        running: the tables that are being loaded.
        parallel: at most so many at a time.
        order: priority by table, for those that are not `normal`.
    """
    if len(running) >= parallel:
        return None
    ranks = order or {}

    def rank(name: str) -> tuple[bool, int, str]:
        return position.tables[name].state != "loading", priority(ranks.get(name)), name

    return min((name for name in unloaded(position) if name not in running), key=rank, default=None)


def priority(word: str | None) -> int:
    """The rank of a priority, 0 first."""
    return PRIORITIES.index(word) if word in PRIORITIES else _NORMAL


def unloaded(position: CapturePosition) -> list[str]:
    """The tables that wait for their load, or are in it; suspended ones do neither."""
    return [name for name, table in position.tables.items() if table.state in {"queued", "loading"}]


#: Ten digits are read: so many files and a hundred epochs.
_FILES: Final = 100_000_000
_FILE: Final = re.compile(rb'"file":"([^"]*\.)(\d+)"')


def next_epoch(connector: str, epoch: int, before: Offset, begins: Offset) -> int:
    """The epoch of a capture that begins again, after one that had come as far as `before`."""
    if connector not in BINLOGS or not begins:
        return epoch
    is_later = position_of_offset(connector, begins) >= position_of_offset(connector, before)
    return epoch if is_later else epoch + 1


def source_in_epoch(source: Mapping[str, Any], epoch: int) -> Mapping[str, Any]:
    """What the rows of a view carry, with the number of its file raised by the epoch."""
    if not epoch or "file" not in source:
        return source
    base, dot, number = str(source["file"]).rpartition(".")
    return {**source, "file": f"{base}{dot}{int(number) + epoch * _FILES}"}


def in_epoch(lines: bytes, epoch: int) -> bytes:
    """Event lines with the numbers of their files raised by the epoch."""
    if not epoch:
        return lines
    return b"".join(_raised(line, epoch) for line in lines.splitlines(keepends=True))


def _raised(line: bytes, epoch: int) -> bytes:
    """Values of a row stand before `source`, and the text of a statement behind it."""
    is_statement = b'"ddl":' in line and b'"op":' not in line
    matches = list(_FILE.finditer(line))
    if not matches:
        return line
    file = matches[0] if is_statement else matches[-1]
    number = int(file[2]) + epoch * _FILES
    return line[: file.start(2)] + b"%d" % number + line[file.end(2) :]
