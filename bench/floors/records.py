"""Files of records with ten columns: a first load, and changes of it. Made by DuckDB.

The numbers of a file decide its content, so that every run reads the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import duckdb

Kind = Literal["parquet", "json"]
Keys = Literal["uniform", "clustered"]

#: Columns of a record but `op`, which is the operation and not a column of a table.
COLUMNS = ("id", "seq", "ts", "customer", "status", "amount", "note", "city", "qty")
#: The same records for a reader that knows their types.
SPARK_SCHEMA = (
    "id BIGINT, seq BIGINT, ts TIMESTAMP, op STRING, customer BIGINT, status STRING, "
    "amount DOUBLE, note STRING, city STRING, qty BIGINT"
)


def land_load(folder: Path, kind: Kind, *, rows: int, files: int) -> list[Path]:
    """Land a first load of the records 0 to `rows`, in this many files of one size."""
    share = -(-rows // files)
    bounds = [(start, min(start + share, rows)) for start in range(0, rows, share)]
    return [
        land_events(
            folder / f"{number:04d}.{kind}",
            kind,
            f"SELECT range AS id, 0 AS seq, 'I' AS op, range AS v FROM range({start}, {end})",
        )
        for number, (start, end) in enumerate(bounds)
    ]


def land_changes(
    folder: Path, kind: Kind, *, rows: int, count: int, version: int, keys: Keys = "uniform"
) -> Path:
    """Land `count` events over a table that began with `rows` rows.

    Uniform over its keys, or clustered in a range of twice as many keys as events, another range
    in each version. Some keys come twice; one event of twenty deletes, one is of a new key. Events
    of a higher version are newer.
    """
    width = rows if keys == "uniform" else min(rows, 2 * count)
    start = version * 7_919_993 % (rows - width + 1)
    drawn = f"{start} + CAST(hash(range + {version * 1_000_000_007}) % {width} AS BIGINT)"
    added = f"{rows + version * count} + range"
    return land_events(
        folder / f"{version:08d}.{kind}",
        kind,
        f"SELECT IF(range % 20 = 1, {added}, {drawn}) AS id, {version * 10**9} + range AS seq,"
        " CASE range % 20 WHEN 0 THEN 'D' WHEN 1 THEN 'I' ELSE 'U' END AS op, "
        f"{version * 1_000_003} + range AS v FROM range({count})",
    )


def land_events(path: Path, kind: Kind, events: str) -> Path:
    """Land events in one file: an SQL relation of `id`, `seq`, `op` and `v`, which gives the rest.

    Written under another name, and given theirs when the file is whole.
    """
    micros = "1700000000000000 + seq * 1000"
    ts = {
        "parquet": f"make_timestamptz({micros})",
        "json": f"strftime(make_timestamp({micros}), '%Y-%m-%dT%H:%M:%S.%fZ')",
    }[kind]
    records = (
        f"SELECT CAST(id AS BIGINT) AS id, CAST(seq AS BIGINT) AS seq, {ts} AS ts, op, "
        "CAST((id * 7919 + v) % 1000000 AS BIGINT) AS customer, "
        "concat('status-', (id + v) % 5) AS status, "
        "CAST((id + v) % 10000 AS DOUBLE) * 0.25 AS amount, md5(concat(id, ':', v)) AS note, "
        "concat('city-', id % 300) AS city, CAST((id + v) % 77 AS BIGINT) AS qty "
        f"FROM ({events})"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    duckdb.sql(f"COPY ({records}) TO '{partial}' (FORMAT {kind})")
    return partial.rename(path)
