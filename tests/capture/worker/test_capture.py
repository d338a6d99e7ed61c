"""A capture beside a stand-in of a database: load and stream together, killed at each boundary."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition
from polynya.capture.source import Access
from polynya.capture.wire import CaptureRequest, WorkerSettings
from polynya.capture.worker.capture import Capture
from polynya.model.errors import ConflictError, DependencyError, OperationError, PolynyaError
from polynya.testing.fakes import MemoryObjectStore
from tests.capture.deadly_store import DeadlyStore, Killed, folded, landed_values
from tests.capture.stand_in import StandIn, StandInEngine, StandInEngines

SETTINGS = WorkerSettings(
    task="shop",
    mode="once",
    access=Access("postgresql", "127.0.0.1", 1, "shop", "me", "secret"),
    landing="/nowhere",
    folder="shop",
    include=("*",),
    parallel=2,
    chunk_rows=4,
    roll_seconds=0.0,
)


class Told:
    """Remembers what was told."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, type_: str, **fields: Any) -> None:
        self.events.append({"type": type_, **fields})

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["type"] == type_]


def a_database() -> StandIn:
    rows = {f"public.t{n}": {key: f"first {key}" for key in range(10)} for n in range(3)}
    return StandIn(rows)


def a_capture(
    database: StandIn, store: MemoryObjectStore, told: Told | None = None, **settings: Any
) -> Capture:
    clock = count()
    return Capture(
        replace(SETTINGS, **settings),
        database,
        CaptureLog(store, "shop"),
        StandInEngines(),
        told or Told(),
        now=lambda: datetime(2026, 1, 1, second=next(clock) % 60, tzinfo=UTC),
        monotonic=lambda: 0.0,
        patience=0.0,
    )


def writers(database: StandIn) -> Iterator[None]:
    """Whoever writes while tables are loaded: inserts, updates, deletes, changes twice."""
    for n in count():
        table, other = f"public.t{n % 3}", f"public.t{(n + 1) % 3}"
        database.commit(
            ("u", table, n % 10, f"u{n}"),
            ("c", other, 100 + n, f"c{n}"),
            ("u", table, n % 10, f"v{n}"),
            ("d", other, (n * 7) % 10, ""),
            ("u", other, 100 + n, f"w{n}"),
        )
        yield


def busy(database: StandIn, most: int = 40) -> None:
    """Something is written between any two chunks."""
    steps = writers(database)
    written = count()
    lock = threading.Lock()

    def write() -> None:
        with lock:
            if next(written) < most:
                next(steps)

    database.between = write


def streamed(values: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """What tells the events of the stream apart."""
    return [
        (value["transaction"]["id"], value["transaction"]["total_order"])
        for value in values
        if value.get("transaction")
    ]


def test_tables_are_loaded_while_others_write_and_nothing_is_lost() -> None:
    database, store = a_database(), MemoryObjectStore()
    busy(database)

    a_capture(database, store).run()
    a_capture(database, store).run()

    values = landed_values(store, "shop")
    assert folded(values) == database.rows
    assert len(streamed(values)) == len(set(streamed(values)))
    assert CapturePosition.of(newest(store)).tables["public.t0"].state == "loaded"


def newest(store: MemoryObjectStore) -> Any:
    header = CaptureLog(store, "shop").newest()
    assert header is not None
    return header.position


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("put", range(1, 14))
def test_a_capture_that_is_killed_at_a_put_loses_and_doubles_nothing(
    put: int, *, after: bool
) -> None:
    database, store = a_database(), DeadlyStore()
    busy(database)
    store.kill_at, store.after = put, after
    with pytest.raises((Killed, PolynyaError)):
        while True:  # How many batches one run lands depends on its threads.
            a_capture(database, store).run()
    store.revive()

    a_capture(database, store).run()
    a_capture(database, store).run()

    values = landed_values(store, "shop")
    assert folded(values) == database.rows
    assert len(streamed(values)) == len(set(streamed(values)))


def test_the_database_is_told_only_of_what_has_landed() -> None:
    database, store = a_database(), DeadlyStore()
    a_capture(database, store).run()
    database.commit(("u", "public.t0", 1, "x"))
    store.revive()
    store.kill_at = 1
    again = a_capture(database, store)
    with pytest.raises((Killed, PolynyaError)):
        again.run()

    made = again.engines
    assert isinstance(made, StandInEngines)
    assert made.made[0].told == []


def test_a_load_goes_on_after_the_last_chunk_that_landed() -> None:
    database, store = a_database(), DeadlyStore()
    store.kill_at = 5
    with pytest.raises((Killed, PolynyaError)):
        a_capture(database, store, parallel=1).run()
    store.revive()
    before = CapturePosition.of(newest(store)).tables["public.t0"]

    a_capture(database, store, parallel=1).run()

    reads = [v["after"]["id"] for v in landed_values(store, "shop") if v["source"]["table"] == "t0"]
    assert before.chunks > 0
    assert sorted(reads) == sorted(database.rows["public.t0"])


def test_a_table_that_is_new_is_loaded_while_the_others_go_on() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.rows["public.new"] = {1: "one"}
    database.commit(("u", "public.t0", 1, "later"))

    a_capture(database, store).run()

    assert folded(landed_values(store, "shop")) == database.rows


def test_a_table_that_cannot_be_read_is_tried_again_then_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polynya.capture.worker.loads._RETRY_SECONDS", 0.0)
    database, store, told = a_database(), MemoryObjectStore(), Told()
    database.failing["public.t1"] = [OperationError("POLYNYA-GTW-030", "no right") for _ in "1234"]

    a_capture(database, store, told).run()

    progress = CapturePosition.of(newest(store)).tables
    assert progress["public.t1"].state == "suspended"
    assert progress["public.t1"].why == "POLYNYA-GTW-030: no right"
    assert progress["public.t2"].state == "loaded"
    assert [one["suspended"] for one in told.of("table_failed")] == [False, False, False, True]


@pytest.mark.parametrize("mode", ["once", "reload"])
def test_table_that_changes_during_its_load_comes_from_a_later_view(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr("polynya.capture.worker.capture._RETRY_SECONDS", 0.0)
    database, store, told = a_database(), MemoryObjectStore(), Told()
    first = DependencyError("POLYNYA-GTW-033", "truncated")
    database.failing["public.t1"] = [first, DependencyError("POLYNYA-GTW-045", "altered")]

    def truncate() -> None:
        if "public.t1" in database.failing and len(database.failing["public.t1"]) == 2:
            database.between = lambda: None
            database.commit(("t", "public.t1", 0, ""), ("c", "public.t1", 50, "afterwards"))

    database.between = truncate
    a_capture(database, store, told, mode=mode).run()

    assert folded(landed_values(store, "shop")) == database.rows
    failed = [(one["error"]["code"], one["suspended"]) for one in told.of("table_failed")]
    assert failed == [("POLYNYA-GTW-033", False), ("POLYNYA-GTW-045", False)]
    assert CapturePosition.of(newest(store)).tables["public.t1"].state == "loaded"
    assert database.views == []


def test_table_that_changes_during_each_load_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polynya.capture.worker.capture._RETRY_SECONDS", 0.0)
    database, store, told = a_database(), MemoryObjectStore(), Told()
    database.failing["public.t1"] = [DependencyError("POLYNYA-GTW-033", "each") for _ in "123"]

    with pytest.raises(DependencyError, match="each") as caught:
        a_capture(database, store, told, table_retries=2).run()

    assert caught.value.retryable
    assert len(told.of("table_failed")) == 3
    a_capture(database, store).run()
    assert folded(landed_values(store, "shop")) == database.rows


@pytest.mark.parametrize("mode", ["once", "reload"])
def test_a_table_that_cannot_be_read_stops_the_capture_where_the_task_says_so(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr("polynya.capture.worker.loads._RETRY_SECONDS", 0.0)
    database, store, told = a_database(), MemoryObjectStore(), Told()
    database.failing["public.t1"] = [OperationError("POLYNYA-GTW-030", "no right") for _ in "12"]
    settings: dict[str, Any] = {"mode": mode, "table_retries": 1, "table_then": "stop"}

    with pytest.raises(OperationError, match="no right"):
        a_capture(database, store, told, **settings).run()

    assert [one["suspended"] for one in told.of("table_failed")] == [False, False]
    assert CapturePosition.of(newest(store)).tables["public.t1"].state == "queued"
    assert database.views == []
    # Somebody has removed the cause, and the task is started again.
    a_capture(database, store, **settings).run()
    assert folded(landed_values(store, "shop")) == database.rows


def test_a_suspended_table_is_taken_up_again_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polynya.capture.worker.loads._RETRY_SECONDS", 0.0)
    database, store = a_database(), MemoryObjectStore()
    database.failing["public.t1"] = [OperationError("POLYNYA-GTW-030", "no right") for _ in "1234"]
    a_capture(database, store).run()
    capture = a_capture(database, store)
    capture.ask(CaptureRequest(("public.t1",)))

    capture.run()

    assert folded(landed_values(store, "shop")) == database.rows


def test_a_table_that_is_loaded_anew_does_not_name_what_is_left_out() -> None:
    database, store, masks = a_database(), MemoryObjectStore(), {"public.t1": {"v": "drop"}}
    a_capture(database, store, masks=masks).run()
    capture = a_capture(database, store, masks=masks)
    capture.ask(CaptureRequest(("public.t1",), reload=True))

    capture.run()

    log = CaptureLog(store, "shop")
    shapes = [log.header(number).schemas.get("public.t1", ()) for number in log.numbers()]
    assert any(shapes)
    assert "'v'" not in str([one.schema for found in shapes for one in found])


def test_a_log_that_is_gone_is_named_and_everything_loaded_anew_when_asked() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.forget("public.t2", 3)
    database.at += 1000
    database.kept_from = database.at

    with pytest.raises(OperationError, match="the slot is gone") as caught:
        a_capture(database, store).run()
    assert caught.value.code == "POLYNYA-GTW-008"

    capture = a_capture(database, store)
    capture.ask(CaptureRequest(reload=True))
    capture.run()
    assert folded(landed_values(store, "shop")) == database.rows


def test_a_log_that_was_taken_away_after_the_beginning_is_noticed_before_anything_lands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when two captures begin at once: each makes the slot, and the second makes it anew."""
    database, store = a_database(), MemoryObjectStore()
    begin = database.begin

    def taken_away(tables: Any) -> Any:
        beginning = begin(tables)
        database.commit(("u", "public.t0", 1, "nobody will see it"))
        database.kept_from = database.at
        return beginning

    monkeypatch.setattr(StandIn, "begin", lambda _, tables: taken_away(tables))

    with pytest.raises(OperationError) as caught:
        a_capture(database, store, mode="follow").run()

    assert caught.value.code == "POLYNYA-GTW-008"
    assert streamed(landed_values(store, "shop")) == []


class Behind(StandInEngines):
    """Brings no event, though it reads the log to its end."""

    def engine(self, *args: Any, **given: Any) -> StandInEngine:
        self.size = 0
        made = super().engine(*args, **given)
        made.reads_to = {"lsn": 10**9}
        return made


def test_a_capture_ends_at_the_place_up_to_which_the_log_was_read() -> None:
    database, store, seconds = a_database(), MemoryObjectStore(), count()
    a_capture(database, store).run()
    database.commit(("u", "public.t0", 1, "later"))
    capture = a_capture(database, store)
    capture.engines, capture.monotonic = Behind(), lambda: float(next(seconds))

    capture.run()

    newest = CaptureLog(store, "shop").newest()
    assert newest is not None
    assert CapturePosition.of(newest.position).read_to == {"lsn": 10**9}


class Stuck(StandInEngines):
    """The first engine meets what it cannot read."""

    def engine(self, *args: Any, **given: Any) -> StandInEngine:
        made = super().engine(*args, **given)
        if len(self.made) == 1:
            made.failure = OperationError("POLYNYA-GTW-049", "a statement that cannot be read")
        return made


@pytest.mark.parametrize("comes", ["before", "meanwhile"])
def test_a_stream_that_cannot_be_read_begins_anew_when_all_is_to_be_loaded(comes: str) -> None:
    database, store, told = a_database(), MemoryObjectStore(), Told()
    a_capture(database, store).run()
    database.forget("public.t0", 3)
    capture = a_capture(database, store, told)
    capture.engines = Stuck()
    capture.patience = 30.0
    ask = CaptureRequest((), reload=True)
    if comes == "before":
        capture.ask(ask)
    else:
        threading.Timer(0.3, capture.ask, [ask]).start()

    capture.run()

    assert folded(landed_values(store, "shop")) == database.rows
    assert len(told.of("loaded")) >= 3


def test_a_stream_that_cannot_be_read_ends_the_capture_when_nobody_asks() -> None:
    database, store = a_database(), MemoryObjectStore()
    a_capture(database, store).run()
    database.commit(("u", "public.t0", 1, "later"))
    capture = a_capture(database, store)
    capture.engines = Stuck()

    with pytest.raises(OperationError, match="cannot be read"):
        capture.run()


def test_of_two_captures_one_stops() -> None:
    database, store = a_database(), MemoryObjectStore()
    first = a_capture(database, store, chunk_rows=1, parallel=1)
    other = a_capture(database, store)

    def once() -> None:
        database.between = lambda: None
        other.run()

    database.between = once
    with pytest.raises(ConflictError) as caught:
        first.run()

    assert caught.value.code == "POLYNYA-GTW-004"
    a_capture(database, store).run()
    assert folded(landed_values(store, "shop")) == database.rows


def test_a_database_without_a_table_that_is_included_is_named() -> None:
    with pytest.raises(OperationError, match="no table that the task includes") as caught:
        a_capture(StandIn({}), MemoryObjectStore()).run()

    assert caught.value.code == "POLYNYA-GTW-007"
