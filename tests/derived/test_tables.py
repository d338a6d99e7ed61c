"""The tables that a query names are found, and only their names are replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.derived.query_errors import query_errors
from polynya.derived.tables import named_parts, parsed_query, part_query
from polynya.model.errors import OperationError
from polynya.model.loader import load_project
from tests.projects import write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets: [{name: orders, keys: [id], sequence_by: [at], history: true}]
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop]
datasets:
  - name: kept
    sql: SELECT id FROM VIEW
    keys: [id]
"""


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("SELECT id FROM shop.users", "SELECT id FROM `in_0` AS `users`"),
        ("SELECT u.id FROM shop.`users` u", "SELECT u.id FROM `in_0` u"),
        (
            "SELECT shop.users.id FROM shop.users, orders",
            "SELECT users.id FROM `in_0` AS `users`, `in_1` AS `orders`",
        ),
        (
            "WITH users AS (SELECT * FROM shop.users) SELECT * FROM users",
            "WITH users AS (SELECT * FROM `in_0` AS `users`) SELECT * FROM users",
        ),
        (
            "SELECT u.home.city FROM a u WHERE EXISTS (SELECT 1 FROM b)",
            "SELECT u.home.city FROM `in_0` u WHERE EXISTS (SELECT 1 FROM `in_1` AS `b`)",
        ),
        ("FROM users SELECT id ;", "FROM `in_0` AS `users` SELECT id"),
        (
            "SELECT (SELECT max(id) FROM b.c) FROM (((users)))",
            "SELECT (SELECT max(id) FROM `in_0` AS `c`) FROM (((`in_1` AS `users`)))",
        ),
        (
            "SELECT t.x FROM users LATERAL VIEW explode(tags) t AS x",
            "SELECT t.x FROM `in_0` AS `users` LATERAL VIEW explode(tags) t AS x",
        ),
        ("SELECT 'shop.users' AS text -- FROM x\nFROM y",
         "SELECT 'shop.users' AS text -- FROM x\nFROM `in_0` AS `y`"),
        ("SELECT a FROM VALUES (1) AS t(a)", "SELECT a FROM VALUES (1) AS t(a)"),
    ],
)  # fmt: skip
def test_names_of_tables_are_replaced_and_nothing_else(text: str, over: str) -> None:
    query = parsed_query(text, "sales.x")

    assert query.over({name: f"`in_{at}`" for at, name in enumerate(query.names)}) == over


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1; SELECT 2", "it is not one `SELECT`"),
        ("DROP TABLE users", "it is not one `SELECT`"),
        ("INSERT INTO a SELECT * FROM b", "it is not one `SELECT`"),
        ("", "it is not one `SELECT`"),
        (
            "SELECT id\nFROM (users",
            "`)` was expected after `users` at line 2, column 7 of the query",
        ),
        ("SELECT '", "a quote or a comment is not closed"),
        ("SELECT (id FROM users", "`)` was expected before `FROM` at line 1, column 12"),
        ("SELECT id FROM users WHERE", "something is missing at `WHERE` at line 1, column 22"),
        ("SELECT id FROM (DROP TABLE x)", "Expected table name but got `DROP` at line 1"),
        ("SELECT id u x FROM users", "`x` was not expected at line 1, column 13"),
        ("SELECT id, FROM users", "a comma stands before `FROM` at line 1, column 10"),
        ("SELECT max(id, ) FROM users", "a comma stands before `)`"),
        ("SELECT reflect('a', 'b') FROM users", "`reflect` at line 1, column 8 of the query, and"),
        (
            "SELECT my_own(id) FROM users",
            "`my_own` at line 1, column 8 of the query, which is none",
        ),
        ("SELECT * FROM users TABLESAMPLE (5 ROWS)", "`users` in part, or as of another time"),
        ("SELECT * FROM users VERSION AS OF 3", "`users` in part, or as of another time"),
        ("SELECT * FROM range(10)", "which is not the name of a table"),
        ("SELECT * FROM read_files('/etc')", "which is not the name of a table"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "nested too deeply"),
    ],
)
def test_other_texts_are_refused(text: str, reason: str) -> None:
    with pytest.raises(OperationError) as refused:
        parsed_query(text, "sales.x")

    assert refused.value.code == "POLYNYA-TRF-073"
    assert reason in refused.value.message


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("SELEC id FROM users", "did you mean `SELECT` instead of `SELEC`?"),
        ("SELECT id FORM users", "did you mean `FROM` instead of `FORM`?"),
        ("SELECT id FROM orders WHERE", "look for a bracket or a quote that is not closed"),
        ("SELECT uper(id) FROM users", "did you mean `upper`?"),
        ("SELECT java_method('a', 'b') FROM users", "call functions of Spark that only compute"),
    ],
)
def test_what_was_mistyped_is_told(text: str, fix: str) -> None:
    with pytest.raises(OperationError) as refused:
        parsed_query(text, "sales.x")

    assert (refused.value.fix or "").startswith(fix)


def test_functions_of_spark_that_the_parser_does_not_know_are_left_alone() -> None:
    text = "SELECT theta_union(a, b), polynya.system.bucket(4, id), stack(2, 1, 2), `max(1)` FROM x"

    assert parsed_query(text, "t").names == ("x",)


def test_a_path_in_place_of_a_table_is_a_name_that_no_task_has() -> None:
    assert parsed_query("SELECT * FROM parquet.`/etc/x`", "t").names == ("parquet./etc/x",)


@pytest.mark.parametrize(
    ("view", "reason", "instead"),
    [
        ("shop.orders__changes", "its rows go when they are applied", "orders__history"),
        ("orders__current_stored", "the state of the last apply", "`orders`"),
        ("orders__history_stored", "the state of the last apply", "orders__history"),
    ],
)
def test_views_that_depend_on_when_applies_run_are_no_inputs(
    view: str, reason: str, instead: str, tmp_path: Path
) -> None:
    sales = SALES.replace("VIEW", view)

    (error,) = query_errors(load_project(write_project(tmp_path, shop=SHOP, sales=sales)))

    assert (error.code, error.where) == ("POLYNYA-TRF-076", "tasks/sales.yml:7:5")
    assert reason in error.message
    assert instead in (error.fix or "")


@pytest.mark.parametrize(
    ("text", "number", "found"),
    [
        (
            "WITH a AS (SELECT 1 AS x), b AS (SELECT y FROM a) SELECT y FROM b",
            0,
            "WITH a AS (SELECT 1 AS x) SELECT * FROM `a`",
        ),
        (
            "WITH a AS (SELECT 1 AS x), `b c` (y) AS (SELECT x FROM a) (SELECT y FROM `b c`)",
            1,
            "WITH a AS (SELECT 1 AS x), `b c`(y) AS (SELECT x FROM a) SELECT * FROM `b c`",
        ),
        (
            "WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION ALL SELECT 2 AS x",
            0,
            "WITH a AS (SELECT 1 AS x) SELECT * FROM `a`",
        ),
        ("WITH a AS (SELECT 1 AS x)\nSELECT x ;", 1, "WITH a AS (SELECT 1 AS x)\nSELECT x"),
        ("WITH a AS (SELECT 1 AS x) SELECT x FROM a", 2, None),
        ("SELECT 1 AS x", 0, "SELECT 1 AS x"),
        ("SELECT 1 AS x", 1, None),
    ],
)  # fmt: skip
def test_the_query_of_a_part_has_the_parts_before_it_and_no_later_ones(
    text: str, number: int, found: str | None
) -> None:
    assert part_query(text, number, "sales.kept") == found


def test_each_part_that_is_named_has_a_query() -> None:
    text = "WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b), c AS (SELECT x FROM a) SELECT x"
    parts = named_parts(text, "sales.kept")

    assert [one.name for one in parts] == ["a", "c", ""]
    assert all(part_query(text, number, "x") for number in range(len(parts)))
    assert part_query(text, len(parts), "x") is None
