"""Rows of a consistent view: in pages whatever the key, unchanged by what happens meanwhile."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from polynya.capture.postgresql import snapshot
from polynya.capture.postgresql.session import PostgresSession
from polynya.capture.reading_order import ReadingOrder
from polynya.model.errors import ConfigError, DependencyError, OperationError, PolynyaError
from polynya.transform.source_conditions import checked_condition
from tests.capture.postgresql.shop import Shop, read_all, rows
from tests.security.test_tries import SEED, WORDS


def test_pages_go_on_exactly_where_the_last_one_ended(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE orders (region text, id bigint, note text, PRIMARY KEY (region, id))",
        "INSERT INTO orders SELECT chr(65 + i % 7), i, 'n' || i FROM generate_series(1, 250) i",
    )
    (table,), view = shop.begin("public.orders")

    pages = read_all(view, table, 40)

    assert [len(page) for page in pages] == [40, 40, 40, 40, 40, 40, 10]
    seen = [(row["region"], row["id"]) for page in pages for row in page]
    assert len(set(seen)) == 250


@pytest.mark.parametrize(
    "kind",
    [
        'text COLLATE "C"',
        "citext",
        "char(8)",
        "numeric",
        "timestamptz",
        "uuid",
        "size",
        "real",
    ],
)
def test_every_kind_of_key_is_read_once_and_whole(shop: Shop, kind: str) -> None:
    values = {
        "numeric": "i / 7.0", "timestamptz": "now() + i * interval '1 microsecond'",
        "uuid": "gen_random_uuid()", "real": "i / 3.0::real",
        "size": "(ARRAY['small', 'large', 'middle']::size[])[i]",
    }  # fmt: skip
    # Small and capital letters, accents, quotes: an order that no client would guess.
    texts = "chr(CASE i % 5 WHEN 0 THEN 97 WHEN 1 THEN 233 WHEN 2 THEN 39 ELSE 66 END) || i"
    count = 3 if kind == "size" else 100
    shop.run(
        "CREATE TYPE size AS ENUM ('small', 'large', 'middle')",
        "CREATE EXTENSION citext",
        f"CREATE TABLE things (k {kind} PRIMARY KEY, n int)",
        f"INSERT INTO things SELECT {values.get(kind, texts)}, i "
        f"FROM generate_series(1, {count}) i",
    )
    (table,), view = shop.begin("public.things")

    pages = read_all(view, table, 9)

    assert sorted(row["n"] for page in pages for row in page) == list(range(1, count + 1))


def test_a_table_without_key_is_read_by_blocks(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE log (n int, pad text)",
        "ALTER TABLE log REPLICA IDENTITY FULL",
        "INSERT INTO log SELECT i, repeat('x', 500) FROM generate_series(1, 400) i",
        "DELETE FROM log WHERE n BETWEEN 100 AND 300",
        "VACUUM ANALYZE log",
    )
    (table,), view = shop.begin("public.log")

    pages = read_all(view, table, 25)

    assert len(pages) > 2
    assert sorted(row["n"] for page in pages for row in page) == [*range(1, 100), *range(301, 401)]
    first = json.loads(view.read(table, None, 25, None).lines.splitlines()[0])
    assert first["key"] is None


def test_a_view_shows_what_was_there_when_it_began(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE orders (id int PRIMARY KEY, n int)",
        "INSERT INTO orders SELECT i, 0 FROM generate_series(1, 100) i",
    )
    (table,), view = shop.begin("public.orders")
    before = rows(view.read(table, None, 10, None))

    shop.run("UPDATE orders SET n = 1", "DELETE FROM orders WHERE id > 50")

    with ThreadPoolExecutor(4) as readers:
        order = ReadingOrder((("id", "integer"),))
        places = [order.place((str(after),)) for after in range(0, 100, 10)]
        chunks = readers.map(lambda after: view.read(table, after, 10, None), places)
        found = [row for chunk in chunks for row in rows(chunk)]
    assert [row["id"] for row in before] == list(range(1, 11))
    assert sorted(row["id"] for row in found) == list(range(1, 101))
    assert {row["n"] for row in found} == {0}


@pytest.mark.parametrize(
    "change", ["TRUNCATE orders", "ALTER TABLE orders ALTER n TYPE bigint", "VACUUM FULL orders"]
)
def test_a_table_that_was_written_anew_is_not_taken_for_an_empty_one(
    shop: Shop, change: str
) -> None:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY, n int)", "INSERT INTO orders VALUES (1, 1)")
    (table,), view = shop.begin("public.orders")

    shop.run(change)

    with pytest.raises(DependencyError, match="changed while it was loaded"):
        view.read(table, None, 10, None)


def test_view_whose_session_has_ended_is_worth_a_new_start(shop: Shop) -> None:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    (table,), view = shop.begin("public.orders")
    view._exported.holder.close()

    with pytest.raises(DependencyError) as caught:
        view.read(table, None, 10, None)

    assert caught.value.code == "POLYNYA-GTW-020"
    assert "does not exist" in str(caught.value.why)


def test_partitions_are_rows_of_the_table_that_is_parted(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE sales (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)",
        "CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')",
        "CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')",
        "INSERT INTO sales SELECT i, DATE '2024-01-01' + i % 60 FROM generate_series(1, 90) i",
    )

    tables, view = shop.begin("public.*")

    assert [one.name for one in tables] == ["public.sales"]
    pages = read_all(view, tables[0], 20)
    assert sorted(row["id"] for page in pages for row in page) == list(range(1, 91))


def test_conditions_of_the_load_and_of_the_task_both_hold(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE orders (id int PRIMARY KEY, region text)",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        "INSERT INTO orders SELECT i, CASE WHEN i % 2 = 0 THEN 'eu' ELSE 'us' END "
        "FROM generate_series(1, 40) i",
    )
    (table,), view = shop.begin("public.orders", rows={"public.orders": "region = 'eu'"})

    pages = read_all(view, table, 7, "id > 20 OR id = 2")

    assert sorted(row["id"] for page in pages for row in page) == [2, *range(22, 41, 2)]


def test_long_rows_come_in_smaller_chunks(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polynya.capture.postgresql.snapshot.MOST_BYTES", 100_000)
    shop.run(
        "CREATE TABLE documents (id int PRIMARY KEY, body text)",
        "INSERT INTO documents SELECT i, repeat(md5(i::text), 300) FROM generate_series(1, 60) i",
        "ANALYZE documents",
    )
    (table,), view = shop.begin("public.documents")

    pages = read_all(view, table, 1000)

    assert sum(map(len, pages)) == 60
    # The statistics know the stored size only; after the first chunk the length of lines is known.
    assert all(len(page) <= 11 for page in pages[1:])
    assert len(pages) > 2


def test_names_and_values_that_need_quoting_arrive_as_they_are(shop: Shop) -> None:
    schema, table_name = '"odd ""one"""', '"it\'s % {a}"'
    key, column = '"k\'e\\y"', '"a"":b\\n"'
    values = "('a''\\', 'x'), ('b\\', E'\\n\\t\"\\x01')"
    shop.run(
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.{table_name} ({key} text PRIMARY KEY, {column} text)",
        f"INSERT INTO {schema}.{table_name} VALUES {values}",
    )
    (table,), view = shop.begin("odd*")

    pages = read_all(view, table, 1)

    assert pages == [
        [{"k'e\\y": "a'\\", 'a":b\\n': "x"}],
        [{"k'e\\y": "b\\", 'a":b\\n': '\n\t"\x01'}],
    ]


def test_a_condition_of_a_load_runs_no_second_statement(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    (table,), view = shop.begin("public.t")
    assert [row["id"] for row in rows(view.read(table, None, 9, "id > 1"))] == [2]
    hostile = "true); COMMIT; DROP TABLE t; SELECT (1"

    with pytest.raises(OperationError, match="one condition"):
        view.read(table, None, 9, hostile)
    # The server refuses it, too, where no check of ours does.
    monkeypatch.setattr(snapshot, "condition", lambda text, *_: f"({text})")
    with pytest.raises(OperationError) as caught:
        view.read(table, None, 9, hostile)

    assert caught.value.code == "POLYNYA-GTW-031"
    assert shop.run("SELECT count(*) FROM t") == [[2]]


@pytest.mark.slow
def test_no_accepted_condition_does_more_than_choose_rows(shop: Shop) -> None:
    """By the protocol that takes several statements at once, which captures do not use for them."""
    shop.run("CREATE TABLE x (a int)", "CREATE TABLE t (a text)", "INSERT INTO t VALUES ('x')")
    session, draw, tried = PostgresSession(shop.access()), random.Random(SEED), 0
    for _ in range(60_000):
        text = draw.choice(("", " ")).join(draw.choices(WORDS, k=draw.randrange(1, 8)))
        try:
            condition = checked_condition(text, "postgresql")
        except ConfigError:
            continue
        tried += 1
        with suppress(PolynyaError):
            assert len(session.run(f"SELECT 'one' FROM t WHERE {condition}")) <= 1
    session.close()

    assert tried > 100
    assert shop.run("SELECT count(*) FROM t") == [[1]]
    assert shop.run("SELECT count(*) FROM x") == [[0]]
