"""What keeps a capture at work: pauses, an end, what people ask, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from polynya.capture.wire import CaptureRequest, RequestFolder, error_fields
from polynya.engine.backlog import CaptureFigures
from polynya.engine.tasks.capture_supervisor import (
    EXPIRY_CHECK_SECONDS,
    REQUEST_CHECK_SECONDS,
    CaptureSupervisor,
    ReloadSchedule,
)
from polynya.model.config.capture import EnvironmentErrors
from polynya.model.config.schedule import ReadingTimes, parse_cron, parse_window
from polynya.model.errors import DependencyError, OperationError, TaskStoppedError
from polynya.observe.capture import (
    CaptureExpired,
    CaptureHeld,
    CaptureLag,
    CaptureLanded,
    CaptureLoaded,
    CaptureRetry,
    CaptureTable,
    CaptureTableFailed,
    CaptureWindow,
)
from polynya.observe.events import StepEnded, StepProgress
from polynya.testing.fakes import FakeClock, MemoryObjectStore

REFUSED = DependencyError("POLYNYA-GTW-020", "the database refuses connections", where="db:5432")
NO_RIGHT = OperationError("POLYNYA-GTW-021", "the user may not read the stream")
LANDED = {"type": "landed", "number": 1, "events": 3, "bytes": 9, "object_bytes": 5, "seconds": 1}


TABLES = {"type": "tables", "tables": {}}


def failed(error):
    return {"type": "failed", "error": error_fields(error)}


@dataclass
class FakeProcess:
    """Says one list of events a look, and ends after the last with a code, if it has one."""

    says: list[list[dict[str, Any]]]
    ends: int | None = None
    asked: list[Any] = field(default_factory=list)
    ended: bool = False

    def take(self, patience):
        return self.says.pop(0) if self.says else []

    def ask(self, tables, *, reload):
        self.asked.append((tables, reload))

    @property
    def code(self):
        return None if self.says else self.ends

    def end(self):
        self.ended = True


@dataclass
class Zone:
    """A supervisor with the processes that it will start."""

    policy: EnvironmentErrors = field(default_factory=EnvironmentErrors)
    clock: FakeClock = field(default_factory=FakeClock)
    store: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    events: list[Any] = field(default_factory=list)
    coming: list[FakeProcess] = field(default_factory=list)
    started: list[FakeProcess] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    wishes: list[Any] = field(default_factory=list)
    reloads: ReloadSchedule | None = None
    times: ReadingTimes = field(default_factory=ReadingTimes)
    expired: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.requests = RequestFolder(self.store, "shop_db")
        self.supervisor = CaptureSupervisor(
            "shop_db", self.policy, self.launch, self.requests,
            clock=self.clock, sink=self.events.append, reloads=self.reloads,
            times=self.times,
            expire=lambda _: self.expired.pop() if self.expired else 0,
        )  # fmt: skip

    def launch(self, mode, wishes):
        self.modes.append(mode)
        self.wishes.append([(wish.tables, wish.reload) for wish in wishes])
        self.started.append(self.coming.pop(0))
        return self.started[-1]

    def look(self, *, once=False):
        return self.supervisor.step(once=once)

    def told(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def test_a_capture_that_lands_tells_the_units_that_follow():
    zone = Zone(coming=[FakeProcess([[LANDED], []])])

    assert zone.look().landed
    assert not zone.look().landed
    [event] = zone.told(CaptureLanded)
    assert (event.events, event.subject) == (3, "shop_db")
    assert zone.modes == ["follow"]


def test_a_run_that_ends_is_done_when_the_process_is():
    zone = Zone(coming=[FakeProcess([[LANDED], []], ends=0)])

    assert not zone.look(once=True).done
    look = zone.look(once=True)

    assert look.done
    assert zone.modes == ["once"]
    assert zone.started[0].ended


def test_what_may_pass_is_tried_again_with_growing_pauses():
    zone = Zone(coming=[FakeProcess([[failed(REFUSED)]], ends=4) for _ in range(3)])

    pauses = []
    for _ in range(3):
        look = zone.look()
        assert look.refused is not None
        assert look.refused.code == "POLYNYA-GTW-020"
        pauses.append(look.wait)
        zone.clock.sleep(look.wait / 2)
        assert zone.look().wait == pytest.approx(look.wait / 2)
        zone.clock.sleep(look.wait / 2)

    assert pauses == [5, 10, 20]
    assert [event.number for event in zone.told(CaptureRetry)] == [1, 2, 3]
    assert "restarts in 5 s: db:5432: the database refuses" in zone.told(CaptureRetry)[0].text()


def test_a_capture_that_worked_meanwhile_begins_with_the_first_pause():
    broken = [FakeProcess([[failed(REFUSED)]], ends=4) for _ in range(2)]
    worked = FakeProcess([[LANDED], [failed(REFUSED)]], ends=4)
    zone = Zone(coming=[*broken, worked])

    zone.clock.sleep(zone.look().wait)
    zone.clock.sleep(zone.look().wait)
    assert zone.look().refused is None
    assert zone.look().wait == 5


def test_a_kill_is_something_that_may_pass():
    zone = Zone(coming=[FakeProcess([[]], ends=-9)])

    look = zone.look()

    assert look.refused is not None
    assert look.refused.code == "POLYNYA-GTW-068"
    assert "by signal 9" in look.refused.message


def test_the_policy_may_end_the_task():
    zone = Zone(
        policy=EnvironmentErrors(retry=1),
        coming=[FakeProcess([[failed(REFUSED)]], ends=4) for _ in range(2)],
    )
    zone.clock.sleep(zone.look().wait)

    with pytest.raises(TaskStoppedError) as caught:
        zone.look()

    assert caught.value.code == "POLYNYA-GTW-069"
    assert "refuses connections" in str(caught.value.why)


def test_what_a_person_has_to_change_is_an_error_at_once():
    zone = Zone(coming=[FakeProcess([[failed(NO_RIGHT)]], ends=1)])

    with pytest.raises(OperationError, match="may not read"):
        zone.look()

    assert zone.started[0].ended


def test_in_a_run_that_ends_nothing_is_tried_again():
    zone = Zone(coming=[FakeProcess([[failed(REFUSED)]], ends=4)])

    with pytest.raises(DependencyError, match="refuses"):
        zone.look(once=True)


def test_a_person_holds_a_capture_and_lets_it_go_on():
    zone = Zone(coming=[FakeProcess([[], []]), FakeProcess([[], []])])
    zone.look()
    zone.requests.hold()
    zone.look()
    assert not zone.started[0].ended

    zone.clock.sleep(REQUEST_CHECK_SECONDS)
    zone.look()
    assert zone.started[0].ended
    zone.requests.release()
    zone.clock.sleep(REQUEST_CHECK_SECONDS)
    zone.look()

    assert len(zone.started) == 2
    assert [event.held for event in zone.told(CaptureHeld)] == [True, False]


def test_a_run_that_ends_does_not_start_what_is_held():
    zone = Zone()
    zone.requests.hold()

    assert zone.look(once=True).done
    assert not zone.started


def test_requests_that_wait_are_what_a_process_begins_with():
    zone = Zone(coming=[FakeProcess([[], [TABLES], [], []])])
    zone.requests.add(CaptureRequest(("public.orders",), reload=True), "a")
    zone.look()
    assert zone.requests.pending().requests
    for _ in range(3):
        zone.clock.sleep(REQUEST_CHECK_SECONDS)
        zone.look()

    assert zone.wishes == [[(("public.orders",), True)]]
    assert zone.started[0].asked == []
    assert not zone.requests.pending().requests


def test_a_process_at_work_is_told_of_a_request_once():
    zone = Zone(coming=[FakeProcess([[TABLES], [], [], []])])
    zone.look()
    zone.requests.add(CaptureRequest((), reload=False), "a")
    for _ in range(3):
        zone.clock.sleep(REQUEST_CHECK_SECONDS)
        zone.look()

    assert zone.started[0].asked == [((), False)]


def test_a_request_that_a_killed_process_had_not_begun_is_for_the_next_one():
    zone = Zone(coming=[FakeProcess([[failed(REFUSED)]], ends=4), FakeProcess([[TABLES], []])])
    zone.requests.add(CaptureRequest((), reload=True), "a")
    zone.look()
    zone.clock.sleep(60)
    zone.look()

    assert zone.wishes == [[((), True)], [((), True)]]
    assert not zone.requests.pending().requests


def test_batches_that_are_too_old_are_removed_now_and_then():
    zone = Zone(coming=[FakeProcess([[], [], [], []])], expired=[3, 2])
    zone.look()
    zone.look()
    assert [event.files for event in zone.told(CaptureExpired)] == [2]

    zone.clock.sleep(EXPIRY_CHECK_SECONDS)
    zone.look()
    assert [event.files for event in zone.told(CaptureExpired)] == [2, 3]


def test_after_the_end_no_process_is_started():
    zone = Zone(coming=[FakeProcess([[]])])
    zone.look()

    zone.supervisor.close()

    assert zone.started[0].ended
    assert zone.look().done
    assert len(zone.started) == 1


def test_what_happens_to_tables_is_told_as_events():
    table = {"state": "loading", "rows": 5, "bytes": 0, "rows_estimate": 100}
    tables = {"type": "tables", "tables": {"public.orders": table}}
    zone = Zone(
        coming=[
            FakeProcess(
                [
                    [tables, tables],
                    [
                        {
                            "type": "progress", "table": "public.orders", "rows": 25,
                            "bytes": 2**20, "rows_estimate": 100, "seconds": 5.0,
                        },
                        {
                            "type": "loaded", "table": "public.orders", "rows": 99,
                            "bytes": 2**21, "seconds": 20.0,
                        },
                        {
                            "type": "table_failed", "table": "public.odd",
                            "error": error_fields(NO_RIGHT), "suspended": True,
                        },
                        {"type": "lag", "bytes": 2**30, "seconds": 60, "notes": ["disk!"]},
                        {"type": "lag", "bytes": 2**30, "seconds": 61, "notes": ["disk!"]},
                        {"type": "of another version"},
                    ],
                    [],
                ]
            )
        ]
    )  # fmt: skip
    for _ in range(3):
        zone.look()

    [state] = zone.told(CaptureTable)
    assert (state.subject, state.state) == ("shop_db/public.orders", "loading")
    [progress] = zone.told(StepProgress)
    assert progress.text() == (
        "loading  shop_db/public.orders: [##........] 25%, about 19 s, 25 rows, 1.0 MiB, 4/s"
    )
    assert len(zone.told(StepEnded)) == 1
    assert zone.told(CaptureLoaded)[0].rows == 99
    [failure] = zone.told(CaptureTableFailed)
    assert failure.text().startswith("shop_db/public.odd: suspended until it is resumed: ")
    first, second = zone.told(CaptureLag)
    assert (first.notes, second.notes) == (("disk!",), ())
    assert first.text() == "behind   shop_db: 1,024.0 MiB, 60 s; disk!"


def test_bars_of_a_capture_that_was_interrupted_are_taken_away():
    progress = {"type": "progress", "table": "a.b", "rows": 1, "bytes": 1, "seconds": 1}
    zone = Zone(coming=[FakeProcess([[progress], [failed(REFUSED)]], ends=4)])
    zone.look()
    zone.look()

    assert [event.subject for event in zone.told(StepEnded)] == ["shop_db/a.b"]


LAG = {
    "type": "lag", "bytes": 5000, "seconds": 2.5, "notes": [], "log_bytes": 80,
    "log_limit_bytes": 100,
}  # fmt: skip
STREAMING = {"type": "streaming"}


def test_what_a_capture_says_of_itself_becomes_figures():
    tables = {"type": "tables", "tables": {"a": {"state": "running"}, "b": {"state": "suspended"}}}
    zone = Zone(coming=[FakeProcess([[STREAMING, tables, LANDED, LANDED, LAG], []])])

    zone.look()
    zone.clock.sleep(3)
    figures = zone.supervisor.figures()

    assert figures == CaptureFigures(
        events=6, size_bytes=10, lag_bytes=5000, lag_seconds=2.5, silent_seconds=3.0, retries=0,
        log_bytes=80, log_limit_bytes=100, tables={"running": 1, "error": 1},
    )  # fmt: skip


def test_while_the_database_does_not_answer_the_lag_grows_and_retries_are_counted():
    zone = Zone(coming=[FakeProcess([[STREAMING, LAG], []], ends=1)])
    zone.coming += [FakeProcess([[failed(REFUSED)]], ends=1) for _ in range(99)]
    zone.look()

    lags, retries = [], []
    for _ in range(4):
        for _ in range(60):
            zone.clock.sleep(1)
            zone.look()
        lags.append(zone.supervisor.figures().lag_seconds)
        retries.append(zone.supervisor.figures().retries)

    assert lags == [62.5, 122.5, 182.5, 242.5]
    assert 0 < retries[0] < retries[-1]

    zone.coming = [FakeProcess([[STREAMING, {**LAG, "seconds": 0.0}], []])]
    for _ in range(400):
        zone.clock.sleep(1)
        zone.look()
        if not zone.supervisor.figures().retries:
            break
    assert (zone.supervisor.figures().lag_seconds, zone.supervisor.figures().retries) == (0.0, 0)


def test_a_capture_that_is_held_or_waits_for_its_schedule_is_not_behind():
    held = Zone(coming=[FakeProcess([[STREAMING, LAG], []])])
    held.look()
    held.requests.hold()
    daily = Zone(reloads=ReloadSchedule(parse_cron("0 3 * * *"), lambda: None))
    daily.coming = [FakeProcess([[]], ends=0)]
    daily.look()
    for zone in (held, daily):
        for _ in range(20):
            zone.clock.sleep(60)
            zone.look()

    assert [zone.supervisor.figures().lag_seconds for zone in (held, daily)] == [0.0, 0.0]


def hourly_window() -> ReadingTimes:
    """Open in the first ten minutes of each hour."""
    return ReadingTimes((parse_window("FREQ=HOURLY", timedelta(minutes=10)),))


def test_a_capture_reads_inside_its_window_only():
    zone = Zone(times=hourly_window(), coming=[FakeProcess([[LANDED]] * 9), FakeProcess([[]])])
    zone.clock.sleep(3600 - zone.clock.now().timestamp() % 3600)
    assert zone.look().landed
    zone.clock.sleep(600)

    closed = zone.look()
    zone.clock.sleep(3000 - REQUEST_CHECK_SECONDS / 2)
    nearly = zone.look()
    zone.clock.sleep(REQUEST_CHECK_SECONDS / 2)
    zone.look()

    assert zone.started[0].ended
    assert (closed.wait, nearly.wait) == (REQUEST_CHECK_SECONDS, REQUEST_CHECK_SECONDS / 2)
    assert len(zone.started) == 2
    assert [event.open for event in zone.told(CaptureWindow)] == [False, True]
    assert "the database keeps its log meanwhile" in zone.told(CaptureWindow)[0].text()


def test_a_run_that_ends_is_done_outside_the_window_and_nothing_counts_as_behind():
    zone = Zone(times=hourly_window())
    zone.clock.sleep(3600 - zone.clock.now().timestamp() % 3600 + 1200)

    assert zone.look(once=True).done
    zone.clock.sleep(600)
    assert zone.supervisor.figures().lag_seconds == 0
    assert zone.modes == []
