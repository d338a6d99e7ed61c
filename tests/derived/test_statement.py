"""Statements of derived datasets: what they say, and what is refused with its place."""

from __future__ import annotations

import pytest

from polynya.derived.affected import (
    IncrementalPlan,
    analyse,
    restrictable_inputs,
    statement_sql,
)
from polynya.derived.schema import DerivedInput
from polynya.derived.statement import parse
from polynya.model.errors import ConfigError

INPUTS = {
    one.name: one
    for one in (
        DerivedInput(
            "shop.orders",
            {"id": "int", "Cust": "int", "amt": "decimal(9,2)", "tags": "array<string>",
             "place": "struct<city:string>"},
            ("id",),
        ),
        DerivedInput("shop.customers", {"id": "int", "Name": "string"}, ("id",)),
        DerivedInput("shop.customers__history", {"id": "int", "since": "date"}, ("id", "since")),
        DerivedInput("crm.customers", {"id": "int"}, ("id",)),
        DerivedInput(
            "crm.lines", {"order": "int", "line": "int", "qty": "int"}, ("order", "line")
        ),
    )
}  # fmt: skip


def test_columns_keep_their_names() -> None:
    statement = parse(
        "SELECT o.*, upper(c.name) AS Customer FROM orders o JOIN shop.customers c ON c.id = cust",
        INPUTS,
        "a.sql",
    )

    assert statement.columns == ("id", "Cust", "amt", "tags", "place", "Customer")
    assert set(statement.inputs) == {"shop.orders", "shop.customers"}


def test_order_by_may_name_a_column_of_the_result() -> None:
    statement = parse("SELECT id AS k FROM orders ORDER BY k LIMIT 1", INPUTS, "a.sql")

    assert statement.columns == ("k",)


def test_the_condition_of_an_aggregate_need_not_be_grouped() -> None:
    sql = "SELECT id, count(*) FILTER (WHERE amt > 1) AS n FROM orders GROUP BY id"

    assert parse(sql, INPUTS, "a.sql").columns == ("id", "n")


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT id + 1 AS amt, amt AS b FROM orders", "`orders`.`amt` AS `b`"),
        ("SELECT id + 1 AS n, n * 2 AS m FROM orders", "(`orders`.`id` + 1) * 2 AS `m`"),
        (
            "SELECT sum(amt) AS amt FROM orders HAVING sum(amt) > 1",
            "HAVING SUM(`orders`.`amt`) > 1",
        ),
        ("SELECT place.city FROM shop.orders", "`orders`.`place`.`city`"),
        ("SELECT shop.orders.id FROM shop.orders", "`orders`.`id` AS `id`"),
        (r"SELECT 'it''s a\\b' AS t FROM orders", r"'it\'s a\\b'"),
        ("SELECT `order` FROM lines -- a comment\n;", "`lines`.`order`"),
        ("SELECT id FROM shop.customers SEMI JOIN lines ON qty = id", " SEMI JOIN"),
    ],
)
def test_names_mean_what_they_mean_for_spark(sql: str, shown: str) -> None:
    statement = parse(sql, INPUTS, "a.sql")
    names = {name: name for name in INPUTS}

    assert shown.upper() in statement_sql(statement, names).upper()


@pytest.mark.parametrize(
    ("sql", "code", "place", "words"),
    [
        ("SELECT id FROM", "001", "1:", "not valid"),
        ("SELECT 'a FROM orders", "001", "1:1", "quote"),
        ("SELECT 1 AS a; SELECT 2 AS b", "002", "1:14", "one SELECT"),
        ("DELETE FROM orders", "00", "1:1", ""),
        ("", "002", "1:1", "empty"),
        (f"SELECT {'(' * 70}1{')' * 70} AS a", "003", "1:", "levels"),
        (f"SELECT {'+'.join('1' * 3000)} AS a", "003", "1:", ""),
        ("SELECT id\nFROM ordrs", "004", "2:6", "did you mean `orders`?"),
        ("SELECT id FROM shop.custmers", "004", "1:16", "did you mean `shop.customers`?"),
        ("SELECT x FROM parquet.`/etc`", "005", "1:15", "a path"),
        ("SELECT id FROM range(3)", "005", "1:16", "function"),
        ("SELECT * FROM VALUES (1) AS t(a)", "005", "1:", "VALUES"),
        ("SELECT id,\n  cus FROM orders", "006", "2:3", "did you mean `cust`?"),
        ("SELECT o.nam FROM orders o", "006", "1:8", "`o.nam`"),
        ("SELECT x.id FROM orders o", "006", "1:8", "`x`"),
        ("SELECT id FROM orders JOIN lines ON line = id JOIN crm.customers c ON c.id = line",
         "007", "1:", "`orders.id`"),
        ("SELECT id FROM customers", "007", "1:16", "`shop.customers`"),
        ("SELECT reflect('a', 'b') AS r FROM orders", "008", "1:8", "`reflect`"),
        ("SELECT input_file_name() AS r FROM orders", "008", "1:8", "`input_file_name`"),
        ("SELECT my.udf(id) AS r FROM orders", "008", "1:", "`udf`"),
        ("SELECT id, ID FROM orders", "009", "1:1", "two columns"),
        ("SELECT id + 1 FROM orders", "009", "1:8", "no name"),
        ("SELECT cust, amt, max(id) AS m FROM orders GROUP BY cust", "010", "1:14", "`amt`"),
        ("SELECT cust, max(id) AS m FROM orders", "010", "1:8", "`cust`"),
        ("SELECT /*+ BROADCAST(orders) */ id FROM orders", "011", "1:8", "hint"),
        ("SELECT id FROM orders QUALIFY id > 1", "011", "1:", "QUALIFY"),
        ("SELECT id FROM orders SORT BY id", "011", "1:", "SORT BY"),
        ("WITH RECURSIVE t AS (SELECT 1 AS a) SELECT a FROM t", "011", "1:", "RECURSIVE"),
        ("SELECT id FROM orders UNION SELECT line, qty FROM lines", "011", "1:", "1 and 2"),
    ],
)  # fmt: skip
def test_a_wrong_statement_is_refused_with_its_place(
    sql: str, code: str, place: str, words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(sql, INPUTS, "a.sql")

    assert refused.value.code.startswith(f"POLYNYA-TRF-{code}")
    assert (refused.value.where or "").startswith(f"a.sql:{place}")
    assert words in str(refused.value)


def plan_of(sql: str) -> IncrementalPlan:
    plan = analyse(parse(sql, INPUTS, "a.sql"))
    assert isinstance(plan, IncrementalPlan), plan
    return plan


def test_an_input_can_be_restricted_by_columns_that_equal_restriction_columns() -> None:
    join = plan_of("SELECT o.id, name FROM orders o LEFT JOIN shop.customers c ON c.id = o.cust")
    by_cust = plan_of("SELECT cust, max(name) AS n FROM orders JOIN shop.customers c "
                      "ON c.id = cust GROUP BY cust")  # fmt: skip
    twice = plan_of("SELECT a.id FROM orders a JOIN orders b ON a.id = b.cust")
    lines = plan_of("SELECT o.id, max(qty) AS m FROM orders o JOIN lines l ON l.`order` = o.id "
                    "GROUP BY o.id")  # fmt: skip

    totals = plan_of("SELECT id, count(*) AS n FROM orders GROUP BY ROLLUP (id)")

    assert restrictable_inputs(totals) == {}
    assert restrictable_inputs(join) == {"shop.orders": {"id": "id"}}
    assert restrictable_inputs(by_cust) == {
        "shop.orders": {"cust": "cust"},
        "shop.customers": {"id": "cust"},
    }
    assert restrictable_inputs(twice) == {}
    assert restrictable_inputs(lines) == {
        "shop.orders": {"id": "id"},
        "crm.lines": {"order": "id"},
    }
