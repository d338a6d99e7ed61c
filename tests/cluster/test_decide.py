"""Decisions about one job: what runs, what is tried again, what is left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polynya.cluster.jobs import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Failure,
    JobAction,
    JobDecision,
    JobFacts,
    JobRules,
    decide,
    pause_after,
)

RULES = JobRules(failures=3, window=100.0)


def decision(facts: JobFacts, now: float = 0.0, *, draining: bool = False) -> JobDecision:
    return decide(facts, now=now, draining=draining, rules=RULES)


def failed(*times: float, passing: bool = False, ends_task: bool = False) -> JobFacts:
    failures = tuple(Failure(at, 10.0, f"at {at:.0f}", passing, ends_task) for at in times)
    return JobFacts(wanted="v1", tried="v1", failures=failures)


def test_what_runs_is_stopped_only_with_a_reason() -> None:
    runs = JobFacts(wanted="v1", running="v1", tried="v1")

    assert decision(runs) == JobDecision(JobAction.KEEP, "runs")
    assert decision(JobFacts(wanted="v2", running="v1")).reason == "its file changed"
    assert decision(JobFacts(wanted=None, running="v1")).action is JobAction.STOP
    assert decision(runs, draining=True) == JobDecision(JobAction.STOP, "the node drains")
    assert decision(JobFacts(wanted="v2", running="v1", stopping=True)).action is JobAction.KEEP
    ended = JobFacts(wanted="v1", running="v1", task_ended="a policy")
    assert decision(ended) == JobDecision(JobAction.STOP, "a policy")


def test_what_does_not_run_is_started_when_the_configuration_asks_for_it() -> None:
    assert decision(JobFacts(wanted="v1")) == JobDecision(JobAction.START, "new")
    assert decision(JobFacts(wanted="v1", tried="v1")).action is JobAction.START
    assert decision(JobFacts(wanted=None)).action is JobAction.FORGET
    assert decision(JobFacts(wanted="v1"), draining=True).action is JobAction.WAIT
    assert decision(JobFacts(wanted="v1", task_ended="a policy")).action is JobAction.SUSPEND


def test_a_failed_job_is_tried_again_after_its_pause() -> None:
    assert decision(failed(50.0), now=55.0) == JobDecision(JobAction.WAIT, "at 50", until=60.0)
    assert decision(failed(50.0), now=60.0).action is JobAction.START


def test_a_job_that_keeps_failing_is_suspended_and_says_why() -> None:
    facts = failed(1.0, 20.0, 50.0)

    for now in (51.0, 1e9):
        assert decision(facts, now) == JobDecision(
            JobAction.SUSPEND, "failed 3 times in 49 s, last: at 50"
        )


def test_failures_that_are_far_apart_or_pass_by_themselves_suspend_nothing() -> None:
    assert decision(failed(1.0, 20.0, 150.0), now=200.0).action is JobAction.START
    assert decision(failed(*range(99), passing=True), now=200.0).action is JobAction.START


def test_a_suspended_job_is_taken_up_again_when_its_file_changes() -> None:
    facts = failed(1.0, 2.0, 3.0)
    changed = JobFacts("v2", tried="v1", failures=facts.failures)

    assert decision(changed) == JobDecision(JobAction.START, "its file changed")


VERSIONS = st.none() | st.sampled_from(["v1", "v2"])
FAILURES = st.lists(
    st.builds(Failure, st.floats(0, 500), st.floats(1, 300), st.just("x"), st.booleans()),
    max_size=6,
).map(lambda found: tuple(sorted(found, key=lambda one: one.at)))
FACTS = st.builds(
    JobFacts, VERSIONS, VERSIONS, st.booleans(), VERSIONS, FAILURES, st.none() | st.just("policy")
)


@given(FACTS, st.floats(500, 1e6), st.booleans())
def test_any_decision_fits_its_facts(facts: JobFacts, now: float, draining: bool) -> None:
    got = decision(facts, now, draining=draining)

    assert got.reason
    assert (got.action in (JobAction.STOP, JobAction.KEEP)) == (facts.running is not None)
    if got.action is JobAction.START:
        assert facts.wanted is not None
        assert not draining
    if got.action is JobAction.WAIT and not draining:
        assert got.until is not None
        assert now < got.until <= now + LONGEST_PAUSE_SECONDS


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_pauses_grow_up_to_a_limit_and_are_never_none(failures: int, draw: float) -> None:
    pause = pause_after(failures, draw)

    assert FIRST_PAUSE_SECONDS / 2 <= pause <= LONGEST_PAUSE_SECONDS
    assert pause_after(failures + 1, draw) >= pause
