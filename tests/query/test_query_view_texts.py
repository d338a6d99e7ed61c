"""What a query's view becomes in each engine, and which queries have no view there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

import duckdb
import pytest

from polynya.model.names import Dialect
from polynya.model.types import DataType, parse_type
from polynya.query.query_views import LIMITS, ViewInput, query_view_in
from polynya.query.translate import NotEmbeddedError

COLUMNS = {
    "id": "int", "n": "int", "big": "bigint", "Name": "string", "amount": "decimal(9,2)",
    "day": "date", "at": "timestamp", "local": "timestamp_ntz", "ok": "boolean",
    "ratio": "double", "raw": "binary", "tags": "array<string>",
}  # fmt: skip
TYPES: Mapping[str, DataType] = {name: parse_type(kind) for name, kind in COLUMNS.items()}
ENGINES = tuple(LIMITS)


def text_in(dialect: Dialect, query: str, columns: Mapping[str, DataType] = TYPES) -> str:
    def read(name: str) -> ViewInput:
        if name != "shop.kinds":
            raise NotEmbeddedError(f"no view {name}")
        return ViewInput(dialect.quote("shop", "kinds"), columns)

    return query_view_in(dialect, "By", query, read).sql


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


ROWS = """
    (1, 3, 9007199254740993, 'a', 10.05, DATE '2026-03-01', TIMESTAMP '2026-01-01', NULL, true,
     0.1),
    (2, 0, -7, 'a ', -0.05, DATE '0001-01-01', NULL, TIMESTAMP '1999-12-31 23:59:59.5', false,
     NULL),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 1, 1, 'éa😀z', 0.15, DATE '2024-02-29', TIMESTAMP '2026-06-30 23:30:00', NULL, true, 2)
"""


def rows_of(query: str) -> list[tuple[object, ...]]:
    """The rows of a view in a DuckDB whose session has its own ideas."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/Lima'")
        connection.execute("SET default_null_order = 'nulls_first'")
        connection.execute(
            "CREATE SCHEMA shop; CREATE TABLE shop.kinds (id INTEGER, n INTEGER, big BIGINT, "
            '"Name" VARCHAR, amount DECIMAL(9,2), day DATE, "at" TIMESTAMP, "local" TIMESTAMP, '
            f"ok BOOLEAN, ratio DOUBLE); INSERT INTO shop.kinds VALUES {ROWS}"
        )
        return sorted(connection.execute(text_in(Dialect.DUCKDB, query)).fetchall(), key=repr)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        # Division is one of doubles, and by zero NULL.
        ("id / n", [(1, 1 / 3), (2, None), (3, None), (4, 4.0)]),
        ("amount * 1.05", [(1, Decimal("10.5525")), (2, Decimal("-0.0525")), (3, None),
                           (4, Decimal("0.1575"))]),
        # Of two decimals of 64 bits, with more digits than these hold.
        ("amount * 123456789012345678", [(1, Decimal("1240740729574074063.90")),
                                         (2, Decimal("-6172839450617283.90")), (3, None),
                                         (4, Decimal("18518518351851851.70"))]),
        ("n > -1 AND n IN (-5, 3)", [(1, True), (2, False), (3, None), (4, False)]),
        ("coalesce(n)", [(1, 3), (2, 0), (3, None), (4, 1)]),
        ("day IN ('2026-03-01')", [(1, True), (2, False), (3, None), (4, False)]),
        ("round(amount, 1)", [(1, Decimal("10.1")), (2, Decimal("-0.1")), (3, None),
                              (4, Decimal("0.2"))]),
        # A NULL in a concatenation is one of the whole; texts are counted from 1, by characters.
        ("concat(Name, '-')", [(1, "a-"), (2, "a -"), (3, None), (4, "éa😀z-")]),
        ("substring(Name, 2, 2)", [(1, ""), (2, " "), (3, None), (4, "a😀")]),
        ("length(Name)", [(1, 1), (2, 2), (3, None), (4, 4)]),
        ("Name = 'a'", [(1, True), (2, False), (3, None), (4, False)]),
        ("datediff(day, DATE '2024-03-01')", [(1, 730), (2, -738945), (3, None), (4, -1)]),
        # Days of instants are days of UTC, whatever zone the session has.
        ("to_date(at) = DATE '2026-06-30'", [(1, False), (2, None), (3, None), (4, True)]),
        ("at < TIMESTAMP '2026-01-01 00:00:01'", [(1, True), (2, None), (3, None), (4, False)]),
        ("local = '1999-12-31 23:59:59.5'", [(1, None), (2, True), (3, None), (4, None)]),
        ("n <=> NULLIF(n, 3)", [(1, False), (2, True), (3, True), (4, True)]),
        ("if(n > 0, 'some', 'none')", [(1, "some"), (2, "none"), (3, "none"), (4, "some")]),
        # NULL is the smallest value, first in one direction and last in the other.
        ("row_number() OVER (ORDER BY n)", [(1, 4), (2, 2), (3, 1), (4, 3)]),
        ("row_number() OVER (ORDER BY n DESC)", [(1, 1), (2, 3), (3, 4), (4, 2)]),
        ("lag(n) OVER (ORDER BY id)", [(1, None), (2, 3), (3, 0), (4, None)]),
        ("sum(n) OVER (ORDER BY ok NULLS LAST)", [(1, 4), (2, 0), (3, 4), (4, 4)]),
    ],
)  # fmt: skip
def test_duckdb_has_the_values_of_spark(values: str, rows: list[tuple[int, object]]) -> None:
    assert rows_of(f"SELECT id, {values} AS x FROM shop.kinds") == rows


def test_duckdb_finds_an_overflow_that_it_would_compute_away() -> None:
    for query in (
        "SELECT id FROM shop.kinds WHERE n + 2147483647 > 5",
        "SELECT id FROM shop.kinds WHERE n * 2147483647 > 5",
        "SELECT sum(n + 2147483647) AS s FROM shop.kinds",
        "SELECT ok FROM shop.kinds WHERE id = 1 GROUP BY ok HAVING sum(big * 1024) > 5",
    ):
        with pytest.raises(duckdb.Error, match=r"(?i)overflow|out of range"):
            rows_of(query)


def test_duckdb_groups_as_spark_does() -> None:
    query = (
        "SELECT ok AS Flag, count(*) AS a, count(n) AS b, count(DISTINCT Name) AS c, sum(n) AS d, "
        "avg(n) AS e FROM shop.kinds GROUP BY 1 HAVING count(*) > 0 ORDER BY Flag"
    )

    assert rows_of(query) == [
        (False, 1, 1, 1, 0, 0.0), (None, 1, 0, 0, None, None), (True, 2, 2, 2, 4, 2.0)
    ]  # fmt: skip


@pytest.mark.parametrize("dialect", ENGINES)
def test_names_are_quoted_and_folded(dialect: Dialect) -> None:
    text = text_in(dialect, 'SELECT Name AS `x" y` FROM shop.kinds k WHERE Name LIKE "%\'%"') \
        if dialect is not Dialect.REDSHIFT \
        else text_in(dialect, 'SELECT Name AS `x" y` FROM shop.kinds')  # fmt: skip

    alias = '`x" y`' if dialect is Dialect.DATABRICKS else '"x"" y"'
    assert dialect.fold(alias) in text
    assert dialect.quote("shop", "kinds") in text
    assert dialect.quote(dialect.fold("Name")) in text


@pytest.mark.parametrize("dialect", ENGINES)
def test_every_order_says_where_null_stands(dialect: Dialect) -> None:
    query = "SELECT row_number() OVER (ORDER BY n, id DESC) AS r FROM shop.kinds ORDER BY r"
    text = flat(text_in(dialect, query))

    assert "ASC NULLS FIRST," in text
    assert "DESC NULLS LAST)" in text
    # A view has no order of its own.
    assert text.count("ORDER BY") == 1


def test_instants_are_compared_as_the_engine_shows_them() -> None:
    query = "SELECT id FROM shop.kinds WHERE at > TIMESTAMP '2026-01-01 00:00:00'"

    assert "CAST('2026-01-01 00:00:00.000000 UTC' AS timestamp(6) with time zone)" in text_in(
        Dialect.TRINO, query
    )
    assert "CAST('2026-01-01 00:00:00.000000' AS timestamp(6))" in text_in(Dialect.ATHENA, query)


REFUSED = (
    ("id,\n  foo(id) AS x", "the function foo(int)", ENGINES),
    ("id,\n  lower(Name) AS x", "lower: other letters", ENGINES),
    ("id,\n  CAST(Name AS int) AS x", "a cast of string to INT", ENGINES),
    ("id,\n  amount / 2 AS x", "`/` of decimal(9,2) and int", ENGINES),
    ("id,\n  substring(Name, 0, 2) AS x", "the function substring(", ENGINES),
    ("id,\n  tags[0] AS x", "BRACKET", ENGINES),
    ("id,\n  at IN ('2026-01-01T00:00:00') AS x", "IN of times", ENGINES),
    ("id,\n  local IN ('2026-01-01 00:00:00.50') AS x", "IN of times", ENGINES),
    ("id,\n  ratio > 0.5 AS x", "NaN", (Dialect.TRINO, Dialect.ATHENA, Dialect.SNOWFLAKE)),
    ("id,\n  Name = 'a' AS x", "blanks at the end", (Dialect.REDSHIFT,)),
    ("id,\n  amount * 2 AS x", "arithmetic of decimals", (Dialect.SNOWFLAKE, Dialect.REDSHIFT)),
    ("id,\n  to_date(at) AS x", "day of a time", (Dialect.SNOWFLAKE, Dialect.DATABRICKS)),
    ("id,\n  sum(n) OVER (ORDER BY id) AS x", "the frame there",
     (Dialect.SNOWFLAKE, Dialect.REDSHIFT)),
)  # fmt: skip


@pytest.mark.parametrize(("shown", "reason", "engines"), REFUSED)
def test_what_may_differ_is_refused_with_its_place(
    shown: str, reason: str, engines: tuple[Dialect, ...]
) -> None:
    query = f"SELECT {shown} FROM shop.kinds"
    for dialect in engines:
        with pytest.raises(NotEmbeddedError, match=re.escape(reason)) as refused:
            text_in(dialect, query)
        assert refused.value.start is not None
        assert query[: refused.value.start].count("\n") == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM shop.kinds LIMIT 3",
        "SELECT id FROM shop.kinds WHERE id IN (SELECT n FROM shop.kinds)",
        "SELECT a.id FROM shop.kinds a CROSS JOIN shop.kinds b",
        "SELECT id FROM other.kinds",
        "SELECT id, ID AS x, n AS X FROM shop.kinds",
    ],
)
def test_queries_that_no_engine_has(query: str) -> None:
    for dialect in ENGINES:
        with pytest.raises(NotEmbeddedError):
            text_in(dialect, query)


def test_redshift_compares_no_texts_in_any_place() -> None:
    for query in (
        "SELECT Name, count(*) AS n FROM shop.kinds GROUP BY Name",
        "SELECT DISTINCT Name FROM shop.kinds",
        "SELECT max(Name) AS n FROM shop.kinds",
        "SELECT count(DISTINCT Name) AS n FROM shop.kinds",
        "SELECT a.id FROM shop.kinds a JOIN shop.kinds b ON a.Name = b.Name",
        "SELECT id FROM shop.kinds WHERE Name IN ('a', 'b')",
        "SELECT row_number() OVER (ORDER BY Name) AS n FROM shop.kinds",
        "SELECT row_number() OVER (PARTITION BY Name ORDER BY id) AS n FROM shop.kinds",
        "SELECT nullif(Name, 'a') AS n FROM shop.kinds",
        "SELECT Name FROM shop.kinds UNION SELECT Name FROM shop.kinds",
    ):
        with pytest.raises(NotEmbeddedError, match="blanks at the end"):
            text_in(Dialect.REDSHIFT, query)
        assert text_in(Dialect.SNOWFLAKE, query)


def test_a_full_join_is_on_equal_columns_where_no_other_is_known() -> None:
    query = "SELECT a.id FROM shop.kinds a\n  FULL JOIN shop.kinds b ON a.id = b.n{more}"

    assert text_in(Dialect.REDSHIFT, query.format(more=" AND (b.big = a.big)"))
    for more in (" AND a.n > 1", " AND a.id = a.n", " AND (a.n = 1 OR b.id = a.id)"):
        with pytest.raises(NotEmbeddedError, match="FULL JOIN") as refused:
            text_in(Dialect.REDSHIFT, query.format(more=more))
        assert query[refused.value.start :].startswith("a.id = b.n")
        assert rows_of(query.format(more=more))


def test_an_error_of_the_embedded_engine_reaches_no_view() -> None:
    # The mean has one for large sums; it leaves out nothing else.
    text = flat(text_in(Dialect.TRINO, "SELECT avg(n) AS a FROM shop.kinds"))

    assert "error" not in text.lower()
    assert 'SUM("t0"."n") AS double' in text
