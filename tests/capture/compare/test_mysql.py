"""Hashes that a real MariaDB or MySQL computes are those of the rows that a capture brings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from examples.servers.mariadb import Server
from polynya.capture.compare.compare import compared_database
from polynya.capture.compare.digest import (
    DigestLayout,
    TextForm,
    digest_keys,
    digest_ranges,
    digest_rows,
    layout_of,
)
from polynya.capture.compare.mysql import ComparedMysql, MysqlMoment
from polynya.capture.compare.ranges import differing_rows
from polynya.capture.mysql.database import MysqlDatabase
from polynya.formats.debezium.types import fields_of
from polynya.formats.values.arrow_types import arrow_type
from polynya.model.types import DataType
from tests.capture.mysql.cases import ROWS, cases_of, create, insert, insert_nulls
from tests.mariadb import access_to, new_server, numbers

UTC = "SET sql_mode = '', time_zone = '+00:00'"
SINGLES = [
    "0.1",
    "-2.5",
    "0",
    "1e-45",
    "-1.1754942e-38",
    "3.4028234e38",
    "16777217",
    "1.17549435e-38",
]
SHAPES = {"point", "geometry", "linestring", "geometrycollection"}


@dataclass(frozen=True)
class Loaded:
    """The rows of a table as a capture loads them and a table holds them."""

    types: dict[str, DataType]
    batch: pa.RecordBatch


def loaded(server: Server, name: str) -> Loaded:
    database = MysqlDatabase(access_to(server))
    (table,) = database.tables([name], [])
    snapshot = database.resume([table])
    chunk = snapshot.read(table, None, 1000, None)
    after = next(f for f in snapshot.envelope(table)["fields"] if f["field"] == "after")
    snapshot.close()
    database.close()
    rows = [json.loads(line)["value"]["after"] for line in chunk.lines.splitlines()]
    types, arrays = {}, []
    for field, (kind, decode) in fields_of(after).items():
        values = [None if row[field] is None else decode(row[field]) for row in rows]
        types[field] = kind
        arrays.append(array(values, kind))
    return Loaded(types, pa.record_batch(arrays, names=list(types)))


def array(values: list[object], kind: DataType) -> pa.Array:
    whole = pa.types.is_temporal(arrow_type(kind))
    if whole:
        values = [None if value is None else int(value) for value in values]  # type: ignore[call-overload]
    return pa.array(values, arrow_type(kind))


@pytest.fixture(scope="module", params=["mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings = {"max_allowed_packet": "1M"}
    made = new_server(tmp_path_factory.mktemp(request.param), settings, kind=request.param)
    try:
        made.start()
        made.execute("CREATE DATABASE shop")
        kinds = (create(made.kind), insert(made.kind, 1), insert_nulls(made.kind, 2))
        made.execute(UTC, *kinds, database="shop")
        made.execute(
            "CREATE TABLE singles (id INT PRIMARY KEY AUTO_INCREMENT, f FLOAT)",
            *(f"INSERT INTO singles (f) VALUES ({one})" for one in SINGLES),
            "CREATE TABLE `o``dd` (a VARCHAR(9), `b,c` INT, PRIMARY KEY (a, `b,c`))",
            f"INSERT INTO `o``dd` SELECT CONCAT('é', seq % 7), seq FROM {numbers(300)}",
            "CREATE TABLE twice (n INT)", "INSERT INTO twice VALUES (1), (1), (NULL)",
            "CREATE TABLE heavy (id INT PRIMARY KEY, a LONGBLOB, t LONGTEXT)",
            "INSERT INTO heavy VALUES (1, REPEAT('x', 700000), REPEAT('é', 10)), (2, NULL, NULL),"
            " (3, 'b', REPEAT('é', 400000))",
            database="shop",
        )  # fmt: skip
        yield made
    finally:
        made.close()


@pytest.fixture
def moment(server: Server) -> Iterator[MysqlMoment]:
    source = compared_database(access_to(server))
    assert isinstance(source, ComparedMysql)
    found = source.moment()
    yield found
    found.close()


@pytest.fixture(scope="module")
def kinds(server: Server) -> Loaded:
    return loaded(server, "shop.kinds")


@pytest.mark.parametrize("row", [row for row in ROWS if not SHAPES & {c.ddl for c in ROWS[row]}])
def test_values_of_a_type_have_one_text_on_both_sides(
    server: Server, moment: MysqlMoment, kinds: Loaded, row: str
) -> None:
    layout = layout_of(moment.columns("shop.kinds"), kinds.types, key=("id",))
    compared = dict(layout.columns)
    for number, case in cases_of(server.kind).items():
        if case not in ROWS[row]:
            continue
        column = f"c{number}"
        one = DigestLayout((("id", TextForm.WHOLE), (column, compared[column])), ("id",))

        source = moment.rows("shop.kinds", one, 2, range(4), None)

        assert len(source) == 2
        assert differing_rows(source, digest_rows([kinds.batch], one, 2, range(4))) == {}, case


def test_shapes_are_left_out_with_the_reason(
    server: Server, moment: MysqlMoment, kinds: Loaded
) -> None:
    layout = layout_of(moment.columns("shop.kinds"), kinds.types, key=("id",))

    left_out = {one.column: one.why for one in layout.left_out}

    assert left_out.keys() == {
        f"c{number}" for number, case in cases_of(server.kind).items() if case.ddl in SHAPES
    }
    assert "values of type point are not compared" in left_out.values()


@pytest.mark.parametrize("name", ["singles", "o`dd", "twice", "heavy"])
def test_ranges_rows_and_keys_are_the_same_on_both_sides(
    server: Server, moment: MysqlMoment, name: str
) -> None:
    table, rows = f"shop.{name}", loaded(server, f"shop.{name}")
    key = {"twice": (), "o`dd": ("a", "b,c")}.get(name, ("id",))
    layout = layout_of(moment.columns(table), rows.types, key=key)

    ranges = moment.ranges(table, layout, 3, None)
    source = moment.rows(table, layout, 3, range(8), None)
    wanted = list(source)[:2]

    assert ranges == digest_ranges([rows.batch], layout, 3)
    assert source == digest_rows([rows.batch], layout, 3, range(8))
    assert moment.keys(table, layout, wanted, None) == digest_keys([rows.batch], layout, wanted)
    assert moment.count(table, None) == sum(one.copies for one in source.values())


def test_only_rows_that_the_capture_chooses_are_compared(moment: MysqlMoment) -> None:
    layout = DigestLayout((("id", TextForm.WHOLE),), ("id",))

    assert moment.count("shop.singles", "id > 6") == 2
    assert sum(one.rows for one in moment.ranges("shop.singles", layout, 3, "id > 6").values()) == 2
    assert len(moment.rows("shop.singles", layout, 3, range(8), "id > 6 OR id = 1")) == 3


def test_a_moment_stays_what_it_was_and_is_reached_by_what_came_before_it(server: Server) -> None:
    source, layout = ComparedMysql(access_to(server)), DigestLayout((("n", TextForm.WHOLE),), ())
    first = source.moment()
    before = first.rows("shop.twice", layout, 0, [0], None)
    server.execute("UPDATE twice SET n = 5 WHERE n IS NULL", database="shop")
    second = source.moment()

    assert first.rows("shop.twice", layout, 0, [0], None) == before
    assert second.rows("shop.twice", layout, 0, [0], None) != before
    file, at = second.position.split(":")
    assert second.is_reached({"file": file, "pos": int(at)})
    assert second.is_reached({"file": "binlog.000099", "pos": 4})
    assert not second.is_reached({"file": file, "pos": int(at) - 1})
    assert not second.is_reached({})
    first.close()
    second.close()


def test_hashes_that_are_none_are_not_asked(moment: MysqlMoment) -> None:
    layout = DigestLayout((("id", TextForm.WHOLE),), ("id",))

    assert moment.keys("shop.singles", layout, ["') OR 1 = 1 --"], None) == {}
