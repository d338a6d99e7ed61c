"""How long a comparison waits for what the source has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.engine.commands import compare
from polynya.engine.commands.compare import CopyWaiter
from polynya.formats.debezium.captured import CaptureHeader
from polynya.model.errors import OperationError
from polynya.testing.fakes import FakeClock, MemoryObjectStore


class Moment:
    """A moment that a place in the stream has reached when it is 100 or more."""

    position = "100"

    def is_reached(self, offset):
        return offset.get("place", 0) >= 100


class Landing(FakeClock):
    """A clock; a batch lands whenever somebody waits, each 40 places after the one before."""

    def __init__(self, read_to: int | None = None) -> None:
        super().__init__()
        self.more = {} if read_to is None else {"read_to": {"place": read_to}}
        self.log = CaptureLog(MemoryObjectStore(), "shop_db")
        self.land()

    def land(self) -> None:
        number = len(self.log.numbers()) + 1
        position = {"stream": {"offset": {"place": 40 * number}}, **self.more}
        now = datetime(2026, 1, 1, tzinfo=UTC)
        self.log.put(CaptureHeader("shop_db", number, now, 0, position), b"")

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.land()


def wait(clock, monkeypatch, patience=60.0, **more):
    # Whether tables have copied what has landed is shown with real ones, in tests/e2e/capture.
    monkeypatch.setattr(compare, "inventory", lambda *_: [])
    CopyWaiter(None, clock.log, {"shop"}, lambda: None, clock, patience=patience, **more).wait(
        Moment()
    )


def test_it_goes_on_with_the_batch_that_reaches_the_moment(monkeypatch) -> None:
    clock = Landing()

    wait(clock, monkeypatch)

    assert clock.log.numbers() == [1, 2, 3]


def test_a_place_that_was_read_beyond_the_offset_reaches_the_moment(monkeypatch) -> None:
    clock = Landing(read_to=100)

    wait(clock, monkeypatch)

    assert clock.log.numbers() == [1]


def test_what_does_not_come_in_time_is_named(monkeypatch) -> None:
    clock = Landing()

    with pytest.raises(OperationError) as caught:
        wait(clock, monkeypatch, patience=0.0)

    assert caught.value.code == "POLYNYA-GTW-091"
    assert "up to 100 of the source were not landed in 0 seconds" in str(caught.value)


def test_a_capture_that_follows_no_changes_has_all_that_it_will_have(monkeypatch) -> None:
    clock = Landing()

    wait(clock, monkeypatch, follows=False)

    assert clock.log.numbers() == [1]
