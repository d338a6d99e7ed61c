"""Extractions of PostgreSQL tables and views by a column that grows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from polynya.capture.source import GrowingColumn, GrowingSnapshot, SourceTable
from polynya.capture.wire import GrowingSettings
from polynya.capture.worker.extraction import growing_column
from polynya.model.errors import OperationError
from tests.capture.extraction import Extraction, Reader, Workload, agrees
from tests.capture.postgresql.shop import Shop, rows
from tests.capture.postgresql.test_looks import look

ITEMS = "CREATE TABLE items (id bigint PRIMARY KEY, at timestamptz, v text)"


def extraction(shop: Shop, *include: str, **settings: Any) -> Extraction:
    keys = settings.pop("keys", {})
    return Extraction.of(
        lambda: shop.open(follows=False, keys=keys), include=include or ("public.items",),
        **settings,
    )  # fmt: skip


def source_rows(shop: Shop) -> list[tuple[int, str]]:
    return [(row[0], row[1]) for row in shop.run("SELECT id, v FROM items")]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))]
)
def test_random_changes_arrive_and_a_compare_makes_tables_equal_over_kills(
    shop: Shop, seed: int
) -> None:
    shop.run(ITEMS, "CREATE INDEX ON items (at)")
    chance = random.Random(seed)
    extracted = extraction(shop)
    work = Workload(lambda: shop.server.connect(database=shop.name), "items", chance)
    for day in range(3):
        deletes = day > 0
        for _ in range(4):
            work.step(deletes=deletes)
            if chance.random() < 0.4:
                extracted.run(kill_at=chance.randrange(1, 6), after=chance.random() < 0.5)
            else:
                extracted.run()
        work.commit_late(patience=0)
        extracted.run()
        if not deletes:
            known = Reader.of(extracted.store).rows["public.items"]
            wanted = shop.run("SELECT id FROM items WHERE at IS NOT NULL")
            assert {row[0] for row in wanted} <= {row["id"] for row in known.values()}
        extracted.now = extracted.now.replace(day=day + 2, hour=0, minute=0, second=1)
        extracted.run()
        assert agrees(Reader.of(extracted.store), "public.items", source_rows(shop))


def test_rows_that_are_gone_when_a_killed_first_load_begins_again_leave(shop: Shop) -> None:
    shop.run(ITEMS, "INSERT INTO items SELECT i, '2026-01-01', 'a' FROM generate_series(1, 20) i")
    extracted = extraction(shop)
    extracted.run(kill_at=4)
    landed = len(Reader.of(extracted.store).rows["public.items"])
    shop.run("DELETE FROM items WHERE id = 3")

    extracted.run()

    assert landed == 14
    assert agrees(Reader.of(extracted.store), "public.items", source_rows(shop))


def test_rows_that_are_read_again_and_nothing_new_write_nothing(shop: Shop) -> None:
    shop.run(ITEMS, "INSERT INTO items SELECT i, '2026-01-01', 'a' FROM generate_series(1, 20) i")
    extracted = extraction(shop)
    extracted.run()
    writes = Reader.of(extracted.store).writes

    again = [extracted.run() for _ in range(3)]
    shop.run("INSERT INTO items VALUES (21, '2026-01-01 00:02', 'late')")
    extracted.run()
    none = extracted.run()

    assert writes == 20
    # Each reads all of the last minute again, and an event that ends the load.
    assert again == [21, 21, 21]
    assert none == 2
    assert Reader.of(extracted.store).writes == 21


@pytest.mark.parametrize("column", ["n", "m", "f", "d", "at", "tz"])
def test_columns_of_each_type_find_equal_and_later_values_over_the_overlap(
    shop: Shop, column: str
) -> None:
    shop.run(
        "CREATE TABLE items (id int PRIMARY KEY, n smallint, m numeric, f float8, d date,"
        " at timestamp, tz timestamptz)",
        "INSERT INTO items SELECT i, i, i + 0.5, i, date '2026-01-01' + i,"
        " timestamp '2026-01-01 00:00:00.000001' + i * interval '1 second',"
        " timestamptz '2026-01-01 00:00:00.000001+02' + i * interval '1 second'"
        " FROM generate_series(1, 100) i",
        "INSERT INTO items (id, m, f, d, at, tz) VALUES (101, 'NaN', 'Infinity', 'infinity',"
        " 'infinity', '-infinity'), (102, 'NaN', 'NaN', 'infinity', 'infinity', 'infinity')",
    )
    (table,), beginning = look(shop, "public.items")
    view = beginning.snapshot
    assert isinstance(view, GrowingSnapshot)
    found = growing_column("t", table, {"*": GrowingSettings(column, 0, None)})

    mark = view.newest(table, column)
    exact = view.read_grown(table, GrowingColumn(column, found.kind, 0, mark), None, 10, None)
    day = 24 * 3600 * 1_000_000
    over = GrowingColumn(column, found.kind, {"d": 3 * day}.get(column, 3), mark)
    if column in {"at", "tz"}:
        over = GrowingColumn(column, "time", 3_000_000, mark)
    with_overlap = view.read_grown(table, over, None, 10, None)

    assert [row["id"] for row in rows(exact)] == [100]
    assert [row["id"] for row in rows(with_overlap)] == [97, 98, 99, 100]
    assert with_overlap.last == (4, mark)


def test_chunks_follow_the_column_and_another_view_goes_on_behind_the_last_value(
    shop: Shop,
) -> None:
    shop.run(ITEMS, "INSERT INTO items SELECT i, timestamptz '2026-01-01' + (i / 3) * interval"
             " '1 second', 'a' FROM generate_series(0, 29) i")  # fmt: skip
    column = GrowingColumn("at", "time", 0)
    (table,), beginning = look(shop, "public.items")
    view = beginning.snapshot
    assert isinstance(view, GrowingSnapshot)

    first = view.read_grown(table, column, None, 10, None)
    second = view.read_grown(table, column, first.last, 10, None)
    (table,), later = look(shop, "public.items")
    assert isinstance(later.snapshot, GrowingSnapshot)
    again = later.snapshot.read_grown(table, column, first.last, 100, "id < 25")

    assert [sorted(row["id"] // 3 for row in rows(chunk)) for chunk in (first, second)] == [
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 3], [3, 3, 4, 4, 4, 5, 5, 5, 6, 6],
    ]  # fmt: skip
    assert sorted(row["id"] for row in rows(again)) == list(range(9, 25))
    assert again.is_last


def test_a_view_is_extracted_by_keys_of_the_settings_by_somebody_who_may_only_read(
    shop: Shop,
) -> None:
    shop.run(
        "CREATE TABLE log (n int, at timestamptz, v text)",
        "INSERT INTO log SELECT i, timestamptz '2026-01-01' + i * interval '1 minute', 'a'"
        " FROM generate_series(1, 50) i",
        "CREATE VIEW shown AS SELECT n AS id, at, v FROM log WHERE n <> 13",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN PASSWORD 'r'",
        "GRANT USAGE ON SCHEMA public TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    )
    extracted = Extraction.of(
        lambda: shop.open(
            follows=False, user="reader", password="r", keys={"public.shown": ("id",)}
        ),
        include=("public.shown",),
    )
    extracted.run()
    shop.run(
        "UPDATE log SET v = 'b', at = '2026-01-02' WHERE n = 7",
        "INSERT INTO log VALUES (51, '2026-01-02', 'new')",
        "DELETE FROM log WHERE n = 3",
    )

    extracted.run()

    found = {
        row["id"]: row["v"] for row in Reader.of(extracted.store).rows["public.shown"].values()
    }
    assert (len(found), found[7], found[51], found[3]) == (50, "b", "new", "a")
    assert Reader.of(extracted.store).writes == 49 + 2
    notes = [note for event in extracted.told.of("notes") for note in event["tables"].items()]
    assert notes
    assert all("is no table" in note for _, note in notes)
    assert shop.run("SELECT slot_name FROM pg_replication_slots") == []
    shop.run("DROP OWNED BY reader", "DROP ROLE reader")


def test_a_column_without_an_index_is_a_note_and_another_column_reads_all_again(
    shop: Shop,
) -> None:
    shop.run(ITEMS, "INSERT INTO items VALUES (1, '2026-01-01', 'a'), (2, NULL, 'b')")
    extracted = extraction(shop)
    extracted.run()
    extracted.run()
    notes = [note for event in extracted.told.of("notes") for note in event["tables"].items()]
    shop.run("DELETE FROM items WHERE id = 2")
    other = extraction(shop, growing={"*": GrowingSettings("id", overlap=0)})
    other.store, other.now = extracted.store, extracted.now

    other.run()

    assert notes == [
        ("public.items", "no index begins with `at`, so each extraction reads the whole table")
    ]
    assert agrees(Reader.of(other.store), "public.items", [(1, "a")])
    assert other.position().tables["public.items"].column == "id"


def test_a_table_that_cannot_be_extracted_is_left_out_and_the_others_continue(shop: Shop) -> None:
    shop.run(
        ITEMS, "INSERT INTO items VALUES (1, '2026-01-01', 'a')",
        "CREATE TABLE bare (id int PRIMARY KEY)",
        "CREATE TABLE keyless (id int, at timestamptz)",
        "CREATE TABLE words (id int PRIMARY KEY, at text)",
    )  # fmt: skip
    extracted = extraction(shop, "public.%")

    extracted.run()

    said = {
        event["table"]: event["error"]["message"] for event in extracted.told.of("table_failed")
    }
    assert sorted(said) == ["public.bare", "public.keyless", "public.words"]
    assert "has no column `at`" in said["public.bare"]
    assert "has no key" in said["public.keyless"]
    assert "is of type text" in said["public.words"]
    assert agrees(Reader.of(extracted.store), "public.items", [(1, "a")])
    shop.run("ALTER TABLE bare ADD at timestamptz")
    extracted.run()
    states = {name: one.state for name, one in extracted.position().tables.items()}
    assert states["public.bare"] == "loaded"
    assert states["public.words"] == "suspended"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (GrowingSettings("at", overlap=5), "its `overlap` is a number"),
        (GrowingSettings("id", overlap_seconds=5.0), "its `overlap` is a duration"),
        (GrowingSettings(), "names no column"),
    ],
)
def test_an_overlap_fits_its_column(shop: Shop, settings: GrowingSettings, says: str) -> None:
    shop.run(ITEMS)
    (table,) = shop.open().tables(("public.items",), ())
    assert isinstance(table, SourceTable)

    with pytest.raises(OperationError, match=says):
        growing_column("t", table, {"*": settings})
