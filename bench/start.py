"""How long until Spark answers: a new process, the session, and first work on an Iceberg table.

With and without the class archive (`docs/adr/0002-spark-session.md`); the best of a few runs each.
Then commands that need no JVM (`bench/cold.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from bench import cold

RUNS = 3


def child(warehouse: str, *, archive: bool) -> dict[str, float]:
    """Start a session, do the first work, return the seconds of both."""
    began = time.perf_counter()
    from polynya.lake.spark.class_archive import cds_options
    from polynya.lake.spark.jars import jar_paths
    from polynya.lake.spark.java import find_java
    from polynya.lake.spark.session import SessionSettings, start_session

    java, jars = find_java(), jar_paths()
    options = cds_options(java, jars)
    if archive and not options:
        sys.exit("there is no class archive for this session: run `make install`")
    catalog = {"type": "jdbc", "uri": f"jdbc:sqlite:{warehouse}/catalog.db",
               "jdbc.schema-version": "V1", "warehouse": warehouse}  # fmt: skip
    settings = SessionSettings(jars=jars, catalog=catalog, jvm_options=options if archive else [])
    spark = start_session(settings, java)
    started = time.perf_counter()
    spark.sql("CREATE NAMESPACE db")
    spark.sql("CREATE TABLE db.t (id BIGINT, name STRING) USING iceberg")
    spark.sql("INSERT INTO db.t SELECT id, CAST(id AS STRING) FROM range(1000)")
    spark.sql("CREATE VIEW db.v AS SELECT id, row_number() OVER (ORDER BY name) AS n FROM db.t")
    spark.sql("SELECT count(*) FROM db.v WHERE n < 10").toArrow()
    return {"start": started - began, "first work": time.perf_counter() - started}


def run(*, archive: bool) -> dict[str, float]:
    """One measurement in a process of its own."""
    with tempfile.TemporaryDirectory() as warehouse:
        done = subprocess.run(
            [sys.executable, "-m", "bench.start", warehouse, "archive" if archive else "plain"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        sys.exit(done.stderr.strip()[-2000:])
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Print the best run of each way."""
    print(f"seconds, best of {RUNS}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for title, archive in (("without the archive", False), ("with the archive", True)):
        best = min((run(archive=archive) for _ in range(RUNS)), key=_total)
        parts = "  ".join(f"{name} {seconds:.1f}" for name, seconds in best.items())
        print(f"{title}: {parts}  total {_total(best):.1f}")
    cold.main()


def _total(figures: dict[str, float]) -> float:
    return sum(figures.values())


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], archive=sys.argv[2] == "archive")))
