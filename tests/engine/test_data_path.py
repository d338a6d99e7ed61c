"""How many of our modules a step enters: a reader who follows a record must open them.

A copy is traced from the step of its unit on: the landing zone, reading, the commit, the views. An
apply is traced from its decision (`WorkingDataset.apply_if_worth_it`) to the event that reports it.
Its step first looks at the landing zone and finds nothing to copy: that counts for the copy only.
By this measure the former layout had 82 and 47 (docs/adr/0051-modules-are-subjects.md).
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import polynya
from polynya.engine.dataset import WorkingDataset
from polynya.engine.runner import units
from polynya.engine.unit import StepResult, TimeSlice, Unit
from tests.lab.lab import Lab, put

ROOT = str(Path(polynya.__file__).parent)
MOST_OF_A_COPY = 60
MOST_OF_AN_APPLY = 37


@contextmanager
def entered() -> Iterator[set[str]]:
    """Collect our modules whose code runs inside the block, in this thread and in new ones."""
    modules: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            modules.add(frame.f_code.co_filename.removeprefix(ROOT + "/"))

    # What other tests have left would be finalised inside the block.
    gc.collect()
    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield modules
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def brought_up(unit: Unit) -> None:
    """Let a unit work until nothing is left."""
    while True:
        ended = unit.step(TimeSlice())
        assert ended.error is None
        if not ended.more:
            return


def test_a_warm_copy_and_an_apply_enter_few_modules(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed(history=False)
    context = lab.context("always")
    (unit,) = units(context, [users.task])
    for sequence in (1, 2):
        users.land(*(put(key, sequence, name="x") for key in range(5)))
        brought_up(unit)

    # Otherwise one commit would do both. The first change that waits makes the views show it.
    context.apply_mode = "never"
    users.land(put(2, 3, name="y"))
    unit.step(TimeSlice())
    users.land(put(1, 3, name="y"))
    with entered() as copied:
        first = unit.step(TimeSlice())
    context.apply_mode = "always"
    applied: set[str] = set()
    apply = WorkingDataset.apply_if_worth_it

    def traced(*arguments: Any) -> StepResult:
        with entered() as modules:
            ended = apply(*arguments)
        applied.update(modules)
        return ended

    monkeypatch.setattr(WorkingDataset, "apply_if_worth_it", traced)
    # The views follow the event that reports the apply.
    monkeypatch.setattr(WorkingDataset, "publish", lambda *_, **__: None)
    second = unit.step(TimeSlice())

    assert (first.more, second.more) == (True, False)
    assert (1, "y") in users.current("id", "name")
    assert len(copied) <= MOST_OF_A_COPY, sorted(copied)
    assert 0 < len(applied) <= MOST_OF_AN_APPLY, sorted(applied)
