"""Columns that a statement makes while MariaDB is captured are those that a load reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from tests.capture.mysql.capturing import finish, header, lines, same, source_rows

pytestmark = pytest.mark.slow
#: Types in the words of statements, each with a value that another reading would change.
TYPES = {
    "uuid": "'c27b1234-0000-4000-8000-1234567890ab'",
    "UUID DEFAULT '11111111-2222-3333-4444-555555550000'": "'aaaaaaaa-bbbb-cccc-dddd-eeeeee000000'",
    "boolean": "2",
    "bool not null default true": "-128",
    "real": "0.1234567890123",
    "real unsigned": "1e300",
    "double precision": "0.1234567890123",
    "float4": "0.1",
    "float8": "0.1234567890123",
    "float(53)": "0.1234567890123",
    "int1 unsigned": "255",
    "int2 unsigned": "65535",
    "middleint unsigned": "16777215",
    "int4 unsigned": "4294967295",
    "int8": "-9223372036854775808",
    "int8 unsigned": "18446744073709551615",
    "dec": "-1234567890",
    "fixed(20,4)": "1.5",
    "numeric(65,30) unsigned": "1.5",
    "bit": "b'1'",
    "bit(9)": "b'100000001'",
    "national varchar(9)": "'é'",
    "nchar(9)": "'é'",
    "character varying(9)": "'é'",
    "char(4) character set binary": "X'ff01'",
    "varchar(9) character set binary": "X'ff0000'",
    "text character set binary": "X'fe00ff'",
    "long varchar": "'x'",
    "long varbinary": "X'ff'",
    "tinyblob": "X'ff'",
    "json": "'{\"a\": 1.50}'",
    "year": "2155",
    "timestamp(6) null": "'2024-01-01 00:00:00.1'",
    "datetime(3)": "'1969-12-31 23:59:59.999'",
}
COLUMNS = {f"c{number}": kind for number, kind in enumerate(TYPES)}
NAMES = ", ".join(COLUMNS)
VALUES = ", ".join(TYPES[kind] for kind in COLUMNS.values())
MADE = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


def compared(server: Server, landing: Path, table: str) -> int:
    """Assert that rows came by events as a load reads them; how many did.

    A later load of the table would hide it.
    """
    there = source_rows(server, table)
    events = [
        one
        for one in lines(landing)
        if one["value"].get("op") == "c" and f"shop.{one['value']['source']['table']}" == table
    ]
    for one in events:
        after = one["value"]["after"]
        row = there[json.dumps(one["key"], sort_keys=True)]
        assert after == {name: row[name] for name in after}, table
    return len(events)


def test_a_table_that_a_statement_makes(own: Server, tmp_path: Path) -> None:
    own.execute("CREATE TABLE other (id INT PRIMARY KEY)", database="shop")
    finish(own, tmp_path / "landing")

    own.execute(
        f"CREATE TABLE t (id INT PRIMARY KEY, {MADE})",
        f"INSERT INTO t (id, {NAMES}) VALUES (1, {VALUES})",
        "CREATE TABLE u (id SERIAL, uuid UUID, KEY uuid (uuid))",
        "INSERT INTO u (uuid) VALUES ('00000000-0000-4000-8000-123456780000')",
        "CREATE TABLE v LIKE t",
        f"INSERT INTO v (id, {NAMES}) VALUES (1, {VALUES})",
        database="shop",
    )
    finish(own, tmp_path / "landing")

    assert [compared(own, tmp_path / "landing", f"shop.{name}") for name in "tuv"] == [1, 1, 1]


def test_columns_that_statements_add(own: Server, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    own.execute("CREATE TABLE t (id INT PRIMARY KEY)", database="shop")
    finish(own, landing)

    changes = []
    for number, (name, kind) in enumerate(COLUMNS.items()):
        changes += [
            f"ALTER TABLE t ADD COLUMN {name} {kind}",
            f"INSERT INTO t (id, {name}) VALUES ({number}, {TYPES[kind]})",
        ]
    own.execute(*changes, database="shop")
    finish(own, landing)

    assert compared(own, landing, "shop.t") == len(COLUMNS)
    same(own, landing, "shop.t")


def test_a_table_that_replaces_another(own: Server, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    own.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)", database="shop")
    finish(own, landing)

    own.execute(
        "CREATE OR REPLACE TABLE t (b BOOLEAN, uuid UUID DEFAULT uuid(), r real, id INT,"
        " KEY uuid (uuid), PRIMARY KEY (id))",
        "INSERT INTO t (id, b, uuid, r) VALUES (1, 2, '00000000-0000-4000-8000-123456780000', 0.1)",
        database="shop",
    )
    finish(own, landing)

    assert compared(own, landing, "shop.t") == 1
    same(own, landing, "shop.t")


def test_a_table_that_is_made_from_a_query_is_loaded(own: Server, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    own.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, u UUID)",
        "INSERT INTO t VALUES (1, 'aaaaaaaa-bbbb-cccc-dddd-eeeeee000000')",
        database="shop",
    )
    finish(own, landing)

    own.execute(
        "CREATE TABLE w (PRIMARY KEY (id)) AS SELECT * FROM t",
        "DROP TABLE t",
        "CREATE TABLE t (PRIMARY KEY (id)) AS SELECT * FROM w",
        "INSERT INTO t VALUES (2, 'aaaaaaaa-bbbb-cccc-dddd-eeeeee000001')",
        database="shop",
    )
    finish(own, landing)

    same(own, landing, "shop.w", "shop.t")
    assert header(landing)["position"]["tables"]["shop.w"]["state"] == "loaded"
