"""Each call of a short life of two members is struck once, in each way: nothing may be wrong."""

from __future__ import annotations

import pytest

from tests.cluster.simulation.planted.bugs import BUGS
from tests.cluster.simulation.sweep.call_faults import Blow, Mode
from tests.cluster.simulation.sweep.sweep import calls, each, run_once, swept

#: One of so many lives in the quick test: each kind of call in each mode is among them.
SOME = 37


def test_the_life_has_all_that_coordination_does() -> None:
    counts = run_once(Blow()).counts

    assert counts["fault: crash"] == 1
    assert counts["fault: drain"] == counts["drained"] == 1
    assert counts["wishes carried out"] == 1
    # Claimed at first, after the release, after the return for balance, after the crash.
    assert counts["claims"] > 6
    assert {*calls()} == {
        "commit", "store: delete_if", "store: list", "store: put_if", "store: read"
    }  # fmt: skip


def test_some_calls_struck_leave_nothing_wrong() -> None:
    found = list(swept(each(SOME)))

    assert [one for one in found if one.failure is not None] == []
    assert {one.mode for one in found} == {*Mode}
    assert len(found) > 40


@pytest.mark.slow
def test_every_call_struck_in_every_way_leaves_nothing_wrong() -> None:
    found = list(swept(each()))

    assert [one for one in found if one.failure is not None] == []
    assert len(found) == len(Mode) * len(calls())


@pytest.mark.parametrize(
    ("bug", "mode"),
    [
        ("an answer that never came is taken for a yes", Mode.LOST),
        ("epochs begin again after a release", Mode.APPLIED),
    ],
)
def test_a_bug_that_one_call_brings_to_light_is_found(bug: str, mode: Mode) -> None:
    asked = [(number, one) for number, one in each() if one is mode]

    with BUGS[bug].planted() as under:
        assert any(one.failure is not None for one in swept(asked, under))
