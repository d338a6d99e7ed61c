"""When an automation is due: facts and memory in, runs with their reason out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.automation.due import TaskEnds, TriggerFacts, decide
from tests.automation.automations import automation

NIGHT = {"schedule": "30 2 * * *"}
NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def moments(one, *looks, facts=None):
    """The moments that looks at these times find due, with the memory of each for the next."""
    memory, found = {}, []
    for now in looks:
        decision = decide(one, memory, facts or TriggerFacts(), now)
        memory = decision.memory
        found += [due.at for due in decision.due]
    return found


def every_minute(start, end):
    return [start + timedelta(minutes=n) for n in range(int((end - start).total_seconds() // 60))]


@pytest.mark.parametrize(
    ("schedule", "day", "expected"),
    [
        # On 29 March the clock of Berlin goes from 02:00 to 03:00, on 25 October from 03:00 to 02.
        ("30 2 * * *", "2026-03-29", ["01:00"]),
        ("30 2 * * *", "2026-10-25", ["00:30"]),
        ("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "2026-03-29", ["01:30"]),
        ("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "2026-10-25", ["00:30"]),
        ("0 12 * * *", "2026-03-29", ["10:00"]),
        ("0 12 * * *", "2026-10-25", ["11:00"]),
    ],
)
def test_a_moment_comes_once_on_days_when_the_clock_changes(schedule, day, expected):
    start = datetime.fromisoformat(f"{day}T00:00:00+00:00") - timedelta(hours=1, minutes=30)
    one = automation(triggers=[{"schedule": schedule}])

    found = moments(one, *every_minute(start, start + 24 * HOUR))

    assert [f"{moment:%H:%M}" for moment in found] == expected


def test_what_happened_before_the_first_look_starts_nothing():
    facts = TriggerFacts({"shop": TaskEnds(NOON)}, {"*.done": {"a.done": "1"}})
    triggers = [NIGHT, {"after": ["shop"]}, {"file": "*.done"}]

    assert moments(automation(triggers=triggers), NOON, NOON + HOUR, facts=facts) == []


@pytest.mark.parametrize(
    ("missed", "days", "left_out"),
    [("run_once", [23], 0), ("skip", [], 3), ("all", [22, 23], 1)],
)
def test_moments_that_passed_while_nothing_looked_follow_the_policy(missed, days, left_out):
    one = automation(triggers=[NIGHT], missed=missed, missed_limit=2)
    memory = decide(one, {}, TriggerFacts(), NOON).memory

    decision = decide(one, memory, TriggerFacts(), NOON + timedelta(days=3))

    assert [due.at.day for due in decision.due] == days
    assert len(decision.left_out) == left_out


def test_a_schedule_counts_between_its_start_and_its_end():
    trigger = {**NIGHT, "start": "2026-03-22T00:00:00Z", "end": "2026-03-23T00:00:00Z"}
    looks = [NOON + n * HOUR for n in range(200)]

    found = moments(automation(triggers=[trigger]), *looks)

    assert [moment.day for moment in found] == [22]


def test_all_inputs_have_to_end_and_any_input_suffices():
    ends = [
        TriggerFacts({"shop": TaskEnds(NOON)}),
        TriggerFacts({"shop": TaskEnds(NOON), "crm": TaskEnds(failure=NOON)}),
        TriggerFacts({"shop": TaskEnds(NOON), "crm": TaskEnds(NOON)}),
    ]

    def fired(**settings):
        one = automation(triggers=[{"after": ["shop", "crm"], **settings}])
        memory, found = decide(one, {}, TriggerFacts(), NOON).memory, []
        for facts in ends:
            decision = decide(one, memory, facts, NOON)
            memory = decision.memory
            found.append([due.why for due in decision.due])
        return found

    assert fired() == [["shop ended well"], [], ["crm ended well"]]
    assert fired(when="all") == [[], [], ["shop, crm ended well"]]
    assert fired(result="failure") == [[], ["crm ended with a failure"], []]


def test_an_overdue_task_starts_it_once_until_the_task_ends_well_again():
    one = automation(triggers=[{"overdue": "shop", "longer_than": "2h"}])
    facts = TriggerFacts({"shop": TaskEnds(NOON)})
    looks = [NOON + n * HOUR for n in range(6)]

    assert moments(one, *looks, facts=facts) == [NOON + 3 * HOUR]


def test_an_end_from_before_the_first_look_starts_nothing_though_it_is_learned_of_later():
    one = automation(triggers=[{"after": ["shop"]}])
    memory, found = decide(one, {}, TriggerFacts(), NOON).memory, []
    for end in (NOON - HOUR, NOON + HOUR, NOON + HOUR):
        decision = decide(one, memory, TriggerFacts({"shop": TaskEnds(end)}), NOON + 2 * HOUR)
        memory = decision.memory
        found.append(len(decision.due))

    assert found == [0, 1, 0]


def test_a_task_that_works_all_the_time_is_overdue_once_until_it_is_fresh_again():
    one = automation(triggers=[{"overdue": "shop", "longer_than": "2h"}])
    # It is three hours behind, then comes forward and is behind as far, then catches up.
    behind = [0, 1, 2, 3, 3, 3, 3, 0, 1, 2, 3]
    memory, found = {}, []
    for hour, hours in enumerate(behind):
        now = NOON + hour * HOUR
        ends = TaskEnds(success=NOON - HOUR, fresh=now - hours * HOUR)
        decision = decide(one, memory, TriggerFacts({"shop": ends}), now)
        memory = decision.memory
        if decision.due:
            found.append(hour)

    # By the seventh hour all was taken in that waited when the run began, and it is still behind.
    assert found == [3, 10]


def test_a_task_that_has_had_no_time_to_look_is_not_overdue_yet_and_starts_no_second_run():
    one = automation(triggers=[{"overdue": "shop", "longer_than": "2h"}])
    memory, found = {}, []
    for hour, settling in enumerate((True, True, True, True, False, True, False)):
        facts = TriggerFacts({"shop": TaskEnds(fresh=NOON, is_settling=settling)})
        decision = decide(one, memory, facts, NOON + hour * HOUR)
        memory = decision.memory
        found += [hour for _ in decision.due]

    assert found == [4]


def test_an_overdue_task_starts_another_run_when_it_has_ended_well_between_two_looks():
    one = automation(triggers=[{"overdue": "shop", "longer_than": "2h"}])
    memory, found = {}, []
    for hour, end in ((3, 0), (4, 0), (9, 5), (10, 5)):
        facts = TriggerFacts({"shop": TaskEnds(NOON + end * HOUR)})
        decision = decide(one, memory, facts, NOON + hour * HOUR)
        memory = decision.memory
        found += [hour for _ in decision.due]

    assert found == [3, 9]


def test_a_file_starts_it_when_it_appears_or_changes_and_not_when_it_goes():
    one = automation(triggers=[{"file": "*.done"}])
    memory, found = {}, []
    for files in ({}, {"a.done": "1"}, {"a.done": "1"}, {"a.done": "2"}, {}, {"a.done": "2"}):
        decision = decide(one, memory, TriggerFacts(files={"*.done": files}), NOON)
        memory = decision.memory
        found.append([due.why for due in decision.due])

    appeared = ["a.done appeared"]
    assert found == [[], appeared, [], appeared, [], appeared]


@given(
    gaps=st.lists(st.integers(1, 3000), min_size=1, max_size=40),
    schedule=st.sampled_from(["30 2 * * *", "*/20 1-3 * * *", "FREQ=HOURLY;INTERVAL=5"]),
    start=st.sampled_from([datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)]),
)
def test_with_all_each_moment_is_due_exactly_once_whenever_one_looks(gaps, schedule, start):
    one = automation(triggers=[{"schedule": schedule}], missed="all", missed_limit=1000)
    looks = [start]
    for minutes in gaps:
        looks.append(looks[-1] + timedelta(minutes=minutes))

    found = moments(one, *looks)

    assert found == moments(one, looks[0], looks[-1])
    assert found == sorted(set(found))
