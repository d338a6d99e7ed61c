"""Keys of texts are read once and whole whatever character set and collation they have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.capture.compare.digest import DigestLayout, TextForm
from polynya.capture.compare.mysql import ComparedMysql
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.source import Key
from polynya.model.errors import OperationError
from tests.mariadb import access_to, new_server

#: What orders differently in some collation, or is longer in some character set.
TEXTS = [
    "", " ", "a", "A b", "a\t", "B", "z", "Z", "ä", "Ö", "ß", "ss", "é", "\u0131", "ñ", "ll", "ch",
    "c", "dz", "ж", "中", "日本", "กข", "א", "ｱ", "😀", "𐀀", "\uffff", "\x01", "\\", "'", "~", "¥",
    "‾", "x" * 30,
]  # fmt: skip
#: Another one than the server's, other character sets, and those whose CHAR is read as a whole.
SOME = [
    "utf8mb4_unicode_ci", "utf8mb4_bin", "utf8mb4_uca1400_swedish_nopad_as_cs",
    "utf8mb3_general_ci", "latin1_german2_ci", "ucs2_unicode_ci", "utf16le_bin",
    "utf32_spanish2_ci", "cp1250_czech_cs",
    "swe7_swedish_ci", "sjis_japanese_nopad_ci", "tis620_thai_ci",
]  # fmt: skip


@pytest.fixture
def shop(server: Server) -> Iterator[Server]:
    """The server, with an empty database."""
    server.execute("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
    yield server
    server.execute("DROP DATABASE shop")


@pytest.fixture(params=["utf8mb4_unicode_ci", "latin1_german2_ci"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server whose default is another collation, and its database."""
    charset = request.param.split("_")[0]
    given = {"collation_server": request.param, "character_set_server": charset}
    made = new_server(tmp_path / "server", given)
    try:
        made.start()
        made.execute("CREATE DATABASE shop")
        yield made
    finally:
        made.close()


def read_all(server: Server, name: str, rows: int) -> list[dict[str, Any]]:
    """A whole table, chunk by chunk; what stands between two goes through JSON as in a header."""
    database = MysqlDatabase(access_to(server))
    (table,) = database.tables([name], [])
    snapshot = database.resume([table])
    found: list[dict[str, Any]] = []
    after: Key | None = None
    for _ in range(500):
        chunk = snapshot.read(table, after, rows, None)
        found += [json.loads(line)["value"]["after"] for line in chunk.lines.splitlines()]
        if chunk.is_last:
            break
        assert chunk.last is not None
        after = tuple(json.loads(json.dumps(chunk.last)))
    snapshot.close()
    database.close()
    return found


def fill(server: Server, collation: str) -> list[list[int]]:
    """Two tables with all that the collation tells apart; the numbers of their rows."""
    charset = collation.split("_", maxsplit=1)[0]
    column = f"CHARACTER SET {charset} COLLATE {collation}"
    session = server.connect("shop", charset="utf8mb4")
    with session.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("DROP TABLE IF EXISTS one, several")
        cursor.execute(
            f"CREATE TABLE one (k VARCHAR(40) {column} PRIMARY KEY, n INT AUTO_INCREMENT UNIQUE)"
        )
        cursor.executemany("INSERT IGNORE INTO one (k) VALUES (%s)", [(one,) for one in TEXTS])
        for number in range(1, 256):
            text = f"CONVERT(X'{number:02x}' USING {charset})"
            cursor.execute(f"INSERT IGNORE INTO one (k) SELECT {text} WHERE {text} IS NOT NULL")
        cursor.execute(
            f"CREATE TABLE several (x INT, k CHAR(40) {column}, n INT,"
            " m VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_german2_ci, PRIMARY KEY (k, m, x))"
        )
        cursor.execute(
            "INSERT IGNORE INTO several SELECT n % 3, k, n, IF(n % 2, 'q', 'ß') FROM one"
        )
        cursor.execute("INSERT IGNORE INTO several SELECT 3, k, -n, 'q' FROM one")
        found = []
        for name in ("one", "several"):
            cursor.execute(f"SELECT n FROM {name} ORDER BY n")
            found.append([row[0] for row in cursor.fetchall()])
    session.close()
    return found


def read_once_and_compared(server: Server, collation: str) -> None:
    numbers_of_one, numbers_of_several = fill(server, collation)

    one = [row["n"] for row in read_all(server, "shop.one", 17)]
    several = [row["n"] for row in read_all(server, "shop.several", 29)]
    moment = ComparedMysql(access_to(server)).moment()
    layout = DigestLayout(
        (("k", TextForm.TEXT), ("m", TextForm.TEXT), ("n", TextForm.WHOLE)), ("k", "m", "n")
    )
    compared = moment.rows("shop.several", layout, 0, [0], None)
    some = moment.keys("shop.several", layout, [*compared][:3], None)
    moment.close()

    assert sorted(one) == numbers_of_one
    assert sorted(several) == numbers_of_several
    assert len(compared) == len(several)
    assert some == {key: compared[key] for key in [*compared][:3]}


@pytest.mark.parametrize("collation", SOME)
def test_each_row_comes_once_and_is_compared_whatever_orders_its_key(
    shop: Server, collation: str
) -> None:
    read_once_and_compared(shop, collation)


@pytest.mark.slow
@pytest.mark.parametrize("collation", SOME)
def test_the_default_of_the_server_does_not_matter(other: Server, collation: str) -> None:
    read_once_and_compared(other, collation)


@pytest.mark.slow
def test_each_row_comes_once_in_every_collation_of_the_server(shop: Server) -> None:
    known = shop.execute(
        "SELECT FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
        # Debezium reads the last three wrongly, so they are refused.
        " WHERE CHARACTER_SET_NAME NOT IN ('binary', 'filename', 'cp932', 'geostd8', 'hp8',"
        " 'keybcs2')"
    )
    wrong = {}

    for (collation,) in known:
        try:
            read_once_and_compared(shop, collation)
        except (AssertionError, OperationError) as error:
            wrong[collation] = str(error)[:300]

    assert wrong == {}
    assert len(known) > 1000


def resumed(server: Server, change: str) -> list[list[int]]:
    """The chunks of a table that is changed after its first one."""
    server.execute(
        "DROP TABLE IF EXISTS goods",
        "CREATE TABLE goods (k VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, n INT NOT NULL)",
        "INSERT INTO goods SELECT CONCAT(ELT(1 + seq % 3, 'a', 'B', 'Z'), seq), seq"
        " FROM seq_1_to_60",
        database="shop",
    )  # fmt: skip
    first = MysqlDatabase(access_to(server))
    (table,) = first.tables(["shop.goods"], [])
    snapshot = first.resume([table])
    chunk = snapshot.read(table, None, 50, None)
    snapshot.close()
    first.close()
    server.execute(change, database="shop")
    second = MysqlDatabase(access_to(server))
    later = second.resume([table])
    found = [chunk]
    try:
        while not found[-1].is_last:
            assert found[-1].last is not None
            after = tuple(json.loads(json.dumps(found[-1].last)))
            found.append(later.read(table, after, 50, None))
    finally:
        later.close()
        second.close()
    return [
        [json.loads(line)["value"]["after"]["n"] for line in one.lines.splitlines()]
        for one in found
    ]


def test_a_load_goes_on_where_it_was_while_the_key_is_ordered_as_before(shop: Server) -> None:
    chunks = resumed(shop, "ALTER TABLE goods ADD COLUMN m INT")

    assert [len(one) for one in chunks] == [50, 10]


@pytest.mark.parametrize(
    "kind", ["VARCHAR(20) COLLATE utf8mb4_unicode_ci", "VARCHAR(20) CHARACTER SET latin1"]
)
def test_a_key_in_another_collation_is_read_from_its_beginning(shop: Server, kind: str) -> None:
    chunks = resumed(shop, f"ALTER TABLE goods MODIFY k {kind}")

    assert sorted(n for one in chunks[1:] for n in one) == list(range(1, 61))


@pytest.mark.parametrize(
    "change", ["DROP PRIMARY KEY, ADD PRIMARY KEY (n)", "RENAME COLUMN k TO code"]
)
def test_a_load_whose_table_has_another_key_is_ended_by_name(shop: Server, change: str) -> None:
    with pytest.raises(OperationError) as error:
        resumed(shop, f"ALTER TABLE goods {change}")

    assert error.value.code == "POLYNYA-GTW-047"
