"""The Debezium engine in the capture process: its JVM, its schema history, what ended it.

A process can start only one JVM. For that reason, and for its memory, each capture has a process.

Debezium reads rows by the columns that it derived from DDL statements. Where it misreads one, the
engine ends, and a new engine gets a schema history with a statement that Debezium understands
(`as_read` in `polynya.capture.landing.statements`). Binlog connectors need this history to read
their log. The file only grows, and new entries are put before the batch that follows them: a
history ahead of the data does no harm, a history behind it would make the log unreadable.

An offset is the position from which Debezium would restart. Until another event comes, that is the
start of the last transaction, and a statement does not move it at all. The binlog client in the
engine knows a newer position, which moves after the records of an event are in the engine's queue.
So `BinlogProgress` queues a record of its own: when it arrives, everything before that position was
taken.
"""

from __future__ import annotations

import gc
import json
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jpype
import pyarrow as pa

from polynya.capture.landing.log import HISTORY, CaptureLog
from polynya.capture.landing.position import BINLOGS, LogPosition
from polynya.capture.landing.statements import as_read, misread, mistyped
from polynya.capture.landing.stream import StreamEvent, TakeEvents
from polynya.capture.lists import NestedLists
from polynya.capture.postgresql.session import UNDECODABLE
from polynya.capture.records import NUMBER, REACHED, RecordReader
from polynya.capture.source import NAME, Offset, heartbeats_move
from polynya.capture.wire import TableError
from polynya.model.error_catalogue.capture import (
    CAPTURE_JAVA_NOT_STARTED,
    SCHEMA_HISTORY_MISSING,
    STREAM_ENDED,
    STREAM_UNREADABLE,
    VALUE_NOT_CAPTURED,
)
from polynya.model.error_catalogue.capture_databases import (
    BINLOG_INCOMPLETE,
    MYSQL_PASSWORD_NEEDS_TLS,
)
from polynya.model.errors import PolynyaError


def start_java(jars: Sequence[str], java_home: str | None, heap_mb: int) -> None:
    """Start the JVM, if it does not run yet.

    Args:
        jars: the class path.
        java_home: folder of the Java; None: JAVA_HOME, or what JPype finds.
        heap_mb: its memory for objects, in MB.

    Raises:
        DependencyError: POLYNYA-GTW-005, it does not start.
    """
    if jpype.isJVMStarted():
        return
    if java_home:
        os.environ["JAVA_HOME"] = java_home
    # A machine with little memory would begin with few new objects, and collect them all the time.
    heap = [f"-Xmx{heap_mb}m", f"-Xmn{heap_mb // 3}m", "-XX:+UseSerialGC"]
    try:
        # Signals stay Python's: it has to end cleanly when it is asked to.
        jpype.startJVM(
            *heap, "-XX:+ExitOnOutOfMemoryError", "-Xrs", classpath=list(jars), convertStrings=False
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise CAPTURE_JAVA_NOT_STARTED(where=java_home, reason=error) from None
    # Java's own log would write to the standard error, and values of events, too.
    jpype.JClass("java.util.logging.LogManager").getLogManager().reset()
    _java_logger("").setLevel(jpype.JClass("java.util.logging.Level").OFF)
    # Each collection in Java makes JPype collect in Python, too: what is there now, stays.
    gc.freeze()


def _java_logger(name: str) -> Any:
    return jpype.JClass("java.util.logging.Logger").getLogger(name)


#: What turns the values of PostgreSQL into those of events.
_CONVERTER: Final = "io.debezium.connector.postgresql.PostgresValueConverter"


class WarningFilter:
    """Hears the warnings of the converter of values, and lets none of them into a log."""

    def __init__(self, nested: NestedLists) -> None:
        """Begin to hear. `nested` takes the warnings."""
        self._nested = nested
        # Java forgets a logger that has no reference.
        self._logger = _java_logger(_CONVERTER)
        self._logger.setLevel(jpype.JClass("java.util.logging.Level").WARNING)
        self._logger.setFilter(jpype.JProxy("java.util.logging.Filter", inst=self))

    def isLoggable(self, record: Any) -> bool:  # noqa: N802 - Java's name
        """Take a warning."""
        moment = record.getInstant()
        nanoseconds = int(moment.getEpochSecond()) * 1_000_000_000 + int(moment.getNano())
        self._nested.note(nanoseconds, str(record.getMessage()))
        return False


def write_offset(path: Path, name: str, offset: Offset) -> None:
    """Write an offset as the file from which the engine begins.

    Args:
        path: the file.
        name: of the engine, and of the server in its offsets.
        offset: as the connector has it.
    """
    # Connect's own writing of JSON, by which the key is compared.
    key = f'["{name}",{{"server":"{name}"}}]'
    entries = jpype.JClass("java.util.HashMap")()
    entries.put(_bytes(key), _bytes(offset_text(offset)))
    out = jpype.JClass("java.io.FileOutputStream")(str(path))
    stream = jpype.JClass("java.io.ObjectOutputStream")(out)
    try:
        stream.writeObject(entries)
    finally:
        stream.close()


def _bytes(text: str) -> Any:
    return jpype.JArray(jpype.JByte)(text.encode())


def offset_text(offset: Offset) -> str:
    """An offset as the JSON that Connect reads."""
    return json.dumps(dict(offset), separators=(",", ":"))


_CLOSE_SECONDS: Final = 60.0
_CLOSE_INTERVAL_SECONDS: Final = 0.5
_FORMAT: Final = "io.debezium.engine.format."


class DebeziumEngine:
    """One run of an engine, in a thread of its own."""

    def __init__(
        self,
        connector: str,
        settings: Mapping[str, str],
        take: TakeEvents,
        ended: Callable[[], None],
    ) -> None:
        """Set it up; nothing runs yet. Java has to run.

        Args:
            connector: `postgresql`, `mariadb` or another one.
            settings: of the engine, whole.
            take: is called with what came, again and again, one call at a time.
            ended: is called once, when it has ended for whatever reason; `failure` says which.
        """
        self.failure: PolynyaError | None = None
        self._stopping = False
        self._has_metrics = True
        self._ended = ended
        nested = NestedLists()
        self._warnings = WarningFilter(nested)
        self._reader = RecordReader(nested, heartbeats_move=heartbeats_move(settings))
        self._take = take
        self._engine = self._built(settings)
        self._reach = BinlogProgress(self._engine, connector) if connector in BINLOGS else None
        self._thread = threading.Thread(target=self._run, name="debezium", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def read_to(self) -> Offset | None:
        """A place in a binlog up to which all was taken; None: not known."""
        return None if self._reach is None else self._reach.look()

    def stop(self) -> None:
        """End, after the batch that is landing. Waits for it."""
        self._stopping = True
        patience = _CLOSE_SECONDS
        while self._thread.is_alive() and patience > 0:
            # One that is just starting refuses, and one that ends by itself has nothing to close.
            with suppress(jpype.JException):
                self._engine.close()
            self._thread.join(_CLOSE_INTERVAL_SECONDS)
            patience -= _CLOSE_INTERVAL_SECONDS

    def _built(self, settings: Mapping[str, str]) -> Any:
        json_bytes = jpype.JClass(f"{_FORMAT}JsonByteArray")
        form = jpype.JClass(f"{_FORMAT}KeyValueHeaderChangeEventFormat").of(
            json_bytes, json_bytes, jpype.JClass(f"{_FORMAT}Json")
        )
        builder = jpype.JClass("io.debezium.engine.DebeziumEngine").create(form)
        consumer = jpype.JProxy("io.debezium.engine.DebeziumEngine$ChangeConsumer", inst=self)
        done = jpype.JProxy("io.debezium.engine.DebeziumEngine$CompletionCallback", inst=self)
        builder.using(java_properties(settings)).notifying(consumer).using(done)
        return builder.build()

    def _run(self) -> None:
        jpype.java.lang.Thread.attachAsDaemon()
        try:
            self._engine.run()
        except jpype.JException as error:
            self._fail(str(error.toString()))
        finally:
            self._ended()

    # What Java calls: names are Debezium's.

    def handleBatch(self, records: Any, committer: Any) -> None:  # noqa: N802
        """Take a batch. After an error, nothing in it is confirmed to the database."""
        try:
            landed = self._take(self._reader.read(records))
        except PolynyaError as error:
            self.failure = error
            raise
        if self._has_metrics:
            self._has_metrics = False
            with suppress(jpype.JException):
                _with_task(self._engine, _leave_out_metrics)
        if self._reach is not None:
            self._reach.came(self._reader.reached)
        if landed is not None:
            committer.markProcessed(landed)
            committer.markBatchFinished()

    def supportsTombstoneEvents(self) -> bool:  # noqa: N802
        """Whether deletes are followed by tombstones: never asked for."""
        return False

    def handle(self, success: bool, message: Any, error: Any) -> None:  # noqa: FBT001
        """The engine has ended."""
        if not success:
            self._fail(str(message) if error is None else _causes(error))

    def _fail(self, why: str) -> None:
        if self._stopping or self.failure is not None:
            # One that is ended while it begins complains; nothing that it had read is lost.
            return
        self.failure = failure_of(why[:_MESSAGE_CHARACTERS])


def _leave_out_metrics(task: Any) -> None:
    """Let a task count no events: Debezium's metrics keep the text of the last one.

    For that they make a writer of JSON for each event, a quarter of all objects in Java. The
    metrics of its binlog client, which `BinlogProgress` reads, are others.
    """
    coordinator = _field(task, "io.debezium.connector.common.BaseSourceTask", "coordinator")
    dispatcher = _field(
        coordinator, "io.debezium.pipeline.ChangeEventSourceCoordinator", "eventDispatcher"
    )
    listener = jpype.JClass("io.debezium.pipeline.source.spi.DataChangeEventListener")
    dispatcher.setEventListener(listener.NO_OP())


def _field(java_object: Any, declared_in: str, name: str) -> Any:
    """The value of a field that is not public."""
    field = jpype.JClass(declared_in).class_.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java_object)


def _with_task(engine: Any, use: Callable[[Any], object]) -> None:
    """Call a function with the task of an engine that runs."""
    engine.runWithTask(jpype.JProxy("java.util.function.Consumer", {"accept": use}))


def java_properties(settings: Mapping[str, str]) -> Any:
    """Settings as Java's Properties."""
    properties = jpype.JClass("java.util.Properties")()
    for name, value in settings.items():
        properties.setProperty(name, value)
    return properties


_MOST_CAUSES: Final = 5
_MESSAGE_CHARACTERS: Final = 600


def _causes(error: Any) -> str:
    """What an exception of Java says, and its causes, each once."""
    messages: list[str] = []
    while error is not None and len(messages) < _MOST_CAUSES:
        text = str(error.getMessage() or error.getClass().getName())
        if not any(text in message for message in messages):
            messages.append(text)
        error = error.getCause()
    return "; ".join(messages)


#: Of an offset: how much of a transaction was read.
_WITHIN: Final = frozenset({"event", "row"})


@dataclass(frozen=True, slots=True)
class ReadableEvents:
    """What lands of some events.

    Attributes:
        ends: the engine has to end behind them.
        begin: where the next one begins; None: behind the last of them.
        replaced: tables whose rows were left out, and where: they have to be loaded.
    """

    events: Sequence[StreamEvent]
    ends: bool = False
    begin: Offset | None = None
    replaced: tuple[tuple[str, LogPosition], ...] = ()


class MisreadStatements:
    """Watches the events of one engine for statements that Debezium misreads."""

    def __init__(
        self, is_captured: Callable[[str], bool], understood: Collection[LogPosition]
    ) -> None:
        """Set up.

        Args:
            is_captured: whether rows of a table land.
            understood: places of statements that Debezium got in other words. It brings
                them once more.
        """
        self._is_captured, self._understood = is_captured, understood
        #: The place of a statement that Debezium gets in other words from now on.
        self.rewritten: LogPosition | None = None
        #: After a statement with types that are misread: its offset, until the log continues.
        self._behind: Offset | None = None
        self._tables: dict[str, LogPosition] = {}

    def take(self, events: Sequence[StreamEvent]) -> ReadableEvents:
        """What lands of these."""
        landing: list[StreamEvent] = []
        left_out: dict[str, LogPosition] = {}
        for event in events:
            if self._behind is not None and event.kind != "end":
                offset = event.offset()
                if _group(offset) != _group(self._behind):
                    begin = {name: value for name, value in offset.items() if name not in _WITHIN}
                    return ReadableEvents(
                        landing, ends=True, begin=begin, replaced=tuple(left_out.items())
                    )
                if event.table in self._tables:
                    # A table that was made with its rows, by `CREATE TABLE … SELECT`.
                    left_out[event.table] = self._tables[event.table]
                    continue
            landing.append(event)
            if event.kind == "statement" and self._is_misread(event):
                return ReadableEvents(landing, ends=True)
        return ReadableEvents(landing, replaced=tuple(left_out.items()))

    def _is_misread(self, event: StreamEvent) -> bool:
        """Whether to end at once; else what follows a statement is held up in `_behind`."""
        statement = misread(event.line)
        is_new = statement is not None and statement.place not in self._understood
        if statement is not None and is_new and self._is_captured(statement.table):
            self.rewritten = statement.place
            return True
        tables = {
            name: position
            for name, position in mistyped(event.line).items()
            if self._is_captured(name)
        }
        if tables:
            self._behind = event.offset()
            self._tables |= tables
        return False


def _group(offset: Offset) -> tuple[object, ...]:
    """The transaction in which an offset is."""
    return offset.get("gtids"), offset.get("file"), offset.get("pos")


class BinlogProgress:
    """How far an engine has read its binlog. The engine's thread calls `came`, another `look`."""

    def __init__(self, engine: Any, connector: str) -> None:
        self._engine = engine
        self._metrics = (
            f"debezium.{connector}:type=connector-metrics,context=streaming,server={NAME}"
        )
        self._number = 0
        #: The place that was read when the record of this number was queued.
        self._asked: Offset | None = None
        self._came = 0
        self._known: Offset | None = None

    def look(self) -> Offset | None:
        """A place up to which all was taken, None: not known; asks for a newer one.

        The place was read by the server's reader at the look before.
        """
        if self._asked is not None and self._came == self._number:
            self._known, self._asked = self._asked, None
        if self._asked is None:
            # Before the connector has started there is nothing to ask.
            with suppress(jpype.JException):
                self._ask()
        return self._known

    def came(self, number: int) -> None:
        """The record of a number has come, and everything before it was taken."""
        self._came = number

    def _ask(self) -> None:
        position = self._place()
        # File and position are two reads: a place that stays is a whole one.
        if not position["file"] or position == self._known or position != self._place():
            return
        if self._queued(self._number + 1):
            self._number += 1
            self._asked = position

    def _place(self) -> Offset:
        server = jpype.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        name = jpype.javax.management.ObjectName(self._metrics)
        file, position = (
            server.getAttribute(name, attribute)
            for attribute in ("BinlogFilename", "BinlogPosition")
        )
        return {"file": str(file or ""), "pos": int(position)}

    def _queued(self, number: int) -> bool:
        """Queue the record of a number, unless others wait: a full queue would hold us up."""
        kafka = "org.apache.kafka.connect"
        whole = jpype.JClass(f"{kafka}.data.Schema").INT64_SCHEMA
        # Debezium looks for schemas of its own by their names, and sizes structs.
        builder = jpype.JClass(f"{kafka}.data.SchemaBuilder")
        schema = builder.struct().name(REACHED).field(NUMBER, whole).build()
        value = jpype.JClass(f"{kafka}.data.Struct")(schema)
        value.put(NUMBER, jpype.java.lang.Long(number))
        nothing = jpype.JClass("java.util.HashMap")()
        record = jpype.JClass(f"{kafka}.source.SourceRecord")(
            nothing, nothing, REACHED, schema, value
        )
        event = jpype.JClass("io.debezium.pipeline.DataChangeEvent")(record)
        tasks: list[Any] = []
        _with_task(self._engine, tasks.append)
        for task in tasks:
            queue = _field(task, str(task.getClass().getName()), "queue")
            if queue.remainingCapacity() == queue.totalCapacity():
                queue.enqueue(event)
                return True
        return False


_DIGITS: Final = 20


class KeptHistory:
    """The schema history of one run of an engine, and its copy in the landing zone."""

    def __init__(self, file: Path, log: CaptureLog) -> None:
        self._file, self._log = file, log
        self._size = 0

    def restore(self, number: int) -> bool:
        """Bring back the history of a number before the engine starts; whether there is one.

        Raises:
            OperationError: POLYNYA-GTW-009, it is not there.
        """
        if not number:
            return False
        path = self._path(number)
        try:
            packed = self._log.store.get(path)
        except FileNotFoundError as error:
            raise SCHEMA_HISTORY_MISSING(where=path) from error
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as content:
            text = content.read()
        text = as_read(text)
        self._file.write_bytes(text)
        self._size = len(text)
        return True

    def kept(self, number: int) -> int:
        """Put what has grown since a number; the number that has all of it."""
        # Asked before each batch: a history of many tables is large.
        if not self._file.is_file() or self._file.stat().st_size <= self._size:
            return number
        text = self._file.read_bytes()
        kept = put_history(self._log, number + 1, text)
        self._size = len(text)
        return kept

    def _path(self, number: int) -> str:
        return _path(self._log, number)


def put_history(log: CaptureLog, number: int, text: bytes) -> int:
    """Keep a history, before the batch that names it; its number, `number` or the next free one.

    One that no batch names may be there, after a kill or of a capture that loses the next number.
    None is ever replaced: a batch may come to name it.
    """
    data: bytes = pa.compress(text, codec="zstd", asbytes=True)
    while not log.store.put_if_absent(_path(log, number), data):
        number += 1
    return number


def _path(log: CaptureLog, number: int) -> str:
    return f"{log.folder}/{HISTORY}/{number:0{_DIGITS}d}.jsonl.zst"


_STATEMENT: Final = re.compile(
    # What is long is cut.
    r"couldn't be parsed.*?with the statement '(.*?)(?:'\s*(?:\n|;|\Z)|\Z)",
    re.DOTALL,
)
#: What Debezium says of a value, of a type that it does not know, and of rows that have other
#: columns than the table had by all statements that it has read; and what PostgreSQL says each time
#: that it decodes a transaction with tables as they were before they were altered.
_MARKS: Final = (
    ("Error while deserializing binlog data", "a value that Debezium cannot read"),
    (
        "eventType=TABLE_MAP",
        "columns that Debezium cannot read, such as YEAR of MySQL before 8.0.29",
    ),
    ("ColumnType.byCode", "a column of a type that Debezium does not know, such as COMPRESSED"),
    ("internal schema size", "rows that do not fit the table as the stream has defined it"),
    ("schema isn't known to this connector", "rows of a table that the stream has not defined"),
    *((mark, "a transaction that PostgreSQL cannot decode") for mark in UNDECODABLE),
)
#: The same of which Debezium names the table; of a row that does not fit it without its database.
_OF_TABLE: Final = re.compile(
    r"Error processing row in (?P<short>.+?), internal schema size"
    r"|change event for table (?P<name>\S+) whose schema isn't known to this connector"
)
_VALUE: Final = re.compile(
    r"Failed to properly convert (?:data|default) value for '(?P<table>[^']+)\.(?P<column>[^'.]+)' "
    r"of type (?P<type>[^;\n]+)"
)
_KEY_ASKED: Final = "Public Key Retrieval is not allowed"
_SETTING: Final = "server is not configured to use a"
_QUOTED: Final = re.compile(r"'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)")
_EXCERPT_CHARACTERS: Final = 300


def failure_of(message: str) -> PolynyaError:
    """The error of an engine that ended, from what it said."""
    value = _VALUE.search(message)
    if value is not None:
        table, type_ = value["table"], value["type"].strip()[:_EXCERPT_CHARACTERS]
        return TableError.of(
            table, VALUE_NOT_CAPTURED(where=table, table=table, column=value["column"], type=type_)
        )
    statement = _STATEMENT.search(message)
    if statement is not None:
        # Its texts may be secrets.
        shown = _QUOTED.sub("'…'", " ".join(statement[1].split()))[:_EXCERPT_CHARACTERS]
        return STREAM_UNREADABLE(obstacle=f"a statement that Debezium cannot read: {shown}")
    for mark, what in _MARKS:
        if mark in message:
            why = " ".join(message[message.index(mark) :].split())[:_EXCERPT_CHARACTERS]
            error, named = STREAM_UNREADABLE(obstacle=f"{what}: {why}"), _OF_TABLE.search(message)
            return error if named is None else TableError.of(named["name"] or named["short"], error)
    if _KEY_ASKED in message:
        return MYSQL_PASSWORD_NEEDS_TLS(reason=_KEY_ASKED)
    if _SETTING in message:
        return BINLOG_INCOMPLETE(reason=message[:_EXCERPT_CHARACTERS])
    return STREAM_ENDED(reason=message)
