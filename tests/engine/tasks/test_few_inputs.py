"""Steps whose rows are found, compared and applied in memory show what the query returns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.copy import stored_search
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import ConflictError, OperationError
from tests.engine.tasks.derived_tables import Derived
from tests.engine.tasks.test_affected_rows import batch, last_step
from tests.lab.lab import Feed, Lab, drop, put

#: Values of each type; a record takes the next ones with each change.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int32(), [1, None, -(2**31)]),
    "large": (pa.int64(), [2**62, 0, None]),
    "exact": (pa.decimal128(20, 4), [Decimal("12.3400"), None, Decimal("-0.0001")]),
    "half": (pa.float32(), [0.1, float("nan"), None]),
    "real": (pa.float64(), [0.1, float("nan"), float("-inf")]),
    "words": (pa.string(), ["ä b", "", None]),
    "raw": (pa.binary(), [b"\x00\xff", b"", None]),
    "yes": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [date(1969, 12, 31), None, date(2026, 2, 28)]),
    "moment": (pa.timestamp("us", "UTC"), [datetime(1969, 12, 31, 23, tzinfo=UTC), None] * 2),
    "wall": (pa.timestamp("us"), [datetime(2026, 3, 29, 2, 30, 0, 5), None] * 2),
}
NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "listed": (pa.list_(pa.int64()), [[1, None], [], None]),
    "inner": (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))]),
        [{"a": None, "b": [float("nan")]}, None, {"a": "x", "b": None}],
    ),
    "pairs": (pa.map_(pa.string(), pa.int32()), [[("k", 1)], None, []]),
}


def land(feed: Feed, keys: list[int], change: int, kinds: dict[str, tuple[Any, list[Any]]]) -> None:
    """Land a record of each key with the values of a change."""
    columns: dict[str, Any] = {"id": pa.array(keys, pa.int64())}
    columns["seq"] = pa.array([change] * len(keys), pa.int64())
    for name, (kind, values) in kinds.items():
        row = [values[(key + change) % len(values)] for key in keys]
        columns[name] = pa.array(row, kind)
    feed.land_table(**columns)


@pytest.mark.parametrize("apply", [pytest.param("never", marks=pytest.mark.slow), "always"])
def test_values_of_all_types_stay_as_they_are(lab: Lab, apply: Any) -> None:
    feed = lab.parquet_feed("typed", history=False)
    land(feed, list(range(12)), 1, VALUES | NESTED)
    feed.run("always")
    columns = ", ".join(VALUES)
    plain = Derived(lab, [feed], f"SELECT id, {columns} FROM typed", incremental="strict")
    nested = Derived(lab, [feed], "SELECT * FROM typed", incremental="strict")
    zero = "SELECT id, -0.0D AS zero, real FROM typed"
    zeros = Derived(lab, [feed], zero, incremental="strict")
    followed = (plain, nested, zeros)
    for one in followed:
        one.follow()

    land(feed, [1, 2, 3, 20], 2, VALUES | NESTED)
    feed.run(apply)
    for one in followed:
        one.follow()
        assert list(map(repr, one.current("*"))) == list(
            map(repr, lab.rows(str(one.sql).replace("typed", f"{lab.schema}.typed")))
        )
        how = "4 of id" if one is nested else "4 of id, computed in memory"
        assert last_step(lab).how == how

    land(feed, [1, 2], 2 + 3 * 4, VALUES | NESTED)
    feed.run(apply)
    plain.follow()
    assert last_step(lab).changes.get("updates", 0) <= 2


def test_rows_that_are_equal_are_not_written_again(lab: Lab) -> None:
    feed = lab.parquet_feed("typed", history=False)
    land(feed, list(range(9)), 1, VALUES)
    feed.run("always")
    columns = ", ".join(VALUES)
    plain = Derived(lab, [feed], f"SELECT id, {columns} FROM typed", incremental="strict")
    plain.follow()

    land(feed, [1, 2, 3], 1 + 12, VALUES)
    # One commit that copies and applies also writes the other rows of the file again.
    feed.run("never")
    feed.run("always")
    plain.follow()

    assert last_step(lab).how == "3 of id, computed in memory"
    assert last_step(lab).changes == {}


def test_a_table_that_another_owner_takes_meanwhile_stays_as_it_is(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = lab.parquet_feed("typed", history=False)
    land(feed, list(range(9)), 1, VALUES)
    feed.run("always")
    plain = Derived(lab, [feed], "SELECT id, words FROM typed", incremental="strict")
    plain.follow()
    before = plain.current("*")
    land(feed, [1, 2, 3], 2, VALUES)
    feed.run("never")

    def refused(target: DatasetTable) -> None:
        raise ConflictError("POLYNYA-LAKE-003", "another owner has it", where=target.table.name)

    with monkeypatch.context() as patch, pytest.raises(ConflictError, match="another owner"):
        patch.setattr(stored_search, "enter", refused)
        plain.follow()
    assert plain.current("*") == before

    plain.follow()
    assert last_step(lab).how == "3 of id, computed in memory"
    assert plain.current("*") == lab.rows(f"SELECT id, words FROM {lab.schema}.typed")


def test_rows_that_the_embedded_engine_refuses_are_computed_by_spark(lab: Lab) -> None:
    users = lab.feed("users", history=False)
    users.copy(*[put(key, key, name=f"n{key}", ratio=key / 7) for key in range(1, 9)])
    sql = f"SELECT id, upper(name) AS name, -ratio * 1.19D AS more FROM {lab.schema}.users"
    upper = Derived(lab, [users], sql, incremental="strict")
    upper.follow()

    users.copy(put(1, 20, name="ann", ratio=0.1), drop(2, 21), put(9, 22, name=None))
    upper.follow()
    assert last_step(lab).how == "3 of id, computed in memory"
    assert upper.current("*") == lab.rows(sql)

    # Java and DuckDB differ in letters that are not ASCII.
    users.copy(put(3, 30, name="stra\u00dfe"), put(4, 31, name="bob"))
    upper.follow()
    assert last_step(lab).how == "2 of id, in memory"
    assert upper.current("*") == lab.rows(sql)
    assert (3, "STRASSE") in upper.current("id", "name")


def test_names_that_differ_in_capitals_only_are_two_names(lab: Lab) -> None:
    # As in every session of a run; readers of other tests may have left it otherwise.
    lab.spark.conf.set("spark.sql.caseSensitive", "true")
    users = lab.feed("users", history=False)
    users.copy(*[put(key, key, name=name) for key, name in enumerate("aAbB")])
    sql = f"SELECT upper(name) AS Name, count(*) AS n FROM {lab.schema}.users GROUP BY Name"
    groups = Derived(lab, [users], sql, keys=["Name"], incremental="strict")
    groups.follow()

    users.copy(put(9, 20, name="b"))
    groups.follow()

    assert groups.current("*") == [("A", 2), ("B", 3)]


def test_a_result_whose_keys_are_null_is_refused(lab: Lab) -> None:
    users = lab.feed("users", history=False)
    users.copy(put(1, 1, code="a"), put(2, 2, code="b"))
    sql = f"SELECT code, id FROM {lab.schema}.users"
    codes = Derived(lab, [users], sql, keys=["code"], incremental="strict")
    codes.follow()
    before = codes.current("*")

    users.copy(put(2, 3, code=None))
    with pytest.raises(OperationError, match="1 of 1 rows have no value"):
        codes.follow()
    assert codes.current("*") == before


def test_a_changed_row_leads_to_the_rows_that_joins_make_of_it(lab: Lab) -> None:
    """Over two joins: a city, the users of it, and their orders."""
    cities, users, orders = (
        lab.feed(name, history=False, task={"name": f"{lab.schema}_{name}"})
        for name in ("cities", "users", "orders")
    )
    cities.copy(*[put(key, key, name=f"city {key}") for key in range(3)])
    users.copy(*[put(key, key, city=key % 3) for key in range(6)])
    orders.copy(*[put(key, key, buyer=key % 6) for key in range(24)])
    s = lab.schema
    sql = (
        f"SELECT o.id, u.city, c.name FROM {s}.orders o JOIN {s}.users u ON u.id = o.buyer "
        f"LEFT JOIN {s}.cities c ON c.id = u.city"
    )
    joined = Derived(lab, [cities, users, orders], sql, incremental="strict")
    joined.follow()

    cities.copy(put(1, 100, name="Ulm"))
    joined.follow()
    assert last_step(lab).how == "8 of id, computed in memory"
    assert joined.current("*") == lab.rows(sql)

    cities.copy(drop(2, 200))
    users.copy(put(1, 200, city=7), drop(3, 201), put(0, 202, city=None))
    orders.copy(drop(1, 200), put(5, 201, buyer=4))
    joined.follow()
    assert last_step(lab).how.endswith("of id, computed in memory")
    assert joined.current("*") == lab.rows(sql)


@pytest.mark.slow
@pytest.mark.parametrize("history", [True, False])
def test_deletes_and_new_rows_follow(lab: Lab, *, history: bool) -> None:
    users = lab.feed("users", history=False)
    orders = lab.feed("orders", history=False, task={"name": f"{lab.schema}_orders"})
    users.copy(*[put(key, key, city=f"c{key}") for key in range(5)])
    orders.copy(*[put(key, key, buyer=key % 5, amount=key) for key in range(30)])
    sql = (
        f"SELECT o.id, o.amount, u.city FROM {lab.schema}.orders o "
        f"LEFT JOIN {lab.schema}.users u ON u.id = o.buyer"
    )
    joined = Derived(lab, [users, orders], sql, incremental="strict", history=history)
    joined.follow()

    orders.copy(drop(3, 100), put(4, 101, buyer=1, amount=9), put(40, 102, buyer=9, amount=1))
    orders.apply()
    joined.follow()
    assert joined.current("*") == lab.rows(sql)
    assert last_step(lab).how == "3 of id, computed in memory"

    orders.copy(put(3, 200, buyer=2, amount=7), drop(4, 201))
    joined.follow()
    assert joined.current("*") == lab.rows(sql)
    assert last_step(lab).changes["inserts"] == last_step(lab).changes["deletes"] == 1

    # A user tells by its orders which rows it concerns.
    users.copy(put(1, 300, city="new"))
    joined.follow()
    assert joined.current("*") == lab.rows(sql)
    assert last_step(lab).how == "6 of id, computed in memory"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_few_rows_follow_a_random_history(lab: Lab, seed: int) -> None:
    """Late events, deletes and applies between; without history, so that places are reused."""
    random = Random(seed)
    users, orders = (
        lab.feed(name, history=False, task={"name": f"{lab.schema}_{name}"})
        for name in ("users", "orders")
    )
    users.apply(*[put(key, key, name="ann", city="Ulm") for key in range(1, 4)])
    orders.apply(*[put(key, key, buyer=key % 4, amount=key) for key in range(1, 7)])
    s = lab.schema
    statements = {
        f"SELECT id, upper(name) AS name FROM {s}.users": ["id"],
        f"SELECT o.id, u.city FROM {s}.orders o JOIN {s}.users u ON u.id = o.buyer": ["id"],
        (
            f"SELECT o.buyer, u.city, count(*) AS n FROM {s}.orders o "
            f"JOIN {s}.users u ON u.id = o.buyer GROUP BY o.buyer, u.city"
        ): ["buyer"],
    }
    derived = {
        sql: Derived(lab, [users, orders], sql, keys=keys, incremental="strict")
        for sql, keys in statements.items()
    }
    for number in range(12):
        for sql, one in derived.items():
            one.follow()
            assert one.current("*") == lab.rows(sql), (seed, number, sql)
        seq = 10 * (number + 1)
        if random.random() < 0.4:
            batch(users, random, seq, name=("ann", "bob", None), city=("Ulm", "Bonn", None))
        if random.random() < 0.9:
            batch(orders, random, seq, buyer=(1, 2, 3, 4, None), amount=(1, 2, 3))
        # Rows of a table with late changes that are pending are Spark's.
        if random.random() < 0.5:
            users.apply()
            orders.apply()
    hows = [event.how for event in lab.events if hasattr(event, "how")]
    assert sum("in memory" in how for how in hows) > 8, hows
    assert sum("computed in memory" in how for how in hows) > 6, hows
