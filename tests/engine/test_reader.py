"""Reads from Python show what Spark's views show, before and after an apply, without a JVM."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import polynya
from polynya.engine.reader import Lake, LakeTable
from polynya.lake.read.query import Statement, answer
from polynya.lake.read.values import json_rows
from polynya.model.errors import ConfigError, OperationError
from tests.lab.lab import EPOCH, Feed, Lab, drop, moment, put
from tests.query.test_answers import project_of

pytestmark = pytest.mark.spark


def reader_of(users: Feed) -> LakeTable:
    """The table of a feed, opened for reading."""
    return Lake(project_of(users)).table(f"{users.lab.schema}.users")


def rows_of(read: polynya.LiveRead) -> list[str]:
    """The rows of a read, in order."""
    return sorted(repr(row) for batch in read.to_batches() for row in json_rows(batch))


def by_spark(lab: Lab, statement: str) -> tuple[pa.Schema, list[str]]:
    """Types and rows of a statement, in order."""
    wanted = answer(lab.spark, Statement(statement))
    rows = sorted(repr(row) for batch in wanted.batches for row in json_rows(batch))
    return wanted.schema, rows


def assert_as_spark(users: Feed) -> None:
    """Compare the three views of a dataset, whole and with conditions."""
    table, view = reader_of(users), f"{users.lab.schema}.users"
    for read, end in (
        (table.current, ""),
        (table.history, "__history"),
        (table.changes, "__changes"),
    ):
        schema, rows = by_spark(users.lab, f"SELECT * FROM {view}{end}")
        assert (read().schema.names, read().schema.types) == (schema.names, schema.types)
        assert rows_of(read()) == rows, end
        _, rows = by_spark(
            users.lab, f"SELECT name, id FROM {view}{end} WHERE n >= 3 OR name = 'late'"
        )
        assert rows_of(read(["name", "id"], where="n >= 3 or name = 'late'")) == rows, end


@pytest.mark.slow
def test_what_is_pending_is_read_as_spark_reads_it(lab: Lab) -> None:
    types = {"id": "bigint", "seq": "int", "n": "int", "spots": "array<struct<x:int>>"}
    users = lab.feed(columns=types, history=True)
    spots = (None, [], [None], [{"x": 1}], [{"x": None}])
    users.apply(
        *(put(key, key, n=key, name=f"n{key}", spots=spots[key % 5]) for key in range(1, 8))
    )
    assert_as_spark(users)
    users.copy(
        put(1, 20, n=9, name="new"), drop(2, 21), put(3, 2, n=3, name="late"),
        put(30, 22, n=5, name="first"), drop(4, 1), put(2, 30, n=1, name="again"),
    )  # fmt: skip
    assert_as_spark(users)
    users.apply()
    assert_as_spark(users)


def test_keys_of_several_columns(lab: Lab) -> None:
    users = lab.feed(keys=["id", "part"], columns={"id": "bigint", "seq": "int", "n": "int"})
    users.apply(*(put(key, key, part=part, n=key) for key in (1, 2, 3) for part in ("a", "b")))
    users.copy(put(1, 9, part="b", n=7), drop(2, 10, part="a"), put(4, 11, part="a", n=8))
    table = reader_of(users)
    shown = [(row["id"], row["part"], row["n"]) for row in table.current().to_arrow().to_pylist()]
    assert sorted(shown) == [
        (1, "a", 1),
        (1, "b", 7),
        (2, "b", 2),
        (3, "a", 3),
        (3, "b", 3),
        (4, "a", 8),
    ]


def test_each_form_holds_the_same_rows(lab: Lab) -> None:
    users = lab.feed(columns={"id": "bigint", "seq": "int", "n": "int"})
    users.apply(*(put(key, key, n=key % 3, name=f"n{key}") for key in range(1, 10)))
    users.copy(put(1, 20, n=2, name="new"), drop(2, 21))
    read = reader_of(users).current(["id", "n"])

    assert read.to_arrow().num_rows == 8
    assert read.to_batches().read_all().num_rows == 8
    assert read.to_duckdb(duckdb.connect()).aggregate("sum(id)").fetchone() == (43,)
    frame = read.to_polars()
    assert frame.filter(pl.col("n") == 2).select(pl.col("id").sum()).collect().item() == 14
    assert frame.head(3).collect().height == 3
    assert reader_of(users).current(limit=3).to_arrow().num_rows == 3


def test_a_read_tells_what_it_shows_and_can_show_what_was(lab: Lab) -> None:
    users = lab.feed(columns={"id": "bigint", "seq": "int", "n": "int"}, history=True)
    users.apply(put(1, 1, n=1), put(2, 2, n=2))
    table = reader_of(users)
    before = table.current().watermark
    assert before.newest_event == moment(2)
    assert before.pending_rows == 0
    users.copy(put(1, 10, n=10), drop(2, 20))

    after = table.current().watermark
    assert after.pending_rows == 2
    assert after.newest_event == moment(20)
    assert after.age(EPOCH + timedelta(days=365)) is not None
    assert sorted(_pairs(table.current())) == [(1, 10)]
    assert sorted(_pairs(table.current(as_of=before.snapshot))) == [(1, 1), (2, 2)]
    for seconds, rows in (
        (0, []),
        (1, [(1, 1)]),
        (5, [(1, 1), (2, 2)]),
        (15, [(1, 10), (2, 2)]),
        (20, [(1, 10)]),
    ):
        assert sorted(_pairs(table.current(as_of=moment(seconds)))) == rows, seconds
    assert _pairs(table.current(as_of=moment(15), where="n = 2")) == [(2, 2)]
    with pytest.raises(ConfigError, match="has no time zone"):
        table.current(as_of=datetime(2026, 1, 1))
    with pytest.raises(ConfigError, match="has no snapshot 7"):
        table.current(as_of=7)


def test_a_wrong_read_is_refused_by_name(lab: Lab) -> None:
    types = {"id": "bigint", "seq": "int", "n": "int"}
    users = lab.feed(columns=types, history=False)
    users.apply(put(1, 1, n=1))
    table, lake = reader_of(users), Lake(project_of(users))

    def refused(reason: str, **read: Any) -> None:
        with pytest.raises(ConfigError, match=reason) as raised:
            table.current(**read)
        assert raised.value.code == "POLYNYA-QRY-003"

    assert lake.tables() == [f"{lab.schema}.users"]
    refused("no column `m`", columns=["m"])
    refused("the condition cannot be read", where="n >>> 1")
    refused("the condition cannot be read", where="m = 1")
    refused("the condition cannot be read", where="n = 'a'")
    refused("about the column `hdr__operation`", where="hdr__operation = 'D'")
    with pytest.raises(ConfigError, match="keeps no history"):
        table.history()
    with pytest.raises(ConfigError, match="no dataset has this name"):
        lake.table(f"{lab.schema}.user").current()
    users.copy(put(1, 4, n=2), put(1, 4, n=3))
    with pytest.raises(OperationError, match="claim the same place") as raised:
        table.current().to_arrow()
    assert raised.value.code == "POLYNYA-QRY-004"


def _pairs(read: polynya.LiveRead) -> list[tuple[int, int]]:
    return [(row["id"], row["n"]) for row in read.to_arrow().to_pylist()]
