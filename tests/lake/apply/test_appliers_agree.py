"""The fast and the plain applier leave equal tables, and their views equal the independent fold."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from polynya.lake.apply import fast
from polynya.lake.fold import stored
from polynya.lake.spark.api import SparkSession
from tests.lab.lab import Lab, next_schema
from tests.lab.twins import Twins
from tests.oracle.fold import Event
from tests.oracle.histories import (
    Shape,
    captured_history,
    ignoring_nulls,
    native_history,
    observed_history,
    seeded,
)
from tests.oracle.packs.datasets import Dataset, arrivals
from tests.oracle.strategies import captured_events, deliveries, native_events

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
EVENTS = int(os.environ.get("POLYNYA_TEST_EVENTS", "60"))
#: One example of a push's hundred, five of a night's: each costs seconds.
EXAMPLES = settings().max_examples // 100
STEPS = ("apply", "apply")

TYPED = Shape(columns=("name", "n", "x", "tags", "more", "amount", "seen"), key_count=15)
EMPTIED = Shape(columns=("name", "n"), key_count=15, truncates=4)
PAIRS = Shape(keys=("id", "part"), columns=("name", "n"), key_count=15)
LARGE = Shape(columns=("name", "note", "tags"), key_count=12, loads=30, key_changes=40)
SPARSE = Shape(columns=("name", "n", "tags"), key_count=12, nulls=50)
STORMY = Shape(columns=("name", "note"), key_count=12, truncates=4, key_changes=30)


@dataclass(frozen=True)
class Life:
    """A kind of dataset and the history that it lives through."""

    shape: Shape
    captured: bool = False
    sparse: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def dataset(self, seed: int) -> Dataset:
        """The dataset of a seed."""
        make = captured_history if self.captured else native_history
        events = make(seeded(seed), self.shape, EVENTS)
        if self.sparse:
            events = ignoring_nulls(events)
        form = "debezium" if self.captured else "json"
        steps = arrivals(events, len(STEPS), seed)
        keys, columns = self.shape.keys, self.shape.columns
        how = {"extra": {"ignore_null_updates": True}} if self.sparse else {}
        return Dataset("x", "t", keys, columns, steps, format=form, **how, **self.settings)


LIVES = {
    "typed": Life(TYPED),
    "typed_current": Life(TYPED, settings={"history": False}),
    "emptied": Life(EMPTIED),
    "emptied_soft": Life(EMPTIED, settings={"history": False, "soft": True}),
    "pairs": Life(PAIRS, settings={"coalesce": True}),
    "large": Life(LARGE, captured=True),
    "large_soft": Life(LARGE, captured=True, settings={"soft": True}),
    "sparse": Life(SPARSE, sparse=True),
    "sparse_current": Life(SPARSE, sparse=True, settings={"history": False}),
    "stormy": Life(STORMY, captured=True),
    "stormy_current": Life(STORMY, captured=True, settings={"history": False}),
}


#: Short enough for every push; the others are in `make test-slow`.
QUICK = ("typed",)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in LIVES],
)
def test_on_random_histories(lab: Lab, name: str) -> None:
    twins = Twins(lab, LIVES[name].dataset(SEED + list(LIVES).index(name)))

    found = twins.live_through(STEPS)

    assert not found, "\n".join(found)[:6000]
    assert twins.fast.embedded, twins.fast.left_to_spark


@pytest.mark.slow
@pytest.mark.parametrize("name", ["typed", "emptied_soft", "large", "sparse_current", "stormy"])
def test_on_random_histories_with_deletion_vectors(lab: Lab, name: str) -> None:
    events = LIVES[name].dataset(SEED + 200)
    events = replace(events, extra={**events.extra, "format_version": 3})

    found = Twins(lab, events).live_through(STEPS)

    assert not found, "\n".join(found)[:6000]


#: Parts of the partitioned lives: a record moves when its name changes.
PARTED = {"emptied_soft": ["n"], "typed": ["truncate(1, name)", "bucket(3, id)"],
          "large": ["truncate(2, name)"], "sparse_current": ["name"], "stormy": ["bucket(2, note)"],
          "typed_current": ["day(seen)"]}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", PARTED)
def test_on_random_histories_in_many_partitions(lab: Lab, name: str, version: int) -> None:
    events = LIVES[name].dataset(SEED + 300)
    layout = {"partition_by": PARTED[name], "sort_by": ["id desc"], "format_version": version}
    events = replace(events, extra={**events.extra, **layout})

    found = Twins(lab, events).live_through(STEPS)

    assert not found, "\n".join(found)[:6000]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["typed_current", "stormy"])
def test_where_files_are_skipped_by_the_range_of_keys(
    lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What large tables do, on a small one."""
    monkeypatch.setattr(fast, "LARGE_ROWS", 0)

    found = Twins(lab, LIVES[name].dataset(SEED + 100)).live_through(STEPS)

    assert not found, "\n".join(found)[:6000]


@pytest.mark.parametrize("captured", [False, True], ids=["native", "captured"])
@settings(
    max_examples=EXAMPLES,
    # A push draws the same example each time, a night others: docs/long-checks.md, "Open".
    derandomize=EXAMPLES == 1,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_on_histories_of_hypothesis(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    captured: bool,
    data: st.DataObject,
) -> None:
    shape = STORMY if captured else EMPTIED
    history = data.draw(captured_events(shape) if captured else native_events(shape))
    steps = data.draw(deliveries(history))
    kind = {"history": data.draw(st.booleans()), "soft": data.draw(st.booleans())}
    form = "debezium" if captured else "json"
    events = Dataset("x", "t", shape.keys, shape.columns, steps, format=form, **kind)
    folder = tmp_path_factory.mktemp("drawn")
    words = data.draw(
        st.lists(st.sampled_from(("wait", "apply")), min_size=len(steps), max_size=len(steps))
    )

    found = Twins(Lab(spark, folder, folder, next_schema()), events).live_through(words)

    assert not found, "\n".join(found)[:6000]


OBSERVED = Shape(
    columns=("name", "note", "tags"), key_count=6, loads=30, deletes=10, unsent=70, key_changes=60
)


def observed(seed: int, steps: Sequence[Sequence[Event]], **settings: Any) -> Dataset:
    columns = OBSERVED.columns
    return Dataset("x", "t", OBSERVED.keys, columns, steps, format="debezium", **settings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [SEED, 2, 3])
def test_looks_that_land_behind_newer_events(lab: Lab, seed: int) -> None:
    history = observed_history(seeded(seed), OBSERVED, EVENTS)
    steps: list[list[Event]] = [[], [], []]
    for number, event in enumerate(history):
        step = number * 3 // len(history)
        steps[min(2, step + number % 2) if event.is_load else step].append(event)

    found = Twins(lab, observed(seed, steps)).live_through(("apply", "wait", "apply"))

    assert not found, "\n".join(found)[:6000]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [SEED, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_looks_and_events_in_any_order_end_the_same(lab: Lab, seed: int) -> None:
    history = observed_history(seeded(seed + 10), OBSERVED, EVENTS)
    random.Random(seed).shuffle(history)
    twins = Twins(lab, observed(seed, [history[number::4] for number in range(4)]))

    for number in range(4):
        twins.fast.copy(number)
        twins.fast.apply()

    found = twins.fast.mismatches(4)
    assert not found, "\n".join(found)[:6000]


@pytest.mark.slow
def test_a_difference_would_be_seen(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """An applier that looks for no late events is caught."""
    monkeypatch.setattr(stored, "LATE", "false")

    assert Twins(lab, LIVES["typed"].dataset(SEED)).live_through(STEPS)
