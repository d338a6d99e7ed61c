"""Two versions share a cluster, during an upgrade and its rollback: every invariant holds."""

from __future__ import annotations

import pytest

from polynya.cluster.coordination.documents import Document
from tests.cluster.simulation.later import Mixed
from tests.cluster.simulation.planted.owning import forgetful
from tests.cluster.simulation.run import run, total

QUICK, LONG = 60, 2_000


def lives(mixed: Mixed, first: int, count: int) -> dict[int, str]:
    """What was wrong, by seed."""
    with mixed.cluster() as under:
        outcomes = [run(seed, under) for seed in range(first, first + count)]
    mixed.counts.update(total(outcomes))
    return {one.seed: one.failure for one in outcomes if one.failure is not None}


def proves_something(mixed: Mixed, count: int) -> None:
    """Both versions took part, met each other's objects, and there was something to lose."""
    assert mixed.counts["processes of the later version"] > count
    assert mixed.counts["processes of this version"] > count
    assert mixed.counts["objects of the later version written again by this one"] > count
    assert mixed.counts["takeovers"] > count
    assert mixed.counts["rows"] > 10 * count


def test_a_cluster_of_two_versions_loses_and_doubles_no_row() -> None:
    mixed = Mixed()

    assert lives(mixed, 1, QUICK) == {}
    proves_something(mixed, QUICK)


@pytest.mark.slow
def test_many_more_lives_of_two_versions() -> None:
    mixed = Mixed()

    assert lives(mixed, 1_000_001, LONG) == {}
    proves_something(mixed, LONG)


def test_a_version_that_drops_what_it_does_not_know_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Document, "encoded", forgetful)

    wrong = lives(Mixed(), 1, 3)

    assert wrong
    assert all("lost a field that it did not know" in why for why in wrong.values())
