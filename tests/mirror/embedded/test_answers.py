"""The embedded engine gives the rows, names and types that Spark gives, or leaves it to Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from polynya.engine.embedded import answer_embedded
from polynya.lake.read.query import answer
from polynya.lake.read.statements import Statement
from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.mirror.embedded.stored import Limits
from polynya.model.reading.loader import LoadedProject, load_project
from tests.lab.lab import Feed, Lab, drop, put
from tests.mirror.test_trino import TYPES

pytestmark = pytest.mark.spark

FULL = {
    "day": "2026-02-03", "amount": "1234567890123456.7891", "happened": "2026-01-01T00:00:01.5Z",
    "blob": "AAEC/w==", "tags": ["a", None], "spot": {"x": 1.5, "ok": None},
    "flags": {"k": 1, "l": None}, "v": True, "name": "it's \u00e9 \"q\"", "ratio": 0.1,
}  # fmt: skip


def project_of(*feeds: Feed) -> LoadedProject:
    """The project of the lab with the tasks of these feeds."""
    loaded = load_project(feeds[0].lab.project, tolerant=True)
    return replace(loaded, tasks=tuple(feed.task for feed in feeds))


def assert_same(project: LoadedProject, lab: Lab, statement: str, *, ordered: bool = False) -> int:
    """Compare names, types and rows of both engines; return the number of rows."""
    schema, batches = answer_embedded(project, statement)
    lab.spark.conf.set("spark.sql.caseSensitive", "false")
    try:
        wanted = answer(lab.spark, Statement(statement))
        rows = [tuple(row.values()) for batch in wanted.batches for row in _rows(batch)]
    finally:
        lab.spark.conf.set("spark.sql.caseSensitive", "true")
    assert schema.names == wanted.schema.names, statement
    assert schema.types == wanted.schema.types, statement
    found = [tuple(row.values()) for batch in batches for row in _rows(batch)]
    if not ordered:
        rows, found = sorted(rows, key=repr), sorted(found, key=repr)
    assert list(map(repr, found)) == list(map(repr, rows)), statement
    return len(rows)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    # By number: two columns may have one name.
    return batch.rename_columns([str(n) for n in range(batch.num_columns)]).to_pylist()


def test_every_view_before_during_and_after_an_apply(lab: Lab) -> None:
    users = lab.feed(columns={**TYPES, "ratio": "double"}, task={"views": {"headers": True}})
    project = project_of(users)
    views = [f"SELECT * FROM {lab.schema}.users{end}"
             for end in ("", "__whdr", "__history", "__changes")]  # fmt: skip
    users.apply(put(1, 1, **FULL), put(2, 2, **FULL), put(3, 3, name=None, tags=[]))
    users.apply(put(1, 10, name="n"), drop(2, 11), put(3, 2, name="late"))
    for view in views:
        assert_same(project, lab, view)
    users.copy(put(1, 20, **FULL), put(4, 13, **FULL), put(1, 5, day="2020-01-01"), drop(3, 30))
    users.copy(put(2, 4, name="before its delete"), put(5, 1, **FULL), put(2, 40, name="back"))
    for view in views:
        assert assert_same(project, lab, view)


#: Expressions over one row of the table below; all rows in one statement.
EXPRESSIONS = (
    "id + 1", "n * 2", "-n", "(id + n) * 3 - 1", "CAST(n AS BIGINT)", "CAST(id AS STRING)",
    "id = n", "n <> 3", "n < id", "n >= 2147483647", "id <=> n", "NOT n = 1", "n IN (1, 2, -3)",
    "n NOT IN (1)", "n BETWEEN 0 AND 7", "n IS NULL", "n IS NOT NULL", "n = 1 OR v", "n = 1 AND v",
    "amount > 0", "amount = 1234567890123456.7891", "amount < -0.5", "amount IN (0.0001, 2)",
    "name = \"it's \u00e9\"", "name < 'n'", "name LIKE '%a_%'", "name NOT LIKE 'N%'",
    "name || '!'", "concat(name, '-', name)", "length(name)", "coalesce(name, 'none')",
    "nullif(name, 'Nn')", "ifnull(n, 0)",
    "day = '2026-02-03'", "day >= DATE '1582-10-04'", "day BETWEEN '1900-01-01' AND '2026-02-03'",
    "year(day)", "month(day)", "day(day)", "CAST(happened AS DATE)", "to_date(happened)",
    "happened > '2026-01-01 00:00:00'", "happened = TIMESTAMP '2026-01-01 00:00:01.5'",
    "happened < '1969-12-31T23:59:59.999999Z'", "zoneless = '1999-12-31 23:59:59'",
    "ratio > 0", "ratio = 0.1", "ratio <= 1e0" , "ratio = other", "ratio < other",
    "CASE WHEN n > 0 THEN 'more' WHEN n < 0 THEN 'less' END", "CASE WHEN v THEN day ELSE NULL END",
    "blob = blob",
)  # fmt: skip
STATEMENTS = (
    "SELECT count(*) FROM {v}",
    "SELECT COUNT(n), sum(n), min(n), MAX(id), avg(n), sum(amount) FROM {v} WHERE id <> 5",
    "SELECT min(amount), max(name), min(day), max(happened), count(DISTINCT name) FROM {v}",
    "SELECT v, count(*) AS many, sum(id) FROM {v} GROUP BY v HAVING count(*) > 1 ORDER BY many, 3",
    "SELECT day AS d, name, count(*) FROM {v} GROUP BY d, 2 ORDER BY d DESC, name NULLS LAST",
    "SELECT DISTINCT v, amount FROM {v} ORDER BY amount DESC, v",
    "SELECT ID, {s}.Name FROM {v} AS {s} ORDER BY Ratio DESC, other, id LIMIT 4",
    "SELECT * FROM {v} ORDER BY name, id",
    "SELECT a.*, b.n AS other_n FROM {v} a LEFT JOIN {v} b ON a.n = b.id AND b.id > 1",
    "SELECT a.id, c.v FROM {v} a FULL OUTER JOIN {v}__changes c ON c.id = a.id WHERE c.v OR a.v",
    "WITH b AS (SELECT id, n FROM {v} WHERE n > 0), t AS (SELECT max(n) AS top FROM b) "  # noqa: ISC004
    "SELECT b.id, t.top FROM b JOIN t ON b.n = t.top",
    "SELECT id FROM {v} UNION ALL SELECT id FROM {v}__history ORDER BY 1",
    "SELECT name FROM {v} UNION SELECT upper('a') AS b ORDER BY name",
    "SELECT max(id) AS m FROM {v} WHERE id < 0",
    "SELECT hdr__operation, hdr__store, hdr__deleted, count(*) FROM {v}__history GROUP BY 1, 2, 3",
)


def test_statements_over_values_that_engines_dispute(lab: Lab) -> None:
    types = {
        **TYPES, "n": "int", "ratio": "double", "other": "double", "zoneless": "timestamp_ntz",
        "state": "string",
    }  # fmt: skip
    users = lab.feed(columns=types)
    project, view = project_of(users), f"{lab.schema}.users"
    users.apply(
        put(1, 1, n=1, name="Nn", ratio="NaN", other="NaN", amount="0.0001", day="1582-10-04",
            happened="1969-12-31T23:59:59.999999Z", zoneless="1999-12-31T23:59:59", v=True),
        put(2, 2, n=2147483647, name="", ratio="-0.0", other="0.0", amount="-0.5",
            day="0001-01-01", happened="0001-01-01T00:00:00Z", v=False),
        put(3, 3, n=-2147483647, name="a\u0000b", ratio="Infinity", amount="99999999999999.9999"),
        put(4, 4, n=7, name="\U0001f926\u200d", ratio="-Infinity", other="1", day="9999-12-31"),
        put(5, 5, **FULL), put(6, 6, n=2, name="zz", v=True, day="2026-02-03", amount="2"),
    )  # fmt: skip
    users.copy(put(7, 7, n=7, name="n\u00e9", v=True), drop(6, 8), put(4, 2, name="late"))

    listed = ", ".join(f"{one} AS e{at}" for at, one in enumerate(EXPRESSIONS) if "1e0" not in one)
    assert assert_same(project, lab, f"SELECT id AS i, {listed} FROM {view} WHERE n < 2000000")
    for one in STATEMENTS:
        statement = one.format(v=view, s="users")
        assert_same(project, lab, statement, ordered="ORDER BY" in statement)
    for overflow in ("n + 1", "sum(n + 2147483647)"):
        with pytest.raises(NotEmbeddedError, match="DuckDB"):
            answer_embedded(project, f"SELECT {overflow} AS x FROM {view}")
    with pytest.raises(NotEmbeddedError, match="other letters"):
        answer_embedded(project, f"SELECT lower(name) AS x FROM {view}")
    with pytest.raises(NotEmbeddedError, match="stored rows"):
        answer_embedded(project, f"SELECT 1 AS x FROM {view}", limits=Limits(rows=5))


def test_what_the_rows_decide_goes_to_spark(lab: Lab) -> None:
    users = lab.feed(columns={"id": "timestamp", "seq": "int"}, task={"views": {"headers": True}})
    project, view = project_of(users), f"SELECT count(*) FROM {lab.schema}.users"
    users.apply(put("2026-01-01T00:00:00Z", 1, name="a"))
    assert assert_same(project, lab, f"{view}__history")
    users.copy(put("2026-01-01T00:00:00Z", 2, name="b"))
    assert assert_same(project, lab, view)
    for end in ("__history", "__whdr"):
        with pytest.raises(NotEmbeddedError, match="key hash"):
            answer_embedded(project, view + end)
    users.copy(put("2026-01-01T00:00:00Z", 2, name="c"))
    with pytest.raises(NotEmbeddedError, match="claim the same place"):
        answer_embedded(project, view)
    assert assert_same(project, lab, f"{view}__changes")
    users.configure(except_columns=["op", "seq", "at", "name"])
    with pytest.raises(NotEmbeddedError, match="made in another way"):
        answer_embedded(project_of(users), f"{view}__changes")
