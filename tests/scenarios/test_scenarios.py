"""Random lives: the views equal the independent fold at every step, and the tables are sound.

`make scenarios` takes many; `POLYNYA_TEST_SEED` is the first seed.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from polynya.formats.debezium.envelope import Unsent
from polynya.lake.copy import compared_load, reload
from tests.lab.lab import Lab
from tests.oracle.histories import seeded
from tests.scenarios.capture_life import CaptureLife
from tests.scenarios.life import Life

FIRST = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
COUNT = int(os.environ.get("POLYNYA_TEST_SCENARIOS", "1"))
STEPS = int(os.environ.get("POLYNYA_TEST_STEPS", "4"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_random_life(lab: Lab, seed: int) -> None:
    found = Life(lab, seeded(seed)).live(STEPS)

    assert not found, "\n".join(found)[:6000]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + -(-COUNT // 2)))
def test_a_random_life_of_a_capture(lab: Lab, seed: int) -> None:
    found = CaptureLife(lab, seeded(seed)).live(STEPS)

    assert not found, "\n".join(found)[:6000]


@pytest.mark.slow
def test_a_reload_that_takes_all_values_for_equal_would_be_seen(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first seed reloads, and compares."""
    monkeypatch.setattr(reload, "comparable", lambda expression, datatype: "1")
    same = pa.scalar(value=False)
    monkeypatch.setattr(compared_load, "unequal", lambda one, _: pa.repeat(same, len(one)))

    assert Life(lab, seeded(1)).live(6)


@pytest.mark.slow
def test_a_placeholder_that_is_taken_for_a_value_would_be_seen(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file of this seed has large values that were not sent again."""
    monkeypatch.setattr(Unsent, "has", lambda self, value: False)

    assert CaptureLife(lab, seeded(6)).live(0)
