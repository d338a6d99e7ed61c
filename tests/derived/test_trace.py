"""The rows of the inputs that a row was made of: found backwards, exact where that can be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pytest

from polynya.derived.schema import DerivedInput
from polynya.derived.statement import parse
from polynya.derived.trace import ROW_NUMBER, Rows, TracedInput, trace

INPUTS = {
    "orders": DerivedInput(
        "shop.orders",
        {"id": "bigint", "customer": "bigint", "amount": "bigint", "state": "string"},
        ("id",),
    ),
    "customers": DerivedInput("shop.customers", {"id": "bigint", "city": "string"}, ("id",)),
    "cities": DerivedInput("shop.cities", {"name": "string", "land": "string"}, ("name",)),
}
TABLES: dict[str, list[dict[str, Any]]] = {
    "orders": [
        {"id": 1, "customer": 10, "amount": 5, "state": "paid"},
        {"id": 2, "customer": 10, "amount": 7, "state": "open"},
        {"id": 3, "customer": 11, "amount": 9, "state": "paid"},
        {"id": 4, "customer": None, "amount": 1, "state": "paid"},
    ],
    "customers": [
        {"id": 10, "city": "Bonn"},
        {"id": 11, "city": "Bonn"},
        {"id": 12, "city": "Ulm"},
    ],
    "cities": [{"name": "Bonn", "land": "NRW"}, {"name": "Ulm", "land": "BW"}],
}


def read(name: str, values: Mapping[str, Sequence[Any]]) -> Rows | str:
    return [
        {**row, ROW_NUMBER: number}
        for number, row in enumerate(TABLES[name])
        if all(row[column] in some for column, some in values.items())
    ]


def evaluate(text: str, tables: Mapping[str, tuple[str, Rows]]) -> Rows | None:
    """In DuckDB, whose SQL is the same for these statements."""
    with duckdb.connect() as database:
        database.execute("CREATE SCHEMA traced")
        for table, (name, rows) in tables.items():
            columns = {**INPUTS[name].columns, ROW_NUMBER: "bigint"}
            listed = ", ".join(f"{one} {kind}" for one, kind in columns.items())
            database.execute(f"CREATE TABLE traced.{table} ({listed.replace('string', 'text')})")
            marks = ", ".join("?" * len(columns))
            for row in rows:
                given = [row[one] for one in columns]
                database.execute(f"INSERT INTO traced.{table} VALUES ({marks})", given)
        answer = database.execute(text.replace("`", '"'))
        names = [one[0] for one in answer.description]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def traced(sql: str, **row: Any) -> dict[str, TracedInput]:
    names = {name for name in INPUTS if name in sql}
    statement = parse(sql, {name: INPUTS[name] for name in sorted(names)}, "q")
    return {one.name: one for one in trace(statement, row, read, evaluate)}


def ids(one: TracedInput, column: str = "id") -> list[Any] | None:
    return None if one.rows is None else sorted(row[column] for row in one.rows)


def test_a_row_of_one_table_is_found_by_its_columns() -> None:
    found = traced("SELECT id, amount FROM orders", id=2, amount=7)["orders"]

    assert (ids(found), found.exact, found.by) == ([2], True, ("id", "amount"))


def test_a_join_leads_to_the_other_table() -> None:
    sql = "SELECT o.id, c.city FROM orders o JOIN customers c ON o.customer = c.id"
    found = traced(sql, id=3, city="Bonn")

    assert (ids(found["orders"]), ids(found["customers"])) == ([3], [11])
    assert all(one.exact for one in found.values())


def test_a_total_is_made_of_the_rows_of_its_group_that_meet_the_conditions() -> None:
    sql = (
        "SELECT c.city, sum(o.amount) AS total FROM orders o JOIN customers c "
        "ON o.customer = c.id WHERE o.state = 'paid' GROUP BY c.city"
    )
    found = traced(sql, city="Bonn", total=14)

    assert (ids(found["orders"]), ids(found["customers"])) == ([1, 3], [10, 11])
    assert found["orders"].exact


def test_an_outer_join_that_found_none_says_so() -> None:
    sql = "SELECT o.id, c.city FROM orders o LEFT JOIN customers c ON o.customer = c.id"
    found = traced(sql, id=4, city=None)

    assert (ids(found["orders"]), ids(found["customers"])) == ([4], [])
    assert found["customers"].exact


def test_a_key_with_a_constant_for_none_leads_to_its_row() -> None:
    sql = (
        "SELECT k.name, coalesce(c.id, -1) AS customer FROM cities k "
        "LEFT JOIN customers c ON c.city = k.name"
    )
    found = traced(sql, name="Bonn", customer=11)["customers"]
    none = traced(sql, name="Bonn", customer=-1)["customers"]

    assert (ids(found), found.by) == ([11], ("id", "city"))
    # It may be that no row was found, or one whose value is the constant.
    assert none.by == ("city",)


@pytest.mark.parametrize(("constant", "value"), [("0", 7.0), ("7", 7), ("city", 7), ("0", True)])
def test_a_constant_that_may_be_the_value_leads_to_nothing(constant: str, value: Any) -> None:
    sql = f"SELECT coalesce(id, {constant}) AS n FROM customers"

    assert traced(sql, n=value)["customers"].rows is None


def test_subqueries_and_ctes_are_followed_and_may_hold_more() -> None:
    sql = (
        "WITH paid AS (SELECT customer, sum(amount) AS total FROM orders WHERE state = 'paid' "
        "GROUP BY customer) "
        "SELECT c.id, p.total, k.land FROM customers c JOIN paid p ON p.customer = c.id "
        "JOIN (SELECT name, land FROM cities) k ON k.name = c.city"
    )
    found = traced(sql, id=10, total=5, land="NRW")

    assert (ids(found["customers"]), ids(found["cities"], "name")) == ([10], ["Bonn"])
    assert (ids(found["orders"]), found["orders"].exact) == ([1], True)
    assert not found["customers"].exact
    assert found["customers"].reason == "other conditions of the query may leave some of them out"


def test_each_branch_of_a_union_is_followed_but_those_with_another_constant() -> None:
    sql = (
        "SELECT 'order' AS kind, id FROM orders UNION ALL SELECT 'customer' AS kind, id "
        "FROM customers"
    )
    found = traced(sql, kind="customer", id=10)

    assert ids(found["customers"]) == [10]
    assert found["orders"].rows is None


def test_a_query_in_a_condition_is_followed_by_what_it_has_in_common() -> None:
    sql = "SELECT id FROM customers WHERE id IN (SELECT customer FROM orders)"
    found = traced(sql, id=11)

    assert (ids(found["customers"]), ids(found["orders"])) == ([11], [3])
    exists = (
        "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)"
    )
    assert ids(traced(exists, id=11)["orders"]) == [3]


@pytest.mark.parametrize(
    ("sql", "row", "why"),
    [
        ("SELECT sum(amount) AS total FROM orders", {"total": 22}, "no condition of equality"),
        ("SELECT amount * 2 AS twice FROM orders", {"twice": 10}, "no condition of equality"),
        ("SELECT id FROM orders LIMIT 1", {"id": 1}, "the query is not analysed: LIMIT"),
    ],
)
def test_what_no_equality_leads_to_is_said(sql: str, row: dict[str, Any], why: str) -> None:
    (found,) = traced(sql, **row).values()

    assert found.rows is None
    assert (found.reason or "").startswith(why)


def test_a_window_may_have_looked_at_other_rows() -> None:
    sql = "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS n FROM orders"
    found = traced(sql, id=2, n=2)["orders"]

    assert (ids(found), found.exact) == ([2], False)


def test_an_input_that_is_not_read_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.read", lambda *_: "the viewer may not read it")

    assert traced("SELECT id FROM orders", id=1)["orders"].reason == "the viewer may not read it"
