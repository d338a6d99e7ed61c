"""A condition for the source is one condition: it ends no statement and runs no other (S6)."""

from __future__ import annotations

from pathlib import Path

import pymysql
import pytest

from polynya.capture.compare.postgresql import _from
from polynya.capture.conditions import condition
from polynya.capture.source import Access
from polynya.model.errors import ConfigError, OperationError
from polynya.model.loader import load_project
from polynya.transform.project import expression_errors
from polynya.transform.source_conditions import checked_condition
from tests.projects import write_project

BOTH = (
    "true) ; DROP TABLE x; --",
    "true; DROP TABLE x",
    "true) UNION SELECT (1",
    "1=1) INTO OUTFILE '/tmp/x' -- ",
    "1=1 /*!50000 INTO OUTFILE '/tmp/x' */",
    "1=1 ORDER BY 1",
    "true LIMIT 1",
    "true FOR UPDATE",
    "a = (SELECT 1 FOR UPDATE)",
    "EXISTS (SELECT 1 INTO OUTFILE 'x')",
    "EXISTS (WITH x AS (DELETE FROM y RETURNING 1) SELECT * FROM x)",
    "a IN (INSERT INTO y VALUES (1))",
    "a = 1 -- x",
    "a = 1 # x",
    "a = $$x$$",
    "a = 'x",
    "a = (1",
    "a = 1]",
    "a = ?",
    "a, b",
    "a AS b",
    "   ",
    "pg_read_file('/etc/passwd') <> ''",
    '"pg_sleep"(3) IS NULL',
    "pg_catalog.pg_sleep(3) IS NULL",
    "lo_export(1, '/tmp/x') = 1",
    "dblink_exec('x', 'y') = ''",
    "query_to_xml('DROP TABLE x', true, true, '') IS NULL",
    "nextval('x') > 0",
    "set_config('a', 'b', false) = ''",
    "LOAD_FILE('/etc/passwd') <> ''",
    "SLEEP(10) = 0",
    "BENCHMARK(1, 1) = 0",
    "GET_LOCK('x', 1) = 1",
    "(@a := 1) = 1",
    "a = 'x' AND \0",
    "(" * 200 + "a" + ")" * 200,
)
OF_POSTGRESQL = (
    r"a = E'\' ) ; DROP TABLE x; --'",
    r"a = 'x\') OR true; DROP TABLE x; --'",
    "a = U&'\\0027) ; DROP TABLE x'",
    "a = $x$ ) ; DROP TABLE x; $x$",
    "E'a'\n'\\') ; DROP TABLE x; --' = a",
)
OF_MARIADB = (
    'a = "x\\") ; DROP TABLE x; --',
    "a = `x`) ; DROP TABLE x; --`",
    "`sleep`(3) = 0",
    "a = 'x' 'y') ; DROP TABLE x",
)

RIGHT = {
    "postgresql": (
        "created >= '2024-01-01'",
        "id > 3 AND lower(name) LIKE 'a%' AND name <> 'it''s -- ; /* )'",
        '"Odd ""na;me" = 1',
        "a @> '{\"x\": 1}'::jsonb AND a->>'b' = 'c'",
        "d > now() - interval '30 days'",
        r"a ~ '^\d+$'",
        "id IN (SELECT id FROM other WHERE other.a[1] = 2)",
        "ST_Intersects(geom, ST_MakeEnvelope(1, 2, 3, 4))",
        "tags && ARRAY['x'] AND pg_typeof(a) = 'x'::regtype",
    ),
    "mariadb": (
        "created >= '2024-01-01'",
        r"name = 'it\'s -- ; /* )' AND b = 'x''y'",
        '`odd``na;me` = 1 AND x = "te;xt"',
        "d > NOW() - INTERVAL 30 DAY",
        "JSON_EXTRACT(a, '$.b') = 1 AND a <=> NULL",
        "a REGEXP '^[0-9]+$' AND BINARY b = _utf8mb4'x'",
    ),
}  # fmt: skip
CAPTURE = """\
apiVersion: polynya/v1
kind: landing
name: cdc
connection: shop
tables: {include: [public.t]}
"""
SHOP = "type: postgresql\nhost: h\ndatabase: d\nuser: u\n"


@pytest.mark.parametrize(
    ("database", "text"),
    [
        *((kind, one) for one in BOTH for kind in ("postgresql", "mariadb", "mysql")),
        *(("postgresql", one) for one in OF_POSTGRESQL),
        *(("mariadb", one) for one in OF_MARIADB),
        *(("sqlserver", one) for one in RIGHT["postgresql"][:1]),
    ],
)
def test_a_text_that_is_more_than_a_condition_is_refused(database: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked_condition(text, database)

    assert caught.value.code == "POLYNYA-GTW-093"


@pytest.mark.parametrize(
    ("database", "text"), [(kind, one) for kind, some in RIGHT.items() for one in some]
)
def test_a_condition_goes_to_the_source_as_it_was_written(database: str, text: str) -> None:
    assert checked_condition(text, database) == f"({text})"


def test_a_refused_condition_fails_its_table_and_no_other() -> None:
    access = Access("postgresql", "h", 1, "d", "u", "p", task="cdc")

    with pytest.raises(OperationError, match="one condition") as caught:
        condition("true; DROP TABLE x", access, "public.t")

    assert (caught.value.code, caught.value.where) == ("POLYNYA-GTW-093", "cdc, table public.t")


@pytest.mark.parametrize("setting", ["load: {filter: {public.t: %s}}", "rows: {public.t: %s}"])
def test_validation_shows_a_refused_condition_with_its_place(tmp_path: Path, setting: str) -> None:
    text = CAPTURE + setting.replace("%s", "'true; DROP TABLE x'") + "\n"
    folder = write_project(tmp_path, cdc=text)
    (folder / "connections").mkdir()
    (folder / "connections/shop.yml").write_text(SHOP)

    [error] = expression_errors(load_project(folder, environment={}))

    assert error.code == "POLYNYA-GTW-093"
    assert str(error.where).startswith("tasks/cdc.yml:6:")


def test_the_driver_of_mariadb_asks_for_no_second_statement() -> None:
    flags = pymysql.constants.CLIENT
    assert not flags.CAPABILITIES & flags.MULTI_STATEMENTS


def test_a_comparison_takes_one_condition_only() -> None:
    assert _from("public.t", "a = 1").endswith(" WHERE (a = 1)")
    with pytest.raises(ConfigError, match="one condition"):
        _from("public.t", "true) UNION SELECT (1")


def test_a_condition_of_an_engine_that_takes_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="takes none"):
        checked_condition("a = 1", "oracle")
