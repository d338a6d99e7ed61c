"""Slots that somebody else dropped, read or let run out: named, and made anew when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from polynya.capture.postgresql import health
from polynya.capture.postgresql.database import PostgresDatabase
from polynya.capture.source import Offset, SourceTable
from polynya.capture.wire import CaptureRequest
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.capture.postgresql.test_handover import assert_tables_are_there

SLOT = "polynya_shop"
DROP = f"SELECT pg_drop_replication_slot('{SLOT}')"
WRITE = "INSERT INTO orders SELECT i, 1 FROM generate_series(1, 500) i ON CONFLICT DO NOTHING"
#: By what was done, the statements, and what is said of it.
FAULTS = {
    "dropped": ((DROP,), "is not there"),
    "made again": (
        (DROP, WRITE, f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')"),
        "starts after the landed data",
    ),
    "advanced": (
        (WRITE, f"SELECT pg_replication_slot_advance('{SLOT}', pg_current_wal_lsn())"),
        "starts after the landed data",
    ),
    "unpublished": (("DROP PUBLICATION polynya_shop",), "publication polynya_shop is not there"),
    "of another plugin": (
        (DROP, f"SELECT pg_create_logical_replication_slot('{SLOT}', 'test_decoding')"),
        "is of test_decoding",
    ),
}


def begun(shop: Shop) -> tuple[PostgresDatabase, tuple[SourceTable, ...], Offset]:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY, n int)")
    database = shop.open()
    tables = database.tables(("public.*",), ())
    beginning = database.begin(tables)
    beginning.snapshot.close()
    return database, tables, beginning.offset


def assert_begins_anew(database: PostgresDatabase, tables: tuple[SourceTable, ...]) -> None:
    database.drop()
    beginning = database.begin(tables)
    beginning.snapshot.close()
    assert database.lost(beginning.offset) is None


@pytest.mark.parametrize("fault", FAULTS)
def test_what_somebody_else_did_to_the_slot_is_named(fault: str, shop: Shop) -> None:
    database, tables, offset = begun(shop)
    assert database.lost(offset) is None
    statements, said = FAULTS[fault]

    shop.run(*statements)

    assert said in str(database.lost(offset))
    assert_begins_anew(database, tables)


@pytest.fixture
def limited(shop: Shop) -> Iterator[Shop]:
    """The server keeps 32 MB of its log for slots."""
    shop.run("ALTER SYSTEM SET max_slot_wal_keep_size = '32MB'", "SELECT pg_reload_conf()")
    yield shop
    shop.run("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


def test_a_slot_that_falls_behind_is_in_danger_then_lost_and_both_are_told(limited: Shop) -> None:
    database, tables, offset = begun(limited)
    assert any("is lost after 0.0" in note for note in database.lag(offset).notes)

    for number in range(5):
        limited.run(f"INSERT INTO orders VALUES ({number}, 0)", "SELECT pg_switch_wal()")
    limited.run("CHECKPOINT")

    assert "is lost: the server removed log" in str(database.lost(offset))
    assert "the slot is lost" in database.lag(offset).notes[0]
    wrong = [one for one in database.findings() if not one.ok]
    assert [one.what.partition(",")[0] for one in wrong] == [f"slot {SLOT} is there"]
    assert "polynya landing reload" in wrong[0].fix
    assert_begins_anew(database, tables)


def test_slots_that_hold_the_log_are_found(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MUCH_BYTES", 100)
    database, _, _ = begun(shop)
    shop.run("SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')", WRITE)

    said = [one.what for one in database.findings() if "forgotten" in one.what]
    own = [one for one in database.findings() if f"slot {SLOT} is there" in one.what]

    assert len(said) == 1
    assert "keeps" in said[0]
    assert own[0].ok
    assert "MiB of its log for it" in own[0].what


def test_a_server_that_was_started_again_goes_on_where_it_was(shop: Shop) -> None:
    database, _, offset = begun(shop)

    shop.server.kill()
    shop.server.start()

    with pytest.raises(Exception, match="does not answer"):
        database.lag(offset)
    assert database.lost(offset) is None


@pytest.mark.slow
def test_a_capture_whose_slot_was_lost_says_so_until_all_is_asked_for_anew(
    shop: Shop, tmp_path: Path
) -> None:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY, n int)", WRITE)
    (tmp_path / "landing").mkdir()
    capture = CaptureProcess(tmp_path / "landing", shop.access())
    capture.finish()
    shop.run(f"SELECT pg_replication_slot_advance('{SLOT}', pg_current_wal_lsn())")
    shop.run("DELETE FROM orders WHERE id < 50", "UPDATE orders SET n = 2 WHERE id > 400")
    shop.run(f"SELECT pg_replication_slot_advance('{SLOT}', pg_current_wal_lsn())")

    capture.start()
    assert capture.process is not None
    assert capture.process.wait(120) == 3
    error = capture.events()[-1]["error"]
    assert error["code"] == "POLYNYA-GTW-008"
    assert not error["retryable"]

    capture.settings = {"requests": (CaptureRequest((), reload=True),)}
    capture.finish()
    # Some changes before these loads never landed.
    assert_tables_are_there(capture, shop)
    shop.run("UPDATE orders SET n = 3 WHERE id = 100")
    capture.settings = {}
    capture.finish()
    assert_tables_are_there(capture, shop)
