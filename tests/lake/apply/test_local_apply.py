"""Applies of events in order, which take no query: equal to the plain applier, row for row."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polynya.lake.apply import fast, in_memory
from polynya.lake.apply.collected import Collected
from polynya.lake.apply.fast import FastApplier
from tests.lab.lab import Lab, drop, put
from tests.lab.twins import Twins
from tests.oracle.fold import Event
from tests.oracle.histories import Shape, native_history, seeded
from tests.oracle.packs.datasets import Dataset

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
EVENTS = int(os.environ.get("POLYNYA_TEST_EVENTS", "60"))
STEPS = ("apply", "wait", "apply")
ORDERED = Shape(
    columns=("name", "n", "tags", "more", "amount", "seen"),
    key_count=12,
    equal_sequence=0,
    backwards=0,
)
V3 = {"format_version": 3}
PAIRS = replace(ORDERED, keys=("id", "part"))


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each apply of the fast applier, whether it took no query."""
    taken: list[bool] = []

    fold = fast.fold_in_memory

    def told(*parts: Any) -> Collected | None:
        found = fold(*parts)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(fast, "fold_in_memory", told)
    return taken


def in_order(shape: Shape, seed: int, **settings: Any) -> Dataset:
    """A dataset whose files land in the order of its events."""
    events = sorted(native_history(seeded(seed), shape, EVENTS), key=lambda one: one.sequence)
    size = -(-len(events) // len(STEPS))
    steps: list[list[Event]] = [events[at : at + size] for at in range(0, len(events), size)]
    return Dataset("x", "t", shape.keys, shape.columns, steps, **settings)


@pytest.mark.parametrize(
    ("shape", "settings"),
    [
        pytest.param(ORDERED, {"history": False}, id="current"),
        pytest.param(ORDERED, {"history": True}, id="history", marks=pytest.mark.slow),
        pytest.param(ORDERED, {"history": True, "extra": V3}, id="vectors", marks=pytest.mark.slow),
        pytest.param(PAIRS, {"history": False}, id="pairs", marks=pytest.mark.slow),
        pytest.param(PAIRS, {"history": True, "soft": True}, id="soft", marks=pytest.mark.slow),
    ],
)
def test_events_in_order_are_folded_as_the_plain_applier_does(
    lab: Lab, ways: list[bool], shape: Shape, settings: dict[str, Any]
) -> None:
    twins = Twins(lab, in_order(shape, SEED, **settings))
    twins.fast.applier = FastApplier()

    found = twins.live_through(STEPS)

    assert not found, "\n".join(found)[:6000]
    assert ways == [True, True]


def test_a_row_that_somebody_else_deleted_is_not_there(lab: Lab, ways: list[bool]) -> None:
    users = lab.feed(history=False)
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    lab.spark.sql(f"DELETE FROM {users.relation} WHERE hdr__partition = 'current' AND id = 2")

    users.apply(put(2, 3, name="Bea"), drop(1, 4))

    assert users.current("id", "name") == [(2, "Bea")]
    assert users.stored("current", "id", "hdr__operation") == [(2, "I")]
    assert users.table().state.apply.totals["removed"] == 1
    assert ways == [True, True]


def test_a_file_that_is_gone_costs_a_query(
    lab: Lab, ways: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed(history=False)
    users.apply(put(1, 1, name="Ann"))

    def gone(*_parts: Any, **_options: Any) -> None:
        raise FileNotFoundError(Path("/nowhere.parquet"))

    monkeypatch.setattr(in_memory, "deleted_places", gone)
    users.apply(put(1, 2, name="Anna"))

    assert users.current("id", "name") == [(1, "Anna")]
    # Tried with the copy, and then by itself.
    assert ways == [True, False, False]
