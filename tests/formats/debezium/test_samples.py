"""Captures of real servers, and event shapes of Debezium's documentation."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime

import pytest

from polynya.formats.base import ReadBatch
from polynya.formats.batch import BatchLimits, DatasetBatch
from tests.formats.debezium.builders import SAMPLES, read_capture
from tests.formats.helpers import column, rules, schema

_DOCUMENTED = sorted(path.name for path in (SAMPLES / "docs_examples").iterdir())


def _capture(name: str) -> ReadBatch:
    return read_capture((SAMPLES / name).read_bytes())


def _operations(batch: DatasetBatch) -> dict[str, int]:
    return dict(Counter(column(batch, "__op")))


@pytest.mark.parametrize("name", ["postgres_precise.jsonl", "postgres_schemas.jsonl"])
def test_postgresql(name: str) -> None:
    batch = _capture(name)

    assert dict(batch.unrouted.counters) == {"transactions": 54, "tombstones": 6, "messages": 1}
    assert not batch.unrouted.rejected
    assert _operations(batch.datasets["inventory.orders"]) == {"L": 5, "I": 4, "U": 5, "D": 3}
    assert _operations(batch.datasets["inventory.full_ident"])["T"] == 1
    assert batch.datasets["inventory.orders"].keys == ("region", "order_no")
    assert batch.datasets["inventory.audit_nopk"].keys == ()
    (old,) = [one for one in column(batch.datasets["inventory.orders"], "__old") if one]
    assert old == {"region": "EU", "order_no": 5}
    customers = batch.datasets["inventory.customers"]
    assert ["big"] in column(customers, "__unsent")
    assert not any(
        "__debezium_unavailable_value" in str(value) for value in column(customers, "big")
    )


def test_postgresql_types_come_from_the_schemas() -> None:
    customers = _capture("postgres_schemas.jsonl").datasets["inventory.customers"]

    kinds = schema(customers)
    assert {
        name: kinds[name] for name in ("balance", "n_any", "birth", "wake", "created", "updated")
    } == {
        "balance": "decimal(12,2)",
        "n_any": "string",
        "birth": "date",
        "wake": "string",
        "created": "timestamp_ntz",
        "updated": "timestamp",
    }
    # timestamptz 'infinity' and date 'infinity' are the last moment of a table.
    assert not rules(customers)
    assert column(customers, "updated")[3] == datetime.max.replace(tzinfo=UTC)
    assert column(customers, "birth")[4] == date.max
    assert column(customers, "wake")[0] == "23:59:59.999000"
    assert str(column(customers, "balance")[0]) == "0.05"


def test_postgresql_alter_type_widens_with_schemas() -> None:
    table = _capture("postgres_schemas.jsonl").datasets["inventory.full_ident"]

    assert schema(table)["c"] == "bigint"
    assert 9999999999 in column(table, "c")


def test_incremental_reads_stand_before_the_transactions_after_them() -> None:
    orders = _capture("postgres_precise.jsonl").datasets["inventory.orders"]
    rows = orders.rows.select(["__op", "__ci", "__offset"]).to_pylist()

    incremental = [row for row in rows if 85 <= row["__offset"] <= 88]
    assert {row["__op"] for row in incremental} == {"U"}
    before = max(row["__ci"] for row in rows if row["__offset"] < 85)
    after = min(row["__ci"] for row in rows if row["__offset"] > 88)
    assert all(before < row["__ci"] < after for row in incremental)


def test_mariadb() -> None:
    batch = _capture("mariadb_precise.jsonl")

    assert dict(batch.unrouted.counters) == {"ddl_events": 29, "transactions": 39, "tombstones": 4}
    assert _operations(batch.datasets["inv.audit_nopk"]) == {"L": 2, "I": 2, "T": 1}
    # ALTER of a number column to text, schemas off: the column keeps its type.
    assert rules(batch.datasets["inv.evolve"]) == [(71, "type_mismatch"), (76, "type_mismatch")]
    # RENAME TABLE evolve TO evolved: by default the dataset waits for a decision.
    assert batch.datasets["inv.evolve"].called == "inv.evolved"
    assert "inv.brand_new" in batch.datasets
    order = column(batch.datasets["inv.customers"], "__ci")
    assert order == sorted(order)


@pytest.mark.parametrize("name", _DOCUMENTED)
def test_documented_shapes_are_read_or_named(name: str) -> None:
    batch = _capture(f"docs_examples/{name}")

    known = {"not_an_event", "no_dataset", "bad_position"}
    everything = [batch.unrouted, *batch.datasets.values()]
    assert {one.rule for each in everything for one in each.rejected} <= known


def test_any_split_into_batches_gives_the_same_rows() -> None:
    content = (SAMPLES / "postgres_schemas.jsonl").read_bytes()
    whole = _capture("postgres_schemas.jsonl").datasets["inventory.orders"]

    rows = []
    known: dict[str, dict[str, object]] = {}
    start, complete = 0, False
    while not complete:
        part = read_capture(
            content,
            known=known,
            limits=BatchLimits(max_rows=7),
            starts={"f": start},  # type: ignore[arg-type]
        )
        for name, batch in part.datasets.items():
            known[name] = dict(batch.schema)
        if "inventory.orders" in part.datasets:
            rows += part.datasets["inventory.orders"].rows.to_pylist()
        start, complete = part.unrouted.files["f"].records, part.unrouted.files["f"].complete

    assert [{**dict.fromkeys(whole.schema), **row} for row in rows] == [
        {**dict.fromkeys(whole.schema), **row} for row in whole.rows.to_pylist()
    ]
