"""The small Spark job whose classes go into the class archive, run as a process of its own.

It does what every run does: a JDBC catalog on SQLite, a table, inserts, a window, a broadcast join,
a merge, a view, a read into Arrow. `lake/spark/class_archive.py` starts it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import pyarrow as pa

from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.session import SessionSettings, start_session

_STATEMENTS = """
CREATE NAMESPACE IF NOT EXISTS db;
CREATE TABLE db.t (part STRING NOT NULL, id BIGINT, name STRING, at TIMESTAMP,
  amount DECIMAL(18, 2), tags ARRAY<STRING>, inner STRUCT<a: INT>)
  USING iceberg PARTITIONED BY (part) TBLPROPERTIES ('format-version' = '2');
INSERT INTO db.t SELECT 'current', id, CAST(id AS STRING), current_timestamp(),
  CAST(id AS DECIMAL(18, 2)), array('x'), named_struct('a', 1) FROM range(200);
INSERT INTO db.t SELECT 'changes', seq, name, at, amount, tags, inner FROM arrow;
ALTER TABLE db.t ADD COLUMN extra INT;
MERGE INTO db.t AS t USING batch AS s ON t.id = s.id AND t.part = 'current'
  WHEN MATCHED THEN UPDATE SET name = s.name
  WHEN NOT MATCHED THEN INSERT (part, id, name) VALUES ('current', s.id, s.name);
CREATE VIEW db.v AS WITH latest AS (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY at DESC) AS n FROM db.t
    WHERE part = 'changes')
  SELECT c.id, c.name, c.amount FROM db.t AS c LEFT ANTI JOIN latest AS l ON c.id = l.id
    WHERE c.part = 'current'
  UNION ALL SELECT id, name, amount FROM latest WHERE n = 1;
SELECT count(*) AS n FROM db.v;
SELECT part, count(*) AS n, sum(amount) AS s, max(at) AS m FROM db.t GROUP BY part;
SELECT file_path, record_count FROM db.t.files;
SELECT id, _file, _pos FROM db.t WHERE part = 'current' ORDER BY id LIMIT 5
"""


def train(warehouse: str, jars: Sequence[str], options: Sequence[str]) -> None:
    """Start Spark as every run does, with an empty catalog; run the job; end the JVM."""
    catalog = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
    }
    spark = start_session(SessionSettings(jars=jars, catalog=catalog, jvm_options=options))
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    _prepare(spark)
    for statement in _STATEMENTS.split(";"):
        spark.sql(statement).toArrow()
    spark.stop()
    # The JVM ends when its standard input closes, and writes the archive then.
    process.stdin.close()
    process.wait()


def _prepare(spark: SparkSession) -> None:
    rows = pa.table({"seq": [1, 2], "name": ["a", "b"]})
    arrow = spark.createDataFrame(rows).selectExpr(
        "seq", "name", "current_timestamp() AS at", "CAST(1 AS DECIMAL(18, 2)) AS amount",
        "array('x') AS tags", "named_struct('a', 1) AS inner",
    )  # fmt: skip
    arrow.createOrReplaceTempView("arrow")
    batch = spark.range(100, 250).selectExpr("id", "CAST(id AS STRING) AS name")
    batch.createOrReplaceTempView("batch")


if __name__ == "__main__":
    train(**json.loads(sys.argv[1]))
