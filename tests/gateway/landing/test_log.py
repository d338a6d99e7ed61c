"""The log of a capture: its newest batch, two writers, an answer that was lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.formats.debezium.captured.batch import CaptureHeader, packed_lines
from polynya.gateway.landing.log import CaptureLog
from polynya.model.errors import ConflictError, OperationError
from polynya.testing.fakes import MemoryObjectStore


def header(number: int, second: int = 0) -> CaptureHeader:
    return CaptureHeader("shop", number, datetime(2026, 1, 1, second=second, tzinfo=UTC), 1)


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

    with pytest.raises(OperationError, match="it says that it is number 2"):
        log.newest()
