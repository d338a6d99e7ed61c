"""Debezium's engine for a capture: its jars, its Java and the files of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from polynya.gateway.debezium.history import KeptHistory
from polynya.gateway.debezium.settings import NAME, Scratch, engine_settings
from polynya.gateway.landing.log import CaptureLog
from polynya.gateway.landing.position import Position
from polynya.gateway.source import Access, Database, SourceTable
from polynya.gateway.wire import WorkerSettings
from polynya.gateway.worker.changes import History
from polynya.gateway.worker.engines import Engine, Take
from polynya.lake.spark.jars import DEBEZIUM, jar_paths
from polynya.lake.spark.java import find_java
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

    def history(self, database: Database, log: CaptureLog) -> History | None:
        """The history of schemas of the run that comes next."""
        self._runs += 1
        self._scratch.folder.mkdir(parents=True)
        if database.connector in _WITHOUT_HISTORY:
            return None
        self._history = KeptHistory(self._scratch.history, log)
        return self._history

    def engine(
        self,
        database: Database,
        tables: Sequence[SourceTable],
        position: Position,
        take: Take,
        ended: Callable[[], None],
    ) -> Engine:
        """One that reads from a position on; `history` comes before it.

        Raises:
            DependencyError: the jars or Java cannot be had (POLYNYA-DEP-001 to -004), or Java does
                not start (POLYNYA-GTW-005).
            OperationError: POLYNYA-GTW-009, the history of schemas is not there;
                POLYNYA-GTW-053, jars of the user are not there.
        """
        # Start-up time and memory of commands that capture nothing: JPype loads a library.
        from polynya.gateway.debezium.engine import DebeziumEngine
        from polynya.gateway.debezium.jvm import start_java, write_offset

        jars = jar_paths(groups=(DEBEZIUM,), repository=self.settings.maven_repository)
        start_java([*jars, *own_jars(self.settings.access)], str(find_java().runtime), _HEAP_MB)
        if position.stream.offset:
            write_offset(self._scratch.offsets, NAME, position.stream.offset)
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
    found: list[str] = []
    for name in access.jars:
        path = CONNECTORS.below(name)
        if path is None:
            raise OperationError(
                "POLYNYA-GTW-053",
                "a jar of the connection is not among the connectors of this machine",
                where=name,
                why=CONNECTORS.outside(),
                state="nothing was captured",
                fix=f"put it there, or start the process with another `{CONNECTORS.variable}`",
            )
        inside = sorted(str(one) for one in _below(path)) if path.is_dir() else [str(path)]
        if not inside or not path.exists():
            raise OperationError(
                "POLYNYA-GTW-053",
                "a jar of the connection is not there, or a folder has none",
                where=name,
                state="nothing was captured",
                fix="put the connector of Debezium and the driver of the database there",
            )
        found += inside
    return found


def _below(folder: Path) -> Iterator[Path]:
    """Jars in a folder; links that lead out of the machine's folder of connectors are not."""
    return (one for one in folder.glob("*.jar") if CONNECTORS.below(one) is not None)
