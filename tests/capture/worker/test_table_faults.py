"""A change of one table that cannot land: the table is tried again, given up, brought back."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.capture.landing.position import CapturePosition
from polynya.capture.wire import CaptureRequest, TableFaults
from polynya.model.errors import OperationError, PolynyaError
from polynya.testing.fakes import MemoryObjectStore
from tests.capture.deadly_store import DeadlyStore, Killed, folded, landed_values
from tests.capture.stand_in import StandIn
from tests.capture.worker.test_capture import Told, a_capture, a_database, newest, streamed

BAD = "public.t1"
LONG = "far too long " * 20
#: What makes the same change one that cannot land: our limit, or the engine's reading.
LIMITED: dict[str, Any] = {"lob_bytes": 100, "lob_then": "stop"}
WAYS = {"a limit": "POLYNYA-GTW-054", "the engine": "POLYNYA-GTW-057"}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polynya.capture.worker.capture._RETRY_SECONDS", 0.0)


def a_shop(store: MemoryObjectStore, way: str, keyless: str | None = None) -> StandIn:
    """A database whose rows have landed; then a change of a table among those of others."""
    database = a_database()
    if keyless is not None:
        database.keyless.add(keyless)
    a_capture(database, store).run()
    database.commit(("u", "public.t0", 1, "before"), ("u", BAD, 1, "before"))
    database.commit(("u", "public.t0", 2, "same"), ("u", BAD, 2, LONG), ("u", "public.t2", 2, "x"))
    database.commit(("u", BAD, 3, "after"), ("c", "public.t2", 77, "after"), ("d", BAD, 4, ""))
    if way == "the engine":
        database.unreadable.add(LONG)
    return database


def others(rows: dict[str, dict[int, str]]) -> dict[str, dict[int, str]]:
    return {name: found for name, found in rows.items() if name != BAD}


@pytest.mark.parametrize("way", WAYS)
def test_a_table_is_tried_again_then_suspended_and_the_others_go_on(way: str) -> None:
    store, told = MemoryObjectStore(), Told()
    database = a_shop(store, way)

    a_capture(database, store, told, table_retries=2, **LIMITED).run()

    progress = CapturePosition.of(newest(store)).tables
    failed = told.of("table_failed")
    assert progress[BAD].state == "suspended"
    assert str(progress[BAD].why).startswith(WAYS[way])
    assert [(one["table"], one["suspended"]) for one in failed] == [
        (BAD, False), (BAD, False), (BAD, True),
    ]  # fmt: skip
    assert {one["error"]["code"] for one in failed} == {WAYS[way]}
    values = landed_values(store, "shop")
    assert others(folded(values)) == others(database.rows)
    assert len(streamed(values)) == len(set(streamed(values)))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_resumed_has_all_its_rows_once(way: str) -> None:
    store = MemoryObjectStore()
    database = a_shop(store, way)
    a_capture(database, store, **LIMITED).run()
    database.commit(("u", BAD, 5, "unseen"), ("c", BAD, 90, "unseen"), ("d", BAD, 6, ""))
    a_capture(database, store, **LIMITED).run()
    database.commit(("u", BAD, 2, "short again"))
    capture = a_capture(database, store, **LIMITED)
    capture.ask(CaptureRequest((BAD,)))

    capture.run()
    database.commit(("u", BAD, 7, "followed"))
    a_capture(database, store, **LIMITED).run()

    values = landed_values(store, "shop")
    assert folded(values) == database.rows
    assert len(streamed(values)) == len(set(streamed(values)))
    assert CapturePosition.of(newest(store)).lacking == frozenset()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("put", range(1, 8))
def test_a_kill_at_any_put_meanwhile_loses_and_doubles_nothing(put: int, way: str) -> None:
    store = DeadlyStore()
    database = a_shop(store, way)
    store.revive()
    store.kill_at, store.after = put, bool(put % 2)
    asked = False
    for _ in range(8):
        try:
            capture = a_capture(database, store, table_retries=1, **LIMITED)
            if asked:
                capture.ask(CaptureRequest())
            capture.run()
        except (Killed, PolynyaError):
            assert store.is_dead
            store.revive()
        else:
            database.commit(("u", BAD, 2, "short again"))
            asked = True

    values = landed_values(store, "shop")
    assert folded(values) == database.rows
    assert len(streamed(values)) == len(set(streamed(values)))


def test_the_capture_ends_where_the_task_says_so() -> None:
    store, told = MemoryObjectStore(), Told()
    database = a_shop(store, "the engine")

    with pytest.raises(OperationError, match=BAD):
        a_capture(database, store, told, table_retries=1, table_then="stop").run()

    assert [one["suspended"] for one in told.of("table_failed")] == [False, False]
    assert CapturePosition.of(newest(store)).tables[BAD].state == "loaded"
    database.unreadable.clear()
    a_capture(database, store).run()
    assert folded(landed_values(store, "shop")) == database.rows


def test_a_table_without_key_goes_on_without_what_it_lacks() -> None:
    store = MemoryObjectStore()
    database = a_shop(store, "the engine", keyless=BAD)
    a_capture(database, store, table_retries=0).run()
    suspended = CapturePosition.of(newest(store)).tables[BAD].state
    capture = a_capture(database, store)
    capture.ask(CaptureRequest())
    capture.run()
    database.commit(("c", BAD, 91, "followed"))

    a_capture(database, store).run()

    assert suspended == "suspended"
    values = [one for one in landed_values(store, "shop") if one["source"]["table"] == "t1"]
    texts = [one["after"]["v"] for one in values if one["after"]]
    assert len([one for one in values if one["op"] == "r"]) == 10
    assert set(texts[10:]) - {"before"} == {"followed"}


def test_a_mask_that_still_does_not_fit_leaves_the_table_out_and_not_the_others() -> None:
    store, told, masks = MemoryObjectStore(), Told(), {BAD: {"renamed": "drop"}}
    database = a_shop(store, "a limit")
    a_capture(database, store, masks=masks, table_retries=0).run()
    capture = a_capture(database, store, told, masks=masks)
    capture.ask(CaptureRequest())
    database.commit(("u", "public.t0", 3, "goes on"))

    capture.run()

    (failed,) = told.of("table_failed")
    assert (failed["table"], failed["suspended"]) == (BAD, True)
    assert failed["error"]["code"] == "POLYNYA-GTW-080"
    assert others(folded(landed_values(store, "shop"))) == others(database.rows)
    capture = a_capture(database, store)
    capture.ask(CaptureRequest())
    capture.run()
    assert folded(landed_values(store, "shop")) == database.rows


@pytest.mark.parametrize("other", ["public.new", BAD])
def test_a_table_that_cannot_be_captured_is_left_out_of_a_capture_that_goes_on(other: str) -> None:
    store, told, database = MemoryObjectStore(), Told(), a_database()
    a_capture(database, store).run()
    database.rows.setdefault(other, {})[1] = "one"
    database.rows["public.later"] = {1: "one"}
    database.outside.add(other)
    a_capture(database, store, told).run()
    database.commit(("u", "public.t0", 1, "goes on"), ("u", other, 1, "unseen"))
    a_capture(database, store, told).run()

    (failed,) = told.of("table_failed")
    assert (failed["table"], failed["suspended"]) == (other, True)
    assert failed["error"]["code"] == "POLYNYA-GTW-025"
    found = folded(landed_values(store, "shop"))
    assert {name: found[name] for name in found if name != other} == {
        name: rows for name, rows in database.rows.items() if name != other
    }

    capture = a_capture(database, store, told)
    capture.ask(CaptureRequest((other,)))
    capture.run()
    assert len(told.of("table_failed")) == 2
    database.outside.clear()
    capture = a_capture(database, store, told)
    capture.ask(CaptureRequest((other,)))
    capture.run()
    assert folded(landed_values(store, "shop")) == database.rows


def test_a_table_that_cannot_be_captured_ends_the_capture_where_the_task_says_so() -> None:
    store, database = MemoryObjectStore(), a_database()
    a_capture(database, store).run()
    database.rows["public.new"] = {1: "one"}
    database.outside.add("public.new")

    with pytest.raises(OperationError, match="replica identity"):
        a_capture(database, store, table_then="stop").run()


def test_failures_count_while_they_come_one_after_the_other() -> None:
    now = [0.0]
    faults = TableFaults(2, lambda: now[0])

    assert [faults.gives_up("a"), faults.gives_up("b"), faults.gives_up("a")] == [False] * 3
    now[0] += 7200
    assert [faults.gives_up("a") for _ in "123"] == [False, False, True]
