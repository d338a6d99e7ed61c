"""Hashes that a real PostgreSQL computes are those of the same rows in Arrow."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from examples.servers.postgresql import PostgresServer
from polynya.capture.compare.digest import (
    DigestLayout,
    TextForm,
    digest_keys,
    digest_ranges,
    digest_rows,
    layout_of,
)
from polynya.capture.compare.postgresql import ComparedPostgres, PostgresMoment
from polynya.capture.compare.ranges import differing_rows
from polynya.capture.source import Access
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)
from tests.postgresql import postgres_server

TABLE = 'public.We"ird'
#: Column, its type at the source, three values in SQL; its type in Current, the values in Arrow.
COLUMNS: list[tuple[str, str, tuple[str, str, str], DataType, pa.Array]] = [
    ("id", "bigint PRIMARY KEY", ("1", "2", "-3"), BIGINT, pa.array([1, 2, -3], pa.int64())),
    ("small", "smallint", ("-1", "0", "NULL"), INT, pa.array([-1, 0, None], pa.int32())),
    (
        "price",
        "numeric(12,3)",
        ("1.500", "-0.5", "NULL"),
        Decimal(12, 3),
        pa.array([Number("1.5"), Number("-0.5"), None], pa.decimal128(12, 3)),
    ),
    (
        "any number",
        "numeric",
        ("100.00", "1e-20", "NULL"),
        STRING,
        pa.array(["100.00", "0.00000000000000000001", None]),
    ),
    (
        "f8",
        "float8",
        ("1e20", "'-0'", "'-Infinity'"),
        DOUBLE,
        pa.array([1e20, 0.0, -math.inf], pa.float64()),
    ),
    ("f4", "real", ("0.1", "'NaN'", "'-0'"), FLOAT, pa.array([0.1, math.nan, 0.0], pa.float32())),
    ("yes", "boolean", ("true", "false", "NULL"), BOOLEAN, pa.array([True, False, None])),
    ("text", "text", (r"E'é🦊\'\\ \"\n'", "''", "NULL"), STRING,
     pa.array(["é🦊'\\ \"\n", "", None])),
    ("blanks", "char(4)", ("'ab'", "''", "NULL"), STRING, pa.array(["ab  ", "    ", None])),
    (
        "bytes",
        "bytea",
        (r"'\x00ff'", "''", "NULL"),
        BINARY,
        pa.array([b"\0\xff", b"", None], pa.binary()),
    ),
    (
        "day",
        "date",
        ("'2020-02-29'", "'0001-01-01'", "NULL"),
        DATE,
        pa.array([dt.date(2020, 2, 29), dt.date(1, 1, 1), None], pa.date32()),
    ),
    ("hour", "time", ("'12:34:56.5'", "'24:00'", "NULL"), STRING,
     pa.array(["12:34:56.500000", "24:00:00", None])),
    (
        "at",
        "timestamp",
        ("'1999-12-31 23:59:59.999999'", "'0001-01-01'", "NULL"),
        TIMESTAMP_NTZ,
        pa.array(
            [dt.datetime(1999, 12, 31, 23, 59, 59, 999999), dt.datetime(1, 1, 1), None],
            pa.timestamp("us"),
        ),
    ),
    (
        "moment",
        "timestamptz",
        ("'1960-01-01 00:00:00.5+02'", "'9999-12-31 23:59:59.999999+00'", "NULL"),
        TIMESTAMP,
        pa.array(
            [
                dt.datetime(1959, 12, 31, 22, 0, 0, 500000),
                dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
                None,
            ],
            pa.timestamp("us", tz="UTC"),
        ),
    ),
    (
        "uuid",
        "uuid",
        ("'6B1C9E0C-5F0E-4F8E-9A0C-1B1C9E0C5F0E'", "NULL", "NULL"),
        STRING,
        pa.array(["6b1c9e0c-5f0e-4f8e-9a0c-1b1c9e0c5f0e", None, None]),
    ),
    ("doc", "jsonb", ("""'{"a":1}'""", "NULL", "NULL"), STRING, pa.array(['{"a": 1}', None, None])),
    ("host", "inet", ("'10.0.0.1'", "NULL", "NULL"), STRING, pa.array(["10.0.0.1", None, None])),
    ("mood", "mood", ("'so so'", "NULL", "NULL"), STRING, pa.array(["so so", None, None])),
    ("positive", "positive", ("7", "NULL", "NULL"), INT, pa.array([7, None, None], pa.int32())),
]  # fmt: skip
NOT_COMPARED = {"span": "interval", "twice": "generated"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as found:
        declared = ", ".join(f'"{name}" {kind}' for name, kind, *_ in COLUMNS)
        rows = ", ".join(
            "(" + ", ".join(values[n] for _, _, values, *_ in COLUMNS) + ")" for n in range(3)
        )
        found.run(
            "CREATE TYPE mood AS ENUM ('so so', 'good')",
            "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
            f'CREATE TABLE "We""ird" ({declared}, span interval,'
            " twice int GENERATED ALWAYS AS (1) STORED)",
            f'INSERT INTO "We""ird" VALUES {rows}',
        )
        yield found


def compared(server: PostgresServer) -> ComparedPostgres:
    return ComparedPostgres(
        Access(
            type="postgresql", host=server.host, port=server.port, database=server.database,
            user=server.user, password=server.password, tls="disable",
        )
    )  # fmt: skip


@pytest.fixture
def moment(server: PostgresServer) -> Iterator[PostgresMoment]:
    found = compared(server).moment()
    yield found
    found.close()


ROWS = pa.table([one[4] for one in COLUMNS], names=[one[0] for one in COLUMNS]).to_batches()


def layout(moment: PostgresMoment, key: tuple[str, ...] = ("id",)) -> DigestLayout:
    types = {name: kind for name, _, _, kind, _ in COLUMNS}
    return layout_of(moment.columns(TABLE), types, key=key)


@pytest.mark.parametrize("column", [one[0] for one in COLUMNS])
def test_values_of_a_column_have_one_text_on_both_sides(moment, column):
    kinds = dict(layout(moment).columns)
    one = DigestLayout((("id", TextForm.WHOLE), (column, kinds[column])), ("id",))

    source = moment.rows(TABLE, one, 2, range(4), None)

    assert len(source) == 3
    assert differing_rows(source, digest_rows(ROWS, one, 2, range(4))) == {}


@pytest.mark.parametrize("key", [("id",), ("text", "id"), ()])
def test_ranges_and_keys_are_the_same_on_both_sides(moment, key):
    one = layout(moment, key)

    assert moment.ranges(TABLE, one, 3, None) == digest_ranges(ROWS, one, 3)
    wanted = list(moment.rows(TABLE, one, 0, [0], None))[:2]
    source, ours = (moment.keys(TABLE, one, wanted, None), digest_keys(ROWS, one, wanted))
    assert {key: row.key for key, row in source.items()} == {k: row.key for k, row in ours.items()}
    assert len(source) == 2


def test_what_has_no_text_in_common_is_left_out_with_its_reason(moment):
    left_out = {column.name: column.why for column in moment.columns(TABLE) if column.kind is None}

    assert left_out.keys() == NOT_COMPARED.keys()
    assert all(word in left_out[name] for name, word in NOT_COMPARED.items())


def test_a_moment_stays_what_it_was_and_a_row_has_a_version(server):
    source = compared(server)
    server.run(
        "CREATE TABLE moving (id int PRIMARY KEY, v int)", "INSERT INTO moving VALUES (1, 1)"
    )
    one = DigestLayout((("id", TextForm.WHOLE), ("v", TextForm.WHOLE)), ("id",))
    first = source.moment()
    before = first.rows("public.moving", one, 0, [0], None)
    server.run("UPDATE moving SET v = 1")
    second = source.moment()

    (old,), (new,) = (
        list(each.rows("public.moving", one, 0, [0], "v = 1 OR false").values())
        for each in (first, second)
    )

    assert list(before.values()) == [old]
    assert old.digest == new.digest
    assert old.version != new.version
    first.close()
    second.close()


def test_a_moment_is_reached_by_what_came_after_it(server):
    source = compared(server)
    before = source.moment()
    after = source.moment()
    lsn = {"lsn": int(after.position.split("/")[1], 16), "txId": 5}

    assert before.is_reached(lsn)
    assert not after.is_reached({"lsn": lsn["lsn"] - 1, "lsn_commit": None})
    assert not after.is_reached({})
    before.close()
    after.close()


def test_rows_of_a_capture_that_chooses_some_are_compared_only(server, moment):
    assert moment.count(TABLE, "id > 0") == 2
    assert sum(one.rows for one in moment.ranges(TABLE, layout(moment), 4, "id > 0").values()) == 2


def test_names_are_quoted_and_hashes_that_are_none_are_not_asked(moment):
    found: Any = moment.keys(TABLE, layout(moment), ["'); DROP TABLE x; --"], None)

    assert found == {}
