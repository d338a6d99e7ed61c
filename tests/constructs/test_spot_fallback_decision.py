"""The Spot fallback decides well from any facts, however they came about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya_constructs.functions.spot_fallback import decision
from polynya_constructs.functions.spot_fallback.decision import (
    QUIET,
    Action,
    Facts,
    Intention,
    Mix,
    decide,
    is_spot_shortage,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
CALM = Facts(
    now=NOW, desired=8, mix=Mix(0, 0), configured_base=0, spot_alive=8, last_shortage=None,
    intention=Intention(0, LONG_AGO),
)  # fmt: skip
SHORT = replace(CALM, spot_alive=5, last_shortage=NOW - timedelta(seconds=20))

minutes_ago = st.integers(0, 60).map(lambda minutes: NOW - timedelta(minutes=minutes))
counts = st.integers(0, 40)
any_facts = st.builds(
    Facts,
    now=st.just(NOW),
    desired=counts,
    mix=st.builds(Mix, counts, st.integers(0, 100)),
    configured_base=st.integers(0, 10),
    spot_alive=counts,
    last_shortage=st.none() | minutes_ago,
    intention=st.none() | st.builds(Intention, counts, minutes_ago),
)


def test_a_shortage_raises_the_base_by_what_spot_does_not_give() -> None:
    decided = decide(SHORT)

    assert (decided.action, decided.intention) == (Action.RAISE, Intention(3, NOW))
    assert decided.reason == "Spot gives 5 of 8 nodes"


def test_missing_nodes_alone_are_no_shortage() -> None:
    """They may be booting: only a launch that failed lately says that Spot is short."""
    assert decide(replace(SHORT, last_shortage=None)).action is Action.KEEP
    assert decide(replace(SHORT, last_shortage=NOW - QUIET)).action is Action.KEEP


def test_a_percentage_of_on_demand_is_counted_in() -> None:
    """Base 4 of 10 nodes, and 20 % of the other 6 in whole nodes, leave the 4 that Spot gives."""
    decided = decide(replace(SHORT, desired=10, mix=Mix(0, 20), spot_alive=4))

    assert decided.intention.base == 4
    assert Mix(4, 20).spot_share(10) == 4


def test_nodes_go_back_to_spot_one_at_a_time_each_after_a_quiet_while() -> None:
    raised = replace(CALM, mix=Mix(3, 0), spot_alive=5, intention=Intention(3, NOW - QUIET))

    assert decide(raised).intention == Intention(2, NOW)
    for busy in (
        replace(raised, intention=Intention(3, NOW - QUIET / 2)),
        replace(raised, last_shortage=NOW - QUIET / 2),
    ):
        assert decide(busy).action is Action.KEEP


def test_a_deploy_that_reset_the_base_is_undone() -> None:
    reset = replace(CALM, spot_alive=5, intention=Intention(3, NOW - QUIET / 2))

    decided = decide(reset)

    assert (decided.action, decided.intention) == (Action.RESTORE, reset.intention)


def test_no_base_is_restored_over_spot_nodes_that_run_by_now() -> None:
    reset = replace(CALM, spot_alive=7, intention=Intention(3, NOW - QUIET / 2))

    assert decide(reset).intention.base == 1


@settings(max_examples=500)
@given(any_facts)
def test_invariants_hold_for_any_facts(facts: Facts) -> None:
    breaches = broken_invariants(facts)

    assert breaches == []


def broken_invariants(facts: Facts) -> list[str]:
    """The promises of `decide` that a decision breaks."""
    decided = decide(facts)
    base = decided.intention.base
    room = Mix(base, facts.mix.percentage).spot_share(facts.desired)
    without = Mix(facts.configured_base, facts.mix.percentage).spot_share(facts.desired)
    checks = {
        "ends a healthy Spot node": room >= min(facts.spot_alive, without),
        "base above desired": base <= max(facts.desired, facts.configured_base),
        "base below the configured one": base >= facts.configured_base,
        "no reason": bool(decided.reason),
        "changes nothing, but says so": decided.action is not Action.KEEP
        or base == facts.mix.base == (facts.intention or Intention(facts.mix.base, NOW)).base,
    }
    return [broken for broken, holds in checks.items() if not holds]


@given(any_facts)
def test_once_spot_gives_all_the_configured_base_is_back(facts: Facts) -> None:
    """However it began; each node takes one quiet while, and then nothing changes any more."""
    for _ in range(60):
        intention = decide(facts).intention
        mix = Mix(intention.base, facts.mix.percentage)
        facts = replace(
            facts,
            now=facts.now + QUIET,
            spot_alive=mix.spot_share(facts.desired),
            mix=mix,
            intention=intention,
        )

    assert facts.mix.base == facts.configured_base
    assert decide(facts).action is Action.KEEP


@given(any_facts)
def test_the_same_facts_are_answered_once(facts: Facts) -> None:
    """Two runs at a time, or a run killed after its tag: the second one only finishes the first."""
    first = decide(facts).intention
    again = decide(replace(facts, intention=first)).intention

    assert first.base - again.base in (0, 1)  # a hand-back may be due besides


def test_the_invariants_catch_a_base_that_forgets_the_running_spot_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault: restore whatever was intended."""
    monkeypatch.setattr(decision, "_highest", lambda facts: 1000)
    reset = replace(CALM, spot_alive=7, intention=Intention(30, NOW))

    assert broken_invariants(reset) == ["ends a healthy Spot node", "base above desired"]


@pytest.mark.parametrize(
    ("message", "short"),
    [
        # As people found them among the activities of their groups.
        (("Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot "
         "capacity available that matches your request. Launching EC2 instance failed."), True),
        (("Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due "
         "to your request configuration. Please adjust your request and try again. Launching EC2 "
         "instance failed."), True),
        (("There is no Spot capacity available that matches your request. Launching EC2 instance "
         "failed."), True),
        ("Max spot instance count exceeded. Launching EC2 instance failed.", True),
        (("Could not launch Spot Instances. InvalidFleetConfiguration - Your requested instance "
         "type (p3.8xlarge) is not supported in your requested Availability Zone (us-east-2c). "
         "Launching EC2 instance failed."), False),
        (("We currently do not have sufficient g4dn.8xlarge capacity in the Availability Zone you "
         "requested (us-east-1a)."), False),
        ("", False),
    ],
)  # fmt: skip
def test_only_failures_that_on_demand_mends_count(message: str, short: bool) -> None:
    assert is_spot_shortage(message) is short
