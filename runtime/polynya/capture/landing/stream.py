"""From records of a stream to the events that land, and the position after them. Pure.

A connector restarts exactly only at certain places. Debezium's for PostgreSQL does so at the end of
a transaction: from an offset inside one it counts the order of its events from the start again, and
skips all events with the LSN of the offset, such as the rows of one COPY. So the position is the
end of the last whole transaction, plus the LSN up to which the next one has landed; the events of
one LSN land together.

Debezium derives some column types from a statement differently than the server does. Each such
column gets the definition from the server's catalog, so that it is the same whether the statement
ran before or during the capture.

The fold cannot drop repeated events of a table without key, so each of its rows has to land exactly
once. Until such a table is loaded, none of its events land. Its load lands as a whole, with all
events missing from its view, and afterwards only events missing from the view land. The
transactions in a view are the first ones of the stream, up to a point. PostgreSQL identifies them
by their numbers, which each event carries, and by the end of the last of them in the log. A binlog
has them in the order of their positions.

A landed batch costs the landing zone an object and each table a file to read, so a busy stream
lands about once in `seconds`. The first events after a pause land at once. Time counts from the end
of the previous put, so a slow landing zone gets larger batches instead of a queue.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

from polynya.capture.landing.position import (
    CapturePosition,
    LogPosition,
    Passed,
    ResumePoint,
    TableProgress,
    position_of_offset,
    position_of_rows,
)
from polynya.capture.source import Offset, SeenTransactions, SourceTable
from polynya.formats.debezium.captured import EventSchema
from polynya.formats.debezium.tables import replacing, table_ddl

#: Name, number of JDBC and length of the type that is read, by the first word of the one written.
#: UUID comes as text and loses zeros at its end, BOOLEAN as true for 2, REAL with 7 digits; SERIAL
#: is unsigned.
_OTHERS: Final[Mapping[str, tuple[str, int, int | None]]] = {
    "UUID": ("BINARY", -2, 16),
    "BOOL": ("TINYINT", 5, 1),
    "BOOLEAN": ("TINYINT", 5, 1),
    "SERIAL": ("BIGINT UNSIGNED", -5, None),
    "REAL": ("DOUBLE", 8, None),
    "FLOAT4": ("FLOAT", 6, None),
}
#: Texts in the character set `binary` are bytes, by the number of JDBC.
_OF_BYTES: Final[Mapping[int, tuple[str, int]]] = {1: ("BINARY", -2), 12: ("VARBINARY", -3)}
_LONG: Final = ("BLOB", 2004)
_LABELS: Final = frozenset({"ENUM", "SET"})
#: Of a statement that adds a column or changes one, and what fills it in rows that are there.
_CHANGES: Final = frozenset({"ADD", "MODIFY", "CHANGE"})
_FILLING: Final = frozenset({"AS", "GENERATED", "SERIAL", "AUTO_INCREMENT", "TIMESTAMP"})
_NO_VALUES: Final = frozenset({"NULL", "CHARSET", "CHARACTER", "COLLATE"})
#: A type is not what stands behind one of these.
_BEFORE: Final = frozenset({TokenType.L_PAREN, TokenType.COMMA, TokenType.ALIAS})


def misread_tables(changes: Any) -> list[str]:
    """The tables among `tableChanges` of an event that have a column whose type is misread."""
    return [
        _name(change) for change in _tables(changes) if any(map(_other, change["table"]["columns"]))
    ]


def altered_tables(changes: Any) -> list[str]:
    """The tables with a key among `tableChanges` of an event that were there and were changed."""
    return [
        _name(change)
        for change in _tables(changes)
        if change.get("type") == "ALTER" and change["table"].get("primaryKeyColumnNames")
    ]


def fills(statement: str) -> bool:
    """Whether a statement may give rows that are there a value for a column.

    One that only looks so costs a load of its table.
    """
    try:
        tokens = tokenize(statement, read="mysql")
    except SqlglotError:
        return True
    words = [
        "" if token.token_type in {TokenType.STRING, TokenType.IDENTIFIER} else token.text.upper()
        for token in tokens
    ]
    if not _CHANGES.intersection(words):
        return False
    pairs = set(pairwise([*words, ""]))
    defaults = {after for before, after in pairs if before == "DEFAULT"} - _NO_VALUES
    return bool(defaults or ("NOT", "NULL") in pairs or _FILLING.intersection(words))


def as_read_changes(changes: Any) -> bool:
    """Change `tableChanges` of a history to the types that are read; whether one has changed."""
    columns = [
        (column, other)
        for change in _tables(changes)
        for column in change["table"]["columns"]
        if (other := _other(column))
    ]
    for column, other in columns:
        column.update(other)
        # It is written in the words of the former type, and says nothing that is needed.
        column["hasDefaultValue"] = False
        column.pop("defaultValueExpression", None)
    return bool(columns)


def as_read_statement(statement: str) -> str:
    """A statement that makes a table, with the types that are read."""
    try:
        tokens = tokenize(statement, read="mysql")
    except SqlglotError:
        return statement
    for number in reversed(range(1, len(tokens))):
        token = tokens[number]
        other = _OTHERS.get(token.text.upper())
        if other is not None and _is_type(tokens, number):
            name, _, length = other
            written = f"{name}({length})" if length else name
            statement = f"{statement[: token.start]}{written}{statement[token.end + 1 :]}"
    return statement


def _is_type(tokens: list[Token], number: int) -> bool:
    """Whether a word stands behind a name, and is none, and no function."""
    token, before = tokens[number], tokens[number - 1]
    is_called = number + 1 < len(tokens) and tokens[number + 1].token_type is TokenType.L_PAREN
    if token.token_type is TokenType.IDENTIFIER or before.token_type in _BEFORE or is_called:
        return False
    # `KEY uuid`, `DEFAULT uuid`, `TABLE uuid`: a column is named right behind `(` or a comma.
    return number >= 2 and tokens[number - 2].token_type in {TokenType.L_PAREN, TokenType.COMMA}


def _other(column: Mapping[str, Any]) -> dict[str, Any]:
    """What another type changes of a column's definition; empty for most."""
    word, *rest = str(column.get("typeName") or "").upper().split() or [""]
    length = column.get("length")
    if word in _OTHERS:
        name, number, length = _OTHERS[word]
        name = " ".join([name, *rest])
    elif _is_of_bytes(column) and word not in _LABELS:
        is_long = "TEXT" in word or word == "LONG"
        name, number = _LONG if is_long else _OF_BYTES[int(column["jdbcType"])]
    else:
        return {}
    changed = {"typeName": name, "typeExpression": name, "jdbcType": number, "charsetName": None}
    return changed if length is None else {**changed, "length": length}


def _is_of_bytes(column: Mapping[str, Any]) -> bool:
    charset = str(column.get("charsetName") or "").lower()
    return charset == "binary" and column.get("jdbcType") in _OF_BYTES


def _tables(changes: Any) -> Iterator[Mapping[str, Any]]:
    for change in changes if isinstance(changes, list) else ():
        table = change.get("table") if isinstance(change, dict) else None
        if isinstance(table, dict) and isinstance(table.get("columns"), list):
            yield change


def _name(change: Mapping[str, Any]) -> str:
    """`"space"."table"` as `space.table`; of one that was renamed, the new name."""
    last = str(change.get("id") or "").split(",")[-1]
    return ".".join(part.replace('""', '"') for part in _parts(last))


def _parts(quoted: str) -> list[str]:
    return [token.text for token in tokenize(quoted) if token.token_type is TokenType.IDENTIFIER]


_BINLOG: Final = "mariadb"
#: Rows come into a table, or leave it, without events.
_MOVES: Final = re.compile(
    r"\b(?:EXCHANGE\s+PARTITION|IMPORT\s+TABLESPACE|CONVERT\s+(?:PARTITION|TABLE))\b", re.IGNORECASE
)
#: Lines of a history that may have to be changed; large ones are not parsed for nothing.
_MAYBE: Final = re.compile(
    rb'\bREPLACE\b|"typeName"\s*:\s*"(?:UUID|BOOL|SERIAL|REAL|FLOAT4)|"charsetName"\s*:\s*"binary"',
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"\bTABLE\s+(?:(?P<space>`(?:[^`]|``)+`|[\w$]+)\s*\.\s*)?(?P<table>`(?:[^`]|``)+`|[\w$]+)",
    re.IGNORECASE,
)


def replaced_by(line: bytes) -> dict[str, LogPosition]:
    """The tables whose rows are others after a statement, each with its place.

    One that was renamed has the rows that it brings along, and so have tables that change parts
    with each other. A table that was made anew is not among them: its rows are events.

    Args:
        line: of the event that reports the statement.
    """
    value = json.loads(line)["value"]
    statement = str(value.get("ddl") or "")
    names = [ddl.new for ddl in table_ddl(value) if ddl.new is not None and ddl.new != ddl.table]
    if _MOVES.search(statement):
        space = str(value.get("databaseName") or "")
        names += [_dotted(match, space) for match in _OTHER.finditer(statement)]
    if not names:
        return {}
    place = position_of_rows(_BINLOG, value["source"])
    return dict.fromkeys(names, place)


def filled_by(line: bytes) -> dict[str, LogPosition]:
    """The tables with a key whose rows a statement gave a value for a column, and its place."""
    value = json.loads(line)["value"]
    names = altered_tables(value.get("tableChanges"))
    if not names or not fills(str(value.get("ddl") or "")):
        return {}
    return dict.fromkeys(names, position_of_rows(_BINLOG, value["source"]))


@dataclass(frozen=True, slots=True)
class Misread:
    """A statement after which Debezium reads the rows of a table by its old columns."""

    table: str
    place: LogPosition


def misread(line: bytes) -> Misread | None:
    """What Debezium has not understood of a statement; None: it has."""
    if b'"tableChanges":[]' not in line:
        return None
    value = json.loads(line)["value"]
    replaced = replacing(str(value.get("ddl") or ""), value.get("databaseName"))
    return (
        None
        if replaced is None
        else Misread(replaced.table, position_of_rows(_BINLOG, value["source"]))
    )


def mistyped(line: bytes) -> dict[str, LogPosition]:
    """The tables of which a statement gives Debezium a column of a wrong type, and its place."""
    value = json.loads(line)["value"]
    names = misread_tables(value.get("tableChanges"))
    return dict.fromkeys(names, position_of_rows(_BINLOG, value["source"])) if names else {}


def as_read(history: bytes) -> bytes:
    """A history of schemas that Debezium understands.

    A statement that replaces a table becomes two: the table is dropped, and made. Columns get the
    types by which their values are read.
    """
    return b"".join(
        entry for line in history.splitlines(keepends=True) for entry in _understood(line)
    )


def _understood(line: bytes) -> Iterator[bytes]:
    if not _MAYBE.search(line):
        yield line
        return
    record: dict[str, Any] = json.loads(line)
    changes = record.get("tableChanges")
    replaced = (
        None if changes else replacing(str(record.get("ddl") or ""), record.get("databaseName"))
    )
    if replaced is not None:
        space, _, table = replaced.table.partition(".")
        dropped = ".".join("`" + part.replace("`", "``") + "`" for part in (space, table) if part)
        for statement in (f"DROP TABLE IF EXISTS {dropped}", as_read_statement(replaced.statement)):
            yield _line({**record, "ddl": statement})
    elif as_read_changes(changes):
        yield _line(record)
    else:
        yield line


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _dotted(match: re.Match[str], space: str) -> str:
    parts = (match["space"] or space, match["table"])
    return ".".join(
        part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts
    )


_ORDERED_BY_TRANSACTION: Final = "postgresql"
#: Events have the last 32 bits of the number of their transaction.
_NUMBERS: Final = 1 << 32


def is_seen(connector: str, seen: SeenTransactions, line: bytes) -> bool:
    """Whether a view has what an event of the stream says. Raises ValueError or LookupError.

    Args:
        connector: of the database.
        seen: of the view.
        line: the event, as the engine brought it.
    """
    source = json.loads(line)["value"]["source"]
    if connector == _ORDERED_BY_TRANSACTION:
        return _has_transaction(seen, int(source["txId"]))
    return position_of_rows(connector, source) < position_of_rows(connector, seen)


def is_passed(connector: str, seen: SeenTransactions, offset: Offset) -> bool:
    """Whether a stream that goes on from an offset brings nothing more that a view has."""
    return position_of_offset(connector, offset) >= position_of_rows(connector, seen)


def has_all(connector: str, seen: SeenTransactions, place: LogPosition) -> bool:
    """Whether a view has the event at a place, which was streamed before the view was taken.

    A binlog may be read a moment before the tables show what it says.
    """
    return position_of_rows(connector, seen) > place


def position_of_event(connector: str, line: bytes) -> LogPosition | None:
    """The place that a later view has to be behind; None: any later view is."""
    if connector == _ORDERED_BY_TRANSACTION:
        return None
    return position_of_rows(connector, json.loads(line)["value"]["source"])


def _has_transaction(seen: SeenTransactions, number: int) -> bool:
    end = int(seen["end"])
    # The one with these last bits that is nearest: the log is not that long.
    whole = end + (number - end + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
    if whole < int(seen["first"]):
        return True
    return whole < end and whole not in seen["running"]


Kind: TypeAlias = Literal["row", "statement", "end"]

#: Connectors that restart exactly at the ends of transactions only; others do at each event.
_BY_TRANSACTION: Final = frozenset({"postgresql"})


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A record of the stream.

    Attributes:
        kind: a change of a `row` (or the truncation of a table), a `statement` that changed a
            table, or the `end` of a transaction, which does not land.
        line: as it lands, with its end.
        offset: the connector's offset after it. It costs something: few are asked.
        table: of a row.
        shape: schema of a row's envelope; one object for all events that have it.
        origin: what the engine needs to tell the database that it has landed.
        is_awaited: of an end: somebody waits until it is known how far the stream was read.
    """

    kind: Kind
    line: bytes
    offset: Callable[[], Offset]
    table: str | None = None
    shape: Mapping[str, Any] | None = None
    origin: Any = None
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """What lands of the records so far, and the position after it.

    `last` is the record whose offset the connector may be told, None: none.
    """

    events: Sequence[StreamEvent]
    position: ResumePoint
    last: StreamEvent | None


def cutter_of(connector: str, position: ResumePoint) -> Cutter:
    """What decides for a connector, from a position on."""
    if connector in _BY_TRANSACTION:
        return TransactionCutter(position)
    return Cutter(position)


@dataclass(slots=True)
class Cutter:
    """For connectors that restart exactly after each event."""

    position: ResumePoint

    def take(self, events: Sequence[StreamEvent]) -> Cut:
        """What lands after these have come too; the position moves with it."""
        if events:
            self.position = ResumePoint(events[-1].offset())
        landing = [event for event in events if event.kind != "end"]
        return Cut(landing, self.position, events[-1] if events else None)


@dataclass(slots=True)
class TransactionCutter(Cutter):
    """For connectors that restart exactly at the ends of transactions."""

    _held: list[StreamEvent] = field(default_factory=list)
    _repeated: Passed | None = None

    def __post_init__(self) -> None:
        self._repeated = self.position.passed

    def take(self, events: Sequence[StreamEvent]) -> Cut:
        """What lands; the last events of one LSN wait until it is known that they are all."""
        whole = self._whole([*self._held, *self._fresh(events)])
        end = max((i for i, event in enumerate(whole) if event.kind == "end"), default=-1)
        offset, passed = self.position.offset, self.position.passed
        last = None
        if end >= 0:
            last = whole[end]
            offset, passed = last.offset(), None
        if end < len(whole) - 1:
            passed = passed_by(whole[-1].offset())
        self.position = ResumePoint(offset, passed)
        return Cut([event for event in whole if event.kind != "end"], self.position, last)

    def _fresh(self, events: Sequence[StreamEvent]) -> list[StreamEvent]:
        """Without the events that had landed before a restart, which brings them again.

        Places only grow, so that of a large transaction a few are looked at in each batch.
        """
        repeated = self._repeated
        if repeated is None:
            return list(events)
        fresh = bisect_left(events, True, key=lambda event: _is_beyond(event, repeated))  # noqa: FBT003
        if fresh < len(events):
            self._repeated = None
        return list(events[fresh:])

    def _whole(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Up to the last event whose LSN no later one can share; the rest is held."""
        split = len(events)
        if events and events[-1].kind != "end":
            last = passed_by(events[-1].offset())
            while split and events[split - 1].kind != "end":
                if passed_by(events[split - 1].offset()) != last:
                    break
                split -= 1
        self._held = events[split:]
        return events[:split]


def passed_by(offset: Offset) -> Passed:
    """The transaction and the LSN of an event, from PostgreSQL's offset after it."""
    return Passed(str(offset.get("txId")), int(offset["lsn"]))


def _is_beyond(event: StreamEvent, passed: Passed) -> bool:
    at = passed_by(event.offset())
    # The end of the transaction is beyond all of its events.
    return event.kind == "end" or at.transaction != passed.transaction or at.lsn > passed.lsn


@dataclass(frozen=True, slots=True)
class RollLimits:
    """When what is pending lands.

    Attributes:
        bytes: as soon as it is so large.
        seconds: and so long after the batch before it.
        idle_seconds: so long after it where only the place in the log has moved.
    """

    bytes: int = 32 * 2**20
    seconds: float = 2.0
    idle_seconds: float = 60.0

    def wait(self, pending: Pending, *, since_landed: float) -> float | None:
        """Seconds until it lands; 0: now, None: there is nothing.

        Args:
            pending: what there is.
            since_landed: seconds since the batch before it had landed.
        """
        if pending.size >= self.bytes:
            return 0.0
        if pending.events or pending.apart or pending.is_awaited:
            return max(0.0, self.seconds - since_landed)
        if pending.position is not None:
            return max(0.0, self.idle_seconds - since_landed)
        return None


@dataclass(slots=True)
class Pending:
    """Events that wait for their batch, as their lines only: nothing of the engine is held.

    Attributes:
        size: bytes of the lines.
        events: how many.
        apart: events that do not land as they are; what becomes of them is decided then.
        position: of the stream after them; None: it has not moved.
        told: of what the database may be told when they have landed; None: of nothing yet.
        counts: events by table.
        is_awaited: somebody waits for the position, so that it lands like an event.
        read_to: a place in a binlog up to which all is in this batch or before it.
        replaced: tables whose rows were exchanged without events, and the places at which.
        filled: tables whose rows got a value for a column without events, likewise.
    """

    size: int = 0
    events: int = 0
    apart: list[StreamEvent] = field(default_factory=list)
    position: ResumePoint | None = None
    told: StreamEvent | None = None
    counts: Counter[str] = field(default_factory=Counter)
    is_awaited: bool = False
    read_to: Offset | None = None
    replaced: dict[str, LogPosition] = field(default_factory=dict)
    filled: dict[str, LogPosition] = field(default_factory=dict)
    _lines: list[bytes] = field(default_factory=list)
    _shapes: dict[str, list[EventSchema]] = field(default_factory=dict)

    @property
    def lines(self) -> bytes:
        """The lines, one after the other."""
        return b"".join(self._lines)

    @property
    def shapes(self) -> Mapping[str, Sequence[EventSchema]]:
        """The schemas of the lines, by table."""
        return self._shapes

    def set_apart(self, events: Iterable[StreamEvent]) -> None:
        """Take events whose landing is decided later."""
        for event in events:
            self.apart.append(replace(event, offset=_not_kept, origin=None))
            self.size += len(event.line)

    def add(self, events: Sequence[StreamEvent]) -> None:
        """Take the lines of events, and the schemas where they change."""
        for number, event in enumerate(events, self.events + 1):
            if event.table is not None and event.shape is not None:
                self._note(event.table, number, event.shape)
            elif event.kind == "statement":
                self.replaced |= replaced_by(event.line)
                self.filled |= filled_by(event.line)
        block = b"".join([event.line for event in events])
        self._lines.append(block)
        self.size += len(block)
        self.events += len(events)
        self.counts.update(event.table for event in events if event.table is not None)

    def _note(self, table: str, number: int, shape: Mapping[str, Any]) -> None:
        shapes = self._shapes.setdefault(table, [])
        if not shapes or shapes[-1].schema is not shape:
            shapes.append(EventSchema(number, shape))


def _not_kept() -> Offset:
    """Offsets are asked before events wait."""
    return {}


@dataclass(frozen=True, slots=True)
class KeylessEvents:
    """Events of tables without key.

    Attributes:
        landing: those that land now.
        kept: those of tables that are not loaded: they land with the load, or its view has them.
        left_out: the place of the last of these by table, where a view has to be behind it.
    """

    landing: Sequence[StreamEvent]
    kept: Sequence[StreamEvent]
    left_out: Mapping[str, LogPosition]


def divide_keyless(
    connector: str, events: Sequence[StreamEvent], position: CapturePosition
) -> KeylessEvents:
    """What becomes of events, whose `table` is there, at a position."""
    landing, kept = [], []
    left_out: dict[str, LogPosition] = {}
    for event in events:
        table = str(event.table)
        progress = position.tables.get(table)
        if progress is None or progress.state != "loaded":
            kept.append(event)
            place = position_of_event(connector, event.line)
            if place is not None:
                left_out[table] = place
        elif progress.seen is None or not is_seen(connector, progress.seen, event.line):
            landing.append(event)
    return KeylessEvents(landing, kept, left_out)


def position_after(
    connector: str,
    before: CapturePosition,
    stream: ResumePoint,
    left_out: Mapping[str, LogPosition],
) -> CapturePosition:
    """The position after events; what a view has is dropped once the stream has passed it."""
    tables = {
        name: replace(table, seen=None)
        if table.seen is not None and is_passed(connector, table.seen, stream.offset)
        else table
        for name, table in before.tables.items()
    }
    return replace(before, stream=stream, tables=tables, left_out={**before.left_out, **left_out})


def lands_unchecked(progress: TableProgress | None) -> bool:
    """Whether all that comes of a table without key lands from now on."""
    return progress is not None and progress.state == "loaded" and progress.seen is None


def would_load_twice(before: TableProgress | None, table: SourceTable) -> bool:
    """Whether rows of a table have landed that another load would bring once more."""
    if not table.lacks_key or before is None:
        return False
    return before.chunks > 0 and not before.is_another(table)
