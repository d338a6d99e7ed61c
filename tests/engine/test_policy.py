"""When to apply: facts in, a decision with its reason out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.engine.policy import (
    PendingFacts,
    decide,
    goes_with_a_copy,
    wait_for_apply,
    with_spread_age,
)
from polynya.engine.unit import LONG_STEP_BYTES, TimeSlice
from polynya.model.config.settings import ApplyPolicy

POLICY = ApplyPolicy.model_validate(
    {
        "max_pending_rows": 100,
        "max_pending_bytes": "1MB",
        "max_pending_files": 10,
        "max_pending_age": "1m",
        "min_fraction": 0.01,
    }
)
FEW = PendingFacts(rows=5, size_bytes=500, files=1, current_rows=1000, age=timedelta(seconds=5))


@pytest.mark.parametrize(
    ("facts", "applies", "reason"),
    [
        (FEW, False, "5 pending rows of 100"),
        (replace(FEW, rows=99), False, "99 pending rows of 100"),
        (replace(FEW, rows=100), True, "100 pending rows reached 100"),
        (replace(FEW, size_bytes=2**20 - 1), False, "pending rows of"),
        (replace(FEW, size_bytes=2**20), True, "1048576 pending bytes"),
        (replace(FEW, files=9), False, "9 files of 10"),
        (replace(FEW, files=10), True, "10 pending files"),
        (replace(FEW, age=timedelta(seconds=59)), False, "pending rows of"),
        (replace(FEW, age=timedelta(seconds=60)), True, "60 s old"),
        (replace(FEW, rows=0, age=timedelta(days=1)), False, "nothing is pending"),
    ],
)
def test_a_limit_that_is_reached_decides(facts: PendingFacts, applies: bool, reason: str) -> None:
    decision = decide(facts, POLICY)

    assert decision.apply is applies
    assert reason in decision.reason


def test_applies_that_a_copy_takes_along_are_spread_over_the_last_quarter_of_the_age() -> None:
    ages = [
        with_spread_age(POLICY, f"shop.t{number}").max_pending_age.total_seconds()
        for number in range(400)
    ]

    quarters = [sum(45 + 3.75 * n <= age <= 48.75 + 3.75 * n for age in ages) for n in range(4)]
    assert sum(quarters) == len(ages)
    assert min(quarters) > 50
    assert with_spread_age(POLICY, "shop.t7").max_pending_age.total_seconds() == ages[7]


@pytest.mark.parametrize(
    ("facts", "rows", "size_bytes", "goes"),
    [
        (FEW, 20_000, 1000, True),
        (FEW, 20_001, 1000, False),
        (replace(FEW, current_rows=3_200_000), 100_000, 1000, True),
        (replace(FEW, current_rows=3_200_000), 100_001, 1000, False),
        (replace(FEW, size_bytes=0), 10, LONG_STEP_BYTES - 1, True),
        (replace(FEW, size_bytes=0), 10, LONG_STEP_BYTES, False),
        (replace(FEW, size_bytes=LONG_STEP_BYTES // 4), 10, 0, False),
    ],
)
def test_a_small_part_of_a_table_is_applied_with_its_copy(
    facts: PendingFacts, rows: int, size_bytes: int, *, goes: bool
) -> None:
    assert goes_with_a_copy(facts, rows, size_bytes) is goes


def test_rows_of_a_large_table_count_as_a_fraction_of_it() -> None:
    large = replace(FEW, rows=100, current_rows=1_000_000)

    assert not decide(large, POLICY).apply
    assert decide(replace(large, rows=10_000), POLICY).apply


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (replace(FEW, rows=299), None),
        (replace(FEW, rows=300), "300 pending rows are 3 times 100"),
        (replace(FEW, size_bytes=3 * 2**20), "3,145,728 pending bytes are 3 times 1,048,576"),
        (replace(FEW, files=30), "30 pending files are 3 times 10"),
        (replace(FEW, age=timedelta(days=9)), None),
        (replace(FEW, rows=29_999, current_rows=1_000_000), None),
        (replace(FEW, rows=30_000, current_rows=1_000_000), "30,000 pending rows are 3 times"),
    ],
)
def test_copies_wait_at_a_multiple_of_the_limits(facts: PendingFacts, reason: str | None) -> None:
    policy = POLICY.model_copy(update={"copies_wait_at": 3})

    found = wait_for_apply(facts, policy)

    assert (found is None) if reason is None else (found or "").startswith(reason)
    # Where copies wait there is an apply to wait for, unless nothing is to be applied.
    assert found is None or decide(facts, policy).apply
    assert wait_for_apply(facts, policy, "never") is None


def test_an_age_that_is_unknown_is_no_reason() -> None:
    assert not decide(replace(FEW, age=None), POLICY).apply


def test_an_apply_is_long_by_its_changes_rather_than_by_the_table_that_they_change() -> None:
    turn, mebibyte = TimeSlice(long=False), 2**20
    few_on_many = replace(FEW, size_bytes=mebibyte // 10, current_bytes=1000 * mebibyte)
    many_on_few = replace(FEW, size_bytes=4 * mebibyte, current_bytes=10 * mebibyte)
    with_history = replace(few_on_many, history=True)

    assert not turn.must_wait_for(few_on_many.work_bytes)
    assert turn.must_wait_for(many_on_few.work_bytes)
    assert turn.must_wait_for(with_history.work_bytes)
    assert not turn.must_wait_for(replace(with_history, current_bytes=200 * mebibyte).work_bytes)


COUNTS = st.integers(0, 10**9)
FACTS = st.builds(
    PendingFacts,
    rows=COUNTS,
    size_bytes=COUNTS,
    files=COUNTS,
    current_rows=COUNTS,
    age=st.none() | st.timedeltas(timedelta(), timedelta(days=9)),
)


@given(FACTS)
def test_what_was_asked_for_wins_and_nothing_is_never_applied(facts: PendingFacts) -> None:
    assert decide(facts, POLICY, "always").apply is (facts.rows > 0)
    assert not decide(facts, POLICY, "never").apply
    assert decide(facts, POLICY).reason


@given(FACTS, COUNTS)
def test_more_pending_rows_never_make_an_apply_less_likely(facts: PendingFacts, more: int) -> None:
    if decide(facts, POLICY).apply:
        assert decide(replace(facts, rows=facts.rows + more), POLICY).apply
