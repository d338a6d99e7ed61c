"""The messages of a capture process as typed events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from polynya.capture.wire import error_of
from polynya.engine.tasks.capture_process import WorkerMessage
from polynya.model.errors import PolynyaError
from polynya.observe.capture import (
    CaptureLag,
    CaptureLanded,
    CaptureLoaded,
    CaptureStreaming,
    CaptureTable,
    CaptureTableFailed,
)
from polynya.observe.events import Event, EventSink, StepEnded, StepProgress

#: States whose name in events differs from that in messages.
_STATE_NAMES: Final = {"suspended": "error"}


@dataclass(slots=True)
class CaptureReporter:
    """Reports one capture. The messages come from another process, so any field may be missing.

    Attributes:
        failed: the error that ended the process, if it named one.
        landed: something has landed since this was set to False.
        works: the database answered since this was set to False.
        begun: it has begun with what it was asked for since this was set to False.
    """

    task: str
    sink: EventSink
    failed: PolynyaError | None = None
    landed: bool = False
    works: bool = False
    begun: bool = False
    _states: dict[str, str] = field(default_factory=dict)
    _before: dict[str, int] = field(default_factory=dict)
    _loading: set[str] = field(default_factory=set)
    _notes: tuple[str, ...] = ()

    def take(self, said: WorkerMessage) -> None:
        """Report one message of the process; unknown ones are ignored."""
        match said.get("type"):
            case "tables":
                self.begun = True
                self._tables(said.get("tables"))
            case "progress":
                self._progress(said)
            case "loaded":
                self._loaded(said)
            case "landed":
                self._landed(said)
            case "lag":
                self._lag(said)
            case "streaming":
                self.works = True
                self.sink(CaptureStreaming(subject=self.task, task=self.task))
            case "table_failed":
                self._table_failed(said)
            case "failed":
                self.failed = error_of(_mapping(said.get("error")))

    def over(self) -> None:
        """The process has ended: nothing is under way any more."""
        for table in sorted(self._loading):
            self._step_ended(table)
        self._states.clear()

    def _tables(self, tables: Any) -> None:
        for name, facts in _mapping(tables).items():
            state = _STATE_NAMES.get(said := str(_mapping(facts).get("state")), said)
            self._before[name] = _count(_mapping(facts).get("rows"))
            if self._states.get(name) != state:
                self._states[name] = state
                rows = _count(_mapping(facts).get("rows"))
                self._tell(
                    CaptureTable(subject=self._name(name), task=self.task, state=state, rows=rows)
                )

    def _progress(self, said: WorkerMessage) -> None:
        table = str(said.get("table"))
        self._loading.add(table)
        rows, size = _count(said.get("rows")), _count(said.get("bytes"))
        seconds = _number(said.get("seconds")) or 0.0
        rows_left = _left(_number(said.get("rows_estimate")), rows)
        before = min(rows, self._before.get(table, 0))
        now = rows - before
        counted_rows = f"{rows:,} rows, " if rows_left is None else ""
        left = rows_left * seconds / now if rows_left is not None and now else None
        self._tell(
            StepProgress(
                subject=self._name(table),
                task=self.task,
                step="loading",
                seconds=seconds,
                rows=rows,
                rows_before=before,
                rows_left=None if rows_left is None else int(rows_left),
                left_seconds=left,
                detail=f"{counted_rows}{size / 2**20:,.1f} MiB",
            )
        )

    def _loaded(self, said: WorkerMessage) -> None:
        table = str(said.get("table"))
        self.works = True
        self._step_ended(table)
        self._tell(
            CaptureLoaded(
                subject=self._name(table),
                task=self.task,
                rows=_count(said.get("rows")),
                bytes=_count(said.get("bytes")),
                seconds=_number(said.get("seconds")) or 0.0,
            )
        )

    def _landed(self, said: WorkerMessage) -> None:
        self.works = self.landed = True
        self._tell(
            CaptureLanded(
                subject=self.task,
                task=self.task,
                number=_count(said.get("number")),
                events=_count(said.get("events")),
                bytes=_count(said.get("bytes")),
                object_bytes=_count(said.get("object_bytes")),
                seconds=_number(said.get("seconds")) or 0.0,
            )
        )

    def _lag(self, said: WorkerMessage) -> None:
        notes = said.get("notes")
        found = tuple(map(str, notes)) if isinstance(notes, list) else ()
        size = _number(said.get("bytes"))
        # A lasting state is reported once.
        news = found if found != self._notes else ()
        self._notes = found
        self._tell(
            CaptureLag(
                subject=self.task,
                task=self.task,
                bytes=None if size is None else int(size),
                seconds=_number(said.get("seconds")),
                notes=news,
            )
        )

    def _table_failed(self, said: WorkerMessage) -> None:
        table = str(said.get("table"))
        self._step_ended(table)
        error = error_of(_mapping(said.get("error")))
        suspended, refused = bool(said.get("suspended")), bool(said.get("refused"))
        self._tell(
            CaptureTableFailed(
                subject=self._name(table),
                task=self.task,
                error=error,
                suspended=suspended,
                refused=refused,
            )
        )

    def _step_ended(self, table: str) -> None:
        if table in self._loading:
            self._loading.discard(table)
            self._tell(StepEnded(subject=self._name(table), task=self.task))

    def _name(self, table: str) -> str:
        return f"{self.task}/{table}"

    def _tell(self, event: Event) -> None:
        self.sink(event)


def _left(estimate: float | None, done: float) -> float | None:
    """What is left of an estimate; None where the estimate was too low."""
    return None if estimate is None or estimate < done else estimate - done


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: Any) -> int:
    return int(_number(value) or 0)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
