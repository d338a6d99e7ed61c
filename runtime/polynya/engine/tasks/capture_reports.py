"""The messages of a capture process as typed events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from polynya.capture.wire import error_of
from polynya.engine.backlog import CaptureFigures
from polynya.engine.tasks.capture_process import WorkerMessage
from polynya.model.errors import PolynyaError
from polynya.observe.capture import (
    CaptureLag,
    CaptureLanded,
    CaptureLoaded,
    CaptureNote,
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
        begun: it has begun with its requests since this was set to False.
        answered: the database did something for it since this was set to False.
        figures: what is known from the messages; times are those of the database.
    """

    task: str
    sink: EventSink
    failed: PolynyaError | None = None
    landed: bool = False
    works: bool = False
    begun: bool = False
    answered: bool = False
    figures: CaptureFigures = field(default_factory=CaptureFigures)
    _states: dict[str, str] = field(default_factory=dict)
    _newest_states: dict[str, str] = field(default_factory=dict)
    _before: dict[str, int] = field(default_factory=dict)
    _loading: set[str] = field(default_factory=set)
    _notes: tuple[str, ...] = ()
    _noted_tables: dict[str, str] = field(default_factory=dict)

    def take(self, message: WorkerMessage) -> None:
        """Report one message of the process; unknown ones are ignored."""
        match message.get("type"):
            case "tables":
                self.begun = True
                self._tables(message.get("tables"))
            case "progress":
                self._progress(message)
            case "loaded":
                self._loaded(message)
            case "landed":
                self._landed(message)
            case "lag":
                self._lag(message)
            case "notes":
                self._noted(_mapping(message.get("tables")))
            case "streaming":
                self.works = self.answered = True
                self.sink(CaptureStreaming(subject=self.task, task=self.task))
            case "table_failed":
                self._table_failed(message)
            case "failed":
                self.failed = error_of(_mapping(message.get("error")))

    def over(self) -> None:
        """The process has ended: nothing is under way any more."""
        for table in sorted(self._loading):
            self._step_ended(table)
        self._states.clear()

    def _tables(self, tables: Any) -> None:
        self._newest_states.clear()
        for name, facts in _mapping(tables).items():
            state = _STATE_NAMES.get(reported := str(_mapping(facts).get("state")), reported)
            self._before[name] = _count(_mapping(facts).get("rows"))
            self._newest_states[name] = state
            if self._states.get(name) != state:
                self._states[name] = state
                rows = _count(_mapping(facts).get("rows"))
                self._tell(
                    CaptureTable(subject=self._name(name), task=self.task, state=state, rows=rows)
                )
        self._count_tables()

    def _progress(self, message: WorkerMessage) -> None:
        table = str(message.get("table"))
        self.answered = True
        self._loading.add(table)
        self._is_now(table, "loading")
        rows, size = _count(message.get("rows")), _count(message.get("bytes"))
        seconds = _number(message.get("seconds")) or 0.0
        rows_left = _left(_number(message.get("rows_estimate")), rows)
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

    def _loaded(self, message: WorkerMessage) -> None:
        table = str(message.get("table"))
        self.works = self.answered = True
        self._step_ended(table)
        self._is_now(table, "running")
        self._tell(
            CaptureLoaded(
                subject=self._name(table),
                task=self.task,
                rows=_count(message.get("rows")),
                bytes=_count(message.get("bytes")),
                seconds=_number(message.get("seconds")) or 0.0,
            )
        )

    def _landed(self, message: WorkerMessage) -> None:
        self.works = self.landed = self.answered = True
        known = self.figures
        self.figures = replace(
            known,
            events=known.events + _count(message.get("events")),
            size_bytes=known.size_bytes + _count(message.get("object_bytes")),
        )
        self._tell(
            CaptureLanded(
                subject=self.task,
                task=self.task,
                number=_count(message.get("number")),
                events=_count(message.get("events")),
                bytes=_count(message.get("bytes")),
                object_bytes=_count(message.get("object_bytes")),
                seconds=_number(message.get("seconds")) or 0.0,
            )
        )

    def _lag(self, message: WorkerMessage) -> None:
        notes = message.get("notes")
        present = tuple(map(str, notes)) if isinstance(notes, list) else ()
        size = _number(message.get("bytes"))
        # A lasting state is reported once.
        news = present if present != self._notes else ()
        self._notes = present
        self.answered = self.answered or size is not None
        self.figures = replace(
            self.figures,
            lag_bytes=_count(size),
            lag_seconds=float(_number(message.get("seconds")) or 0.0),
            log_bytes=_optional(message.get("log_bytes")),
            log_limit_bytes=_optional(message.get("log_limit_bytes")),
            landed=_mapping(message.get("landed")) or self.figures.landed,
        )
        self._tell(
            CaptureLag(
                subject=self.task,
                task=self.task,
                bytes=None if size is None else int(size),
                seconds=_number(message.get("seconds")),
                notes=news,
                warned=bool(present),
            )
        )

    def _noted(self, tables: Mapping[str, Any]) -> None:
        for table, note in tables.items():
            if self._noted_tables.get(table) != note:
                self._noted_tables[table] = str(note)
                self._tell(CaptureNote(subject=self._name(table), task=self.task, note=str(note)))

    def _table_failed(self, message: WorkerMessage) -> None:
        table = str(message.get("table"))
        self._step_ended(table)
        error = error_of(_mapping(message.get("error")))
        suspended, refused = bool(message.get("suspended")), bool(message.get("refused"))
        if suspended:
            self._is_now(table, "error")
        self._tell(
            CaptureTableFailed(
                subject=self._name(table),
                task=self.task,
                error=error,
                suspended=suspended,
                refused=refused,
            )
        )

    def _is_now(self, table: str, state: str) -> None:
        """The state of a table between two messages that list them all."""
        if self._newest_states.get(table) != state:
            self._newest_states[table] = state
            self._count_tables()

    def _count_tables(self) -> None:
        self.figures = replace(self.figures, tables=Counter(self._newest_states.values()))

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


def _optional(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _count(value: Any) -> int:
    return int(_number(value) or 0)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
