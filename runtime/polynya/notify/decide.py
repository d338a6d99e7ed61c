"""Which messages are due: a pure function from rules, conditions, what was told, and the time.

A route is one channel of one rule. Each route is decided and remembered by itself, so that a
channel that fails keeps no other from being used. One message of a route holds everything that is
due on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from polynya.model.config.notification import NotificationRule, at_least
from polynya.model.notifications import LoadedNotification
from polynya.notify.conditions import Condition, Conditions, Key

NoticeKind: TypeAlias = Literal["opened", "reminder", "resolved"]

#: A message that so many attempts did not deliver is given up.
ATTEMPTS: Final = 10
FIRST_PAUSE: Final = timedelta(seconds=30)
LONGEST_PAUSE: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Route:
    """One channel of one rule; `file` is the name of the notification that has both."""

    file: str
    rule: str
    channel: str
    settings: NotificationRule = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """Its name: `FILE.RULE.CHANNEL`."""
        return f"{self.file}.{self.rule}.{self.channel}"


@dataclass(frozen=True, slots=True)
class ObjectLag:
    """For how long the oldest change of an object has waited, in seconds."""

    task: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Facts:
    """What is wrong, and how far objects are behind, by their names.

    An object without a lag was not looked at yet.
    """

    conditions: Conditions
    lags: Mapping[str, ObjectLag] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Told:
    """That a route was told of a condition: when last, and the condition as it was then."""

    at: datetime
    condition: Condition


@dataclass(frozen=True, slots=True)
class RouteState:
    """How deliveries on a route went.

    `failures` in a row; before `retry_at` it is not tried again. `why` says what failed.
    """

    sent_at: datetime | None = None
    failures: int = 0
    retry_at: datetime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """One line of a message, and why it is sent now."""

    kind: NoticeKind
    condition: Condition
    reason: str


@dataclass(frozen=True, slots=True)
class NotificationDecision:
    """What is due on a route.

    `notices` are sent now; `waiting` are due and wait for `until`, for `reason`; `forgotten` are no
    longer told: they ended, and the rule tells no end.
    """

    route: Route
    notices: tuple[Notice, ...] = ()
    waiting: tuple[Notice, ...] = ()
    forgotten: tuple[Key, ...] = ()
    reason: str = ""
    until: datetime | None = None


#: What each route was told, by the id of the route.
Memory: TypeAlias = Mapping[str, Mapping[Key, Told]]


def routes_of(notifications: Iterable[LoadedNotification]) -> list[Route]:
    """All routes of the files of a project."""
    return [
        Route(one.name, name, channel, rule)
        for one in notifications
        for name, rule in one.settings.rules.items()
        for channel in rule.to or one.settings.channels
    ]


def decide(
    routes: Sequence[Route],
    facts: Facts,
    memory: Memory,
    states: Mapping[str, RouteState],
    now: datetime,
) -> list[NotificationDecision]:
    """Decide about every route on which something is due."""
    found = (
        _decide(route, facts, memory.get(route.id, {}), states.get(route.id, RouteState()), now)
        for route in routes
    )
    return [one for one in found if one.notices or one.waiting or one.forgotten]


def _decide(
    route: Route, facts: Facts, told: Mapping[Key, Told], state: RouteState, now: datetime
) -> NotificationDecision:
    rule = route.settings
    due = [*_of_holding(rule, facts, told, now), *_of_ended(rule, facts, told)]
    forgotten: tuple[Key, ...] = ()
    if not rule.resolved:
        forgotten = tuple(one.condition.key for one in due if one.kind == "resolved")
        due = [one for one in due if one.kind != "resolved"]
    if not due:
        return NotificationDecision(route, forgotten=forgotten)
    if state.retry_at is not None and now < state.retry_at:
        reason = f"the channel failed {state.failures} times in a row"
        return NotificationDecision(route, (), tuple(due), forgotten, reason, state.retry_at)
    last = max((one.at for one in told.values()), default=None)
    sent_at = max((at for at in (state.sent_at, last) if at is not None), default=None)
    if sent_at is not None and now - sent_at < rule.at_most_every:
        until = sent_at + rule.at_most_every
        return NotificationDecision(route, (), tuple(due), forgotten, "`at_most_every`", until)
    closes = [at for window in rule.quiet if (at := window.parsed.closes_at(now)) is not None]
    if not closes:
        return NotificationDecision(route, tuple(due), (), forgotten)
    urgent = tuple(one for one in due if at_least(one.condition.severity, rule.breaks_quiet))
    waiting = tuple(one for one in due if one not in urgent)
    return NotificationDecision(route, urgent, waiting, forgotten, "quiet hours", max(closes))


def _of_holding(
    rule: NotificationRule, facts: Facts, told: Mapping[Key, Told], now: datetime
) -> Iterable[Notice]:
    """What holds and was not told, or is to be told again."""
    for condition in _taken(rule, facts, now):
        before = told.get(condition.key)
        lasted = now - condition.since
        if before is None:
            if lasted < max(rule.lasting, timedelta(seconds=condition.grace)):
                continue
            if condition.key.cause == "quarantine" and condition.count < rule.quarantined:
                continue
            yield Notice("opened", condition, "it was not told yet")
        elif rule.remind_every is not None and now - before.at >= rule.remind_every:
            yield Notice("reminder", condition, "it still lasts")


def _taken(rule: NotificationRule, facts: Facts, now: datetime) -> Iterable[Condition]:
    """The conditions that a rule is about."""
    for condition in facts.conditions.values():
        if _takes(rule, condition):
            yield condition
    for name, lag in facts.lags.items():
        if lag.seconds >= rule.stale_after.total_seconds():
            stale = _stale(name, lag, now)
            if _takes(rule, stale):
                yield stale


def _takes(rule: NotificationRule, one: Condition) -> bool:
    return rule.takes(cause=one.key.cause, severity=one.severity, task=one.task, name=one.key.name)


def _stale(name: str, lag: ObjectLag, now: datetime) -> Condition:
    since = now - timedelta(seconds=lag.seconds)
    title = "changes wait for longer than the rule allows"
    return Condition(
        Key("stale", name), lag.task, "warning", title, since, now, seconds=lag.seconds
    )


def _of_ended(rule: NotificationRule, facts: Facts, told: Mapping[Key, Told]) -> Iterable[Notice]:
    """What was told and is over. An object that was not looked at yet may still be stale."""
    limit = rule.stale_after.total_seconds()
    for key, before in told.items():
        if key.cause == "stale":
            lag = facts.lags.get(key.name)
            if lag is not None and lag.seconds < limit:
                yield Notice("resolved", before.condition, "it is over")
        elif key not in facts.conditions:
            yield Notice("resolved", before.condition, "it is over")


def after_sent(
    told: Mapping[Key, Told], decision: NotificationDecision, now: datetime
) -> dict[Key, Told]:
    """What a route was told after the notices of a decision were delivered, or given up."""
    after = {key: one for key, one in told.items() if key not in decision.forgotten}
    for notice in decision.notices:
        key = notice.condition.key
        if notice.kind == "resolved":
            after.pop(key, None)
        else:
            after[key] = Told(now, notice.condition)
    return after


def after_delivery(state: RouteState, *, why: str | None, now: datetime) -> RouteState:
    """The state of a route after an attempt that failed because of `why`, or did not fail."""
    if why is None:
        return RouteState(sent_at=now)
    failures = state.failures + 1
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 16))
    return replace(state, failures=failures, retry_at=now + pause, why=why)


def is_given_up(state: RouteState) -> bool:
    """Whether the message of a route was tried often enough."""
    return state.failures > 0 and state.failures % ATTEMPTS == 0
