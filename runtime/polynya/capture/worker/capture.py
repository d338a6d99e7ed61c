"""A capture from start to end: its rounds, its JVM, and what errors do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from polynya.capture.debezium import KeptHistory
from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import CapturePosition, TableProgress, offset_to_resume
from polynya.capture.landing.stream import TakeEvents
from polynya.capture.source import (
    NAME,
    Access,
    Scratch,
    SourceDatabase,
    SourceTable,
    engine_settings,
)
from polynya.capture.wire import (
    TableChangedError,
    TableError,
    TableFaults,
    WorkerSettings,
    asks_for_all,
    error_fields,
)
from polynya.capture.worker.changes import History
from polynya.capture.worker.context import CaptureContext
from polynya.capture.worker.engines import StreamEngine
from polynya.capture.worker.round import Round
from polynya.lake.spark.jars import DEBEZIUM, compiler_jars, jar_paths
from polynya.lake.spark.java import find_java
from polynya.model.error_catalogue.capture import STREAM_POSITION_LOST, STREAM_UNREADABLE
from polynya.model.error_catalogue.capture_databases import CONNECTOR_JARS_MISSING
from polynya.model.errors import OperationError
from polynya.store.node_folders import CONNECTORS

_HEAP_MB: Final = 512
_WITHOUT_HISTORY: Final = frozenset({"postgresql", "mongodb"})


@dataclass(slots=True)
class DebeziumEngines:
    """Makes engines; starts Java with the first.

    `unsent` is the text that they write for a column that the source did not send.
    """

    settings: WorkerSettings
    folder: Path
    unsent: str = ""
    _history: KeptHistory | None = None
    _runs: int = field(default=0)

    def history(self, database: SourceDatabase, log: CaptureLog) -> History | None:
        """The history of schemas of the run that comes next."""
        self._runs += 1
        self._scratch.folder.mkdir(parents=True)
        if database.connector in _WITHOUT_HISTORY:
            return None
        self._history = KeptHistory(self._scratch.history, log)
        return self._history

    def engine(
        self,
        database: SourceDatabase,
        tables: Sequence[SourceTable],
        position: CapturePosition,
        take: TakeEvents,
        ended: Callable[[], None],
    ) -> StreamEngine:
        """One that reads from a position on; `history` comes before it.

        Raises:
            DependencyError: the jars or Java cannot be had (POLYNYA-DEP-001 to -005), or Java does
                not start (POLYNYA-GTW-005).
            OperationError: POLYNYA-GTW-009, the history of schemas is not there;
                POLYNYA-GTW-053, jars of the user are not there.
        """
        # Start-up time and memory of commands that capture nothing: JPype loads a library.
        from polynya.capture.debezium import DebeziumEngine, start_java, write_offset

        jars = jar_paths(groups=(DEBEZIUM,), repository=self.settings.maven_repository)
        jars += [*compiler_jars(), *own_jars(self.settings.access)]
        start_java(jars, str(find_java().runtime), _HEAP_MB)
        if position.stream.offset:
            offset = offset_to_resume(database.connector, position.stream.offset)
            write_offset(self._scratch.offsets, NAME, offset)
        has_history = self._history is not None and self._history.restore(position.history)
        settings = engine_settings(
            database.connector,
            database.engine_properties(tables, position.lacking),
            self._scratch,
            roll_bytes=self.settings.roll_bytes,
            roll_seconds=self.settings.roll_seconds,
            has_history=has_history,
            unsent=self.unsent,
        )
        return DebeziumEngine(database.connector, settings, take, ended)

    @property
    def _scratch(self) -> Scratch:
        return Scratch(self.folder / f"run-{self._runs}")


def own_jars(access: Access) -> list[str]:
    """The jars that a user names, those in folders too.

    Raises:
        OperationError: POLYNYA-GTW-053, they are not there, or not where this machine lets
            connectors lie.
    """
    jars: list[str] = []
    for name in access.jars:
        path = CONNECTORS.below(name)
        if path is None:
            raise _jar_missing(name, CONNECTORS.outside())
        inside = sorted(str(jar) for jar in _below(path)) if path.is_dir() else [str(path)]
        if not inside or not path.exists():
            raise _jar_missing(name, "it does not exist, or is a folder without jars")
        jars += inside
    return jars


def _jar_missing(name: str, reason: str) -> OperationError:
    return CONNECTOR_JARS_MISSING(where=name, reason=reason, variable=CONNECTORS.variable)


def _below(folder: Path) -> Iterator[Path]:
    """Jars in a folder; links that lead out of the machine's folder of connectors are not."""
    return (jar for jar in folder.glob("*.jar") if CONNECTORS.below(jar) is not None)


#: Seconds until the stream is read again after a table's change could not land, or its load was
#: interrupted by a change of the table.
_RETRY_SECONDS: Final = 5.0
#: Where only a load of all tables helps: the stream is lost, or cannot be read any further.
_RELOAD_CODES: Final = frozenset({STREAM_POSITION_LOST.code, STREAM_UNREADABLE.code})


@dataclass(slots=True)
class Capture(CaptureContext):
    """One capture, from its start until it is asked to end."""

    def run(self) -> None:
        """Capture until it is asked to end, or has done what it was asked for.

        Raises:
            PolynyaError: it cannot continue; `retryable` says whether a new start may help. Landed
                data stays, and the next start continues after it.
        """
        lander = CaptureLander(
            self.log,
            self.settings.task,
            self.now,
            writer=self.writer,
            unsent=self.unsent,
            newest=self.log.newest(),
            landed=lambda number, events, size: self.report(
                "landed", number=number, events=events, object_bytes=size
            ),
        )
        faults = TableFaults(self.settings.table_retries, self.monotonic)
        changes = TableFaults(self.settings.table_retries, self.monotonic)
        is_anew = False
        while not self.stop.is_set():
            try:
                with Round(self, lander, is_anew=is_anew) as round_:
                    is_anew = self._ends_for_anew(round_)
            except TableError as error:
                is_anew = False
                self._take_out(_known_to(lander.position, error), lander, faults)
            except TableChangedError as error:
                is_anew = False
                self._wait_for_later_view(error, changes)

    def _wait_for_later_view(self, error: TableChangedError, changes: TableFaults) -> None:
        """The next round loads the rest of a table that changed. Raises the error if it recurs."""
        self.report("table_failed", table=error.table, error=error_fields(error), suspended=False)
        if changes.gives_up(error.table):
            raise error
        self.stop.wait(_RETRY_SECONDS)

    def _take_out(self, error: TableError, lander: CaptureLander, faults: TableFaults) -> None:
        """Read the stream again after a change that could not land, or continue without its table.

        Raises the error where the task says so.
        """
        gives_up = faults.gives_up(error.table)
        suspends = gives_up and self.settings.table_then == "suspend"
        self.report(
            "table_failed", table=error.table, error=error_fields(error), suspended=suspends
        )  # fmt: skip
        if gives_up and not suspends:
            raise error
        if not suspends:
            self.stop.wait(_RETRY_SECONDS)
            return

        def move(before: CapturePosition) -> CapturePosition:
            progress = before.tables.get(error.table, TableProgress())
            return before.with_table(error.table, progress.without_changes(error))

        lander.land(b"", 0, {}, move)

    def _ends_for_anew(self, round_: Round) -> bool:
        """Run a round; whether the next one has to start the capture again. Raises what it does."""
        try:
            round_.run()
        except OperationError as error:
            if error.code not in _RELOAD_CODES:
                raise
            waits = not isinstance(error, TableError)
            if not (round_.is_for_all or (waits and self._is_asked_for_all())):
                raise
            return True
        return False

    def _is_asked_for_all(self) -> bool:
        """Wait for somebody to ask for a load of all tables; whether somebody does."""
        until = self.monotonic() + self.patience
        while not self.stop.is_set():
            if asks_for_all(self.taken_requests()):
                return True
            left = until - self.monotonic()
            if left <= 0:
                return False
            self.wake.wait(left)
            self.wake.clear()
        return False


def _known_to(position: CapturePosition, error: TableError) -> TableError:
    """An error with the whole name of its table. Raises it as one of no table where that is open.

    Where nothing has landed yet, no table is known.
    """
    names = [name for name in position.tables if name == error.table]
    names = names or [name for name in position.tables if name.endswith(f".{error.table}")]
    if len(names) == 1:
        return TableError.of(names[0], error)
    raise error
