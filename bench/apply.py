"""One apply of 1 % changes: the fast applier, with and without history, against Spark's MERGE INTO.

All contenders work in the same run, on the same rows, in one warm session. The appliers and the
first two `MERGE INTO` get events; the third gets a batch that is folded already and looks at no
order, which is the least that a merge can do. Prints seconds (median of RUNS) and ratios.
`POLYNYA_BENCH_ROWS` sets the size of the table, `POLYNYA_BENCH_FRACTION` how much of it changes.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from bench.session import session_in
from polynya.lake.apply.fast import FastApplier
from polynya.lake.fold.sql import key_hash
from polynya.lake.iceberg.commit import CommitStep, commit_row_delta
from polynya.lake.iceberg.writing import stage
from polynya.lake.spark.api import SparkSession
from polynya.lake.table.dataset import DatasetTable
from polynya.model import headers as h
from polynya.model.config.dataset import Events, Kept, Landed, Relations, ResolvedDataset
from polynya.model.names import quote
from polynya.model.types import parse_type

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "2000000"))
FRACTION = float(os.environ.get("POLYNYA_BENCH_FRACTION", "0.01"))
RUNS = 5
#: Rounds that are not counted: a long-lived driver is warm.
WARM_UP = 2
SCHEMA = {
    name: parse_type(text)
    for name, text in {
        "id": "bigint", "a": "int", "b": "int", "c": "double", "d": "decimal(18,2)",
        "s1": "string", "s2": "string", "s3": "string", "ts": "timestamp",
    }.items()
}  # fmt: skip
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def values(version: int) -> str:
    """Select list of the data columns of row `id`."""
    return (
        f"id, CAST(id % 1000 + {version} AS INT) AS a, CAST(id % 77 AS INT) AS b, id * 1.5D AS c, "
        "CAST(id % 100000 / 100 AS DECIMAL(18,2)) AS d, concat('customer-', id % 50000) AS s1, "
        f"sha1(concat(id, '{version}')) AS s2, concat('city-', id % 300) AS s3, "
        f"timestamp_seconds(1700000000 + id % 10000000 + {version}) AS ts"
    )


def dataset(name: str, *, history: bool) -> ResolvedDataset:
    """A dataset without files: the benchmark writes its table itself."""
    relations = Relations(
        schema="bench",
        view=name,
        history_view=f"{name}__history",
        changes_view=f"{name}__changes",
        internal_schema="bench_internal",
        internal_table=f"{name}_internal",
    )
    return ResolvedDataset(
        task="bench",
        name=name,
        relations=relations,
        landing=Landed(format="json", folder="bench", glob="*"),
        events=Events(keys=("id",)),
        kept=Kept(history=history, tombstone_retention=timedelta(days=30)),
    )


def write(target: DatasetTable, ids: str, version: int, partition: str, operation: str) -> None:
    """Commit rows to one partition of the internal table. `ids` is an SQL relation with `id`."""
    identifier = f"lpad(CAST({version} * 1000000000000L + id AS STRING), 35, '0')"
    written = {
        h.PARTITION: f"'{partition}'",
        h.CHANGE_IDENTIFIER: identifier,
        h.OPERATION: operation,
        h.TIMESTAMP: "ts",
        h.FROM_TIMESTAMP: "ts" if partition == "current" else "NULL",
        h.KEY_HASH: key_hash(target.shape(SCHEMA, ("id",))),
    }
    columns = [f"CAST({written.get(x.name, 'NULL')} AS {x.type}) AS {x.name}" for x in h.HEADERS]
    columns += [quote(name) for name in SCHEMA]
    rows = target.spark.sql(
        f"SELECT {', '.join(columns)} FROM (SELECT {values(version)} FROM {ids})"
    )
    files = stage(target.table, rows)
    commit_row_delta(target.table, CommitStep("bench", target.table.snapshot_id(), files))
    target.reload()


def changed(version: int) -> str:
    """Ids of one batch: uniform over the table, a twentieth of them new."""
    step, count = int(1 / FRACTION), int(ROWS * FRACTION)
    new = f"SELECT {ROWS} * {version} + id AS id FROM range({count // 20})"
    return f"(SELECT id * {step} + {version} AS id FROM range({count}) UNION ALL {new})"


def applier(spark: SparkSession, name: str, *, history: bool) -> Callable[[int], float]:
    """Prepare a table; the result applies batch `version` and returns the seconds of the apply."""
    target = DatasetTable.open(spark, dataset(name, history=history), "bench")
    target.take_over()
    target.grow(SCHEMA)
    shape = target.shape(SCHEMA, ("id",))
    write(target, f"range({ROWS})", 0, "current", "'L'")

    def one(version: int) -> float:
        write(target, changed(version), version, "changes", "IF(id % 20 = 0, 'D', 'U')")
        began = time.perf_counter()
        FastApplier().apply(target, shape, reason="bench", now=NOW)
        return time.perf_counter() - began

    return one


def merger(spark: SparkSession, mode: str, *, folded: bool = False) -> Callable[[int], float]:
    """Prepare a peer's table; the result merges batch `version` and returns the seconds.

    The statement is the usual hand-written one: the newest event of each key, applied where
    it is newer than the row. `folded` does neither: one event a key, taken as it comes.
    """
    name = f"bench.merge_{mode.replace('-', '_')}_{'folded' if folded else 'events'}"
    spark.sql(
        f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ('format-version'='2', "
        f"'write.merge.mode'='{mode}', 'write.parquet.compression-codec'='zstd') "
        f"AS SELECT {values(0)}, 0L AS seq FROM range({ROWS})"
    )
    newer = "" if folded else "AND s.seq > t.seq"

    def one(version: int) -> float:
        source = f"{name}_batch_{version}"
        spark.sql(
            f"CREATE TABLE {source} USING iceberg AS SELECT {values(version)}, "
            f"{version}L AS seq, id % 20 = 0 AS deleted FROM {changed(version)}"
        )
        newest = (
            f"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY seq DESC) AS n "
            f"FROM {source}) WHERE n = 1"
        )
        began = time.perf_counter()
        spark.sql(
            f"MERGE INTO {name} t USING ({f'SELECT * FROM {source}' if folded else newest}) s "
            f"ON t.id = s.id WHEN MATCHED {newer} AND s.deleted THEN DELETE "
            f"WHEN MATCHED {newer} THEN UPDATE SET * "
            "WHEN NOT MATCHED AND NOT s.deleted THEN INSERT *"
        )
        return time.perf_counter() - began

    return one


def main() -> None:
    """Run all contenders and print medians and ratios."""
    with tempfile.TemporaryDirectory() as warehouse:
        spark = session_in(warehouse, memory="6g")
        spark.sql("CREATE NAMESPACE bench")
        contenders = {
            "fast applier": applier(spark, "plain", history=False),
            "fast applier, history": applier(spark, "versions", history=True),
            "MERGE, merge-on-read": merger(spark, "merge-on-read"),
            "MERGE, copy-on-write": merger(spark, "copy-on-write"),
            "MERGE of a folded batch": merger(spark, "merge-on-read", folded=True),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for version in range(1, RUNS + WARM_UP + 1):
            for name, one in contenders.items():
                taken = one(version)
                if version > WARM_UP:
                    seconds[name].append(taken)
        best = statistics.median(seconds["fast applier"])
        print(
            f"{ROWS:,} rows, {FRACTION:.1%} changed, uniform keys, "
            f"{RUNS} rounds, {os.cpu_count()} cores"
        )
        for name, measured in seconds.items():
            median = statistics.median(measured)
            print(f"{name:24}{median:8.2f} s   {median / best:5.1f} x")


if __name__ == "__main__":
    main()
