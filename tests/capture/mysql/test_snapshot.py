"""The first load of MariaDB: each row once, in chunks, at a known place of the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.capture.mysql import rows
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.source import Chunk, Key, SourceTable
from polynya.model.errors import DependencyError, OperationError, PolynyaError
from tests.mariadb import access_to


@pytest.fixture
def database(server: Server, shop: str) -> Iterator[MysqlDatabase]:
    made = MysqlDatabase(access_to(server))
    yield made
    made.close()


def chunks(database: MysqlDatabase, name: str, rows: int, where: str | None = None) -> list[Chunk]:
    """A whole table, chunk by chunk; what stands between two goes through JSON as in a header."""
    (table,) = database.tables([name], [])
    snapshot = database.resume([table])
    found: list[Chunk] = []
    after: Key | None = None
    while not found or not found[-1].is_last:
        found.append(snapshot.read(table, after, rows, where))
        after = tuple(json.loads(json.dumps(found[-1].last))) if found[-1].last else None
    snapshot.close()
    return found


def events(many: list[Chunk]) -> list[dict[str, Any]]:
    return [json.loads(line) for chunk in many for line in chunk.lines.splitlines()]


KEYS = {
    "id INT": ["3", "-1", "20", "0"],
    "id BIGINT UNSIGNED": ["18446744073709551615", "9223372036854775808", "1", "2"],
    "id DECIMAL(30,5)": ["1.5", "-2.25", "12345678901234567890.12345", "0"],
    "id VARCHAR(20)": ["'b'", "'A'", "'ö'", "''", "'a''\\\\'", "'a b'"],
    "id VARCHAR(20) COLLATE utf8mb4_bin": ["'b'", "'A'", "'a'", "'ä'"],
    "id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci": ["'z'", "'ä'", "'af'", "'B'"],
    "id VARBINARY(20)": ["x'00'", "x'0000'", "x'ff00'", "x''", "'a'"],
    "id DATE": ["'2024-01-01'", "'1000-01-01'", "'9999-12-31'"],
    "id DATETIME(6)": ["'2024-01-01 00:00:00.000001'", "'2024-01-01'", "'1000-01-01'"],
    "id TIMESTAMP(3)": ["'2024-01-01 00:00:00.001'", "'2024-01-01'", "'1999-01-01'"],
    "id TIME(3)": ["'-10:00:00.5'", "'00:00:00'", "'800:00:00'"],
    "id YEAR": ["2000", "0", "1901"],
    "id UUID": ["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000001'"],
    "id INET6": ["'::1'", "'2001:db8::1'", "'::ffff:192.0.2.1'"],
    "id ENUM('z','a','m')": ["'a'", "'m'", "'z'"],
    "id DOUBLE": ["0.1", "1e300", "-5"],
    "id BIT(9)": ["b'100000001'", "b'1'"],
}


@pytest.mark.parametrize("key", KEYS)
def test_each_row_comes_once_whatever_the_key_is(
    server: Server, database: MysqlDatabase, key: str
) -> None:
    rows = ", ".join(f"({value}, {number})" for number, value in enumerate(KEYS[key]))
    server.execute(
        f"CREATE TABLE a ({key} PRIMARY KEY, n INT)", f"INSERT INTO a VALUES {rows}",
        database="shop",
    )  # fmt: skip

    many = chunks(database, "shop.a", 1)

    found = [event["value"]["after"]["n"] for event in events(many)]
    assert sorted(found) == list(range(len(KEYS[key])))


def test_a_key_of_several_columns_is_followed_through_equal_beginnings(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute(
        "CREATE TABLE a (x INT, y VARCHAR(9), z INT, PRIMARY KEY (x, y, z))",
        "INSERT INTO a SELECT seq % 3, CONCAT('k', seq % 5), seq FROM seq_1_to_200",
        database="shop",
    )

    many = chunks(database, "shop.a", 7)

    keys = [tuple(event["key"].values()) for event in events(many)]
    assert keys == sorted(set(keys))
    assert len(keys) == 200
    assert max(chunk.rows for chunk in many) == 7


def test_a_filter_leaves_rows_out_and_goes_on_through_empty_chunks(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute(
        "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a SELECT seq FROM seq_1_to_50",
        database="shop",
    )  # fmt: skip

    many = chunks(database, "shop.a", 10, "id % 25 = 0")

    assert [event["key"]["id"] for event in events(many)] == [25, 50]
    assert [chunk.rows for chunk in many] == [0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("key", ["kind", "n, kind"])
def test_a_key_that_cannot_be_followed_is_read_in_parts_of_one_view(
    server: Server, database: MysqlDatabase, key: str
) -> None:
    server.execute(
        f"CREATE TABLE a (n INT, kind ENUM('b','a') NOT NULL, PRIMARY KEY ({key}))",
        "INSERT INTO a VALUES (1, 'a'), (2, 'b')", database="shop",
    )  # fmt: skip
    (table,) = database.tables(["shop.a"], [])
    snapshot = database.resume([table])

    first = snapshot.read(table, None, 1, None)
    server.execute("DELETE FROM a", database="shop")
    second = snapshot.read(table, first.last, 1, None)
    third = snapshot.read(table, second.last, 1, None)
    # Of another capture, which has only what the header says.
    again = database.resume([table]).read(table, (1,), 9, None)
    snapshot.close()

    assert sorted(one["key"]["kind"] for one in events([first, second])) == ["a", "b"]
    assert [one.rows for one in (first, second, third, again)] == [1, 1, 0, 0]
    assert [one.is_last for one in (first, second, third, again)] == [False, False, True, True]


def test_long_rows_come_in_smaller_parts(
    server: Server, database: MysqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.capture.mysql.rows.MOST_BYTES", 10_000)
    server.execute(
        "CREATE TABLE a (id FLOAT PRIMARY KEY, t TEXT)",
        "INSERT INTO a SELECT seq, REPEAT('x', 3000) FROM seq_1_to_10", database="shop",
    )  # fmt: skip

    assert [one.rows for one in chunks(database, "shop.a", 1000)] == [4, 4, 2]


def test_a_unique_index_without_null_stands_in_for_a_key(
    server: Server, database: MysqlDatabase
) -> None:
    sql = "CREATE TABLE a (x INT NOT NULL, y INT, z INT NOT NULL, UNIQUE (y), UNIQUE (z))"
    server.execute(sql, database="shop")

    (table,) = database.tables(["shop.a"], [])

    assert table.key == ("z",)


def test_each_chunk_has_a_place_of_its_own_and_sees_what_was_committed_before_it(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, n INT)", "INSERT INTO a VALUES (1, 0), (2, 0)",
        database="shop",
    )  # fmt: skip
    (table,) = database.tables(["shop.a"], [])
    snapshot = database.begin([table]).snapshot

    first = snapshot.read(table, None, 1, None)
    server.execute("UPDATE a SET n = 1", database="shop")
    second = snapshot.read(table, first.last, 2, None)
    snapshot.close()

    before, after = events([first, second])
    assert [one["value"]["after"]["n"] for one in (before, after)] == [0, 1]
    assert before["value"]["source"]["pos"] < after["value"]["source"]["pos"]
    assert first.lines.count(b'"op":"r"') == 1


def test_a_column_that_is_added_while_a_table_is_loaded_comes_with_the_next_chunk(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute(
        "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)", database="shop"
    )
    (table,) = database.tables(["shop.a"], [])
    snapshot = database.begin([table]).snapshot
    first = snapshot.read(table, None, 1, None)

    server.execute("ALTER TABLE a ADD COLUMN n INT DEFAULT 5", database="shop")
    second = snapshot.read(table, first.last, 2, None)
    fields = {one["field"]: one for one in snapshot.envelope(table)["fields"]}
    snapshot.close()

    assert events([second])[0]["value"]["after"] == {"id": 2, "n": 5}
    assert [one["field"] for one in fields["after"]["fields"]] == ["id", "n"]


def test_a_table_that_is_gone_or_has_another_key_is_told(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute("CREATE TABLE a (id INT PRIMARY KEY, n INT)", database="shop")
    (table,) = database.tables(["shop.a"], [])
    snapshot = database.begin([table]).snapshot

    server.execute("ALTER TABLE a DROP PRIMARY KEY", database="shop")
    with pytest.raises(OperationError) as other_key:
        snapshot.read(table, ("1",), 10, None)
    server.execute("DROP TABLE a", database="shop")
    with pytest.raises(DependencyError) as gone:
        snapshot.read(table, None, 10, None)
    snapshot.close()

    assert (other_key.value.code, gone.value.code) == ("POLYNYA-GTW-047", "POLYNYA-GTW-045")


def test_names_may_have_any_characters(server: Server, database: MysqlDatabase) -> None:
    server.execute(
        'CREATE TABLE `a``b."c` (`i"d` INT PRIMARY KEY, `n,ä%` INT)',
        'INSERT INTO `a``b."c` VALUES (1, 2)', database="shop",
    )  # fmt: skip
    (table,) = database.tables(["shop.*"], [])
    assert isinstance(table, SourceTable)

    (event,) = events(chunks(database, 'shop.a`b."c', 10))

    assert (event["key"], event["value"]["after"]) == ({'i"d': 1}, {'i"d': 1, "n,ä%": 2})


def test_a_condition_of_a_load_runs_no_second_statement(
    server: Server, database: MysqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.execute(
        "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1), (2)",
        "CREATE FUNCTION shop.spoil() RETURNS INT DETERMINISTIC "
        "BEGIN DELETE FROM shop.t; RETURN 1; END",
    )  # fmt: skip
    some = events(chunks(database, "shop.t", 9, "id > 1"))
    assert [one["value"]["after"]["id"] for one in some] == [2]
    hostile = "1=1); DROP TABLE shop.t; SELECT (1"

    with pytest.raises(OperationError, match="one condition"):
        chunks(database, "shop.t", 9, hostile)
    # Where no check of ours does, the server refuses a second statement and a write.
    monkeypatch.setattr(rows, "condition", lambda text, *_: text)
    with pytest.raises(PolynyaError):
        chunks(database, "shop.t", 9, hostile)
    with pytest.raises(PolynyaError, match=r"READ ONLY|1792"):
        chunks(database, "shop.t", 9, "shop.spoil() = 1")

    assert len(events(chunks(database, "shop.t", 9))) == 2
