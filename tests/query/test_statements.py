"""Which statements the embedded engine takes, and why it leaves the others to Spark."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pytest

from polynya.engine.tasks.embedded_rows import InputRows
from polynya.model.types import STRING, parse_type
from polynya.query.database import EmbeddedDatabase
from polynya.query.embedded import STATEMENT_LIMITS, answer_here, may_filter
from polynya.query.selects import Query, translate
from polynya.query.translate import NotEmbeddedError, parsed
from polynya.query.values import Relation, RelationColumn, quoted

COLUMNS = {
    "id": "int", "big": "bigint", "Name": "string", "amount": "decimal(9,2)", "day": "date",
    "at": "timestamp", "local": "timestamp_ntz", "ok": "boolean", "ratio": "double",
    "real": "float", "raw": "binary", "tags": "array<string>", "spot": "struct<x:int>",
}  # fmt: skip


def translated(statement: str) -> Query:
    return translate(parsed(statement), relation)


def relation(name: str) -> Relation:
    if name != "shop.users":
        raise NotEmbeddedError(f"no view {name}")
    columns = [RelationColumn(one, parse_type(kind), quoted(one)) for one, kind in COLUMNS.items()]
    return Relation("v0", tuple(columns))


@pytest.mark.parametrize(
    "statement",
    [
        # What Spark alone has, or knows.
        "SELECT explode(tags) FROM shop.users",
        "SELECT date_format(at, 'yyyy') AS y FROM shop.users",
        "SELECT date_trunc('day', at) AS d FROM shop.users",
        "SELECT ntile(2) OVER (ORDER BY id) AS n FROM shop.users",
        "SELECT row_number() OVER (ORDER BY ratio) AS n FROM shop.users",
        "SELECT sum(id) OVER (ORDER BY id ROWS 1 PRECEDING) AS n FROM shop.users",
        "SELECT id, rank() OVER (ORDER BY id) AS n FROM shop.users GROUP BY id",
        "SELECT count(*) FILTER (WHERE ok) AS n FROM shop.users",
        "SELECT id FROM shop.users VERSION AS OF 3",
        "SELECT id FROM shop.users TIMESTAMP AS OF '2026-01-01'",
        "SELECT id FROM shop.users TABLESAMPLE (10 PERCENT)",
        "SELECT id FROM shop.users LATERAL VIEW explode(tags) t AS tag",
        "SELECT /*+ BROADCAST(u) */ id FROM shop.users u",
        "SELECT current_date AS d FROM shop.users",
        "SELECT spot.x FROM shop.users",
        "SELECT id FROM shop.users WHERE id IN (SELECT id FROM shop.users)",
        "SELECT id FROM shop.users WHERE EXISTS (SELECT 1 FROM shop.users)",
        "SELECT (SELECT max(id) FROM shop.users) AS m",
        "SELECT id, count(*) FROM shop.users GROUP BY id WITH ROLLUP",
        "SELECT id FROM shop.users INTERSECT SELECT id FROM shop.users",
        "SELECT * FROM VALUES (1)",
        "SELECT id FROM shop_internal.users_internal",
        "SELECT id FROM polynya.shop.users",
        "SELECT * EXCEPT (id) FROM shop.users",
        "DESCRIBE shop.users",
        "SHOW VIEWS IN shop",
        "FROM shop.users SELECT id",
        # What DuckDB computes in another way, or in another type.
        "SELECT amount / 2 AS half FROM shop.users",
        "SELECT id % 2 AS odd FROM shop.users",
        "SELECT id DIV 2 AS half FROM shop.users",
        "SELECT amount + -1 AS less FROM shop.users",
        "SELECT amount * amount * amount * amount AS much FROM shop.users",
        "SELECT amount + ratio AS more FROM shop.users",
        "SELECT CAST(amount AS double) AS d FROM shop.users",
        "SELECT CAST(Name AS double) AS d FROM shop.users",
        "SELECT ratio * real AS r FROM shop.users",
        "SELECT 2 / 1.5 AS d",
        "SELECT CAST(amount AS decimal(9,1)) AS a FROM shop.users",
        "SELECT round(ratio, 1) AS r FROM shop.users",
        "SELECT substring(Name, 0, 1) AS n FROM shop.users",
        "SELECT avg(amount) FROM shop.users",
        "SELECT sum(ratio) FROM shop.users",
        "SELECT max(ratio) FROM shop.users",
        "SELECT id FROM shop.users ORDER BY ratio",
        "SELECT count(DISTINCT ratio) FROM shop.users",
        "SELECT ratio, count(*) FROM shop.users GROUP BY ratio",
        "SELECT DISTINCT tags FROM shop.users",
        "SELECT id FROM shop.users WHERE real > 1",
        "SELECT id FROM shop.users WHERE tags = tags",
        "SELECT id FROM shop.users WHERE id = '1'",
        "SELECT id FROM shop.users WHERE id > 1.5",
        "SELECT id FROM shop.users WHERE amount = 1.005",
        "SELECT id FROM shop.users WHERE amount = id",
        "SELECT id FROM shop.users WHERE amount = 99999999",
        "SELECT id FROM shop.users WHERE day = '2026-1-1'",
        "SELECT id FROM shop.users WHERE day = '2026-02-30'",
        "SELECT id FROM shop.users WHERE day < at",
        "SELECT id FROM shop.users WHERE at > '2026-01-01'",
        "SELECT id FROM shop.users WHERE at > '2026-01-01T00:00:00+02:00'",
        "SELECT id FROM shop.users WHERE Name LIKE concat('a', Name)",
        "SELECT id FROM shop.users WHERE Name RLIKE 'a'",
        "SELECT id FROM shop.users WHERE Name",
        "SELECT CAST(Name AS INT) AS n FROM shop.users",
        "SELECT CAST(amount AS STRING) AS n FROM shop.users",
        "SELECT substring(Name, 0, 2) AS n FROM shop.users",
        "SELECT coalesce(amount, 0) AS n FROM shop.users",
        "SELECT CASE WHEN ok THEN id ELSE big END AS n FROM shop.users",
        "SELECT CASE id WHEN 1 THEN 2 END AS n FROM shop.users",
        "SELECT id FROM shop.users WHERE ok = id = 1",
        "SELECT 1e3 AS n",
        "SELECT 1.50 AS n",
        "SELECT NULL AS n",
        # What is not surely the same text for both parsers.
        "SELECT 'it''s' AS s",
        "SELECT 'a' 'b' AS s",
        r"SELECT 'a\n' AS s",
        "SELECT r'a' AS s",
        "SELECT 1 /* one */ AS n",
        # What has a name only by Spark, or more than one meaning.
        "SELECT id + 1 FROM shop.users",
        "SELECT a.id FROM shop.users a JOIN shop.users a ON a.id = a.id",
        "SELECT id FROM shop.users a JOIN shop.users b ON a.id = b.id",
        "SELECT nothing FROM shop.users",
        "SELECT count(*) AS id FROM shop.users GROUP BY id HAVING id > 1",
        "SELECT id, count(*) AS n FROM shop.users GROUP BY id HAVING n > 1",
        "SELECT id AS n, big AS n FROM shop.users ORDER BY n",
        "SELECT -id AS id FROM shop.users ORDER BY id + 1",
        "SELECT id, Name, count(*) FROM shop.users GROUP BY id",
        "SELECT * FROM (SELECT id FROM shop.users LIMIT 3) t",
        "SELECT b.id FROM shop.users a LEFT SEMI JOIN shop.users b ON a.id = b.id",
        "SELECT a.id FROM shop.users a LEFT ANTI JOIN shop.users b ON a.id < b.id",
        # What stands behind a comma is joined before.
        (
            "SELECT a.id FROM shop.users a, shop.users b RIGHT JOIN shop.users c ON c.id = b.id "
            "WHERE a.id = b.id"
        ),
        (
            "SELECT a.id FROM shop.users a, shop.users b JOIN shop.users c ON c.id = a.id "
            "WHERE a.id = b.id"
        ),
        (
            "SELECT a.id FROM shop.users a JOIN shop.users b JOIN shop.users c ON b.big = c.big "
            "ON a.id = b.id"
        ),
        # What may take for ever.
        "SELECT a.id FROM shop.users a, shop.users b",
        "SELECT a.id FROM shop.users a CROSS JOIN shop.users b",
        "SELECT a.id FROM shop.users a, shop.users b WHERE a.id < b.id",
        "SELECT a.id FROM shop.users a, shop.users b WHERE a.id = b.id OR a.big = b.big",
        "SELECT a.id FROM shop.users a, shop.users b, shop.users c WHERE a.id = b.id",
        "SELECT a.id FROM shop.users a LEFT JOIN shop.users b WHERE a.id = b.id",
        "SELECT a.id FROM shop.users a JOIN shop.users b ON a.id < b.id",
        "SELECT a.id FROM shop.users a NATURAL JOIN shop.users b",
        "SELECT a.id FROM shop.users a JOIN shop.users b USING (id)",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n FROM t) SELECT n FROM t",
        "SELECT " + "(" * 900 + "1" + ")" * 900 + " AS n",
    ],
)
def test_left_to_spark(statement: str) -> None:
    with pytest.raises(NotEmbeddedError):
        translated(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM `/etc/passwd`",
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT content FROM read_text('/etc/passwd')",
        "SELECT getenv('HOME') AS h",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM v0",
        "WITH range AS (SELECT 1 AS n) SELECT * FROM range(3)",
        "SELECT * FROM main.s0",
        "SELECT 1; SELECT 2",
        "SELECT 1 AS n; COPY v0 TO '/tmp/x'",
        "COPY v0 TO '/tmp/x'",
        "ATTACH '/tmp/x.db'",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "CREATE TABLE t AS SELECT 1",
        "INSERT INTO shop.users SELECT 1",
        "WITH t AS (SELECT 1 AS n) INSERT INTO shop.users SELECT n FROM t",
        'SELECT `a"; DROP VIEW v0; --` FROM shop.users',
        'SELECT id AS "x" FROM shop.users',
    ],
)
def test_hostile_statements_reach_no_database(statement: str) -> None:
    with pytest.raises(NotEmbeddedError):
        translated(statement)


def test_texts_and_names_stay_what_they_are() -> None:
    query = translated('SELECT Name AS `a"; DROP x` FROM shop.users WHERE Name = "\';--"')

    assert query.sql == "SELECT t0.\"Name\" AS c0 FROM v0 AS t0 WHERE (t0.\"Name\" = ''';--')"
    assert [column.name for column in query.columns] == ['a"; DROP x']


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '/tmp/polynya-embedded.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH '/tmp/polynya-embedded.db' AS other",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET python_enable_replacements = true",
        "SELECT * FROM outside",
    ],
)
def test_the_database_reaches_nothing_even_if_asked(statement: str) -> None:
    outside = "a variable of this process that DuckDB would look for"
    database = EmbeddedDatabase()

    with pytest.raises(NotEmbeddedError):
        database._run(statement)
    assert outside
    database.close()


def test_the_next_database_holds_nothing_of_a_closed_one() -> None:
    database = EmbeddedDatabase()
    database.load("stored", pa.table({"id": [1, 2]}))
    rows = database.batches("FROM stored", pa.schema({"id": pa.int64()}))
    assert next(rows).num_rows == 2
    database.close()

    with closing(EmbeddedDatabase()) as other:
        assert other._connection is database._connection
        for name in ("stored", "stored_rows"):
            with pytest.raises(NotEmbeddedError, match=f"{name} does not exist"):
                other.has_rows(f"FROM {name}")


@pytest.mark.parametrize(
    ("rest", "may"),
    [
        ("count(*), max(ratio) FROM shop.users", False),
        ("Name, sum(id) FROM shop.users GROUP BY Name ORDER BY 1", False),
        ("id FROM shop.users WHERE ratio > 5", True),
        ("sum(id) FROM shop.users HAVING sum(id) > 5", True),
        ("count(*) FILTER (WHERE ratio > 5) FROM shop.users", True),
        ("DISTINCT id FROM shop.users", True),
        ("id FROM shop.users ORDER BY ratio LIMIT 3", True),
        ("u.id FROM shop.users u JOIN shop.users v ON u.ratio = v.ratio", True),
        ("u.id FROM shop.users u, shop.users v", True),
        ("id FROM (SELECT id FROM shop.users) WHERE id > 5", True),
        ("id IN (SELECT big FROM shop.users) FROM shop.users", True),
        ("id FROM shop.users UNION ALL SELECT id FROM shop.users", True),
        ("id FROM shop.users QUALIFY row_number() OVER (ORDER BY id) = 1", True),
    ],
)
def test_plain_columns_are_shown_where_nothing_can_filter_them(rest: str, *, may: bool) -> None:
    assert may_filter(parsed(f"SELECT {rest}")) is may


def test_a_statement_leaves_the_tree_of_its_text_as_it_was() -> None:
    tree = parsed("SELECT Name, sum(id) AS s FROM shop.users WHERE ok GROUP BY Name ORDER BY s")
    before = repr(tree)

    assert translate(tree, relation) == translate(tree, relation)
    assert repr(tree) == before


def test_nan_is_greater_than_every_number() -> None:
    with closing(EmbeddedDatabase()) as database:
        database.load("stored", pa.table({"n": [1.0, float("nan"), None]}))
        assert database.has_rows("FROM stored WHERE n > 5")


@pytest.mark.parametrize(
    ("statement", "names", "types"),
    [
        ("SELECT count(*) FROM shop.users", ["count(1)"], ["bigint"]),
        ("select ID, u.name from shop.users u", ["ID", "name"], ["int", "string"]),
        ("SELECT sum(amount), SUM(id) AS s FROM shop.users", ["sum(amount)", "s"],
         ["decimal(19,2)", "bigint"]),
        ("SELECT count(DISTINCT Name), max(day) FROM shop.users",
         ["count(DISTINCT Name)", "max(day)"], ["bigint", "date"]),
        ("SELECT id + big AS n, id * 2 AS m, 3000000000 AS k FROM shop.users", ["n", "m", "k"],
         ["bigint", "int", "bigint"]),
        ("SELECT 1", ["1"], ["int"]),
    ],
)  # fmt: skip
def test_names_and_types_are_those_of_spark(
    statement: str, names: list[str], types: list[str]
) -> None:
    query = translated(statement)

    assert [column.name for column in query.columns] == names
    assert [str(column.type) for column in query.columns] == types


def test_two_spellings_of_a_name_are_left_to_spark_where_capitals_count() -> None:
    """Spark groups by the new column then, and by the old one where `Name` is `name`."""
    rows = pa.table({"name": ["a", "A"]})
    view = InputRows("shop.users", {"name": STRING}, rows)
    sql = "SELECT upper(name) AS Name, count(*) AS n FROM shop.users GROUP BY Name"

    def answer(*, has_cases: bool) -> int:
        find = {"shop.users": view}.__getitem__
        limits = STATEMENT_LIMITS
        _, batches = answer_here(sql, find, limit=None, limits=limits, has_cases=has_cases)
        return sum(batch.num_rows for batch in batches)

    assert answer(has_cases=False) == 2
    with pytest.raises(NotEmbeddedError, match="capitals"):
        answer(has_cases=True)
