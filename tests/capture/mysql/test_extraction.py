"""Extractions of MariaDB tables and views by a column that grows."""

from __future__ import annotations

import random
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.source import GrowingColumn, GrowingSnapshot
from tests.capture.extraction import Extraction, Reader, Workload, agrees
from tests.capture.mysql.test_looks import rows
from tests.mariadb import access_to

ITEMS = "CREATE TABLE items (id bigint PRIMARY KEY, at datetime(6), v text, KEY (at))"


class Session:
    """A session that commits each statement, or what stands between BEGIN and COMMIT."""

    def __init__(self, server: Server) -> None:
        self._connection = server.connect("shop", autocommit=True)

    def run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)


def database(server: Server, **more: Any) -> MysqlDatabase:
    return MysqlDatabase(access_to(server, follows=False, **more))


def source_rows(server: Server) -> list[tuple[int, str]]:
    return [(int(row[0]), row[1]) for row in server.execute("SELECT id, v FROM shop.items")]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_random_changes_arrive_and_a_compare_makes_tables_equal_over_kills(
    server: Server, shop: str, seed: int
) -> None:
    server.execute(ITEMS, database=shop)
    chance = random.Random(seed)
    extracted = Extraction.of(lambda: database(server), include=("shop.items",))
    work = Workload(lambda: Session(server), "items", chance)
    for day in range(3):
        for _ in range(4):
            work.step(deletes=day > 0)
            if chance.random() < 0.4:
                extracted.run(kill_at=chance.randrange(1, 6), after=chance.random() < 0.5)
            else:
                extracted.run()
        work.commit_late(patience=0)
        extracted.run()
        if day == 0:
            known = Reader.of(extracted.store).rows["shop.items"].values()
            wanted = server.execute("SELECT id FROM shop.items WHERE at IS NOT NULL")
            assert {int(row[0]) for row in wanted} <= {row["id"] for row in known}
        extracted.now = extracted.now.replace(day=day + 2, hour=0, minute=0, second=1)
        extracted.run()
        assert agrees(Reader.of(extracted.store), "shop.items", source_rows(server))


@pytest.mark.parametrize("column", ["n", "u", "m", "f", "d", "at", "s"])
def test_columns_of_each_type_find_equal_and_later_values_over_the_overlap(
    server: Server, shop: str, column: str
) -> None:
    server.execute(
        "CREATE TABLE items (id int PRIMARY KEY, n smallint, u bigint unsigned, m decimal(20, 3),"
        " f double, d date, at datetime(6), s timestamp(3) NULL)",
        "INSERT INTO items SELECT seq, seq, 18446744073709551515 + seq, seq + 0.5, seq / 7,"
        " '2026-01-01' + INTERVAL seq DAY, '2026-01-01 00:00:00.000001' + INTERVAL seq SECOND,"
        " '2026-01-01 00:00:00.001' + INTERVAL seq SECOND FROM seq_1_to_100",
        "INSERT INTO items (id) VALUES (101)",
        database=shop,
    )
    source = database(server)
    tables = source.tables(("shop.items",), ())
    view = source.look(tables, None).snapshot
    assert isinstance(view, GrowingSnapshot)

    mark = view.newest(tables[0], column)
    is_time = column in {"d", "at", "s"}
    seconds = 3 * 24 * 3600 if column == "d" else 3
    overlap = seconds * 1_000_000 if is_time else 3
    found = GrowingColumn(column, "time" if is_time else "number", 0, mark)
    exact = view.read_grown(tables[0], found, None, 10, None)
    over = GrowingColumn(column, found.kind, overlap, mark)
    with_overlap = view.read_grown(tables[0], over, None, 100, None)
    view.close()
    source.close()

    assert [row["id"] for row in rows([exact])] == [100]
    expected = [97, 98, 99, 100] if column != "f" else list(range(79, 101))
    assert [row["id"] for row in rows([with_overlap])] == expected


def test_dates_of_zero_bound_nothing(server: Server, shop: str) -> None:
    server.execute(
        "SET sql_mode = ''",
        "CREATE TABLE items (id int PRIMARY KEY, at datetime)",
        "INSERT INTO items VALUES (1, '0000-00-00'), (2, '0000-00-00')",
        database=shop,
    )
    source = database(server)
    tables = source.tables(("shop.items",), ())
    view = source.look(tables, None).snapshot
    assert isinstance(view, GrowingSnapshot)

    mark = view.newest(tables[0], "at")
    chunk = view.read_grown(tables[0], GrowingColumn("at", "time", 5, mark), None, 10, None)
    note = view.lacks_index(tables[0], "at")
    view.close()
    source.close()

    assert len(rows([chunk])) == 2
    assert note is not None
    assert "no index begins with `at`" in note


def test_a_view_is_extracted_by_keys_of_the_settings(server: Server, shop: str) -> None:
    server.execute(
        "CREATE TABLE log (n int, at datetime, v text)",
        "INSERT INTO log SELECT seq, '2026-01-01' + INTERVAL seq MINUTE, 'a' FROM seq_1_to_50",
        "CREATE VIEW shown AS SELECT n AS id, at, v FROM log WHERE n <> 13",
        database=shop,
    )
    extracted = Extraction.of(
        lambda: database(server, keys={"shop.shown": ("id",)}), include=("shop.shown",)
    )
    extracted.run()
    server.execute(
        "UPDATE log SET v = 'b', at = '2026-01-02' WHERE n = 7",
        "INSERT INTO log VALUES (51, '2026-01-02', 'new')",
        database=shop,
    )

    extracted.run()

    shown = Reader.of(extracted.store).rows["shop.shown"]
    found = {row["id"]: row["v"] for row in shown.values()}
    assert (len(found), found[7], found[51]) == (50, "b", "new")
    assert Reader.of(extracted.store).writes == 49 + 2
