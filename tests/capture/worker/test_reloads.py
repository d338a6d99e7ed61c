"""Tables that are loaded again: when somebody asks, on a schedule, or since they are others now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.capture.wire import CaptureRequest
from polynya.formats.debezium.captured import LoadChunk
from polynya.model.config.dataset import DELETING, KEEPING
from polynya.testing.fakes import MemoryObjectStore
from tests.capture.deadly_store import DeadlyStore, Killed, folded, landed_values
from tests.capture.stand_in import StandIn
from tests.capture.worker.test_capture import Told, a_capture, a_database


def test_a_table_that_is_loaded_anew_loses_the_rows_that_are_gone() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.forget("public.t1", 3)
    capture = a_capture(database, store)
    capture.ask(CaptureRequest(("public.t1",), reload=True))

    capture.run()

    assert folded(landed_values(store, "shop")) == database.rows


def test_a_table_that_another_one_has_replaced_is_emptied_and_loaded() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    replace_table(database)

    a_capture(database, store).run()

    assert folded(landed_values(store, "shop")) == database.rows


def test_a_table_that_was_dropped_and_comes_back_later_is_emptied_and_loaded() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    del database.rows["public.t1"]
    a_capture(database, store).run()
    assert folded(landed_values(store, "shop"))["public.t1"]

    database.rows["public.t1"] = {100: "of the other"}
    database.at += 10
    a_capture(database, store).run()
    a_capture(database, store).run()

    assert folded(landed_values(store, "shop")) == database.rows
    assert [v["op"] for v in landed_values(store, "shop")].count("t") == 1


def test_a_table_that_somebody_took_out_of_the_stream_is_loaded_again() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.unfollowed.add("public.t1")
    database.forget("public.t1", 3)

    a_capture(database, store).run()

    assert folded(landed_values(store, "shop")) == database.rows


def test_rows_that_a_new_column_has_filled_are_loaded_again_once() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    before = len(landed_values(store, "shop"))
    database.rows["public.t1"] = dict.fromkeys(range(10), "filled")
    database.filled["public.t1"] = 3

    a_capture(database, store).run()
    a_capture(database, store).run()

    again = landed_values(store, "shop")[before:]
    assert [(one["op"], one["source"]["table"]) for one in again] == [("r", "t1")] * 10
    assert folded(landed_values(store, "shop")) == database.rows


def test_a_capture_that_follows_notices_that_a_table_was_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polynya.capture.worker.round._TABLE_CHECK_SECONDS", 0.0)
    database, store, told = a_database(), MemoryObjectStore(), Told()
    capture = a_capture(database, store, told, mode="follow")
    thread = threading.Thread(target=capture.run)
    thread.start()
    until(lambda: len(told.of("loaded")) == 3)
    replace_table(database)

    until(lambda: len(told.of("loaded")) == 4)
    capture.end()
    thread.join(10)

    assert folded(landed_values(store, "shop")) == database.rows


def replace_table(database: StandIn) -> None:
    database.rows["public.t1"] = {100: "of the other"}
    database.identities["public.t1"] = "second"
    database.at += 10


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_reload_leaves_nothing_in_the_database() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store, mode="reload").run()
    database.forget("public.t1", 3)

    a_capture(database, store, mode="reload").run()

    assert not database.has_slot
    assert folded(landed_values(store, "shop")) == database.rows


def test_a_table_is_emptied_by_the_last_event_of_its_reload() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store, mode="reload", chunk_rows=2).run()
    before = len(landed_values(store, "shop"))

    a_capture(database, store, mode="reload", chunk_rows=2).run()

    again = [
        one["op"] for one in landed_values(store, "shop")[before:] if one["source"]["table"] == "t1"
    ]
    assert again == [*"r" * len(database.rows["public.t1"]), "t"]


def test_the_chunks_of_a_reload_say_of_which_load_they_are() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store, mode="reload").run()
    assert chunks_of(store, "public.t1") == []

    for mode in (DELETING, KEEPING):
        a_capture(database, store, mode="reload", reload_mode=mode).run()

    first, second = chunks_of(store, "public.t1")[:3], chunks_of(store, "public.t1")[3:]
    for chunks, mode in ((first, DELETING), (second, KEEPING)):
        assert [(one.chunk, one.is_last, one.mode) for one in chunks] == [
            (1, False, mode), (2, False, mode), (3, True, mode),
        ]  # fmt: skip
        assert len({one.load for one in chunks}) == 1
    assert first[0].load != second[0].load


def test_a_table_whose_first_load_was_killed_is_loaded_for_the_first_time_again() -> None:
    database, store = a_database(), DeadlyStore()
    store.kill_at = 3
    with suppress(Killed):
        a_capture(database, store, mode="reload").run()
    store.revive()
    a_capture(database, store, mode="reload").run()
    assert chunks_of(store, "public.t2") == []

    # A load that is killed later does not let its table forget that it was loaded.
    for kill_at in (2, None):
        store.kill_at = kill_at
        with suppress(Killed):
            a_capture(database, store, mode="reload").run()
        store.revive()

    assert chunks_of(store, "public.t2")[-1].is_last
    assert folded(landed_values(store, "shop")) == database.rows


def chunks_of(store: MemoryObjectStore, table: str) -> list[LoadChunk]:
    """What the headers of landed batches say of loads of a table."""
    log = CaptureLog(store, "shop")
    headers = (log.header(number) for number in log.numbers())
    return [header.loads[table] for header in headers if table in header.loads]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kill_at", range(1, 8))
def test_a_reload_that_is_killed_anywhere_begins_again(kill_at: int, *, after: bool) -> None:
    database, store = a_database(), DeadlyStore()
    a_capture(database, store, mode="reload", chunk_rows=2).run()
    database.forget("public.t1", 3)
    store.revive()
    store.kill_at, store.after = kill_at, after
    with suppress(Killed):
        a_capture(database, store, mode="reload", chunk_rows=2).run()
    store.revive()

    a_capture(database, store, mode="reload", chunk_rows=2).run()

    assert folded(landed_values(store, "shop")) == database.rows


def test_the_view_of_a_load_ends_with_it() -> None:
    """It holds locks on the tables, and the database keeps old rows for it."""
    database, store = a_database(), MemoryObjectStore()
    capture = a_capture(database, store, mode="follow")
    thread = threading.Thread(target=capture.run)
    thread.start()

    until = time.monotonic() + 10
    while time.monotonic() < until and (database.views or not database.has_slot):
        time.sleep(0.01)
    was_following = thread.is_alive()
    capture.end()
    thread.join(10)

    assert was_following
    assert not database.views


def test_a_capture_that_follows_ends_when_it_is_told_to() -> None:
    database, store, told = a_database(), MemoryObjectStore(), Told()
    capture = a_capture(database, store, told, mode="follow")
    thread = threading.Thread(target=capture.run)
    thread.start()
    database.commit(("u", "public.t0", 1, "x"))

    # Ended sooner, it never streams.
    until(lambda: bool(told.of("streaming")))
    capture.end()
    thread.join(10)

    assert not thread.is_alive()
