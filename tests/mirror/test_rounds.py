"""Rounds of a mirror: what is refreshed when, what failures do, and what a kill leaves."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from polynya.lake.warehouse.readers import CLOCK_SKEW
from polynya.mirror.rounds import described
from polynya.mirror.state import MirroredTable, MirrorState, decide, load_state
from polynya.model.config.mirror import MirrorRefresh
from polynya.model.errors import DependencyError
from polynya.observe.mirror import MirrorBehind
from tests.mirror.faked import STARTED, Rounds, commit, mirror, shown, storage

pytestmark = pytest.mark.usefixtures("translated_once")

SOURCE = storage("users", "orders")
USERS, ORDERS = shown(SOURCE, "users"), shown(SOURCE, "orders")


@pytest.fixture
def rounds(tmp_path):
    return Rounds(tmp_path, mirror(SOURCE))


def refreshes(rounds):
    return [sql for sql in rounds.target.statements if sql.startswith("ALTER")]


def test_the_first_round_makes_everything_and_the_next_asks_nothing(rounds):
    rounds.step((USERS, commit(1)))
    assert set(rounds.target.objects) == {
        "USERS_INTERNAL", "USERS", "USERS__HISTORY", "USERS__CHANGES",
    }  # fmt: skip
    assert load_state(rounds.store, "sales_snowflake").tables["shop.users"].snapshot == 1
    sessions = rounds.target.sessions
    rounds.later(minutes=5)
    rounds.step((USERS, commit(1)))
    assert rounds.target.sessions == sessions


def test_an_apply_is_shown_and_a_copy_waits_for_it(rounds):
    rounds.step((USERS, commit(1)))
    rounds.later(minutes=2)
    rounds.step((USERS, commit(2, rounds.clock.now(), applied=1)))
    assert refreshes(rounds) == []
    rounds.step((USERS, commit(3, rounds.clock.now())))
    assert refreshes(rounds) == ['ALTER ICEBERG TABLE "LAKE"."SHOP"."USERS_INTERNAL" REFRESH']


def test_a_table_is_refreshed_at_most_so_often(rounds):
    rounds.step((USERS, commit(1)))
    rounds.later(seconds=20)
    result = rounds.step((USERS, commit(2, rounds.clock.now())))
    assert refreshes(rounds) == []
    assert result.wait == timedelta(seconds=40)


@pytest.mark.parametrize(
    ("rules", "due"),
    [
        ({}, False),
        ({"after": "commit"}, True),
        ({"schedule": "0 3 * * *"}, False),
        ({"schedule": "@hourly"}, True),
        ({"automatic": True}, True),
    ],
)
def test_each_rule_says_when(rules, due):
    then = STARTED.isoformat()
    there = MirroredTable("1", 1, then, "apply 1", refreshed_at=then)
    newer = commit(2, STARTED + timedelta(minutes=1), applied=1)
    now = STARTED + timedelta(hours=1, minutes=1)
    assert decide(MirrorRefresh.model_validate(rules), newer, there, now, 0.5).due is due


def test_a_failure_is_tried_again_with_growing_pauses_and_stops_no_other_dataset(rounds):
    rounds.target.broken = lambda sql: "USERS" in sql
    result = rounds.step((USERS, commit(1)), (ORDERS, commit(1)))
    assert result.error.code == "POLYNYA-MIR-003"
    assert "ORDERS__CHANGES" in rounds.target.objects
    tries = []
    for second in range(0, 600, 5):
        before = rounds.target.sessions
        rounds.later(seconds=5)
        rounds.step((USERS, commit(1)), (ORDERS, commit(1)))
        if rounds.target.sessions > before:
            tries.append(second)
    assert len(tries) == 4
    pauses = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert pauses == sorted(pauses)
    rounds.target.broken = lambda _: False
    rounds.later(minutes=15)
    rounds.step((USERS, commit(1)), (ORDERS, commit(1)))
    table = load_state(rounds.store, "sales_snowflake").tables["shop.users"]
    assert (table.snapshot, table.failures, table.error) == (1, 0, None)


def test_a_target_that_does_not_answer_shows_in_the_status_and_is_told_once(rounds):
    rounds.step((USERS, commit(1)))
    rounds.target.down = True
    for _ in range(60):
        rounds.later(minutes=1)
        try:
            rounds.step((USERS, commit(2, STARTED + timedelta(minutes=1))))
        except DependencyError as error:
            assert error.code == "POLYNYA-MIR-002"
    (told,) = [event for event in rounds.events if isinstance(event, MirrorBehind)]
    assert "no route to host" in told.error
    state = load_state(rounds.store, "sales_snowflake")
    (row,) = described(state, {"shop.users": commit(2)}, rounds.clock.now())
    assert (row.snapshot_here, row.snapshot_there, row.code) == (2, 1, "POLYNYA-MIR-002")
    assert row.behind_seconds == pytest.approx(59 * 60)


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_at_any_statement_leaves_nothing_that_the_next_run_does_not_repair(tmp_path):
    wider = shown(SOURCE, "users", name="string", age="int")
    whole = Rounds(tmp_path / "whole", mirror(SOURCE))
    whole.step((USERS, commit(1)), (ORDERS, commit(1)))
    whole.later(minutes=5)
    whole.step((wider, commit(2, whole.clock.now())))
    count = len(whole.target.statements)
    assert count == 16  # 8 made, 4 dropped, 1 refreshed, 3 replaced
    for last in range(count):
        one = Rounds(tmp_path / str(last), mirror(SOURCE))

        def dies(_, one=one, last=last):
            if len(one.target.statements) == last:
                raise Killed
            return False

        one.target.broken = dies
        for sources in [((USERS, commit(1)), (ORDERS, commit(1))), ((wider, commit(2)),)]:
            try:
                one.step(*sources)
            except Killed:
                one.target.broken = lambda _: False
                one.again()
                one.step(*sources)
            one.later(minutes=5)
        assert one.target.objects == whole.target.objects, last
        assert one.target.shows["USERS_INTERNAL"] == commit(2).metadata


def test_a_lost_state_costs_no_object(rounds):
    rounds.step((USERS, commit(1)))
    made = list(rounds.target.statements)
    rounds.store.put(".polynya/mirrors/sales_snowflake.json", b"\x00 not JSON")
    rounds.again()
    rounds.step((USERS, commit(1)))
    again = rounds.target.statements[len(made) :]
    assert again == ['ALTER ICEBERG TABLE "LAKE"."SHOP"."USERS_INTERNAL" REFRESH']


def test_what_the_target_shows_is_held_for_a_day_at_most(rounds):
    rounds.step((USERS, commit(1)))
    rounds.later(hours=3)
    rounds.target.down = True
    with pytest.raises(DependencyError):
        rounds.step((USERS, commit(2, rounds.clock.now())))
    (reader,) = rounds.readers.at_work()
    assert reader.since == STARTED
    rounds.later(hours=30)
    assert rounds.readers.at_work() == []
    with pytest.raises(DependencyError):
        rounds.step((USERS, commit(2)))
    (reader,) = rounds.readers.at_work()
    assert reader.since == rounds.clock.now() - timedelta(hours=24)
    assert reader.until <= rounds.clock.now() + timedelta(hours=24) - CLOCK_SKEW


def test_nothing_is_dropped_while_datasets_may_be_missing(rounds):
    rounds.step((USERS, commit(1)), (ORDERS, commit(1)))
    rounds.step((USERS, commit(1)), complete=False)
    assert "ORDERS" in rounds.target.objects
    rounds.step((USERS, commit(1)))
    assert "ORDERS" not in rounds.target.objects


@pytest.mark.parametrize("text", [b"[]", b'{"tables": 3}', b'{"tables": {"a": 1}}', b"\xff"])
def test_a_damaged_state_is_an_empty_one(text):
    assert MirrorState.from_json(text) == MirrorState()
