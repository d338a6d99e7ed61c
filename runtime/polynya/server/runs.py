"""Runs and their events, from what runs write anyway: nothing is stored a second time.

Three things tell of runs: the operations of the API with the output of their commands, the logs of
automations, and the commits of tables, which also tell what agents and commands of a shell did.
"""

from __future__ import annotations

import socket
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from polynya.automation.state import RunLog
from polynya.lake.read.commits import OwnerSteps, TableCommit, in_words
from polynya.lake.table.fence import owner_in_words
from polynya.observe import capture, catalog, cluster, engine, maintenance, mirror, streams
from polynya.observe.events import Event, Level, counted, line
from polynya.server.operations.manager import OperationManager, OperationView
from polynya.server.operations.verbs import VERBS, Writes
from polynya.server.overview import DatasetOverview

#: Most events of one operation, and of one answer, that are looked through: the newest.
MOST_EVENTS: Final = 10_000
#: Parsed operations that are kept in memory.
_KEPT: Final = 100

RunKind: TypeAlias = Literal["operation", "automation", "process"]
RunOutcome: TypeAlias = Literal[
    "queued", "running", "succeeded", "failed", "cancelled", "interrupted", "owner", "overtaken"
]
EventLevel: TypeAlias = Literal["detail", "note", "caution", "warning", "failure"]
LEVELS: Final[tuple[EventLevel, ...]] = ("detail", "note", "caution", "warning", "failure")


@dataclass(frozen=True, slots=True)
class RunPhase:
    """What a run did of one kind: how often, over how many rows, and its work time if known."""

    phase: str
    count: int
    rows: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class RunError:
    """The error of a run; its message is empty where only its code is known."""

    code: str
    message: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `ended` of a process is the time of its last commit."""

    id: str
    kind: RunKind
    name: str
    by: str
    outcome: RunOutcome
    started: datetime
    ended: datetime | None
    tasks: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    phases: tuple[RunPhase, ...] = ()
    error: RunError | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened, in the words of the command line; `figures` are its values."""

    at: datetime
    id: str
    type: str
    level: EventLevel
    text: str
    subject: str
    task: str | None
    dataset: str | None
    code: str | None
    run: str | None
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperationEvents:
    """What the output of an operation says: its events in order, and the last error."""

    events: tuple[RunEvent, ...]
    error: RunError | None


class OperationReader:
    """Reads the output of operations: each line once, while it is among the last that were read."""

    def __init__(self, manager: OperationManager) -> None:
        self._manager = manager
        self._tails: dict[str, _Tail] = {}
        self._ends: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def reads(self, manager: OperationManager) -> bool:
        """Whether it reads the operations of this manager."""
        return manager is self._manager

    def views(self, since: datetime) -> Iterator[OperationView]:
        """The operations that had not ended before a moment, the newest first."""
        for name in self._manager.ids():
            ended = self._ends.get(name)
            if ended is not None and ended < since:
                continue
            view = self._manager.view(name)
            if view is None:
                continue
            if view.result is not None:
                ended = self._ends[name] = datetime.fromisoformat(view.result.ended)
            if ended is None or ended >= since:
                yield view

    def read(self, view: OperationView, task_of: Callable[[str], str | None]) -> OperationEvents:
        """The events of an operation so far. `task_of` gives the task of a subject."""
        name = view.request.id
        with self._lock:
            tail = self._tails.pop(name, None) or _Tail(
                datetime.fromisoformat(view.request.created)
            )
            folder = self._manager.folder(name)
            while piece := list(folder.lines(tail.place)):
                tail.take(name, (line for _, line in piece), task_of)
                tail.place = piece[-1][0]
            # The last that was read is the last that is forgotten.
            self._tails[name] = tail
            while len(self._tails) > _KEPT:
                del self._tails[next(iter(self._tails))]
            return OperationEvents(tuple(tail.events), tail.error)


@dataclass(slots=True)
class _Tail:
    """How far an output was read, in bytes and lines, and what it said; errors tell no time."""

    at: datetime
    place: int = 0
    number: int = 0
    events: deque[RunEvent] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    error: RunError | None = None

    def take(
        self,
        name: str,
        lines: Iterable[Mapping[str, Any]],
        task_of: Callable[[str], str | None],
    ) -> None:
        """Take further lines of the operation of this name."""
        for one in lines:
            self.number += 1
            kind = str(one.get("type", ""))
            self.at = _moment(one.get("at")) or self.at
            if kind == "error":
                self.error = RunError(str(one.get("code")), str(one.get("message")), one.get("fix"))
            elif kind not in _event_types() or kind in _PROGRESS:
                continue
            self.events.append(_event(f"{name}:{self.number:06d}", self.at, one, task_of))


def _event(
    name: str, at: datetime, found: Mapping[str, Any], task_of: Callable[[str], str | None]
) -> RunEvent:
    kind = str(found["type"])
    subject = str(found.get("subject") or found.get("where") or "")
    figures = {name: value for name, value in found.items() if name not in _COMMON}
    level, text = _level_and_text(kind, found, figures)
    task = found.get("task") or task_of(subject)
    return RunEvent(
        at=at,
        id=name,
        type=kind,
        level=level,
        text=text,
        subject=subject,
        task=None if task is None else str(task),
        dataset=subject if "." in subject and task_of(subject) is not None else None,
        code=None if found.get("code") is None else str(found["code"]),
        run=name.partition(":")[0],
        figures=figures,
    )


_COMMON: Final = frozenset({"type", "at", "subject", "task"})
_PROGRESS: Final = frozenset({"step.progress", "step.ended"})


@cache
def _event_types() -> Mapping[str, type[Event]]:
    """Every type of event by its name. The modules have to be imported."""
    assert all((capture, catalog, cluster, engine, maintenance, mirror, streams))
    found: dict[str, type[Event]] = {}
    waiting: list[type[Event]] = [Event]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if "type" in kind.__dict__:
            found[kind.type] = kind
    return found


def _level_and_text(
    kind: str, found: Mapping[str, Any], figures: Mapping[str, Any]
) -> tuple[EventLevel, str]:
    """How much an event matters, and its line, as the command line says it where that can be."""
    subject = str(found.get("subject", ""))
    if "message" in found:
        code = f" ({found['code']})" if found.get("code") else ""
        level = "failure" if kind == "error" else _word(_event_types()[kind].default_level)
        return (
            level,
            f"{subject}: {found['message']}{code}" if subject else f"{found['message']}{code}",
        )
    known = _event_types()[kind]
    try:
        made = known(subject=subject, task=found.get("task"), **figures)
        return _word(made.level), made.text()
    except (TypeError, ValueError, AttributeError, KeyError):
        # Its line needs more than its JSON holds, or another version wrote it.
        said = ", ".join(f"{name} {value}" for name, value in figures.items())
        return _word(known.default_level), line(known.verb or kind, subject, said)


def _word(level: Level) -> EventLevel:
    words: Mapping[str, EventLevel] = {one: one for one in LEVELS}
    return words.get(level.name.lower(), "detail")


def _moment(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def operation_run(view: OperationView, found: OperationEvents) -> Run:
    """An operation as a run, with what its events add up to."""
    rows, phases = _added_up(found.events)
    outcomes: Mapping[str, RunOutcome] = {"stopping": "running"}
    status = view.status
    return Run(
        id=view.request.id,
        kind="operation",
        name=" ".join(VERBS[view.request.verb].words),
        by=view.request.by,
        outcome=outcomes.get(status, status),  # type: ignore[arg-type]
        started=datetime.fromisoformat(view.request.created),
        ended=None if view.result is None else datetime.fromisoformat(view.result.ended),
        tasks=_distinct([*view.request.objects, *(one.task for one in found.events)]),
        datasets=_distinct(one.dataset for one in found.events),
        rows=rows,
        phases=phases,
        error=found.error,
        operation=view.request.id,
    )


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _added_up(events: Sequence[RunEvent]) -> tuple[Mapping[str, int], tuple[RunPhase, ...]]:
    rows: dict[str, int] = defaultdict(int)
    counts: dict[str, int] = defaultdict(int)
    of_phase: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = {}
    for one in events:
        phase = _PHASES.get(one.type)
        if phase is None:
            continue
        counts[phase] += 1
        figures = one.figures
        for name in ("in", "out", "filtered", "quarantined"):
            rows[name] += _number(figures.get(f"rows_{name}"))
        of_phase[phase] += _number(figures.get("rows_in") or figures.get("events"))
        seconds[phase] = seconds.get(phase, 0.0) + float(figures.get("seconds") or 0)
    phases = (
        RunPhase(name, count, of_phase[name], round(seconds[name], 3))
        for name, count in counts.items()
    )
    return {name: count for name, count in rows.items() if count}, tuple(phases)


#: What of a run takes its time, by the type of the event at its end.
_PHASES: Final = {
    engine.BatchCopied.type: "copy",
    engine.DatasetApplied.type: "apply",
    engine.RowsDerived.type: "derive",
    maintenance.MaintenanceDone.type: "maintain",
    streams.StreamLanded.type: "land",
    capture.CaptureLanded.type: "land",
}


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def is_run(view: OperationView) -> bool:
    """Whether an operation is a run: it may write tables."""
    return VERBS[view.request.verb].writes in {Writes.TABLES, Writes.LAYOUT}


def automation_run(log: RunLog) -> Run:
    """A run of an automation, with its steps as phases."""
    outcomes: Mapping[str, RunOutcome] = {
        "running": "running",
        "success": "succeeded",
        "failure": "failed",
        "cancelled": "cancelled",
        "interrupted": "interrupted",
        "left_out": "cancelled",
    }
    phases = tuple(
        RunPhase(
            step.action,
            step.tries,
            0,
            None if step.ended is None else (step.ended - step.started).total_seconds(),
        )
        for step in log.steps
    )
    return Run(
        id=f"automation:{log.automation}:{log.id}",
        kind="automation",
        name=f"{log.automation}: {log.why}",
        by=log.by,
        outcome=outcomes[log.state],
        started=log.started,
        ended=log.ended,
        phases=phases,
        error=None if log.code is None else RunError(log.code, log.message or ""),
    )


def automation_events(log: RunLog) -> Iterator[RunEvent]:
    """The begin of a run of an automation, and the end of each of its steps."""
    name = f"automation:{log.automation}:{log.id}"
    for number, step in enumerate(log.steps):
        if step.ended is None:
            continue
        failed = step.state in {"failure", "unknown"}
        said = f": {step.message}" if step.message else ""
        yield RunEvent(
            at=step.ended,
            id=f"{name}:{number:06d}",
            type="automation.step",
            level="failure" if failed else "note",
            text=line("step", log.automation, f"{step.action}: {step.state}{said}"),
            subject=log.automation,
            task=None,
            dataset=None,
            code=step.code,
            run=name,
            figures={"tries": step.tries, "why": log.why},
        )


def process_runs(
    datasets: Iterable[DatasetOverview], known: frozenset[tuple[str, int]]
) -> list[Run]:
    """What processes have committed while they owned tables, without those of operations.

    `known` are host and process of operations: they are runs of their own.
    """
    parts: dict[str, list[tuple[DatasetOverview, OwnerSteps, bool]]] = defaultdict(list)
    for dataset in datasets:
        for place, one in enumerate(dataset.owners):
            name = one.owner or f"{dataset.name}:{one.epoch or one.began.isoformat()}"
            if _process_of(one.owner) not in known:
                is_last = place == len(dataset.owners) - 1
                parts[name].append((dataset, one, is_last))
    return [_process_run(name, found) for name, found in parts.items()]


def process_key(pid: int) -> tuple[str, int]:
    """Host and number of a process of this machine."""
    return socket.gethostname(), pid


def _process_of(owner: str) -> tuple[str, int]:
    host, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    return host, int(pid) if pid.isdecimal() and len(pid) < 12 else -1


def _process_run(name: str, parts: Sequence[tuple[DatasetOverview, OwnerSteps, bool]]) -> Run:
    rows: dict[str, int] = defaultdict(int)
    steps: dict[str, int] = defaultdict(int)
    for _, one, _ in parts:
        for key, count in one.rows.items():
            rows[key] += count
        for step, count in one.steps.items():
            steps[step] += count
    owner = parts[0][1].owner
    return Run(
        id=f"process:{name}",
        kind="process",
        name=owner_in_words(owner) if owner else "a process whose name is not known",
        by=owner.partition(":")[0],
        outcome="owner" if any(is_last for _, _, is_last in parts) else "overtaken",
        started=min(one.began for _, one, _ in parts),
        ended=max(one.ended for _, one, _ in parts),
        tasks=_distinct(dataset.task for dataset, _, _ in parts),
        datasets=_distinct(dataset.name for dataset, _, _ in parts),
        rows=rows,
        phases=tuple(RunPhase(step or "other", count, 0, None) for step, count in steps.items()),
    )


def commit_level(one: TableCommit) -> EventLevel:
    """How much the event of a commit matters."""
    if one.rows.get("quarantined"):
        return "caution"
    return "detail" if one.step == "takeover" else "note"


def commit_type(one: TableCommit) -> str:
    """The type of the event of a commit."""
    return f"table.{one.step or 'changed'}"


def commit_event(dataset: DatasetOverview, one: TableCommit) -> RunEvent:
    """A commit as an event."""
    said = ", ".join(in_words(one)) or counted(one.files.get("added-data-files", 0), "new file")
    return RunEvent(
        at=one.at,
        id=f"{dataset.name}:{one.snapshot}",
        type=commit_type(one),
        level=commit_level(one),
        text=line(one.step or "changed", dataset.name, said),
        subject=dataset.name,
        task=dataset.task,
        dataset=dataset.name,
        code=None,
        run=None,
        figures={"rows": dict(one.rows), "files": dict(one.files), "reason": one.reason},
    )
