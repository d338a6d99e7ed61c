"""Plans that people review: what an operation `plan` said, who decided, and what applied it.

A plan is kept in the folder of its operation: `plan-files.json` has the files that it was made of
and how they differ from those that were applied last, `decision.json` who approved or rejected it,
`applied.json` the operation that carries it out. Each is written once, and whole.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

from polynya.server.operations.manager import OperationView
from polynya.server.operations.records import OperationFolder, Status, write_whole

PLAN: Final = "plan"
PlanState: TypeAlias = Literal[
    "making", "failed", "ready", "outdated", "approved", "rejected", "applying", "applied",
    "not applied",
]  # fmt: skip
Decision: TypeAlias = Literal["approved", "rejected"]
FileChange: TypeAlias = Literal["added", "changed", "removed"]

_FILES: Final = "plan-files.json"
_DECISION: Final = "decision.json"
_APPLIED: Final = "applied.json"
_MADE: Final[frozenset[Status]] = frozenset({"succeeded"})
_UNDER_WAY: Final[frozenset[Status]] = frozenset({"queued", "running", "stopping"})


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """Who decided about a plan, at what time (ISO 8601, UTC), and why."""

    decision: Decision
    by: str
    at: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class PlanApplied:
    """The operation that carries a plan out, and who started it."""

    operation: str
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file of the project that differs from what was applied last: a unified diff."""

    path: str
    change: FileChange
    diff: str


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """The files of a plan as text, and how they differ from those of the plan `base`.

    `base` is the plan that was applied last through this server; None: none was.
    """

    files: Mapping[str, str]
    base: str | None = None
    changed: tuple[PlannedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanEffect:
    """One line of a plan: what it does to a dataset, a task, a step, a column or a mirror."""

    kind: str
    name: str
    task: str | None
    text: str
    changes: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class PlanSays:
    """What the output of the command says; `fingerprint` is None before its end."""

    fingerprint: str | None = None
    has_changes: bool = False
    to_decide: int = 0
    destructive: int = 0
    effects: tuple[PlanEffect, ...] = ()
    errors: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """What is kept of a plan beside its operation."""

    folder: OperationFolder

    def files(self) -> PlanFiles | None:
        """The files that it was made of; None where it was started as a plain operation."""
        read = self._read(_FILES)
        if read is None:
            return None
        changed = tuple(PlannedFile(**one) for one in read["changed"])
        return PlanFiles(read["files"], read["base"], changed)

    def decision(self) -> PlanDecision | None:
        """Who decided; None before."""
        read = self._read(_DECISION)
        return None if read is None else PlanDecision(**read)

    def applied(self) -> PlanApplied | None:
        """What carries it out; None before."""
        read = self._read(_APPLIED)
        return None if read is None else PlanApplied(**read)

    def note_files(self, files: PlanFiles) -> None:
        """Keep the files that it is made of."""
        write_whole(self.folder.path / _FILES, asdict(files))

    def note_decision(self, decision: PlanDecision) -> None:
        """Keep a decision."""
        write_whole(self.folder.path / _DECISION, asdict(decision))

    def note_applied(self, applied: PlanApplied) -> None:
        """Keep what carries it out."""
        write_whole(self.folder.path / _APPLIED, asdict(applied))

    def says(self) -> PlanSays:
        """What the command said so far."""
        lines, place = [], 0
        while piece := list(self.folder.lines(place)):
            lines += [line for _, line in piece]
            place = piece[-1][0]
        return plan_says(lines)

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.folder.path / name).read_bytes())
        except FileNotFoundError:
            return None


def plan_says(lines: Iterable[Mapping[str, Any]]) -> PlanSays:
    """What the lines of `polynya plan --json` say."""
    effects: list[PlanEffect] = []
    errors: list[Mapping[str, Any]] = []
    whole: Mapping[str, Any] = {}
    for line in lines:
        kind = str(line.get("type", ""))
        if kind == "plan":
            whole = line
        elif kind == "error":
            errors.append(line)
        elif kind.startswith("plan."):
            effects += _effects(kind.removeprefix("plan."), line)
    return PlanSays(
        fingerprint=whole.get("fingerprint"),
        has_changes=bool(whole.get("changes")),
        to_decide=int(whole.get("to_decide", 0)),
        destructive=int(whole.get("destructive", 0)),
        effects=tuple(effects),
        errors=tuple(errors),
    )


def _effects(kind: str, line: Mapping[str, Any]) -> Iterator[PlanEffect]:
    name = str(line.get("dataset") or line.get("mirror") or line.get("task") or "")
    task = line.get("task")
    changes: tuple[Mapping[str, Any], ...] = ()
    match kind:
        case "dataset":
            changes = tuple(line.get("changes", ()))
            text = "; ".join(str(one.get("what")) for one in changes)
        case "task" | "step":
            text = str(line.get("means", ""))
        case "impact":
            changed = line.get("changed", {})
            reached = ", ".join(line.get("columns", ())) or "its rows"
            text = f"{changed.get('dataset')}.{changed.get('column')}: {changed.get('what')}; "
            text += f"it reaches {reached}"
            if line.get("fails"):
                text += f"; its query then fails: {line['fails']}"
        case "mirror":
            text = f"{len(line.get('statements', ()))} statements for an empty schema"
        case _:
            return
    yield PlanEffect(kind, name, None if task is None else str(task), text, changes)


def plan_state(
    view: OperationView,
    says: PlanSays,
    decision: PlanDecision | None,
    applied: OperationView | None,
    *,
    fingerprint: str,
) -> PlanState:
    """The state of a plan; `fingerprint` is that of the project now, `applied` its operation."""
    if view.status in _UNDER_WAY:
        return "making"
    if view.status not in _MADE or says.fingerprint is None:
        return "failed"
    if applied is not None:
        if applied.status in _UNDER_WAY:
            return "applying"
        return "applied" if applied.status == "succeeded" else "not applied"
    if decision is not None and decision.decision == "rejected":
        return "rejected"
    if says.fingerprint != fingerprint:
        return "outdated"
    return "ready" if decision is None else "approved"


def changed_files(
    before: Mapping[str, str] | None, after: Mapping[str, str]
) -> tuple[PlannedFile, ...]:
    """How files differ, by their paths; nothing without those before."""
    if before is None:
        return ()
    changed = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        change: FileChange = "added" if old is None else "removed" if new is None else "changed"
        lines = difflib.unified_diff(
            (old or "").splitlines(keepends=True),
            (new or "").splitlines(keepends=True),
            "/dev/null" if old is None else f"a/{path}",
            "/dev/null" if new is None else f"b/{path}",
        )
        diff = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        changed.append(PlannedFile(path, change, diff))
    return tuple(changed)
