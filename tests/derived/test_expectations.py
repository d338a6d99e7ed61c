"""Expectations as SQL: which rows fail, what the message says, what cannot be judged."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb
import pytest
import sqlglot
from pydantic import ValidationError

from polynya.derived.expectations import (
    JudgedResult,
    ReferencedTable,
    expectation_checks,
    judged,
    judging_query,
    sample_query,
)
from polynya.derived.query_errors import query_errors
from polynya.model.config.expectations import ResultExpectation
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.model.loader import load_project
from polynya.model.types import parse_type
from tests.projects import write_project

ROWS = """
CREATE TABLE orders AS SELECT * FROM (VALUES
    (1, 10, 'open', 5.0, TIMESTAMPTZ '2026-01-01 10:00:00+00'),
    (2, 20, 'paid', -1.0, TIMESTAMPTZ '2026-01-01 11:00:00+00'),
    (3, NULL, 'lost', 'nan'::DOUBLE, NULL),
    (4, 90, NULL, NULL, NULL),
    (5, 10, 'open', 7.5, NULL)
) AS t(id, user_id, status, amount, at_time)
"""
USERS = "CREATE TABLE users AS SELECT * FROM (VALUES (10), (20), (20), (NULL)) AS t(id)"
COLUMNS = {
    "id": "bigint", "user_id": "int", "status": "string", "amount": "double",
    "at_time": "timestamp", "tags": "map<string,int>",
}  # fmt: skip


@pytest.fixture(scope="module")
def database():
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(ROWS)
        connection.execute(USERS)
        yield connection


def result(began="2026-01-01T12:00:00+00:00"):
    users = ReferencedTable("users", {"id": parse_type("bigint"), "name": parse_type("string")})
    columns = {name: parse_type(text) for name, text in COLUMNS.items()}
    at = datetime.fromisoformat(began).astimezone(UTC)
    return JudgedResult("sales.orders", columns, ("id",), {"users": users}, at)


def checked(*expectations):
    written = [ResultExpectation.model_validate(one) for one in expectations]
    return expectation_checks(written, result(), lambda number: f"expect[{number}]")


def answer(database, text):
    """What DuckDB answers; the SQL is Spark's."""
    (translated,) = sqlglot.transpile(text, read="spark", write="duckdb")
    found = database.sql(translated)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def failures(database, *expectations):
    """What each failed expectation says, by its name."""
    checks = checked(*expectations)
    (figures,) = answer(database, judging_query(checks, "orders"))
    said = {}
    for failed in judged(checks, figures):
        query = sample_query(failed.check, "orders")
        sample = [] if query is None else [list(row.values()) for row in answer(database, query)]
        said[failed.check.expectation.label] = failed.described(sample)
    return said


@pytest.mark.parametrize(
    ("expectation", "says"),
    [
        ({"not_null": ["id"]}, None),
        ({"not_null": ["status", "user_id"]}, "2 of 5 rows, such as id = `3`; `4`"),
        ({"unique": ["id"]}, None),
        ({"unique": ["user_id"]},
         "1 of 5 rows repeat the values of another, such as user_id = `10`"),
        ({"unique": ["user_id", "amount"]}, None),
        ({"accepted_values": {"column": "STATUS", "values": ["open", "paid", "lost"]}}, None),
        ({"accepted_values": {"column": "status", "values": ["open", "lost"]}},
         "1 of 5 rows, such as id = `2`"),
        ({"range": {"column": "user_id", "min": 10, "max": 90}}, None),
        ({"range": {"column": "user_id", "min": 11}}, "2 of 5 rows, such as id = `1`; `5`"),
        ({"range": {"column": "amount", "max": 7.5}}, "1 of 5 rows, such as id = `3`"),
        ({"range": {"column": "amount", "min": 0}}, "2 of 5 rows, such as id = `2`; `3`"),
        ({"condition": "status <> 'lost' AND id < 9"}, "2 of 5 rows, such as id = `3`; `4`"),
        ({"relationship": {"columns": ["user_id"], "to": "users", "to_columns": ["id"]}},
         "1 of 5 rows, such as id = `4`"),
        ({"freshness": {"column": "at_time", "within": "1h"}}, None),
        ({"freshness": {"column": "at_time", "within": "59m"}},
         "the newest value of at_time is 2026-01-01 11:00:00+00, which is more than 59m ago"),
        ({"row_count": {"min": 5, "max": 5}}, None),
        ({"row_count": {"min": 6}}, "5 rows, and at least 6 are expected"),
        ({"row_count": {"min": 1, "max": 4}}, "5 rows, and at least 1 and at most 4 are expected"),
    ],
)  # fmt: skip
def test_which_rows_fail(database, expectation, says):
    named = {"name": "it", **expectation}

    assert failures(database, named) == ({} if says is None else {"it": says})


def test_one_query_judges_all_and_names_come_from_what_is_expected(database):
    said = failures(
        database,
        {"not_null": ["at_time"]},
        {"unique": ["user_id"]},
        {"relationship": {"columns": ["user_id"], "to": "users", "to_columns": ["id"]}},
        {"relationship": {"columns": ["id"], "to": "users"}, "name": "twice"},
        {"condition": "id  > 0"},
        {"row_count": {"max": 1}},
    )

    assert list(said) == [
        "not_null(at_time)", "unique(user_id)", "relationship(user_id)", "twice", "row_count",
    ]  # fmt: skip
    assert said["twice"].startswith("5 of 5 rows")


def test_a_table_without_rows_fails_only_what_asks_for_some(database):
    checks = checked(
        {"not_null": ["id"]},
        {"unique": ["id"]},
        {"freshness": {"column": "at_time", "within": "1h"}},
        {"row_count": {"min": 1}},
    )
    database.execute("CREATE OR REPLACE TEMP VIEW empty AS SELECT * FROM orders WHERE false")
    (figures,) = answer(database, judging_query(checks, "empty"))

    assert [failed.says for failed in judged(checks, figures)] == [
        "no row has a value in at_time",
        "0 rows, and at least 1 are expected",
    ]


@pytest.mark.parametrize(
    ("expectation", "says"),
    [
        ({"not_null": ["totl"]}, "names `totl`, which `sales.orders` does not have"),
        ({"condition": "amont > 0"}, "names `amont`"),
        ({"condition": "amount + 1"}, "needs a condition"),
        ({"range": {"column": "user_id", "min": "ten"}}, "`ten`"),
        ({"accepted_values": {"column": "user_id", "values": [1, 2.5]}}, "`2.5`"),
        ({"unique": ["tags"]}, "can be compared"),
        ({"freshness": {"column": "status", "within": "1h"}}, "needs a time"),
        ({"relationship": {"columns": ["id"], "to": "users", "to_columns": ["uid"]}},
         "names `uid`, which `users` does not have"),
        ({"relationship": {"columns": ["tags"], "to": "users", "to_columns": ["id"]}},
         "no type holds the values of both"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_result_cannot_be_judged(expectation, says):
    with pytest.raises(PolynyaError) as refused:
        checked({"not_null": ["id"]}, expectation)

    assert (refused.value.code, refused.value.where) == ("POLYNYA-TRF-081", "expect[1]")
    assert says in refused.value.message


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"not_null": ["id"], "unique": ["id"]},
        {"not_null": []},
        {"on_failure": "drop", "not_null": ["id"]},
        {"on_failure": "quarantine", "unique": ["id"]},
        {"range": {"column": "id"}},
        {"range": {"column": "id", "min": 2, "max": 1}},
        {"row_count": {}},
        {"row_count": {"min": 2, "max": 1}},
        {"relationship": {"columns": ["a", "b"], "to": "users", "to_columns": ["id"]}},
        {"freshness": {"column": "at_time", "within": 3}},
    ],
)
def test_what_expects_nothing_or_two_things_is_refused(wrong):
    with pytest.raises(ValidationError):
        ResultExpectation.model_validate(wrong)


SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets: [{name: orders, keys: [id], sequence_by: [seq]}]
"""
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop]
datasets:
  - name: totals
    sql: SELECT id FROM orders
    keys: [id]
  - name: spending
    sql: SELECT id FROM orders
    keys: [id]
    expect:
      - not_null: [id]
      - EXPECTATION
"""


@pytest.mark.parametrize(
    ("expectation", "code", "says"),
    [
        ('condition: "id >"', "POLYNYA-EXP-001", ""),
        ('condition: "reflect(id)"', "POLYNYA-EXP-004", "reflect"),
        ("relationship: {columns: [id], to: order}", "POLYNYA-TRF-076",
         "the relationship reads `order`"),
        ("relationship: {columns: [id], to: sales.totals}", "POLYNYA-TRF-082",
         "`sales.totals` is made by the same transform"),
    ],
)  # fmt: skip
def test_validate_finds_what_files_tell(tmp_path, expectation, code, says):
    folder = write_project(tmp_path, shop=SHOP, sales=SALES.replace("EXPECTATION", expectation))

    (error,) = query_errors(load_project(folder))

    assert (error.code, error.where) == (code, "tasks/sales.yml:14:9")
    assert says in error.message


def test_two_expectations_of_one_name_are_refused(tmp_path):
    text = SALES.replace("EXPECTATION", "not_null: [id]\n        on_failure: warn")
    with pytest.raises(ConfigErrors) as refused:
        load_project(write_project(tmp_path, shop=SHOP, sales=text))

    assert "two expectations are called `not_null(id)`" in str(refused.value.errors[0])
