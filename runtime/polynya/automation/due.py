"""Whether a trigger of an automation is due: facts and memory become a decision. Pure.

The memory of a trigger says which moments, ends of tasks and files it has used. A trigger that was
never looked at begins now: what happened before starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from polynya.model.automations import LoadedAutomation
from polynya.model.config.automation import (
    ApiTrigger,
    Automation,
    FileTrigger,
    OverdueTrigger,
    ScheduleTrigger,
    TaskTrigger,
    Trigger,
    WebhookTrigger,
)
from polynya.model.config.fields import format_duration
from polynya.model.config.schedule import Recurrence, ZonedCron

#: A moment counts as missed when it is older than this: a look comes every few seconds.
ON_TIME: Final = timedelta(minutes=1)
#: Moments of the past that are looked through; of more, the oldest are left out.
_MOST_MOMENTS: Final = 100_000
#: Moments that start nothing and get a log entry of their own.
_MOST_LEFT_OUT: Final = 20


@dataclass(frozen=True, slots=True)
class TaskEnds:
    """When runs of a task last ended well, and with a failure; in UTC, None: never.

    `fresh`: where a task works all the time, all that came before this moment was taken in.
    `is_settling`: it has had no time to look for what waits, so it may be fresher.
    """

    success: datetime | None = None
    failure: datetime | None = None
    fresh: datetime | None = None
    is_settling: bool = False

    def last(self, result: str) -> datetime | None:
        """The last end with a result: `success`, `failure` or `either`."""
        ends = {"success": [self.success], "failure": [self.failure]}
        moments = ends.get(result, [self.success, self.failure])
        return _latest(*moments)

    def with_later(self, other: TaskEnds) -> TaskEnds:
        """The later one of each moment: what is known of a task never goes back."""
        return TaskEnds(
            _latest(self.success, other.success),
            _latest(self.failure, other.failure),
            _latest(self.fresh, other.fresh),
            is_settling=self.is_settling or other.is_settling,
        )


def _latest(*moments: datetime | None) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """What triggers depend on: ends of tasks by name, and versions of files by glob and path."""

    tasks: Mapping[str, TaskEnds] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TriggerMemory:
    """What a trigger has used.

    Attributes:
        seen: moment up to which a schedule was looked at, or the first look; in UTC.
        used: tasks with the end that was used, or with the moment when an overdue one started a
            run, in ISO 8601; or files with their version.
    """

    seen: datetime | None = None
    used: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DueMoment:
    """One run that is due: its moment in UTC, and why; `run` is its id, if somebody was told it."""

    at: datetime
    why: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class DueDecision:
    """The runs that are due, oldest first; the memory afterwards; moments that start nothing."""

    due: tuple[DueMoment, ...]
    memory: Mapping[str, TriggerMemory]
    left_out: tuple[DueMoment, ...] = ()


def key_of(trigger: Trigger, index: int) -> str:
    """The key of a trigger's memory: an edited trigger begins again."""
    text = f"{index} {trigger.model_dump_json()}"
    return sha256(text.encode()).hexdigest()[:16]


def decide(
    automation: LoadedAutomation,
    memory: Mapping[str, TriggerMemory],
    facts: TriggerFacts,
    now: datetime,
    call: DueMoment | None = None,
) -> DueDecision:
    """Which runs of an automation are due.

    Args:
        automation: with the clocks of its schedules.
        memory: of its triggers, by `key_of`.
        facts: of the tasks and globs that its triggers name.
        now: this moment, with its zone.
        call: a call from outside that was taken, if there is one.
    """
    settings = automation.settings
    due: list[DueMoment] = []
    left_out: list[DueMoment] = []
    after: dict[str, TriggerMemory] = {}
    for index, trigger in enumerate(settings.triggers):
        key = key_of(trigger, index)
        known = memory.get(key)
        match trigger:
            case ScheduleTrigger():
                clock = automation.clocks[index]
                after[key], found, lost = _of_schedule(settings, trigger, clock, known, now)
                left_out += lost
            case TaskTrigger():
                after[key], found = _of_tasks(trigger, known, facts.tasks, now)
            case OverdueTrigger():
                after[key], found = _of_overdue(trigger, known, facts.tasks, now)
            case FileTrigger():
                after[key], found = _of_files(trigger, known, facts, now)
            case WebhookTrigger() | ApiTrigger():
                # What they have used is kept with the calls: `automation/calls.py`.
                found = []
        due += found
    if call is not None:
        if settings.missed == "skip" and now - call.at > ON_TIME:
            why = f"{call.why}, but nothing looked in time"
            left_out.append(DueMoment(call.at, why, call.run))
        else:
            due.append(call)
    return DueDecision(tuple(sorted(due, key=lambda one: one.at)), after, tuple(left_out))


def moments_between(
    clock: ZonedCron | Recurrence, start: datetime, end: datetime
) -> Iterator[datetime]:
    """The moments of a schedule after `start` and up to `end`, in UTC."""
    following = clock.next_after(start)
    while following is not None and following <= end:
        yield following
        following = clock.next_after(following)


def _of_schedule(
    settings: Automation,
    trigger: ScheduleTrigger,
    clock: ZonedCron | Recurrence,
    known: TriggerMemory | None,
    now: datetime,
) -> tuple[TriggerMemory, list[DueMoment], list[DueMoment]]:
    if known is None or known.seen is None:
        return TriggerMemory(seen=now.astimezone(UTC)), [], []
    until = now if trigger.end is None else min(now, trigger.end)
    moments: list[datetime] = []
    for moment in moments_between(clock, known.seen, until):
        if trigger.start is None or moment >= trigger.start:
            moments.append(moment)
        if len(moments) > _MOST_MOMENTS:
            del moments[: _MOST_MOMENTS // 2]
    if not moments:
        return known, [], []
    missed = [moment for moment in moments if now - moment > ON_TIME]
    fresh = moments[len(missed) :]
    if settings.missed == "run_once":
        kept = moments[-1:]
    elif settings.missed == "skip":
        kept = fresh[-1:]
    else:
        kept = moments[-settings.missed_limit :]
    why = f"`{trigger.schedule}` named it"
    if missed and settings.missed == "run_once":
        why = f"{why}; {len(moments)} passed since the last look"
    due = [DueMoment(moment, why) for moment in kept]
    # With `run_once` one run makes up for all of them.
    lost = [] if settings.missed == "run_once" else moments[: len(moments) - len(kept)]
    why = f"`{trigger.schedule}` named it, but nothing looked in time"
    left_out = [DueMoment(moment, why) for moment in lost[-_MOST_LEFT_OUT:]]
    if older := len(lost) - len(left_out):
        left_out[0] = DueMoment(left_out[0].at, f"{why}; nor {older} moments before it")
    return TriggerMemory(seen=moments[-1]), due, left_out


def _of_tasks(
    trigger: TaskTrigger,
    known: TriggerMemory | None,
    tasks: Mapping[str, TaskEnds],
    now: datetime,
) -> tuple[TriggerMemory, list[DueMoment]]:
    ends = {task: tasks.get(task, TaskEnds()).last(trigger.result) for task in trigger.after}
    texts = {task: end.isoformat() for task, end in ends.items() if end is not None}
    if known is None:
        return TriggerMemory(now.astimezone(UTC), texts), []
    # In a cluster an end may be learned of after the first look, and be from before it.
    news = [
        task
        for task, text in texts.items()
        if text != known.used.get(task)
        and (known.seen is None or datetime.fromisoformat(text) >= known.seen)
    ]
    enough = bool(news) if trigger.when == "any" else len(news) == len(ends)
    if not enough:
        return known, []
    what = {"success": "well", "failure": "with a failure"}.get(trigger.result, "")
    why = f"{', '.join(news)} ended {what}".rstrip()
    return TriggerMemory(known.seen, texts), [DueMoment(now.astimezone(UTC), why)]


def _of_overdue(
    trigger: OverdueTrigger,
    known: TriggerMemory | None,
    tasks: Mapping[str, TaskEnds],
    now: datetime,
) -> tuple[TriggerMemory, list[DueMoment]]:
    first = known or TriggerMemory(seen=now.astimezone(UTC))
    ends = tasks.get(trigger.overdue, TaskEnds())
    if ends.is_settling:
        return first, []
    # One that never ended well is overdue from the first look on.
    since = _latest(ends.success, ends.fresh) or first.seen
    if since is None or now - since <= trigger.longer_than:
        return (TriggerMemory(first.seen) if first.used else first), []
    used = first.used.get(trigger.overdue)
    # One that is behind all the time comes forward, too, and stays overdue.
    if used is not None and since <= datetime.fromisoformat(used):
        return first, []
    limit = format_duration(trigger.longer_than)
    why = f"{trigger.overdue} has not ended well for longer than {limit}"
    at = now.astimezone(UTC)
    return TriggerMemory(first.seen, {trigger.overdue: at.isoformat()}), [DueMoment(at, why)]


def _of_files(
    trigger: FileTrigger, known: TriggerMemory | None, facts: TriggerFacts, now: datetime
) -> tuple[TriggerMemory, list[DueMoment]]:
    files = facts.files.get(trigger.file)
    if files is None:
        # The place could not be listed: nothing is known, and nothing is forgotten.
        return known or TriggerMemory(), []
    if known is None:
        return TriggerMemory(used=dict(files)), []
    news = sorted(path for path in files if files[path] != known.used.get(path))
    if not news:
        gone = known.used.keys() - files.keys()
        return (TriggerMemory(used=dict(files)) if gone else known), []
    rest = f" and {len(news) - 1} more" if len(news) > 1 else ""
    why = f"{news[0]}{rest} appeared"
    return TriggerMemory(used=dict(files)), [DueMoment(now.astimezone(UTC), why)]
