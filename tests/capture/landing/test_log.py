"""The log of a capture: its newest batch, two writers, an answer that was lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import CapturePosition, ResumePoint
from polynya.formats.debezium.captured import CaptureHeader, packed_lines
from polynya.model.errors import ConflictError, OperationError
from polynya.testing.fakes import MemoryObjectStore


def header(number: int, second: int = 0) -> CaptureHeader:
    position = CapturePosition(ResumePoint({})).as_dict()
    at = datetime(2026, 1, 1, second=second, tzinfo=UTC)
    return CaptureHeader("shop", number, at, 1, position)


def a_log(batches: int = 0) -> CaptureLog:
    log = CaptureLog(MemoryObjectStore(), "shop")
    for number in range(1, batches + 1):
        log.put(header(number), packed_lines(b"{}\n"))
    return log


def test_the_newest_batch_is_that_with_the_highest_number() -> None:
    assert a_log().newest() is None
    assert a_log(11).newest() == header(11)


def test_folders_inside_are_somebody_elses() -> None:
    log = a_log(2)
    log.store.put("shop/_history/capture-00000000000000000009.jsonl.zst", b"x")

    assert log.numbers() == [1, 2]


def test_of_two_writers_of_a_number_the_second_is_refused() -> None:
    with pytest.raises(ConflictError) as caught:
        a_log(2).put(header(2, second=5), b"")

    assert caught.value.code == "POLYNYA-GTW-004"


def test_a_batch_that_was_put_though_the_answer_was_lost_is_ones_own() -> None:
    assert a_log(2).put(header(2), packed_lines(b"{}\n")) > 0


def test_a_newest_batch_that_is_broken_stops_everything() -> None:
    log = a_log(2)
    log.store.put(log.path(2), b"broken")

    with pytest.raises(OperationError) as caught:
        log.newest()

    assert caught.value.code == "POLYNYA-GTW-003"
    assert caught.value.where == log.path(2)


def test_a_batch_under_another_number_is_not_believed() -> None:
    log = a_log(2)
    log.store.put(log.path(3), log.store.get(log.path(2)))

    with pytest.raises(OperationError, match="its header has number 2"):
        log.newest()


def new_year() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def landed(log: CaptureLog, *writers: str) -> None:
    """Batches without events, each by a capture that finds those before it."""
    for writer in writers:
        lander = CaptureLander(
            log,
            "shop",
            lambda: datetime(2026, 1, 1, tzinfo=UTC),
            writer=writer,
            newest=log.newest(),
        )
        for second in range(2):
            lander.begin(CapturePosition(ResumePoint({"lsn": second})))


def another(log: CaptureLog) -> CaptureLog:
    """The same objects, for somebody who has not looked at them yet."""
    return CaptureLog(log.store, log.folder)


def test_batches_of_captures_one_after_the_other_follow_each_other() -> None:
    log = a_log()
    landed(log, "first", "second", "third")

    newest = another(log).newest()

    assert newest is not None
    assert (newest.number, newest.writer) == (6, "third")


def test_a_capture_goes_on_after_batches_that_do_not_say_what_they_follow() -> None:
    log = a_log(3)
    landed(log, "first")

    newest = another(log).newest()

    assert newest is not None
    assert newest.number == 5


@pytest.mark.parametrize("replaced", [4, 3])
def test_a_newest_batch_that_follows_another_one_stops_everything(replaced: int) -> None:
    log, other = a_log(), a_log()
    landed(log, "first", "second")
    landed(other, "first", "another")
    log.store.put(log.path(replaced), other.store.get(other.path(replaced)))

    with pytest.raises(OperationError, match="does not follow number 3") as caught:
        another(log).newest()

    assert caught.value.code == "POLYNYA-GTW-003"
    assert caught.value.where == log.path(4)


def test_a_batch_that_does_not_say_what_it_follows_is_none_after_one_that_does() -> None:
    log = a_log()
    landed(log, "first")
    log.put(header(3), b"")

    with pytest.raises(OperationError, match="does not follow number 2"):
        another(log).newest()


def test_a_newest_batch_whose_predecessor_has_expired_is_believed() -> None:
    log = a_log()
    landed(log, "first")
    log.store.delete(log.path(1))

    assert another(log).newest() is not None
