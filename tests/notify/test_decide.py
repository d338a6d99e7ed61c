"""What is told when: once, again, when it is over, never in quiet hours, never twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.model.config.notification import NotificationRule
from polynya.notify import decide as decisions
from polynya.notify.conditions import Condition, Key
from polynya.notify.decide import (
    ATTEMPTS,
    Facts,
    NotificationDecision,
    ObjectLag,
    Route,
    RouteState,
    Told,
    after_delivery,
    after_sent,
    decide,
    is_given_up,
)

START = datetime(2026, 3, 28, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NIGHT = {"rrule": "FREQ=DAILY;BYHOUR=22;BYMINUTE=0", "duration": "9h",
         "time_zone": "Europe/Berlin"}  # fmt: skip


def route(**rule: Any) -> Route:
    """A route with a rule that waits for nothing, unless the test says so."""
    return Route(
        "oncall", "all", "ops", NotificationRule.model_validate({"at_most_every": "0s", **rule})
    )


def failed(name: str = "crm.users", since: datetime = START, **more: Any) -> Condition:
    values = {"task": "crm", "severity": "error", "title": "it failed", "seen": since, **more}
    return Condition(Key("failed", name), since=since, **values)


class Teller:
    """A route over time: what is told at each moment."""

    def __init__(self, **rule: Any) -> None:
        self.route = route(**rule)
        self.told: dict[Key, Told] = {}
        self.state = RouteState()

    def at(self, now: datetime, *conditions: Condition, **lags: float) -> list[str]:
        """What is told at a moment, and remembered as delivered."""
        decision = self.decision(now, *conditions, **lags)
        if decision is None:
            return []
        self.told = after_sent(self.told, decision, now)
        if decision.notices:
            self.state = after_delivery(self.state, why=None, now=now)
        return [f"{one.kind} {one.condition.key.name}" for one in decision.notices]

    def decision(
        self, now: datetime, *conditions: Condition, **lags: float
    ) -> NotificationDecision | None:
        facts = Facts(
            {one.key: one for one in conditions},
            {name: ObjectLag("crm", seconds) for name, seconds in lags.items()},
        )
        found = decide(
            [self.route], facts, {self.route.id: self.told}, {self.route.id: self.state}, now
        )
        return found[0] if found else None


def test_what_lasts_is_told_once_and_its_end_is_told() -> None:
    one = Teller()

    assert one.at(START, failed()) == ["opened crm.users"]
    assert one.at(START + MINUTE, failed()) == []
    assert one.at(START + 60 * MINUTE, failed()) == []
    assert one.at(START + 61 * MINUTE) == ["resolved crm.users"]
    assert one.at(START + 62 * MINUTE) == []
    assert one.at(START + 63 * MINUTE, failed(since=START + 63 * MINUTE)) == ["opened crm.users"]


def test_what_lasts_is_told_again_as_often_as_the_rule_says() -> None:
    one = Teller(remind_every="4h")
    told = [one.at(START + timedelta(hours=hour), failed()) for hour in range(9)]

    assert [hour for hour, said in enumerate(told) if said] == [0, 4, 8]
    assert told[4] == ["reminder crm.users"]


def test_a_message_tells_everything_that_happened_since_the_last_one() -> None:
    one = Teller(at_most_every="15m")
    names = [f"crm.t{number}" for number in range(5)]
    one.at(START, failed(names[0]))

    soon = one.decision(START + MINUTE, *map(failed, names))
    assert soon is not None and soon.notices == ()
    assert soon.until == START + 15 * MINUTE and soon.reason == "`at_most_every`"
    assert one.at(START + 15 * MINUTE, *map(failed, names)) == [f"opened {n}" for n in names[1:]]


def test_a_new_process_keeps_the_pause_of_the_one_before() -> None:
    one = Teller(at_most_every="15m")
    one.at(START, failed())
    one.state = RouteState()

    assert one.at(START + MINUTE, failed(), failed("crm.orders")) == []


def test_what_passes_before_the_rule_minds_is_never_told() -> None:
    one = Teller(lasting="10m")

    assert one.at(START + 9 * MINUTE, failed()) == []
    assert one.at(START + 11 * MINUTE) == []
    assert one.at(START + 20 * MINUTE, failed()) == ["opened crm.users"]


def test_what_may_pass_by_itself_gets_its_time() -> None:
    one = Teller()

    assert one.at(START + MINUTE, failed(grace=120.0)) == []
    assert one.at(START + 2 * MINUTE, failed(grace=120.0)) == ["opened crm.users"]


def test_quiet_hours_hold_messages_back_until_they_end() -> None:
    # The night in which Berlin's clocks go forward: 22:00 is 21:00 UTC, and it ends at 06:00 UTC.
    one, night = Teller(quiet=[NIGHT]), datetime(2026, 3, 28, 23, tzinfo=UTC)

    held = one.decision(night, failed())
    assert held is not None and held.notices == () and held.reason == "quiet hours"
    assert held.until == datetime(2026, 3, 29, 6, tzinfo=UTC)
    assert one.at(night, failed(), failed("crm.orders", severity="critical")) == [
        "opened crm.orders"
    ]
    assert one.at(night + MINUTE, failed()) == ["resolved crm.orders"]
    assert one.at(held.until - MINUTE, failed()) == []
    assert one.at(held.until, failed()) == ["opened crm.users"]


def test_no_severity_breaks_quiet_hours_if_the_rule_says_so() -> None:
    one = Teller(quiet=[NIGHT], breaks_quiet=None)

    assert one.at(datetime(2026, 3, 28, 23, tzinfo=UTC), failed(severity="critical")) == []


def test_an_end_that_no_rule_tells_is_forgotten() -> None:
    one = Teller(resolved=False)
    one.at(START, failed())

    assert one.at(START + MINUTE) == []
    assert one.told == {}


@pytest.mark.parametrize(
    ("rule", "takes"),
    [
        ({}, True),
        ({"causes": ["stale", "failed"]}, True),
        ({"causes": ["stale"]}, False),
        ({"severity": "critical"}, False),
        ({"tasks": ["c*"]}, True),
        ({"tasks": ["sales"]}, False),
        ({"datasets": ["crm.*"]}, True),
        ({"tasks": ["crm"], "datasets": ["crm.o*"]}, False),
    ],
)
def test_a_rule_takes_what_it_names(rule: dict[str, Any], takes: bool) -> None:
    assert bool(Teller(**rule).at(START, failed())) is takes


def test_a_rule_about_tasks_says_nothing_of_the_cluster() -> None:
    nodes = Condition(Key("cluster", "main", "nodes"), None, "error", "short", START, START)

    assert Teller().at(START, nodes) == ["opened main"]
    assert Teller(tasks=["*"]).at(START, nodes) == []


def test_stale_is_what_waits_for_longer_than_the_rule_allows() -> None:
    one = Teller(stale_after="10m")

    assert one.at(START, users=599.0) == []
    assert one.at(START + MINUTE, users=660.0, orders=1.0) == ["opened users"]
    # After a restart nothing is known of it until it was looked at.
    assert one.at(START + 2 * MINUTE, orders=1.0) == []
    assert one.at(START + 3 * MINUTE, users=2.0) == ["resolved users"]


def test_quarantine_is_told_from_so_many_records_on() -> None:
    def growing(count: int) -> Condition:
        key = Key("quarantine", "crm.users")
        return Condition(key, "crm", "warning", "grows", START, START, count=count)

    one = Teller(quarantined=100)

    assert one.at(START, growing(99)) == []
    assert one.at(START, growing(100)) == ["opened crm.users"]
    assert one.at(START, growing(5000)) == []


def test_a_channel_that_fails_is_tried_with_growing_pauses_and_not_for_ever() -> None:
    state, now, pauses = RouteState(), START, []
    for _ in range(ATTEMPTS):
        assert not is_given_up(state)
        state = after_delivery(state, why="no answer", now=now)
        assert state.retry_at is not None
        pauses.append(state.retry_at - now)
        now = state.retry_at

    assert is_given_up(state)
    assert pauses == sorted(pauses) and pauses[0] == timedelta(seconds=30)
    assert timedelta(hours=1) < now - START < timedelta(hours=4)
    assert after_delivery(state, why=None, now=now).failures == 0


def test_nothing_is_sent_before_the_pause_of_a_failing_channel_is_over() -> None:
    one = Teller()
    one.state = after_delivery(RouteState(), why="no answer", now=START)

    assert one.at(START + timedelta(seconds=29), failed()) == []
    assert one.at(START + timedelta(seconds=30), failed()) == ["opened crm.users"]


NAMES = ("a", "b", "c")
#: What fails in each minute.
HISTORIES = st.lists(st.frozensets(st.sampled_from(NAMES)), max_size=60)


def messages(history: list[frozenset[str]], **rule: Any) -> list[tuple[datetime, list[str]]]:
    """What is told in each minute of a history, and in an hour after it."""
    one, since = Teller(**rule), dict[str, datetime]()
    told = []
    for minute, names in enumerate([*history, *[frozenset[str]()] * 61]):
        now = START + minute * MINUTE
        since = {name: since.get(name, now) for name in names}
        told.append((now, one.at(now, *(failed(name, at) for name, at in sorted(since.items())))))
    return told


@given(HISTORIES, st.sampled_from(["0s", "3m", "20m"]), st.sampled_from([None, "30m"]))
def test_beginning_and_end_alternate_and_everything_told_is_ended(
    history: list[frozenset[str]], at_most_every: str, remind_every: str | None
) -> None:
    told = messages(history, at_most_every=at_most_every, remind_every=remind_every)

    for name in NAMES:
        kinds = [
            said.split()[0]
            for _, lines in told
            for said in lines
            if said.endswith(f" {name}") and not said.startswith("reminder")
        ]
        assert kinds == ["opened", "resolved"] * (len(kinds) // 2)
        lasting = max((len(run) for run in _runs(history, name)), default=0)
        if lasting > int(at_most_every[:-1]):
            # It lasted for longer than any pause of the rule.
            assert kinds


def _runs(history: list[frozenset[str]], name: str) -> list[str]:
    return [run for run in "".join("x" if name in one else " " for one in history).split() if run]


@given(HISTORIES)
def test_two_messages_keep_their_distance(history: list[frozenset[str]]) -> None:
    moments = [now for now, lines in messages(history, at_most_every="7m") if lines]

    assert all(b - a >= 7 * MINUTE for a, b in pairwise(moments))


@given(HISTORIES)
def test_nothing_that_is_not_critical_is_told_in_quiet_times(
    history: list[frozenset[str]],
) -> None:
    quiet = [{"rrule": "FREQ=HOURLY;BYMINUTE=10", "duration": "20m"}]
    told = messages(history, quiet=quiet)

    assert not [now for now, lines in told if lines and 10 <= now.minute < 30]
    counts = Counter(said.split()[0] for _, lines in told for said in lines)
    assert counts["opened"] == counts["resolved"]


def test_a_decision_that_forgets_what_was_told_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_of_holding", lambda rule, facts, told, now: [
        decisions.Notice("opened", one, "") for one in facts.conditions.values()
    ])  # fmt: skip

    with pytest.raises(AssertionError):
        test_what_lasts_is_told_once_and_its_end_is_told()
