"""Each engine shows the rows and types that Spark shows, in the views of queries.

The queries have all that is translated, over values on which engines disagree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from examples.servers.trino import TrinoServer
from polynya.lake.spark.api import SparkSession
from tests.lab.commands import InProcessDriver
from tests.lab.trino import running_trino
from tests.projects import write_project
from tests.query.engines.compare import Compared, compared
from tests.query.engines.engines import (
    POLARS,
    PYTHON,
    Engine,
    View,
    duckdb_engine,
    spark_engine,
    trino_engine,
    trino_printed,
)

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
    "CAST(n AS double) AS f, CAST(n AS bigint) + big AS g FROM kinds WHERE n < 1000 OR n IS NULL",
    "decimals": "SELECT id, amount * 2 AS a, amount + n AS b, amount * 1.05 AS c, "
    "CAST(amount AS decimal(25,4)) AS e, CAST(n AS decimal(12,1)) AS f FROM kinds "
    "WHERE amount > -1000000",
    "rounded": "SELECT id, round(amount, 1) AS a, round(amount) AS b, round(amount, 5) AS c "
    "FROM kinds",
    "texts": "SELECT id, Name || '-' || Name AS a, concat(Name, 'x') AS b, length(Name) AS c, "
    "substring(Name, 2, 3) AS d, substr(Name, 3) AS e, coalesce(Name, 'none') AS f, "
    "nullif(Name, 'a') AS g, Name LIKE '_a%' AS h, CAST(n AS string) AS i, Name < 'b' AS j, "
    "Name = 'a ' AS k FROM kinds",
    "days": "SELECT id, year(day) AS a, month(day) AS b, dayofmonth(day) AS c, "
    "datediff(day, DATE '2026-01-01') AS d, to_date(at) AS e, CAST(local AS date) AS f, "
    "at > TIMESTAMP '2026-01-01 00:00:00' AS g, day BETWEEN '1900-01-01' AND '2026-12-31' AS h, "
    "local = '2026-03-29 02:30:00' AS i, at, local, day FROM kinds",
    "choices": "SELECT id, if(n > 1, 'more', 'less') AS a, CASE WHEN ok THEN n WHEN NOT ok THEN id "
    "END AS b, n IN (1, 2) AS c, n NOT IN (1, 2) AS d, n IS NULL AS e, n <=> id AS f, "
    "ok OR n = 1 AS g, ok AND n = 1 AS h, NOT ok AS i, nvl(n, 0) AS j FROM kinds",
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
]  # fmt: skip


def land(folder: Path, number: int, records: list[dict[str, Any]]) -> None:
    place = folder / "landing/shop/kinds"
    place.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"seq": number, "op": "I"} | one) for one in records)
    (place / f"{number}.json").write_text("\n".join(lines))


@dataclass(frozen=True)
class Published:
    """A project with its views, and the rows that Spark shows."""

    folder: Path
    wanted: dict[View, pa.Table]

    def compared(self, engine: Engine) -> Compared:
        return compared(engine, self.folder, self.wanted)


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
    for engine in (trino_printed(trino), trino_engine(trino)):
        found = published.compared(engine)
        assert found.different == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong", "view"),
    [
        ("NULLS LAST", "NULLS FIRST", "places"),
        ("NULLIF\\(CAST\\(.*? AS DOUBLE\\), 0\\)", "1", "numbers"),
        ("SUBSTRING\\(([^,]*), 2, 3\\)", "SUBSTRING(\\1, 1, 3)", "texts"),
        ("UNION ALL", "UNION", "stacked"),
        ("IS NOT DISTINCT FROM", "=", "choices"),
    ],
)
def test_a_mistranslation_is_found(published: Published, right: str, wrong: str, view: str) -> None:
    edited = []

    def edit(text: str) -> str:
        if f'"reports"."{view}"' not in text.partition(" AS ")[0]:
            return text
        edited.append(re.sub(right, wrong, text))
        assert edited[-1] != text
        return edited[-1]

    found = published.compared(duckdb_engine(edit))

    assert edited
    assert any(f"reports.{view}: " in one for one in found.different)
