"""Seeded lives of a cluster: the real protocol under faults keeps every row exactly once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import MemberState, NodeFacts
from tests.cluster.simulation.drill import Under
from tests.cluster.simulation.many import first_caught, vacuous
from tests.cluster.simulation.plan import KINDS, drawn
from tests.cluster.simulation.planted.bug import Bug
from tests.cluster.simulation.planted.bugs import BUGS
from tests.cluster.simulation.planted.catching import catch
from tests.cluster.simulation.planted.knowing import KNOWING
from tests.cluster.simulation.run import Outcome, run, total

QUICK = 100
#: Enough seeds for each planted bug; the table in docs/reliability.md says how many it takes.
PATIENCE = 6000
CONTROL = "fence off: commits are made whatever the state is"


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a person does."""
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.simulation", *arguments],
        env=os.environ,
        capture_output=True,
        text=True,
    )


def test_faults_neither_lose_nor_double_a_row() -> None:
    # In a process of its own: there the seeds are those that `--seed` replays.
    done = simulate("--count", str(QUICK), "--jobs", "1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{QUICK} schedules" in done.stdout


def test_a_seed_replays_to_the_same_end() -> None:
    first, second = run(7), run(7)

    assert first == second


def test_without_the_fence_of_the_table_rows_are_doubled() -> None:
    caught = catch(CONTROL, first=1, most=100)

    assert caught.seeds is not None
    assert re.search(r"more than once|committed after|committed in epoch", caught.how), caught.how


def test_every_kind_of_fault_is_drawn() -> None:
    drawn_kinds = Counter(kind for seed in range(300) for kind in drawn(seed).kinds)

    assert drawn_kinds.keys() == {*KINDS, "stick"}


def configured(seed: int, under: Under | None = None) -> Outcome:
    """A life in which nothing is wrong but configurations that are late, or never there."""
    return run(seed, under, drawn(seed, frozenset({"configuration"})))


def test_a_unit_that_some_nodes_know_is_on_one_of_them_soon() -> None:
    outcomes = [configured(seed) for seed in range(1, 21)]

    assert {one.seed: one.failure for one in outcomes if one.failure is not None} == {}
    assert total(outcomes)["units judged that not all know"] > 20


@pytest.mark.parametrize("bug", KNOWING, ids=lambda bug: bug.name)
def test_configurations_that_differ_and_nobody_hears_of_it_are_caught(bug: Bug) -> None:
    with bug.planted() as under:
        caught = first_caught(lambda seed: configured(seed, under), most=40)

    assert caught is not None


def test_a_run_in_which_nothing_happens_proves_nothing() -> None:
    busy = Counter({"schedules": 10, "fault: crash": 20, "takeovers": 20, "fenced": 1, "rows": 900})

    assert vacuous(busy) == []
    for name in ("fault: crash", "takeovers", "fenced", "rows"):
        assert vacuous(Counter(busy | Counter()) - Counter({name: 10_000}))


class Unusable(Member):
    """Cannot even run, as a planted bug whose signature is out of date."""

    def turn(self, seen: NodeFacts) -> MemberState:
        """Fails as Python does."""
        raise TypeError("takes 4 positional arguments but 5 were given")


def test_a_planted_bug_that_cannot_run_is_not_caught() -> None:
    outcome = run(1, Under(member=Unusable))

    assert outcome.failure is not None
    assert not outcome.caught


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_run(bug: str) -> None:
    """One whose names are out of date would end each run with an error of Python."""
    with BUGS[bug].planted() as under:
        outcome = run(1, under)

    assert outcome.failure is None or outcome.caught, outcome.failure


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug: str) -> None:
    assert catch(bug, first=1, most=PATIENCE).seeds is not None
