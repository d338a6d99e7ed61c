"""Each engine shows the rows and types that Spark shows, in the views of queries.

The queries have all that is translated, over values on which engines disagree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pytest

from examples.servers.trino import StatementError, TrinoServer
from polynya.lake.spark.api import SparkSession
from tests.lab.commands import InProcessDriver
from tests.lab.trino import running_trino
from tests.projects import write_project
from tests.query.engines.compare import Compared, compared, difference
from tests.query.engines.differences import adapted
from tests.query.engines.engines import (
    POLARS,
    PYTHON,
    Engine,
    View,
    duckdb_engine,
    printed,
    spark_engine,
    trino_engine,
    trino_printed,
)
from tests.query.engines.trino_rows import as_arrow

pytestmark = pytest.mark.spark

SHOP: Final = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets:
  - name: kinds
    path: kinds/*
    keys: [id]
    sequence_by: [seq]
    except_columns: [seq, op]
    apply_as_deletes: op = 'D'
    columns: {id: int, n: int, big: bigint, Name: string, amount: "decimal(18,2)", day: date,
      at: timestamp, local: timestamp_ntz, ok: boolean, ratio: double, seq: int, op: string}
"""
#: By what they are about.
QUERIES: Final = {
    "numbers": "SELECT id, id + n * 2 - 1 AS a, -n AS b, n / id AS c, id / n AS d, big / 3 AS e, "
    "CAST(n AS double) AS f, CAST(n AS bigint) + big AS g, -2147483648 AS h, n = -2147483648 AS i "
    "FROM kinds WHERE n < 1000 OR n IS NULL",
    "decimals": "SELECT id, amount * 2 AS a, amount + n AS b, amount * 1.05 AS c, "
    "CAST(amount AS decimal(25,4)) AS e, CAST(n AS decimal(12,1)) AS f, amount - 0.5 AS g, "
    "amount > -1000000 AS h FROM kinds",
    "rounded": "SELECT id, round(amount, 1) AS a, round(amount) AS b, round(amount, 5) AS c "
    "FROM kinds",
    "texts": "SELECT id, Name || '-' || Name AS a, concat(Name, 'x') AS b, length(Name) AS c, "
    "substring(Name, 2, 3) AS d, substr(Name, 3) AS e, coalesce(Name, 'none') AS f, "
    "nullif(Name, 'a') AS g, Name LIKE '_a%' AS h, CAST(n AS string) AS i, Name < 'b' AS j, "
    "Name = 'a ' AS k FROM kinds",
    "days": "SELECT id, year(day) AS a, month(day) AS b, dayofmonth(day) AS c, "
    "datediff(day, DATE '2026-01-01') AS d, to_date(at) AS e, CAST(local AS date) AS f, "
    "at > TIMESTAMP '2026-01-01 00:00:00' AS g, day BETWEEN '1900-01-01' AND '2026-12-31' AS h, "
    "local = '2026-03-29 02:30:00' AS i, day IN ('2026-03-01', '1582-10-04') AS j, at, local, day "
    "FROM kinds",
    "choices": "SELECT id, if(n > 1, 'more', 'less') AS a, CASE WHEN ok THEN n WHEN NOT ok THEN id "
    "END AS b, n IN (1, 2) AS c, n NOT IN (1, 2) AS d, n IS NULL AS e, n <=> id AS f, "
    "ok OR n = 1 AS g, ok AND n = 1 AS h, NOT ok AS i, nvl(n, 0) AS j, coalesce(n) AS k, "
    "ok < (n > 1) AS l FROM kinds",
    "groups": "SELECT Name AS title, count(*) AS a, count(n) AS b, count(DISTINCT amount) AS c, "
    "sum(n) AS d, sum(amount) AS e, avg(n) AS f, min(Name) AS g, max(day) AS h, min(at) AS i "
    "FROM kinds GROUP BY Name HAVING count(*) > 0 ORDER BY title DESC",
    "ordinals": "SELECT ok AS Flag, day, count(*) AS n FROM kinds GROUP BY 1, day",
    "nothing": "SELECT count(*) AS a, sum(n) AS b, avg(n) AS c, max(Name) AS d FROM kinds "
    "WHERE id < 0",
    "places": "SELECT id, row_number() OVER (PARTITION BY ok ORDER BY Name DESC, id) AS a, "
    "rank() OVER (ORDER BY n) AS b, dense_rank() OVER (ORDER BY Name NULLS LAST) AS c, "
    "lag(n) OVER (ORDER BY day, id) AS d, lead(Name, 2) OVER (ORDER BY amount DESC, id) AS e, "
    "sum(n) OVER (PARTITION BY ok) AS f, count(*) OVER (ORDER BY n) AS g, "
    "sum(amount) OVER (ORDER BY n DESC) AS h, max(Name) OVER (PARTITION BY ok) AS i FROM kinds "
    "WHERE n < 1000 OR n IS NULL",
    "distinct": "SELECT DISTINCT ok, amount FROM kinds",
    "joined": "WITH b AS (SELECT id AS other, n FROM kinds WHERE n > 0) SELECT a.id, b.other, "
    "a.Name FROM kinds a LEFT JOIN b ON b.n = a.id FULL JOIN kinds c ON c.id = b.other",
    "stacked": "SELECT t.* FROM (SELECT id, Name FROM kinds UNION ALL SELECT n, Name FROM kinds) t "
    "WHERE t.id > 0",
    "together": "SELECT Name FROM kinds UNION SELECT 'a' AS Name FROM kinds",
    "Everything": "SELECT * FROM kinds",
}  # fmt: skip
#: Views of a second transform, over those of the first.
ABOVE: Final = {
    "best": "SELECT title, e FROM groups WHERE a > 1",
    "both": "SELECT n.id, g.a FROM reports.numbers n JOIN shop.kinds k ON k.id = n.id "
    "JOIN groups g ON g.title = k.Name",
}


def transform(name: str, reads: str, queries: dict[str, str]) -> str:
    listed = "".join(
        f"  - {{name: {view}, sql: {json.dumps(sql)}, materialize: view}}\n"
        for view, sql in queries.items()
    )
    return (
        f"apiVersion: polynya/v1\nkind: transform\nname: {name}\nfrom: [{reads}]\n"
        f"datasets:\n{listed}"
    )


FIRST: Final[list[dict[str, Any]]] = [
    {"id": 1, "n": 3, "big": 9007199254740993, "Name": "a", "amount": "10.05", "day": "2026-03-01",
     "at": "2026-01-01T00:00:00.000001Z", "local": "2026-03-29T02:30:00", "ok": True},
    {"id": 2, "n": 0, "big": -7, "Name": "a ", "amount": "-0.05", "day": "0001-01-01",
     "at": "1969-12-31T23:59:59.999999Z", "local": "1999-12-31T23:59:59.5", "ok": False,
     "ratio": -0.0},
    {"id": 3},
    {"id": 4, "n": 1, "big": 1, "Name": "\u00e9a\U0001f600z", "amount": "0.15",
     "day": "1582-10-04", "at": "2026-06-30T23:30:00Z", "ok": True, "ratio": 0.1},
    {"id": 5, "n": 2147483647, "big": 9223372036854775807, "Name": "", "amount": "-99999999999.99",
     "day": "9999-12-31", "ok": False},
]  # fmt: skip
LATER: Final[list[dict[str, Any]]] = [
    {"id": 1, "n": -3, "big": 2, "Name": "B", "amount": "10.15", "day": "2024-02-29", "op": "U",
     "at": "2026-01-01T00:00:00Z", "local": "2026-01-01T00:00:00", "ok": True},
    {"id": 4, "op": "D"},
    {"id": 6, "n": 1, "Name": "a", "amount": "10.05", "day": "2026-03-01", "ok": True, "op": "I"},
    {"id": 7, "n": 2, "Name": "a", "amount": "10.25", "op": "I"},
    {"id": 8, "n": -1, "Name": "\u00e9a\U0001f600z", "amount": "9999999999999999.99", "op": "I",
     "day": "1582-10-04", "at": "2026-01-01T00:00:00.000001Z", "local": "2026-03-29T02:30:00",
     "ok": True, "ratio": 0.1},
    {"id": 9, "n": 1, "op": "I"},
    {"id": 10, "n": 1, "Name": "a", "amount": "10.05", "op": "I"},
]  # fmt: skip


def land(folder: Path, number: int, records: list[dict[str, Any]]) -> None:
    place = folder / "landing/shop/kinds"
    place.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"seq": number, "op": "I"} | one) for one in records)
    (place / f"{number}.json").write_text("\n".join(lines))


class Mistake(NamedTuple):
    """What a translation might get wrong, in the view of the query that is about it."""

    about: str
    view: str
    right: str
    wrong: str


#: In the text of each engine.
MISTAKES: Final = (
    Mistake("division by zero", "numbers", r'NULLIF\((CAST\("t0"\."n" AS \w+\)), 0\)', r"\1"),
    Mistake("decimals as doubles", "decimals",
            r'(?i)CAST\("t0"\."amount" AS DECIMAL\(19, ?2\)\) \*',
            'CAST("t0"."amount" AS DOUBLE) *'),
    Mistake("digits of a cast", "decimals", r'(?i)CAST\("t0"\."amount" AS (DECIMAL\(25, ?4\))\)',
            r'CAST(CAST("t0"."amount" AS DOUBLE) AS \1)'),
    Mistake("rounded doubles", "rounded", r'ROUND\("t0"\."amount", 2\)',
            'ROUND(CAST("t0"."amount" AS DOUBLE), 2)'),
    Mistake("blanks at the end", "texts", "= 'a '", "= 'a'"),
    Mistake("one character of a pattern", "texts", "LIKE '_a%'", "LIKE '%a%'"),
    Mistake("the first character", "texts", r"(SUBSTR\w*\([^,()]*), 2, 3\)", r"\1, 1, 3)"),
    Mistake("which day comes first", "days", "DATE_DIFF", "-DATE_DIFF"),
    Mistake("the day in another zone", "days", r'CAST\("t0"\."at" AS (DATE|date)\)',
            r"""CAST("t0"."at" - INTERVAL '5' HOUR AS \1)"""),
    Mistake("fractions of a second", "days", '("t0"."at") >', r"DATE_TRUNC('SECOND', \1) >"),
    Mistake("NULL is NULL", "choices", "IS NOT DISTINCT FROM", "="),
    Mistake("instead of NULL", "choices", r'COALESCE\(("t0"\."n"), CAST\(0 AS \w+\)\)', r"\1"),
    Mistake("NULL is not counted", "groups", r'COUNT\("t0"\."n"\)(?= AS "c2")', "COUNT(*)"),
    Mistake("counted once", "groups", r"COUNT\(DISTINCT ", "COUNT("),
    Mistake("exact sums", "groups", r'SUM\("t0"\."amount"\)', 'SUM(CAST("t0"."amount" AS DOUBLE))'),
    Mistake("where NULL stands", "places", "NULLS LAST", "NULLS FIRST"),
    Mistake("ranks after equal ones", "places", r"DENSE_RANK\(\)", "RANK()"),
    Mistake("equal ones in a frame", "places",
            r'(SUM\("t0"\."amount"\) OVER \(ORDER BY "t0"\."n" DESC NULLS LAST)',
            r"\1 ROWS UNBOUNDED PRECEDING"),
    Mistake("rows once", "distinct", "SELECT DISTINCT", "SELECT"),
    Mistake("rows without a match", "joined", "FULL JOIN", "LEFT JOIN"),
    Mistake("all rows of two", "stacked", "UNION ALL", "UNION"),
    Mistake("rows of two once", "together", "UNION", "UNION ALL"),
)  # fmt: skip
IN_DUCKDB: Final = (
    *MISTAKES,
    Mistake("half away from zero", "rounded", r"ROUND\(([^,]*), 1\)", r"ROUND_EVEN(\1, 1)"),
    Mistake("NULL in a text", "texts", r"""\(("t0"\."Name") \|\| 'x'\)""", r"CONCAT(\1, 'x')"),
    Mistake("characters of two bytes", "texts", "LENGTH", "STRLEN"),
    Mistake("a mean with a fraction", "groups", r'CAST\(SUM\("t0"\."n"\) AS DOUBLE\) /',
            'SUM("t0"."n") //'),
)  # fmt: skip
IN_TRINO: Final = (
    *MISTAKES,
    Mistake("a quotient with a fraction", "numbers",
            r'CAST\(CAST\(("t0"\."n") AS double\) AS DOUBLE\) / \w+\(CAST\((\S*) AS double\), 0\)',
            r"\1 / \2"),
    Mistake("half away from zero", "rounded", r"ROUND\(([^,]*), 1\)", r"TRUNCATE(\1, 1)"),
    Mistake("NULL in a text", "texts", r"""CAST\("t0"\."name" AS VARCHAR\)(?=, CAST\('x')""",
            """COALESCE("t0"."name", '')"""),
    Mistake("characters of two bytes", "texts", r"LENGTH\(([^)]*)\)", r"LENGTH(TO_UTF8(\1))"),
    Mistake("the zone of a literal", "days", "00:00:00.000000 UTC", "00:00:00.000000 America/Lima"),
    Mistake("a mean with a fraction", "groups",
            r'CAST\(CAST\(SUM\("t0"\."n"\) AS double\) AS DOUBLE\) /', 'SUM("t0"."n") /'),
)  # fmt: skip
KINDS: Final = View("shop", "kinds", "shop.kinds", "current")


@dataclass(frozen=True)
class Published:
    """A project with its views, and the rows that Spark shows."""

    folder: Path
    wanted: dict[View, pa.Table]

    def compared(self, engine: Engine) -> Compared:
        return compared(engine, self.folder, self.wanted)

    def unnoticed(
        self,
        engine: str,
        mistakes: Sequence[Mistake],
        run: Callable[[str], object],
        read: Callable[[str], pa.Table],
    ) -> list[str]:
        """The mistakes that no row shows, each made in a view beside the right ones.

        `run` carries a statement out, `read` gives the rows of a view in the schema `reports`.
        """
        shown = {"duckdb": "DuckDB", "trino": "Trino with printed views"}[engine]
        texts = printed(self.folder, "reports.*", "--engine", engine)
        for text in texts:
            run(text)
        missed = []
        for number, mistake in enumerate(mistakes):
            [wanted] = [
                adapted(shown, view, rows)
                for view, rows in self.wanted.items()
                if (view.schema, view.name) == ("reports", mistake.view)
            ]
            place = f'"reports"."{mistake.view}"'
            [text] = [one for one in texts if f"VIEW {place} " in one]
            wrong = re.sub(mistake.right, mistake.wrong, text)
            assert wrong != text, mistake
            run(wrong.replace(place, f'"reports"."wrong_{number}"', 1))
            assert difference(wanted, read(mistake.view)) == [], mistake.view
            if not difference(wanted, read(f"wrong_{number}")):
                missed.append(mistake.about)
        return missed


@pytest.fixture(scope="module")
def published(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Rows that are applied, and changes that are pending."""
    folder = write_project(
        tmp_path_factory.mktemp("views"),
        shop=SHOP,
        reports=transform("reports", "shop", QUERIES),
        above=transform("above", "shop, reports", ABOVE),
    )
    driver = InProcessDriver(spark)
    for number, records in enumerate((FIRST, LATER), 1):
        land(folder, number, records)
        printed = driver.call("run", "--once", "-p", str(folder))
        assert printed.code == 0, printed.errors
    views = [View("reports", one, f"reports.{one}", "current") for one in QUERIES]
    views += [View("above", one, f"above.{one}", "current") for one in ABOVE]
    views.append(KINDS)
    with spark_engine(spark).open(folder) as read:
        wanted = {view: rows for view in views if (rows := read(view)) is not None}
    assert len(wanted) == len(views)
    assert all(rows.num_rows for rows in wanted.values())
    return Published(folder, wanted)


@pytest.fixture(scope="module")
def trino() -> Iterator[TrinoServer]:
    """A server that runs; without one the tests are skipped, in CI failed."""
    with running_trino() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("engine", [duckdb_engine(), PYTHON, POLARS], ids=lambda one: one.name)
def test_views_of_queries_are_those_of_spark(published: Published, engine: Engine) -> None:
    found = published.compared(engine)

    assert found.different == []
    assert found.refused == set()


@pytest.mark.slow
def test_views_of_queries_in_trino(published: Published, trino: TrinoServer) -> None:
    assert published.compared(trino_printed(trino)).different == []

    # Trino asks the catalog for names in small letters only.
    [capital] = [view for view in published.wanted if not view.name.islower()]
    others = {view: rows for view, rows in published.wanted.items() if view != capital}
    assert compared(trino_engine(trino), published.folder, others).different == []
    with (
        trino_engine(trino).open(published.folder) as read,
        pytest.raises(StatementError, match="does not exist"),
    ):
        read(capital)


@pytest.mark.slow
def test_each_mistranslation_is_found_in_duckdb(published: Published) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.register("rows", adapted("DuckDB", KINDS, published.wanted[KINDS]))
        connection.execute("CREATE TABLE shop.kinds AS FROM rows")

        def read(view: str) -> pa.Table:
            return connection.execute(f'FROM reports."{view}"').fetch_arrow_table()

        assert published.unnoticed("duckdb", IN_DUCKDB, connection.execute, read) == []


@pytest.mark.slow
def test_each_mistranslation_is_found_in_trino(published: Published, trino: TrinoServer) -> None:
    with trino_engine(trino).open(published.folder):
        trino.add_catalog("live", "memory", {})
        try:
            trino.run("CREATE SCHEMA live.shop")
            # A copy: the plan of a live view takes a second each time.
            trino.run("CREATE TABLE live.shop.kinds AS SELECT * FROM polynya.shop.kinds")

            def read(view: str) -> pa.Table:
                return as_arrow(trino.run(f'SELECT * FROM live.reports."{view}"'))

            def run(statement: str) -> None:
                trino.run(statement, catalog="live")

            assert published.unnoticed("trino", IN_TRINO, run, read) == []
        finally:
            trino.drop_catalog("live")
