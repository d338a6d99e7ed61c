"""What the engine brings is collected while a batch lands, within bounds, and told when it has."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.capture.landing.stream import Cutter, RollLimits, StreamEvent
from polynya.capture.worker.changes import Changes
from polynya.capture.worker.loads import KeylessTables
from polynya.capture.worker.masks import TableMasks
from polynya.formats.debezium.captured import CaptureHeader
from polynya.model.errors import DependencyError
from polynya.testing.fakes import MemoryObjectStore

_PATIENCE = 20
BEGIN = ResumePoint({"pos": 0})
NO_KEYLESS = KeylessTables("postgresql", {}, CapturePosition(BEGIN), loads=False)
OFF = DependencyError("POLYNYA-AWS-001", "the landing zone does not answer")


@dataclass
class SlowStore(MemoryObjectStore):
    """Waits in each put until it is let go, or fails."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    error: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self.begun.release()
        assert self.go.wait(_PATIENCE)
        if self.error is not None:
            raise self.error
        return super().put_if_absent(path, data)


def row(number: int, text: bytes = b"x\n", shape: Mapping[str, Any] | None = None) -> StreamEvent:
    return StreamEvent("row", text, lambda: {"pos": number}, "w.t", shape or {}, lambda: number)


def begun(store: MemoryObjectStore, **tables: TableProgress) -> CaptureLander:
    lander = CaptureLander(
        CaptureLog(store, "shop"), "shop", lambda: datetime(2026, 1, 1, tzinfo=UTC)
    )
    lander.begin(CapturePosition(BEGIN, tables))
    return lander


def begun_from(store: MemoryObjectStore) -> CaptureLander:
    log = CaptureLog(store, "shop")
    return CaptureLander(log, "shop", lambda: datetime(2026, 1, 1, tzinfo=UTC), newest=log.newest())


def following(lander: CaptureLander, landed: threading.Event | None = None, **roll: Any) -> Changes:
    said = landed or threading.Event()
    changes = Changes(
        Cutter(BEGIN), lander, TableMasks(), lambda: 0.0, keyless=NO_KEYLESS,
        roll=RollLimits(**{"bytes": 100, "seconds": 0.0, **roll}), landed=said.set,
    )  # fmt: skip
    changes.start()
    return changes


def headers(store: MemoryObjectStore) -> Sequence[CaptureHeader]:
    log = CaptureLog(store, "shop")
    return [log.header(number) for number in log.numbers()]


def test_the_database_is_told_of_what_has_landed_and_not_before() -> None:
    store, landed = SlowStore(), threading.Event()
    store.go.set()
    lander = begun(store)
    store.go.clear()
    changes = following(lander, landed)

    assert changes.take([row(1), row(2)]) is None
    assert changes.take([]) is None
    store.go.set()
    assert landed.wait(_PATIENCE)
    told = changes.take([])
    changes.finish()

    assert told == 2


def test_events_that_come_while_a_batch_lands_are_one_batch_after_it() -> None:
    store = SlowStore()
    store.go.set()
    lander = begun(store)
    assert store.begun.acquire(timeout=_PATIENCE)
    store.go.clear()
    changes = following(lander)
    changes.take([row(1)])
    assert store.begun.acquire(timeout=_PATIENCE)
    for number in (2, 3, 4):
        changes.take([row(number)])
    store.go.set()
    changes.finish()

    assert [header.events for header in headers(store)] == [0, 1, 3]


def test_a_place_that_no_event_says_lands_by_itself_and_stays() -> None:
    store, place = MemoryObjectStore(), {"file": "binlog.000002", "pos": 7}
    changes = following(begun(store), seconds=0.0, idle_seconds=3600.0)

    changes.has_read_to(place)
    changes.finish()
    after = following(begun_from(store))
    after.take([row(1)])
    after.finish()

    assert [header.events for header in headers(store)] == [0, 0, 1]
    assert [CapturePosition.of(header.position).read_to for header in headers(store)[1:]] == [
        place
    ] * 2


def test_changes_of_a_table_in_its_load_are_counted_where_everybody_sees_it() -> None:
    store = MemoryObjectStore()
    tables = {"w.t": TableProgress("loading", rows=5), "w.u": TableProgress("loaded")}
    changes = following(begun(store, **tables))

    changes.take([row(1), row(2), replace(row(3), table="w.u")])
    changes.finish()

    *_, newest = headers(store)
    landed = CapturePosition.of(newest.position).tables
    assert (landed["w.t"].changes, landed["w.u"].changes) == (2, 0)


def test_the_engine_waits_when_there_is_no_room() -> None:
    store = SlowStore()
    store.go.set()
    lander = begun(store)
    assert store.begun.acquire(timeout=_PATIENCE)
    store.go.clear()
    changes = following(lander)
    changes.take([row(1, b"x" * 100)])
    assert store.begun.acquire(timeout=_PATIENCE)
    changes.take([row(2, b"x" * 100)])  # Full again, while the first lands.
    third = threading.Thread(target=changes.take, args=([row(3)],))
    third.start()
    third.join(0.1)
    assert third.is_alive()

    store.go.set()
    third.join(_PATIENCE)
    changes.finish()

    assert not third.is_alive()
    assert sum(header.events for header in headers(store)) == 3


def test_the_engine_is_told_why_nothing_lands_any_more() -> None:
    store, landed = SlowStore(), threading.Event()
    store.go.set()
    changes = following(begun(store), landed)
    store.error = OFF
    changes.take([row(1)])
    assert landed.wait(_PATIENCE)

    with pytest.raises(DependencyError):
        changes.take([row(2)])
    with pytest.raises(DependencyError):
        changes.finish()


def test_after_a_put_with_an_unknown_end_nothing_lands_from_the_same_process() -> None:
    """Its batch may be there: the number would seem to be another capture's."""
    store = SlowStore()
    store.go.set()
    lander = begun(store)
    store.error = OFF
    with pytest.raises(DependencyError):
        lander.land(b"x\n", 1, {}, lambda position: position)
    store.error = None

    with pytest.raises(DependencyError):
        lander.land(b"y\n", 1, {}, lambda position: position)

    assert lander.number == 1
