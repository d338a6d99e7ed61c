"""A view without slot: of what has no changes in the log, by whoever may only read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.capture.source import CaptureStart, Offset, SourceTable
from polynya.model.errors import DependencyError
from tests.capture.postgresql.shop import Shop, read_all


def look(
    shop: Shop, *include: str, beyond: Offset | None = None, **more: Any
) -> tuple[tuple[SourceTable, ...], CaptureStart]:
    database = shop.open(**more)
    tables = database.tables(include, ())
    beginning = database.look(tables, beyond)
    shop.closes(beginning.snapshot)
    return tables, beginning


def test_views_and_tables_without_key_are_read_whole_by_somebody_who_may_only_read(
    shop: Shop,
) -> None:
    shop.run(
        "CREATE TABLE log (n int, pad text)",
        "INSERT INTO log SELECT i, repeat('é', i) FROM generate_series(1, 2500) i",
        "CREATE VIEW long AS SELECT n, n % 2 = 0 AS even FROM log WHERE n > 10",
        "CREATE MATERIALIZED VIEW sums AS SELECT n % 3 AS rest, count(*) AS n FROM log GROUP BY 1",
        "CREATE UNLOGGED TABLE seen (id int PRIMARY KEY)",
        "INSERT INTO seen VALUES (7)",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN PASSWORD 'r'",
        "GRANT USAGE ON SCHEMA public TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    )
    names = ("public.log", "public.long", "public.seen", "public.sums")
    tables, beginning = look(shop, *names, user="reader", password="r")
    reader = shop.open(user="reader", password="r", follows=False)
    assert all(one.ok for one in reader.findings())
    shop.run("DELETE FROM log", "REFRESH MATERIALIZED VIEW sums")

    pages = {one.name: read_all(beginning.snapshot, one, 900) for one in tables}

    assert [len(page) for page in pages["public.log"]] == [900, 900, 700]
    rows = {name: [row for page in found for row in page] for name, found in pages.items()}
    assert [row["polynya_row"] for row in rows["public.log"]] == list(range(1, 2501))
    assert sorted(row["n"] for row in rows["public.log"]) == list(range(1, 2501))
    assert len(rows["public.long"]) == 2490
    assert rows["public.seen"] == [{"id": 7}]
    assert shop.run("SELECT slot_name FROM pg_replication_slots") == []
    assert shop.run("SELECT pubname FROM pg_publication") == []
    shop.run("DROP OWNED BY reader", "DROP ROLE reader")


def test_the_number_of_a_row_is_its_key_and_its_schema_says_so(shop: Shop) -> None:
    shop.run("CREATE TABLE log (note text)", "INSERT INTO log VALUES ('a')")
    (table,), beginning = look(shop, "public.log")

    chunk = beginning.snapshot.read(table, None, 10, None)

    line = json.loads(chunk.lines)
    assert line["key"] == {"polynya_row": 1}
    assert line["value"]["after"] == {"polynya_row": 1, "note": "a"}
    (_, after, *_) = beginning.snapshot.envelope(table)["fields"]
    assert [field["field"] for field in after["fields"]] == ["polynya_row", "note"]
    assert (chunk.rows, chunk.is_last) == (1, True)


def test_conditions_and_a_beginning_in_the_middle(shop: Shop) -> None:
    shop.run("CREATE VIEW numbers AS SELECT i FROM generate_series(1, 100) i")
    (table,), beginning = look(shop, "public.numbers", rows={"public.numbers": "i > 50"})

    chunk = beginning.snapshot.read(table, (10,), 30, "i <= 70")

    found = [json.loads(line)["value"]["after"] for line in chunk.lines.splitlines()]
    assert [row["polynya_row"] for row in found] == list(range(11, 21))
    assert [row["i"] for row in found] == list(range(61, 71))


def test_a_look_stands_behind_the_one_before_whatever_the_log_says(shop: Shop) -> None:
    shop.run("CREATE TABLE log (n int)")
    _, first = look(shop, "public.log")
    _, second = look(shop, "public.log", beyond=first.offset)
    far = {**second.offset, "lsn": 1 << 50, "lsn_commit": 1 << 50}
    _, third = look(shop, "public.log", beyond=far)

    places = [int(one.snapshot.source["lsn"]) for one in (first, second, third)]
    assert places[0] + 1 < places[1]
    assert places[2] == (1 << 50) + 2


def test_a_table_that_is_truncated_while_it_is_read_is_not_taken_for_an_empty_one(
    shop: Shop,
) -> None:
    shop.run("CREATE TABLE log (n int)", "INSERT INTO log VALUES (1)")
    (table,), beginning = look(shop, "public.log")
    shop.run("TRUNCATE log")

    with pytest.raises(DependencyError, match="changed while it was loaded"):
        beginning.snapshot.read(table, None, 10, None)
