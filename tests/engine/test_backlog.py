"""The backlog: what waits, since when, and for how long at the measured speed."""

from __future__ import annotations

from polynya.engine.backlog import (
    ASSUMED_BYTES_PER_SECOND,
    REMOTE_WORK_SECONDS,
    Backlog,
    BacklogSize,
    CaptureFigures,
    MirrorFigures,
)
from polynya.formats.batch import FilePart

MB = 1_000_000


def parts(*names: str, size: int = MB) -> list[FilePart]:
    return [FilePart(name, size) for name in names]


def test_nothing_waits_before_anything_landed() -> None:
    backlog = Backlog()
    backlog.listed("a", [], 0.0)

    assert backlog.size(100.0) == BacklogSize()


def test_files_wait_from_the_moment_they_are_seen_at_a_guessed_speed() -> None:
    backlog = Backlog()
    backlog.listed("a", parts("1"), 10.0)
    backlog.listed("b", parts("1"), 30.0)

    assert backlog.size(40.0) == BacklogSize(2, 2 * MB, 2 * MB / ASSUMED_BYTES_PER_SECOND, 30.0)


def test_the_speed_is_what_was_copied_between_two_looks() -> None:
    backlog = Backlog()
    backlog.listed("a", parts("1", "2", "3"), 0.0)
    backlog.listed("a", parts("2", "3", "4"), 10.0)  # one file in ten seconds, another has landed

    waiting = backlog.size(11.0)

    assert round(waiting.seconds) == 30
    assert waiting.oldest_seconds == 11.0
    backlog.listed("a", parts("4"), 20.0)
    assert backlog.size(21.0).oldest_seconds == 11.0


def test_a_pause_between_two_attempts_counts_for_the_age_and_not_for_the_speed() -> None:
    backlog = Backlog()
    backlog.listed("a", parts("1", "2"), 0.0)
    backlog.resume(1000.0)
    backlog.listed("a", parts("2"), 1001.0)

    assert backlog.size(1001.0) == BacklogSize(1, MB, 1.0, 1001.0)


def test_time_without_work_does_not_count_as_slow() -> None:
    backlog = Backlog()
    backlog.listed("a", parts("1"), 0.0)
    backlog.listed("a", [], 1.0)
    backlog.listed("a", [], 1000.0)
    backlog.listed("a", parts("2"), 1001.0)

    assert backlog.size(1001.0).seconds == 1.0


def test_what_a_stream_has_beyond_its_landed_batches_is_work_beside_landed_files() -> None:
    backlog = Backlog()
    backlog.listed("shop.a", [FilePart("1", 2_000_000)], 0.0)
    backlog.beyond("in/clicks", 3000, 5.0)

    # Before a batch was landed a record is taken to be of 1,000 bytes.
    waiting = backlog.size(10.0)
    assert (waiting.files, waiting.size_bytes) == (2, 5_000_000)
    assert (waiting.seconds, waiting.oldest_seconds) == (5.0, 10.0)

    backlog.landed("in/clicks", records=1000, size_bytes=500_000, seconds=2.0)
    backlog.beyond("in/clicks", 2000, 12.0)
    waiting = backlog.size(20.0)
    assert (waiting.size_bytes, waiting.seconds) == (3_000_000, 6.0)


def test_a_stream_waits_since_it_was_landed_to_its_end() -> None:
    backlog = Backlog()
    for records, now in ((10, 0.0), (5, 10.0), (7, 20.0)):
        backlog.beyond("in/clicks", records, now)
    assert backlog.size(25.0).oldest_seconds == 25.0

    backlog.beyond("in/clicks", 0, 30.0)
    assert backlog.size(31.0) == BacklogSize()
    backlog.beyond("in/clicks", 1, 40.0)
    assert backlog.size(41.0).oldest_seconds == 1.0


def test_a_service_at_work_keeps_a_node_also_when_nothing_is_unread() -> None:
    backlog = Backlog()
    backlog.elsewhere(wanted=True)

    assert backlog.size(0.0) == BacklogSize(elsewhere=True, keeps_node=True)
    assert backlog.size(0.0).node_seconds == REMOTE_WORK_SECONDS
    backlog.listed("a", parts("1", size=1000 * MB), 0.0)
    # However much it is, it is no work of the node.
    assert backlog.size(0.0).node_seconds == REMOTE_WORK_SECONDS
    backlog.elsewhere(wanted=False)
    assert backlog.size(0.0).node_seconds == 0.0


def test_what_a_capture_has_not_landed_keeps_one_node_and_asks_for_no_more() -> None:
    backlog = Backlog()
    backlog.captured("shop", CaptureFigures(lag_bytes=10 * 2**30, lag_seconds=600.0), 50.0)

    size = backlog.size(51.0)

    assert (size.files, size.size_bytes) == (1, 10 * 2**30)
    assert (size.seconds, size.oldest_seconds) == (REMOTE_WORK_SECONDS, 600.0)


def test_a_mirror_without_steps_is_ever_further_behind() -> None:
    backlog = Backlog()
    failed = MirrorFigures(behind_seconds=20.0, failures=1, stale=True, code="POLYNYA-MIR-002")
    backlog.mirrored("sales", {"shop.users": MirrorFigures(), "shop.bills": failed}, 900.0, 0.0)

    soon, late = backlog.mirrors(30.0), backlog.mirrors(1000.0)

    assert (soon["shop.users"].behind_seconds, soon["shop.bills"].behind_seconds) == (0.0, 50.0)
    assert not soon["shop.users"].stale
    # Its task was suspended, say: nothing sees new commits.
    assert (late["shop.users"].behind_seconds, late["shop.users"].stale) == (1000.0, True)
    assert late["shop.bills"].code == "POLYNYA-MIR-002"


def test_a_capture_that_keeps_up_is_no_work_and_one_without_steps_is_ever_later() -> None:
    backlog = Backlog()
    backlog.captured("shop", CaptureFigures(events=7), 0.0)

    assert backlog.size(30.0) == BacklogSize()
    assert backlog.captures(30.0)["shop"].lag_seconds == 0.0
    # Its task was suspended, say.
    assert backlog.size(3600.0).oldest_seconds == 3600.0
    assert backlog.captures(3600.0)["shop"].events == 7
