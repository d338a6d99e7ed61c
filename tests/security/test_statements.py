"""`query` and `shell` only read: no write, no command, no code, no file but tables (S4)."""

from __future__ import annotations

from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from polynya.lake.read.functions import READING_FUNCTIONS, REFUSED_FUNCTIONS
from polynya.lake.read.plans import why_refused
from polynya.lake.read.query import Statement, refuse_writing, run_query
from polynya.lake.spark.api import SparkSession
from polynya.model.errors import OperationError
from polynya.query.database import EmbeddedDatabase
from polynya.query.selects import translate
from polynya.query.translate import NotEmbeddedError, parsed
from polynya.query.values import Relation
from polynya.transform.functions.core import ALLOWED_FUNCTIONS
from tests.lab.lab import Lab, put

#: Everything here has to be refused; PLACE is a folder, OWNED a file whose text nobody may see.
HOSTILE = (
    "FROM VALUES (1) INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT *",
    "FROM VALUES (1) AS t(a) INSERT INTO shop.users SELECT a",
    "FROM VALUES (1) AS t(a) INSERT INTO x SELECT a INSERT INTO y SELECT a",
    "WITH q AS (SELECT 1 AS a) FROM q INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT *",
    "/* SELECT */ INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT 1",
    "/* a /* b */ SELECT 1 */ INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT 1",
    "WITH a AS (SELECT 1) /*)*/ INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT 1",
    "(FROM VALUES (1) INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT *)",
    "EXPLAIN ANALYZE INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT 1",
    "EXPLAIN CREATE TABLE shop.x AS SELECT 1",
    "SELECT TRANSFORM(a) USING 'touch PLACE/out' AS (b) FROM VALUES (1) AS t(a)",
    "FROM VALUES (1) AS t(a) MAP a USING 'touch PLACE/out' AS b",
    "SELECT * FROM (FROM VALUES (1) AS t(a) REDUCE a USING 'touch PLACE/out' AS b)",
    "SELECT EXISTS (SELECT TRANSFORM(a) USING 'touch PLACE/out' AS (b) FROM VALUES (1) AS t(a))",
    "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT java_method('java.lang.System', 'getProperty', 'user.home')",
    "SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT `ReFlect`('java.lang.System', 'getProperty', 'user.home')",
    "SELECT system.builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getProperty', 'user.home')",
    "WITH q AS (SELECT reflect('java.lang.System', 'getProperty', 'x') AS a) SELECT * FROM q",
    "SELECT * FROM VALUES (reflect('java.lang.System', 'getProperty', 'user.home')) AS t(a)",
    "SELECT * FROM VALUES (1) AS t(a) WHERE a IN (SELECT reflect('java.lang.System', 'gc'))",
    "SELECT (SELECT max(reflect('java.lang.System', 'getProperty', 'user.home')))",
    "SELECT transform(array(1), x -> reflect('java.lang.System', 'getProperty', 'user.home'))",
    "SELECT sum(1) OVER (ORDER BY reflect('java.lang.System', 'getProperty', 'user.home'))",
    "SELECT 1 FROM VALUES (1) AS t(a) LATERAL VIEW explode(array(reflect('a', 'b'))) x AS y",
    "SELECT * FROM VALUES (1) AS t(a) PIVOT (max(reflect('a', 'b')) FOR a IN (1))",
    "SELECT 1 FROM range(1) ORDER BY reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT 1 FROM range(1) LIMIT CAST(reflect('java.lang.Integer', 'parseInt', '1') AS INT)",
    "FROM range(1) |> EXTEND reflect('java.lang.System', 'getProperty', 'user.home') AS a",
    "DESCRIBE QUERY SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "EXPLAIN SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT * FROM python_worker_logs()",
    "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', 'OWNED'))",
    "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', 'OWNED'))",
    "SELECT from_avro(x'00', 'x', map('avroSchemaUrl', 'OWNED'))",
    "SELECT from_protobuf(x'00', 'x', 'OWNED')",
    "SELECT * FROM text.`OWNED`",
    "SELECT * FROM csv.`OWNED`",
    "SELECT * FROM TEXT.`file:OWNED`",
    "SELECT * FROM binaryFile.`OWNED`",
    "SELECT * FROM json.`OWNED`",
    "SELECT * FROM iceberg.`PLACE`",
    "SELECT * FROM `org.apache.spark.sql.execution.datasources.v2.text`.`OWNED`",
    "TABLE text.`OWNED`",
    "DESCRIBE text.`OWNED`",
    "SELECT * FROM IDENTIFIER('text.`OWNED`')",
    "SELECT * FROM nobodys_function(1)",
    "SELECT nobodys_function(1)",
    "SELECT java_method",
    "SET spark.sql.runSQLOnFiles = true",
    "ADD JAR 'OWNED'",
    "CACHE TABLE shop.users",
    "CALL polynya.system.expire_snapshots('shop.users')",
    "EXECUTE IMMEDIATE 'DROP TABLE shop.users'",
    "BEGIN DROP TABLE shop.users; END",
    "DECLARE x INT",
    "CREATE TEMPORARY VIEW x USING text OPTIONS (path 'OWNED')",
    "USE polynya",
    "REFRESH 'PLACE'",
    "ANALYZE TABLE shop.users COMPUTE STATISTICS",
)  # fmt: skip

READING = (
    "SELECT a, count(*) FROM VALUES (1) AS t(a) WHERE a > 0 GROUP BY ALL HAVING count(*) > 0",
    "SELECT upper(a) FROM VALUES ('x') AS t(a) ORDER BY 1 LIMIT 3 OFFSET 0",
    "SELECT 1 -- \\\n FROM x; INSERT OVERWRITE DIRECTORY 'PLACE/out' USING csv SELECT 1",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "WITH q AS (SELECT 1 AS insert) SELECT insert FROM q",
    "SELECT 'INSERT INTO x', `INSERT` FROM VALUES (1) AS t(`INSERT`)",
    "SELECT a, row_number() OVER w FROM VALUES (1), (2) AS t(a) WINDOW w AS (ORDER BY a)",
    "SELECT a, sum(b) FROM VALUES (1, 2) AS t(a, b) GROUP BY ROLLUP (a)",
    "SELECT * FROM VALUES (1, 2) AS t(a, b) UNPIVOT (v FOR n IN (a, b))",
    "SELECT * FROM VALUES ('x', 2) AS t(a, b) PIVOT (sum(b) FOR a IN ('x'))",
    "SELECT x FROM VALUES (array(1)) AS t(a) LATERAL VIEW OUTER explode(a) e AS x",
    "SELECT * FROM VALUES (1) AS t(a), LATERAL (SELECT a + 1)",
    "SELECT * FROM explode(array(1, 2)) AS e(x)",
    "SELECT EXISTS (SELECT 1), (SELECT 2), 1 IN (SELECT 1), input_file_name()",
    "SELECT CAST('1' AS INT), '2'::INT, TRY_CAST('x' AS INT), EXTRACT(YEAR FROM DATE '2026-01-01')",
    "SELECT INTERVAL 1 DAY, named_struct('a', 1).a, array(1)[0], transform(array(1), x -> x + 1)",
    "SELECT filter(array(1), x -> x > 0), TRIM(BOTH 'x' FROM 'xax'), CASE WHEN true THEN 1 END",
    "SELECT * EXCEPT (a) FROM VALUES (1, 2) AS t(a, b)",
    "SELECT /*+ BROADCAST(u) */ * FROM VALUES (1) AS t(a) JOIN VALUES (1) AS u(a) USING (a)",
    "SELECT a FROM VALUES (1) AS t(a) UNION SELECT 2 EXCEPT SELECT 3 INTERSECT SELECT 4",
    "FROM VALUES (1) AS t(a) |> WHERE a > 0 |> EXTEND a + 1 AS b |> DROP a |> LIMIT 1",
    "SELECT from_xml('<p><a>1</a></p>', 'a INT'), schema_of_xml('<p><a>1</a></p>')",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM VALUES (1), (2) AS t(a)",
    "SELECT * FROM range(3) DISTRIBUTE BY id SORT BY id",
    "VALUES (1, map('a', 1)), (2, NULL)",
    "SHOW NAMESPACES",
    "SHOW FUNCTIONS",
    "SHOW CATALOGS",
    "SHOW CURRENT NAMESPACE",
    "DESCRIBE FUNCTION upper",
    "DESCRIBE QUERY SELECT 1 AS a",
    "EXPLAIN SELECT 1",
    "EXPLAIN EXTENDED SELECT 1",
)


#: What DuckDB would do with files and settings.
FILES_OF_DUCKDB = (
    "SELECT * FROM read_text('OWNED')",
    "SELECT * FROM read_csv_auto('OWNED')",
    "SELECT * FROM 'OWNED'",
    "SELECT * FROM `OWNED`",
    "SELECT getenv('HOME')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM glob('/*')",
    "SELECT current_setting('temp_directory')",
    "WITH q AS (SELECT * FROM read_text('OWNED')) SELECT * FROM q",
    "COPY (SELECT 1) TO 'PLACE/out'",
    "ATTACH 'PLACE/out'",
    "INSTALL httpfs",
)
#: What shows metadata of tables; judged only, because the tables are not there.
SHOWING = (
    "SHOW TABLES IN shop", "SHOW VIEWS IN shop", "SHOW SCHEMAS", "SHOW NAMESPACES IN polynya",
    "SHOW COLUMNS IN shop.users", "SHOW CREATE TABLE shop.users", "SHOW PARTITIONS shop.users",
    "SHOW TBLPROPERTIES shop.users", "SHOW TABLE EXTENDED IN shop LIKE 'x'", "TABLE shop.users",
    "DESCRIBE shop.users", "DESC FORMATTED shop.users", "DESCRIBE EXTENDED shop.users id",
    "DESCRIBE TABLE EXTENDED shop.users AS JSON", "DESCRIBE NAMESPACE shop",
    "SELECT * FROM shop.users VERSION AS OF 3", "SELECT * FROM shop.users.snapshots",
    "SELECT * FROM shop.users TIMESTAMP AS OF '2026-01-01'", "SELECT a:b, `t`.* FROM t",
    "SELECT polynya.system.bucket(4, id), system.iceberg_version() FROM shop.users",
    "SELECT * FROM shop.users NATURAL JOIN shop.orders TABLESAMPLE (5 ROWS)",
)  # fmt: skip


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    file = tmp_path / "owned.txt"
    file.write_text("root:x:0:0\n")
    return file


@pytest.mark.parametrize("text", HOSTILE)
def test_a_statement_that_does_not_only_read_is_refused(
    spark: SparkSession, owned: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fix of an unknown name lists the views of all the tests before.
    monkeypatch.setattr("polynya.lake.read.query.view_names", lambda _: [])
    written = text.replace("PLACE", str(owned.parent)).replace("OWNED", str(owned))

    with pytest.raises(OperationError) as caught:
        run_query(spark, written)

    assert caught.value.code == "POLYNYA-QRY-001"
    assert "root:x" not in str(caught.value)
    assert [one.name for one in owned.parent.iterdir()] == ["owned.txt"]


@pytest.mark.parametrize("text", [*READING, *SHOWING])
def test_a_statement_that_reads_is_not_refused(spark: SparkSession, text: str) -> None:
    assert why_refused(spark, text) is None


def test_a_value_of_xml_fetches_no_document_type(spark: SparkSession) -> None:
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        text = f'<!DOCTYPE a SYSTEM "http://127.0.0.1:{server.server_port}/dtd"><a><b>1</b></a>'
        with pytest.raises(OperationError):
            run_query(spark, f"SELECT xpath_string('{text}', 'a/b')")
        server.shutdown()

    assert asked == []


@pytest.mark.slow
def test_live_views_are_queried_and_described(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, n=1))
    schema, _, name = users.view.rpartition(".")
    for text in (
        f"SELECT * FROM {users.view}", f"TABLE {users.view}__history", f"SHOW VIEWS IN {schema}",
        f"SHOW TABLES IN {schema}", f"DESCRIBE {users.view}",
        f"DESCRIBE EXTENDED {users.view}", f"SHOW CREATE TABLE {users.view}",
        f"SHOW TBLPROPERTIES {users.view}", f"EXPLAIN SELECT * FROM {users.view}__changes",
        f"SHOW VIEWS IN {schema} LIKE '{name}'",
    ):  # fmt: skip
        assert run_query(lab.spark, text) is not None, text


@pytest.mark.slow
@pytest.mark.parametrize("text", READING)
def test_a_statement_that_reads_is_answered(spark: SparkSession, text: str) -> None:
    assert run_query(spark, text) is not None


@pytest.mark.parametrize("text", [*HOSTILE, *FILES_OF_DUCKDB])
def test_the_embedded_engine_takes_no_hostile_statement(text: str) -> None:
    def no_view(name: str) -> Relation:
        raise NotEmbeddedError(name)

    with pytest.raises((OperationError, NotEmbeddedError)):
        refuse_writing(Statement(text))
        translate(parsed(text), no_view)


def test_the_embedded_engine_itself_reaches_no_file(owned: Path) -> None:
    with closing(EmbeddedDatabase()) as database:
        for sql in (f"FROM read_text('{owned}')", f"FROM '{owned}'", "SELECT getenv('HOME')"):
            with pytest.raises(NotEmbeddedError):
                database.has_rows(sql)
        for sql in (
            f"COPY (SELECT 1) TO '{owned}.out'", f"ATTACH '{owned}.db'", "INSTALL httpfs",
            "LOAD httpfs", "SET enable_external_access = true",
        ):  # fmt: skip
            with pytest.raises(NotEmbeddedError):
                database._run(sql)
    assert [one.name for one in owned.parent.iterdir()] == ["owned.txt"]


def test_every_function_of_this_spark_was_looked_at(spark: SparkSession) -> None:
    analysis = spark._jvm.org.apache.spark.sql.catalyst.analysis  # type: ignore[union-attr]
    found = set()
    for registry in (analysis.FunctionRegistry, analysis.TableFunctionRegistry):
        names = registry.builtin().listFunction().iterator()
        while names.hasNext():
            found.add(str(names.next().funcName()))

    assert found == READING_FUNCTIONS | REFUSED_FUNCTIONS.keys()
    assert READING_FUNCTIONS >= ALLOWED_FUNCTIONS
