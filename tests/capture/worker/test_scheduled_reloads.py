"""Tables that a capture loads again on a schedule while it follows their changes."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition
from polynya.capture.wire import CaptureRequest
from polynya.capture.worker.capture import Capture
from polynya.formats.debezium.captured import LoadChunk
from polynya.model.config.dataset import DELETING, KEEPING
from polynya.model.errors import OperationError
from tests.capture.deadly_store import DeadlyStore, Killed
from tests.capture.stand_in import StandIn
from tests.capture.worker.test_capture import Told, a_capture, a_database, busy
from tests.capture.worker.test_reloads import chunks_of, until

T1 = "public.t1"


@dataclass
class Followed:
    """A capture with a daily reload, run by run, and its clock."""

    database: StandIn = field(default_factory=a_database)
    store: DeadlyStore = field(default_factory=DeadlyStore)
    told: Told = field(default_factory=Told)
    now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def capture(self, **settings: Any) -> Capture:
        made = a_capture(
            self.database, self.store, self.told,
            **{"reload_schedule": "@daily", "reload_tables": (T1,), **settings},
        )  # fmt: skip
        made.now = lambda: self.now
        return made

    def run(self, **settings: Any) -> None:
        """One run that ends when it has taken what there is."""
        self.capture(**settings).run()

    @property
    def position(self) -> CapturePosition:
        newest = CaptureLog(self.store, "shop").newest()
        assert newest is not None
        return CapturePosition.of(newest.position)

    @property
    def chunks(self) -> list[LoadChunk]:
        return chunks_of(self.store, T1)


def test_a_due_reload_lands_once_and_missed_moments_together() -> None:
    shop = Followed()
    shop.run()
    shop.run()
    first = shop.chunks
    shop.now += timedelta(days=5)
    shop.run()
    due = shop.chunks
    shop.now += timedelta(hours=11)
    shop.run()

    assert first == []
    assert [(one.chunk, one.is_last, one.mode) for one in due] == [
        (1, False, DELETING), (2, False, DELETING), (3, True, DELETING),
    ]  # fmt: skip
    assert shop.chunks == due
    assert chunks_of(shop.store, "public.t0") == []
    assert shop.position.tables[T1].state == "loaded"
    assert shop.position.tables[T1].load is None


def test_a_capture_that_follows_begins_a_reload_when_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polynya.capture.worker.round._TABLE_CHECK_SECONDS", 0.0)
    shop = Followed()
    capture = shop.capture(mode="follow")
    thread = threading.Thread(target=capture.run)
    thread.start()
    until(lambda: len(shop.told.of("loaded")) == 3)
    before = shop.chunks

    shop.now += timedelta(days=1)
    until(lambda: len(shop.told.of("loaded")) == 4)
    capture.end()
    thread.join(10)

    assert before == []
    assert shop.chunks[-1].is_last


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kill_at", range(1, 8))
def test_a_reload_that_is_killed_goes_on_without_a_gap(kill_at: int, *, after: bool) -> None:
    shop = Followed()
    busy(shop.database)
    shop.run()
    shop.now += timedelta(days=1)
    shop.store.revive()
    shop.store.kill_at, shop.store.after = kill_at, after
    with suppress(Killed):
        shop.run(chunk_rows=2)
    shop.store.revive()

    shop.run(chunk_rows=2)
    shop.run(chunk_rows=2)

    chunks = shop.chunks
    assert len({one.load for one in chunks}) == 1
    assert [one.chunk for one in chunks] == list(range(1, len(chunks) + 1))
    assert [one.is_last for one in chunks] == [False] * (len(chunks) - 1) + [True]


def test_a_table_without_a_key_is_not_loaded_again_and_says_so_once() -> None:
    shop = Followed()
    shop.database.keyless.add(T1)
    shop.run()
    shop.now += timedelta(days=1)
    shop.run()
    shop.run()

    assert shop.chunks == []
    codes = [event["error"]["code"] for event in shop.told.of("table_failed")]
    assert codes == ["POLYNYA-GTW-012"]


def test_a_reload_that_cannot_be_read_is_given_up_and_changes_go_on() -> None:
    shop = Followed()
    shop.run()
    shop.now += timedelta(days=1)
    error = OperationError("POLYNYA-GTW-047", "the key is another one")
    shop.database.failing = {T1: [error] * 10}
    shop.run(table_retries=0)
    shop.database.failing = {}
    shop.database.commit(("u", T1, 1, "changed"))
    shop.run()

    (nothing,) = shop.chunks
    assert (nothing.chunk, nothing.is_last, nothing.mode) == (1, True, KEEPING)
    assert shop.position.tables[T1].state == "loaded"
    (failed,) = shop.told.of("table_failed")
    assert not failed["suspended"]


def test_a_reload_that_an_operator_asks_for_meanwhile_is_compared_too() -> None:
    shop = Followed()
    shop.run()
    shop.now += timedelta(days=1)
    shop.store.revive()
    shop.store.kill_at = 3
    with suppress(Killed):
        shop.run(chunk_rows=2)
    shop.store.revive()
    begun = shop.chunks[-1]
    capture = shop.capture(chunk_rows=2)
    capture.ask(CaptureRequest((T1,), reload=True))

    capture.run()

    rest = [one for one in shop.chunks if one.load != begun.load]
    assert not begun.is_last
    assert [one.chunk for one in rest] == list(range(1, len(rest) + 1))
    assert rest[-1].is_last
