"""Expressions are translated where both give the same values, and refused elsewhere."""

from __future__ import annotations

import pytest

from polynya.qlik.expressions import NoEqualError, column_expression, statement


@pytest.mark.parametrize(
    ("text", "dialect", "made"),
    [
        ('upper("a") || \'-\' || "b"', "sqlite", "UPPER(`a`) || '-' || `b`"),
        ("ifnull(\"a\", 'it''s')", "sqlite", "COALESCE(`a`, 'it\\'s')"),
        ("CASE WHEN \"a\" > 1 THEN 'x' ELSE 'y' END", "sqlite",
         "CASE WHEN `a` > 1 THEN 'x' ELSE 'y' END"),
        ("${A} + 1", "snowflake", "`A` + 1"),
        ("${A} + 1", "spark", "`A` + 1"),
        ('substr("a", 2, 3)', "sqlite", "SUBSTRING(`a`, 2, 3)"),
    ],
)  # fmt: skip
def test_an_expression_with_an_equal(text, dialect, made):
    assert column_expression(text, dialect, {}, "here") == made


@pytest.mark.parametrize(
    "text",
    [
        '"a" / 2',  # whole numbers in SQLite
        "\"a\" LIKE 'x%'",  # in SQLite without regard to case
        'CAST("a" AS INTEGER)',  # 0 for a text in SQLite
        'substr("a", -2)',
        "datetime('now')",
        "source_lookup(1, 'a')",
        "$AR_M_SOURCE_TABLE_NAME",
        "(SELECT 1)",
        "a; DROP TABLE x",
        "(" * 3000,
        "",
        "1 + " * 5000 + "1",
    ],
)
def test_an_expression_without_an_equal(text):
    with pytest.raises(NoEqualError):
        column_expression(text, "sqlite", {}, "here")


def test_a_name_in_a_placeholder_cannot_leave_its_quotes():
    hostile = {"A": '"; DROP TABLE x; --'}

    assert column_expression("${A} || 'x'", "snowflake", hostile, "here") == (
        "`\"; DROP TABLE x; --` || 'x'"
    )


def test_a_statement_reads_the_tables_of_the_project():
    made, ordered = statement(
        "SELECT o.id, count(*) AS n FROM ${ORDERS} o GROUP BY o.id ORDER BY o.id", "snowflake",
        {"ORDERS": "shop.orders"},
    )  # fmt: skip

    assert ordered
    assert made.split() == [
        "SELECT",
        "o.id,",
        "COUNT(*)",
        "AS",
        "n",
        "FROM",
        "shop.orders",
        "AS",
        "o",
        "GROUP",
        "BY",
        "o.id",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM ${OTHER}",
        "DELETE FROM ${ORDERS}",
        "SELECT snowflake_cortex(a) FROM ${ORDERS}",
    ],
)
def test_a_statement_without_an_equal(text):
    with pytest.raises(NoEqualError):
        statement(text, "snowflake", {"ORDERS": "shop.orders"})
