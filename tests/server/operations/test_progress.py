"""Progress from events and the clock."""

from __future__ import annotations

from polynya.server.operations.progress import Progress, Seen, progress

STEP = {"type": "step.progress", "subject": "shop.users", "step": "applying"}


def test_rows_rate_and_rest_come_from_the_running_step() -> None:
    seen = Seen(moved=0.0)
    seen.take([{**STEP, "rows": 50, "rows_left": 150, "seconds": 5.0, "left_seconds": 15}], 5.0)
    assert progress(seen, 6.0) == Progress("applying shop.users", 50, 200, 10.0, 15, None)


def test_repeated_figures_are_no_movement() -> None:
    seen = Seen(moved=0.0)
    seen.take([{**STEP, "rows": 50, "seconds": 5.0}], 5.0)
    seen.take([{**STEP, "rows": 50, "seconds": 70.0}], 70.0)
    assert progress(seen, 70.0).still_seconds == 65
    seen.take([{**STEP, "rows": 51, "seconds": 71.0}], 71.0)
    assert progress(seen, 72.0).still_seconds is None


def test_a_step_that_ended_is_no_phase() -> None:
    seen = Seen(moved=0.0)
    seen.take([STEP, {"type": "step.ended", "subject": "shop.users"}], 1.0)
    assert progress(seen, 2.0).phase is None
