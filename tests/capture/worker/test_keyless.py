"""Tables without key: each row lands once, whoever writes and wherever the capture is killed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition
from polynya.capture.wire import CaptureRequest
from polynya.capture.worker import loads
from polynya.capture.worker.loads import KeylessTables, Spool
from polynya.formats.debezium.captured import CaptureHeader
from polynya.model.errors import OperationError, PolynyaError
from polynya.testing.fakes import MemoryObjectStore
from tests.capture.deadly_store import DeadlyStore, Killed, landed_values
from tests.capture.stand_in import StandIn
from tests.capture.worker.test_capture import Told, a_capture

LOG = "public.log"


def a_database() -> StandIn:
    """A log of events beside a table with a key."""
    rows = {LOG: {n: f"first {n}" for n in range(10)}, "public.t": dict.fromkeys(range(10), "x")}
    return StandIn(rows, keyless={LOG})


def busy(database: StandIn, most: int = 40) -> None:
    """Something is written into both tables between any two chunks."""
    numbers = count(100, 10)
    written = count()
    lock = threading.Lock()

    def write() -> None:
        with lock:
            if next(written) < most:
                n = next(numbers)
                database.commit(
                    ("c", LOG, n, "new"), ("u", "public.t", n % 10, f"v{n}"),
                    ("c", LOG, n + 1, "new"), ("c", LOG, n + 2, "new"),
                )  # fmt: skip

    database.between = write


def landed(store: MemoryObjectStore) -> Counter[int]:
    """How often each row of the log has landed."""
    values = landed_values(store, "shop")
    rows = [one for one in values if one["source"]["table"] == "log" and one["op"] != "t"]
    return Counter(one["after"]["id"] for one in rows)


def there(database: StandIn) -> Counter[int]:
    return Counter([*database.rows[LOG]])


def position(store: MemoryObjectStore) -> CapturePosition:
    header = CaptureLog(store, "shop").newest()
    assert header is not None
    return CapturePosition.of(header.position)


def headers(store: MemoryObjectStore) -> list[CaptureHeader]:
    log = CaptureLog(store, "shop")
    return [log.header(number) for number in log.numbers()]


def test_rows_that_are_written_while_it_is_loaded_land_once() -> None:
    database, store = a_database(), MemoryObjectStore()
    busy(database)

    a_capture(database, store).run()
    # The load may have landed after all that was written meanwhile.
    database.commit(("c", LOG, 900, "later"))
    a_capture(database, store).run()

    assert landed(store) == there(database)
    assert position(store).tables[LOG].seen is None


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("put", [1, 2, 3, 4, 5, 6, 8, 11])
def test_a_kill_at_a_put_loses_and_doubles_nothing(put: int, *, after: bool) -> None:
    database, store = a_database(), DeadlyStore()
    busy(database)
    store.kill_at, store.after = put, after
    with pytest.raises((Killed, PolynyaError)):
        while True:  # How many batches one run lands depends on its threads.
            a_capture(database, store).run()
    store.revive()

    a_capture(database, store).run()
    a_capture(database, store).run()

    assert landed(store) == there(database)


def test_nothing_of_it_lands_before_all_does() -> None:
    database, store = a_database(), DeadlyStore()
    busy(database)
    store.kill_at = 6
    with pytest.raises((Killed, PolynyaError)):
        a_capture(database, store, chunk_rows=1, parallel=1, order={LOG: "lowest"}).run()
    store.revive()

    assert not landed(store)


def test_what_the_stream_has_passed_while_it_was_read_lands_with_it() -> None:
    database, store = a_database(), MemoryObjectStore()
    numbers = iter((100, 101))

    def write() -> None:
        number = next(numbers, None)
        if number is not None:
            database.commit(("c", LOG, number, "new"))
            until(lambda: position(store).stream.offset["lsn"] >= database.at)

    database.between = write

    a_capture(database, store, parallel=1, order={LOG: "highest"}).run()

    (batch,) = [one for one in headers(store) if LOG in one.schemas]
    assert batch.events == 12
    assert landed(store) == there(database)


def test_what_the_stream_passes_at_the_last_moment_lands_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database, store = a_database(), MemoryObjectStore()
    real, numbers = KeylessTables.taken, iter((100,))

    def taken(keyless: KeylessTables, table: str) -> Spool:
        held = real(keyless, table)
        number = next(numbers, None)
        if number is not None:
            database.commit(("c", LOG, number, "new"))
            until(lambda: position(store).stream.offset["lsn"] >= database.at)
        return held

    monkeypatch.setattr(KeylessTables, "taken", taken)

    a_capture(database, store).run()

    assert landed(store) == there(database)


def test_a_table_that_comes_later_is_loaded_beside_its_stream() -> None:
    database, store = a_database(), MemoryObjectStore()
    late = database.rows.pop(LOG)
    a_capture(database, store).run()
    database.rows[LOG] = late
    database.commit(("c", LOG, 50, "before anybody looked"))
    busy(database)

    a_capture(database, store).run()
    a_capture(database, store).run()

    assert landed(store) == there(database)


def test_it_is_not_loaded_again_for_that_would_double_it() -> None:
    database, store, told = a_database(), MemoryObjectStore(), Told()
    a_capture(database, store).run()
    capture = a_capture(database, store, told)
    capture.ask(CaptureRequest(reload=True))
    database.commit(("c", LOG, 50, "goes on"))

    capture.run()

    assert landed(store) == there(database)
    (failed,) = told.of("table_failed")
    assert (failed["table"], failed["refused"]) == (LOG, True)
    assert failed["error"]["code"] == "POLYNYA-GTW-012"


def test_one_that_was_not_followed_is_suspended_and_goes_on_when_asked() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.unfollowed.add(LOG)
    database.rows[LOG][70] = "nobody saw it"
    a_capture(database, store).run()
    progress = position(store).tables[LOG]
    assert progress.state == "suspended"
    assert str(progress.why).startswith("POLYNYA-GTW-012")

    capture = a_capture(database, store)
    capture.ask(CaptureRequest((LOG,)))
    capture.run()
    database.commit(("c", LOG, 71, "followed again"))
    a_capture(database, store).run()

    assert landed(store) == there(database) - Counter([70])


def test_one_that_another_table_has_replaced_is_loaded() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.rows[LOG] = {80: "of the other", 81: "too"}
    database.identities[LOG] = "second"
    database.at += 10

    a_capture(database, store).run()

    assert landed(store) == Counter([*range(10), 80, 81])


def test_after_a_stream_was_lost_it_is_suspended_while_the_others_are_loaded() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.rows[LOG][70] = "nobody saw it"
    database.at += 1000
    database.kept_from = database.at
    capture = a_capture(database, store)
    capture.ask(CaptureRequest(reload=True))

    capture.run()

    assert landed(store) == Counter(range(10))
    assert position(store).tables[LOG].state == "suspended"
    assert position(store).tables["public.t"].state == "loaded"


def test_one_that_is_too_large_for_an_object_is_suspended_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loads.Spool.__init__, "__defaults__", (100,))
    database, store, told = a_database(), MemoryObjectStore(), Told()

    a_capture(database, store, told).run()

    assert not landed(store)
    assert [one["error"]["code"] for one in told.of("table_failed")] == ["POLYNYA-GTW-011"]
    assert position(store).tables["public.t"].state == "loaded"


def test_a_load_that_fails_is_tried_again_without_doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polynya.capture.worker.loads._RETRY_SECONDS", 0.0)
    database, store = a_database(), MemoryObjectStore()
    busy(database)
    database.failing[LOG] = [OperationError("POLYNYA-GTW-030", "no right") for _ in "123"]

    a_capture(database, store).run()
    a_capture(database, store).run()

    assert landed(store) == there(database)


def test_other_tables_are_looked_for_only_when_its_load_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polynya.capture.worker.round._TABLE_CHECK_SECONDS", 0.0)
    database, store, told = a_database(), MemoryObjectStore(), Told()
    capture = a_capture(database, store, told, mode="follow", chunk_rows=1)
    numbers = count()

    def more() -> None:
        time.sleep(0.01)
        with database.lock:
            database.rows.setdefault(f"public.more{next(numbers) // 3}", {1: "x"})

    database.between = more
    thread = threading.Thread(target=capture.run)
    thread.start()
    until(lambda: LOG in {one["table"] for one in told.of("loaded")})
    capture.end()
    thread.join(10)

    assert landed(store) == there(database)


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)
