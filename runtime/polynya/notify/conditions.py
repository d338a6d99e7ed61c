"""What is wrong at the moment: conditions that events, rounds and reports open and close.

Everything here is a function from the conditions so far and one more fact to the conditions then.
A condition holds names, codes and figures, and texts of the error catalogue. It holds no text of an
error: such a text may quote a value of a record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from polynya.model.config.notification import Cause, Severity
from polynya.model.error_catalogue.codes import ERROR_PAGES
from polynya.model.error_catalogue.derived import EXPECTATION_FAILED
from polynya.model.errors import ConflictError, PolynyaError, SuspendedError, TaskStoppedError
from polynya.observe.capture import (
    CaptureLag,
    CaptureLanded,
    CaptureRetry,
    CaptureStreaming,
    CaptureTable,
    CaptureTableFailed,
)
from polynya.observe.engine import (
    BatchCopied,
    ExpectationFailed,
    ReloadLoaded,
    RowsDerived,
    UnitFailed,
    UnitRecovered,
)
from polynya.observe.events import Event
from polynya.observe.streams import StreamLost


class Key(NamedTuple):
    """What makes two facts the same condition: `detail` is the part of an object, such as a rule.

    `name` is a dataset, a task, `task/table` of a capture, or a cluster.
    """

    cause: Cause
    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is wrong.

    Attributes:
        key: which it is.
        task: the task that it belongs to; None for a cluster and its configuration.
        severity: how bad.
        title: what is wrong, in words of ours.
        since: when it began.
        seen: when it was seen last.
        code: of the error, if there is one.
        count: records that went to quarantine, or were lost, since it began.
        seconds: how long a change has waited.
        grace: it may pass by itself within this time, in seconds.
        fresh: it was seen since the last result of a derived table.
    """

    key: Key
    task: str | None
    severity: Severity
    title: str
    since: datetime
    seen: datetime
    code: str | None = None
    count: int = 0
    seconds: float = 0.0
    grace: float = 0.0
    fresh: bool = True


Conditions: TypeAlias = Mapping[Key, Condition]
#: The task of an object, by its name; None where it is not known.
TaskOf: TypeAlias = Callable[[str], str | None]

#: Without another record, quarantine no longer grows after this time.
FADES_AFTER: Final = timedelta(hours=1)
#: Units change their owner in seconds; what has none for longer lacks a node.
UNOWNED_GRACE_SECONDS: Final = 120.0

#: More are not looked at one by one: the first ones are told.
MOST_CONDITIONS: Final = 10_000

_CODE: Final = re.compile(r"POLYNYA-[A-Z]+-[0-9]{3}")
_OF_UNITS: Final[tuple[Cause, ...]] = ("failed", "suspended", "expectation")
_FADING: Final[tuple[Cause, ...]] = ("quarantine",)
_STOPPED: Final = "stops"
_LOST: Final = "lost"
_INTERRUPTED: Final = "interrupted"
_IN_DANGER: Final = "log"
_TABLE: Final = "table"


def after_event(
    conditions: Conditions, event: Event, at: datetime, task_of: TaskOf = lambda _: None
) -> Conditions:
    """The conditions after an event; the same object if it changes nothing."""
    name = storable(event.subject)
    task = event.task or task_of(event.subject)
    match event:
        case UnitFailed():
            if task is None:
                # A part of a unit, which fails as a whole.
                return conditions
            return after_round(conditions, name=name, task=task, error=event.error, at=at)
        case UnitRecovered():
            return _without(conditions, _unit_keys(conditions, name))
        case BatchCopied() | ReloadLoaded() if event.rows_quarantined:
            key = Key("quarantine", name)
            title = "records went to quarantine"
            return _with(conditions, key, task, "warning", title, at, count=event.rows_quarantined)
        case StreamLost():
            key = Key("capture", name, _LOST)
            title = "the source no longer has records that were not read"
            return _with(conditions, key, task, "critical", title, at, count=event.records or 0)
        case ExpectationFailed():
            key = Key("expectation", name, event.expectation)
            return _with(conditions, key, task, "warning", "an expectation fails", at)
        case RowsDerived():
            return _judged(conditions, name)
    return _after_capture(conditions, event, name, task, at)


def storable(name: str) -> str:
    """A name as UTF-8 can hold it; that of a file may be other bytes."""
    return name.encode("utf-8", "replace").decode()


def _after_capture(
    conditions: Conditions, event: Event, name: str, task: str | None, at: datetime
) -> Conditions:
    match event:
        case CaptureRetry():
            key = Key("capture", name, _INTERRUPTED)
            title = "the capture is interrupted and restarts"
            return _with(conditions, key, task, "error", title, at, code=event.error.code)
        case CaptureStreaming():
            return _without(conditions, [Key("capture", name, _INTERRUPTED)])
        case CaptureLanded() if event.events:
            return _without(conditions, [Key("capture", name, _INTERRUPTED)])
        case CaptureLag():
            key = Key("capture", name, _IN_DANGER)
            if not event.warned:
                return _without(conditions, [key])
            title = "the server keeps too much of its log for the capture, or may drop it"
            return _with(conditions, key, task, "critical", title, at)
        case CaptureTableFailed() if not event.refused:
            key = Key("capture", name, _TABLE)
            title = "a table is suspended" if event.suspended else "a table cannot be read"
            severity: Severity = "critical" if event.suspended else "warning"
            return _with(conditions, key, task, severity, title, at, code=event.error.code)
        case CaptureTable() if event.state in ("running", "loading"):
            return _without(conditions, [Key("capture", name, _TABLE)])
    return conditions


def after_round(
    conditions: Conditions,
    *,
    name: str,
    task: str | None,
    error: PolynyaError | None,
    at: datetime,
) -> Conditions:
    """The conditions after a round of a unit that ended with an error, or without one.

    A unit that is called like its task stands for all datasets of that task. A unit that waits for
    another process (ConflictError) has not failed.
    """
    if error is None:
        return _without(conditions, _unit_keys(conditions, name, task if name == task else None))
    if isinstance(error, ConflictError):
        return conditions
    return _failed(conditions, name, task, error.code, at, suspended=_suspends(error))


def _suspends(error: PolynyaError) -> bool:
    return isinstance(error, SuspendedError | TaskStoppedError)


def _failed(
    conditions: Conditions,
    name: str,
    task: str | None,
    code: str | None,
    at: datetime,
    *,
    suspended: bool,
) -> Conditions:
    page = ERROR_PAGES.get(code or "")
    title = page.title if page is not None else "it failed"
    severity: Severity = "error"
    if code == EXPECTATION_FAILED.code:
        key = Key("expectation", name, _STOPPED)
    elif suspended:
        key, severity = Key("suspended", name), "critical"
    else:
        key = Key("failed", name)
    others = [one for one in _unit_keys(conditions, name) if one != key and _is_of_unit(one)]
    left = _without(conditions, others)
    return _with(left, key, task, severity, title, at, code=code)


def _is_of_unit(key: Key) -> bool:
    """Whether a condition is about the whole unit; expectations that warn are not."""
    return key.cause != "expectation" or key.detail == _STOPPED


def _unit_keys(conditions: Conditions, name: str, task: str | None = None) -> list[Key]:
    """The conditions that are over when a unit works; `task`: it stands for all of that task."""
    return [
        key
        for key, one in conditions.items()
        if key.cause in _OF_UNITS
        and _is_of_unit(key)
        and (key.name == name or (task is not None and one.task == task))
    ]


def _judged(conditions: Conditions, name: str) -> Conditions:
    """A new result was committed: an expectation that did not fail again holds."""
    of_table = {
        key: one
        for key, one in conditions.items()
        if key.cause == "expectation" and key.name == name and key.detail != _STOPPED
    }
    if not of_table:
        return conditions
    over = [key for key, one in of_table.items() if not one.fresh]
    kept = {key: replace(one, fresh=False) for key, one in of_table.items() if one.fresh}
    return {**_without(conditions, over), **kept}


def after_report(conditions: Conditions, report: Mapping[str, Any], at: datetime) -> Conditions:
    """The conditions after a report of a node (`polynya.cluster.report`)."""
    for task, one in report["tasks"].items():
        for name, job in one["jobs"].items():
            conditions = _after_job(conditions, task, name, job, at)
    return _after_cluster(conditions, report, at)


def _after_job(
    conditions: Conditions, task: str, name: str, job: Mapping[str, Any], at: datetime
) -> Conditions:
    state = job["state"]
    if state == "elsewhere":
        return conditions
    suspended, code = _is_suspended(job), _code_of(job)
    if suspended or _has_failed(job):
        waits = not suspended and code is not None and _is_conflict(code)
        before = conditions.get(Key("suspended" if suspended else "failed", name))
        known = code or (before.code if before is not None else None)
        if waits or (known is None and not suspended):
            return conditions
        return _failed(conditions, name, task, known, at, suspended=suspended)
    if state in ("running", "stopping", "stopped"):
        return after_round(conditions, name=name, task=task, error=None, at=at)
    return conditions


def is_failing(job: Mapping[str, Any]) -> bool:
    """Whether a job of a report fails; one that waits for another process does not."""
    if _is_suspended(job):
        return True
    code = _code_of(job)
    return _has_failed(job) and not (code is not None and _is_conflict(code))


def _is_suspended(job: Mapping[str, Any]) -> bool:
    return bool(job["state"] == "suspended" or (job["held"] and job["state"] != "stopped"))


def _has_failed(job: Mapping[str, Any]) -> bool:
    return bool(job["failed_in_a_row"]) and job["state"] in ("waiting", "running")


def _code_of(job: Mapping[str, Any]) -> str | None:
    found = _CODE.findall(job["reason"])
    return found[-1] if found else None


def _is_conflict(code: str) -> bool:
    page = ERROR_PAGES.get(code)
    return page is not None and issubclass(page.raises, ConflictError)


def _after_cluster(conditions: Conditions, report: Mapping[str, Any], at: datetime) -> Conditions:
    """What is wrong with the cluster as a whole: the leader says it, so that one node does."""
    name, sharing = str(report["cluster"] or report["node"]), report["sharing"]
    if not speaks(report):
        keys = [key for key in conditions if key.cause in ("cluster", "deploy")]
        return _without(conditions, keys)
    configuration = report["configuration"]
    broken = bool(configuration["errors"]) or configuration["unread"] is not None
    unowned = ((sharing or {}).get("unowned") or {}).get("units", 0)
    conditions = _held(
        conditions,
        Key("cluster", name, "nodes"),
        "the cluster is short of nodes: tasks wait for one",
        at,
        holds=unowned > 0,
        grace=UNOWNED_GRACE_SECONDS,
        count=unowned,
    )
    conditions = _held(
        conditions,
        Key("cluster", name, "coordination"),
        "the coordination of the cluster fails, so work may not move",
        at,
        holds=bool(sharing and (sharing["troubles"] or sharing["stream_trouble"])),
        grace=UNOWNED_GRACE_SECONDS,
    )
    return _held(
        conditions,
        Key("deploy", name),
        "the newest configuration is not in force: a file is refused, or it cannot be read",
        at,
        holds=broken,
    )


def speaks(report: Mapping[str, Any]) -> bool:
    """Whether a node speaks for its cluster: it leads, nobody does, or it shares nothing."""
    sharing = report["sharing"]
    return sharing is None or bool(sharing["leading"]) or sharing["leader"] is None


def seconds_behind(job: Mapping[str, Any]) -> float:
    """For how long the oldest change of a job waits: at the source, landed, or for a mirror."""
    streams = [one["behind_seconds"] for one in job["streams"].values()]
    captures = [one["lag_seconds"] for one in job["captures"].values()]
    mirrors = [one["behind_seconds"] for one in job["mirrors"].values()]
    return float(max([job["lag_seconds"], *streams, *captures, *mirrors]))


def _held(
    conditions: Conditions,
    key: Key,
    title: str,
    at: datetime,
    *,
    holds: bool,
    grace: float = 0.0,
    count: int = 0,
) -> Conditions:
    if not holds:
        return _without(conditions, [key])
    held = _with(conditions, key, None, "error", title, at, grace=grace)
    return {**held, key: replace(held[key], count=count)} if held[key].count != count else held


def expired(conditions: Conditions, now: datetime) -> Conditions:
    """The conditions without those that faded: quarantine that no longer grows."""
    over = [
        key
        for key, one in conditions.items()
        if (key.cause in _FADING or key.detail == _LOST) and now - one.seen >= FADES_AFTER
    ]
    return _without(conditions, over)


def _with(  # noqa: PLR0917 - what a condition is made of
    conditions: Conditions,
    key: Key,
    task: str | None,
    severity: Severity,
    title: str,
    at: datetime,
    *,
    code: str | None = None,
    count: int = 0,
    grace: float = 0.0,
) -> Conditions:
    before = conditions.get(key)
    if before is None and len(conditions) >= MOST_CONDITIONS:
        return conditions
    if before is None:
        new = Condition(key, task, severity, title, at, at, code, count, grace=grace)
        return {**conditions, key: new}
    if count or before.code != code or before.severity != severity or not before.fresh:
        # A moment by itself is no news, and would be written again and again.
        seen = replace(before, seen=at, code=code, severity=severity, title=title, fresh=True)
        return {**conditions, key: replace(seen, count=before.count + count)}
    return conditions


def _without(conditions: Conditions, keys: list[Key]) -> Conditions:
    gone = {key for key in keys if key in conditions}
    return {key: one for key, one in conditions.items() if key not in gone} if gone else conditions
