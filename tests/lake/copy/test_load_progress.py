"""How far a load has come is told while its tasks run."""

from __future__ import annotations

import threading
from typing import Any

from polynya.formats.loads import Split, SplitPlan, SplitReport
from polynya.lake.copy.load import SoFar, so_far, watched

SPLITS = (
    Split(0, "a", 0, 0, before=0, size=100),
    Split(1, "a", 10, 0, before=100, size=50),
    Split(2, "b", 0, 0, before=0, size=30),
)
READER: Any = None
PLAN = SplitPlan(SPLITS, {}, None, {}, (), READER)


def test_a_file_is_left_until_all_of_it_was_read() -> None:
    assert so_far(PLAN, {}) == SoFar(0, 0, 180, 2)
    assert so_far(PLAN, {0: SplitReport(10, {})}) == SoFar(10, 100, 80, 2)
    assert so_far(PLAN, {1: SplitReport(5, {}), 0: SplitReport(10, {})}) == SoFar(15, 150, 30, 1)


def test_it_is_told_when_tasks_ended_and_no_more_when_the_job_is_over() -> None:
    reports: dict[int, SplitReport] = {}
    told: list[SoFar] = []
    heard = threading.Event()

    def tell(found: SoFar) -> None:
        told.append(found)
        heard.set()

    with watched(PLAN, lambda: reports, tell):
        reports[2] = SplitReport(3, {})
        assert heard.wait(10)
    reports[0] = SplitReport(10, {})

    assert told == [SoFar(3, 30, 150, 1)]
