"""Rows that Arrow writes and rows that Spark writes are in the same partitions of Iceberg."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.iceberg.staged import staged_rows
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import stage, write_rows
from polynya.model.headers import Partition
from tests.lab.lab import Lab, put

COLUMNS = {
    "n": "BIGINT", "i": "INT", "s": "STRING", "b": "BINARY", "f": "BOOLEAN",
    "d": "DATE", "t": "TIMESTAMP", "z": "TIMESTAMP_NTZ", "x": "DECIMAL(10,2)",
}  # fmt: skip
TERMS = [
    "n", "i", "s", "b", "f", "d", "t", "z", "x",
    "bucket(7, n)", "bucket(7, i)", "bucket(7, s)", "bucket(7, b)", "bucket(7, d)",
    "bucket(7, t)", "bucket(7, z)", "bucket(7, x)",
    "truncate(10, n)", "truncate(3, i)", "truncate(2, s)", "truncate(1, b)", "truncate(50, x)",
    "years(d)", "months(d)", "days(d)", "years(t)", "months(t)", "days(t)", "hours(t)",
    "years(z)", "months(z)", "days(z)", "hours(z)",
]  # fmt: skip
_UTC = timezone.utc  # noqa: UP017 - what Arrow gives back
_OLD = datetime(1969, 12, 31, 23, 59, 59, 999999)
ROWS: list[dict[str, Any]] = [
    {"n": 34, "i": -1, "s": "iceberg", "b": b"\x00\xff", "f": True, "d": date(2017, 11, 16),
     "t": datetime(2017, 11, 16, 22, 31, 8, 123456, _UTC), "z": datetime(2017, 11, 16, 22, 31, 8),
     "x": Decimal("14.20")},
    {"n": -11, "i": -10, "s": "grö/ße=ü%", "b": b"ab", "f": False, "d": date(1969, 12, 31),
     "t": _OLD.replace(tzinfo=_UTC), "z": _OLD, "x": Decimal("-0.05")},
    {"n": 2**40, "i": 2**31 - 1, "s": "", "b": b"", "d": date(1, 1, 1),
     "t": datetime(1, 1, 1, tzinfo=_UTC), "z": datetime(1, 1, 1), "x": Decimal("0.00")},
    {"n": 0, "i": 0, "s": "日本語", "b": b"\x01", "f": True, "d": date(9999, 12, 31),
     "t": datetime(9999, 12, 31, 23, 59, tzinfo=_UTC), "z": datetime(2000, 2, 29),
     "x": Decimal("99999999.99")},
    dict.fromkeys(COLUMNS),
]  # fmt: skip


BATCHES = [0, *(pytest.param(at, marks=pytest.mark.slow) for at in range(11, len(TERMS), 11))]


@pytest.mark.parametrize("batch", BATCHES)
def test_arrow_and_spark_part_rows_alike(lab: Lab, batch: int) -> None:
    terms = TERMS[batch : batch + 11]
    spark = lab.spark
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS polynya.{lab.schema}_internal")
    name = f"polynya.{lab.schema}_internal.t{batch}"
    columns = ", ".join(f"{column} {kind}" for column, kind in COLUMNS.items())
    spark.sql(
        f"CREATE TABLE {name} (hdr__partition STRING NOT NULL, {columns}) USING iceberg "
        f"PARTITIONED BY (hdr__partition)"
    )
    for number, term in enumerate(terms):
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {term} AS hdr__by_{number}")
    table = IcebergTable(spark, name, name)
    rows = pa.Table.from_pylist(
        [{"hdr__partition": "current", **row} for row in ROWS], schema=schema()
    )
    far = [4_000_000, -900_000]
    odd = {
        "hdr__partition": pa.array(["current"] * 2),
        "d": pa.array(far, pa.int32()).cast(pa.date32()),
        "t": pa.array([one * 86_400_000_000 + 1 for one in far], pa.int64()).cast(
            pa.timestamp("us", "UTC")
        ),
    }
    rows = pa.concat_tables([rows, pa.table(odd)], promote_options="default").select(
        rows.column_names
    )

    by_arrow = write_rows(table, rows)
    by_spark = stage(table, spark.createDataFrame(rows).coalesce(1))

    assert slots(by_arrow) == slots(by_spark)
    assert sum(file.rows for file in by_arrow) == len(ROWS) + 2
    # As Java objects they are equal too, through the JSON that a commit gives to Iceberg.
    files = table.java_files()
    assert slots([files.known(files.of(file.live())) for file in by_arrow]) == slots(by_arrow)


def schema() -> pa.Schema:
    kinds = {
        "n": pa.int64(), "i": pa.int32(), "s": pa.string(), "b": pa.binary(), "f": pa.bool_(),
        "d": pa.date32(), "t": pa.timestamp("us", "UTC"), "z": pa.timestamp("us"),
        "x": pa.decimal128(10, 2),
    }  # fmt: skip
    return pa.schema([("hdr__partition", pa.string()), *kinds.items()])


def slots(files: Any) -> list[str]:
    """Partitions, with times and bytes as both sides write them."""
    found = []
    for file in files:
        values = json.loads(file.values)
        found.append(json.dumps([_same(value) for value in values]))
    return sorted(found)


def _same(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if "T" in value and ":" in value:
        day, _, time = value.partition("T")
        zone = "+00:00" if time.endswith("+00:00") else ""
        clock, _, micros = time.removesuffix("+00:00").partition(".")
        clock = clock if clock.count(":") == 2 else f"{clock}:00"
        return f"{day}T{clock}.{micros.ljust(6, '0')}{zone}"
    return value.lower() if all(c in "0123456789ABCDEFabcdef" for c in value) else value


@pytest.mark.slow
def test_spark_writes_files_in_the_sort_order_of_the_table(lab: Lab) -> None:
    users = lab.feed(history=False, columns={"n": "int"}, sort_by=["n desc"])
    users.apply(put(1, 1, n=1))
    table = users.table().table
    names = ", ".join(f"`{one['name']}`" for one in table.columns() if one["name"] != "n")
    rows = lab.spark.sql(
        f"SELECT r.*, CAST(s.id AS INT) AS n FROM (SELECT {names} FROM {users.relation} "
        "WHERE hdr__partition = 'current') r, range(0, 50, 1, 2) s"
    ).select([one["name"] for one in table.columns()])

    staged = stage(table, rows.coalesce(1))

    # They say so, and what an apply wrote as it came does not.
    assert [one.sort_order for one in staged] == [1]
    live = table.files(Partition.CURRENT, table.snapshot_id())
    assert [one.sort_order for one in live] == [None]
    with staged_rows(table, staged) as written:
        assert [row["n"] for row in written.select("n").collect()] == list(range(49, -1, -1))
