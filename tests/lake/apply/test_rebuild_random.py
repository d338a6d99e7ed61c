"""Random lives of datasets that keep their events: proved, damaged, rebuilt, as if nothing was."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from polynya.engine.commands.rebuild import rebuild
from polynya.lake.apply.apply import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.lake.read.verify import FOLD_RULES, VerifyResult, verify
from polynya.lake.table.dataset import DatasetTable
from tests.lab.lab import Lab
from tests.lab.twins import Twin, difference
from tests.lake.apply.plain import PlainApplier
from tests.lake.apply.test_appliers_agree import LIVES
from tests.oracle.packs.datasets import arrivals

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
ROUNDS = int(os.environ.get("POLYNYA_TEST_ROUNDS", "2"))
STEPS = 3
#: A step takes two minutes of the fake clock: the events of the first expire at the last.
SHORT = "3m"
#: What a rebuild need not know again: since when and until when readers saw a version.
ENGINE_TIMES = frozenset(
    f"hdr__{name}_timestamp"
    for name in ("was_current_from", "was_current_to", "modified", "inserted")
)


def life(lab: Lab, name: str, retention: str, seed: int, applier: Applier) -> Twin:
    """A dataset of random events that keeps them."""
    events = LIVES[name].dataset(seed)
    steps = arrivals(events.landed(), STEPS, seed)
    extra = {**events.extra, "changes_retention": retention}
    return Twin(lab, replace(events, schema=lab.schema, batches=steps, extra=extra), applier)


def live(twin: Twin) -> None:
    """Copy and apply each step."""
    for number in range(STEPS):
        twin.copy(number)
        twin.lab.clock.sleep(60)
        twin.apply()
        twin.lab.clock.sleep(60)


def told(verdict: VerifyResult) -> list[str]:
    """What was found, as text."""
    return [f"{one.rule}: {one.count}, {one.example}" for one in verdict.findings]


def damage(twin: Twin, seed: int) -> None:
    """Lose versions and change others, of those whose events are kept."""
    state = twin.table.state.apply.retaining
    assert state is not None
    kept = f"hdr__was_current_from_timestamp > '{state.since}'" if state.since else "true"
    table, column = twin.table.table.quoted, twin.events.columns[0]
    some = f"pmod(hash(hdr__change_identifier, {seed}), 3)"
    stored = f"{kept} AND hdr__partition IN ('current', 'prior')"
    twin.lab.spark.sql(f"DELETE FROM {table} WHERE {stored} AND {some} = 0")
    twin.lab.spark.sql(
        f"UPDATE {table} SET `{column}` = NULL, hdr__operation = 'X', "
        f"hdr__from_timestamp = hdr__from_timestamp + INTERVAL 1 SECOND "
        f"WHERE {stored} AND {some} = 1"
    )
    twin.table.reload()


def stored(twin: Twin) -> dict[str, dict[str, Any]]:
    """The table without what a rebuild cannot know."""
    return {
        place: {name: value for name, value in row.items() if name not in ENGINE_TIMES}
        for place, row in twin.contents().items()
        if row["hdr__partition"] in ("current", "prior")
    }


def differing(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> list[str]:
    """Rows that are not equal, and in what."""
    return [
        f"{place}: {difference(one.get(place), other.get(place))}"
        for place in sorted(one.keys() | other.keys())
        if one.get(place) != other.get(place)
    ]


def proved(lab: Lab, name: str, retention: str, seed: int, make: Callable[[], Applier]) -> None:
    """Live, be damaged, be rebuilt; the views and the table are as before."""
    twin = life(lab, name, retention, seed, make())
    live(twin)
    assert not told(verify(twin.table))
    before = stored(twin)

    damage(twin, seed)
    found = {finding.rule for finding in verify(twin.table).findings}
    rebuild(lab.context(applier=twin.applier), twin.dataset)
    twin.table = DatasetTable.existing(lab.spark, twin.dataset, "a twin")

    assert found & FOLD_RULES.keys()
    assert not told(verify(twin.table))
    assert not twin.mismatches(STEPS)
    # Without history the table holds less than its events tell.
    assert not twin.events.history or not differing(before, stored(twin))


# On every push random lives rebuild (`tests/scenarios`).
@pytest.mark.slow
@pytest.mark.parametrize("retention", ["keep", SHORT])
@pytest.mark.parametrize("name", LIVES)
def test_a_damaged_table_is_rebuilt(lab: Lab, name: str, retention: str) -> None:
    proved(lab, name, retention, SEED, FastApplier)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIVES)
def test_more_seeds_and_the_plain_applier(lab: Lab, name: str) -> None:
    for number in range(ROUNDS):
        corner = replace(lab, schema=f"{lab.schema}_{number}")
        make = (FastApplier, PlainApplier)[number % 2]
        proved(corner, name, ("keep", SHORT)[number // 2 % 2], SEED + 50 + number, make)
