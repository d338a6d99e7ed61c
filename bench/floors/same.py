"""Whether two tables hold the same rows, read by DuckDB from the files that are committed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import duckdb_ext
from pyiceberg.catalog import Catalog

from bench.floors.records import COLUMNS

#: Formats differ in how they write a time and a number; the values are the same.
_VALUES = {
    "ts": "epoch_us(CAST(ts AS TIMESTAMPTZ))",
    "amount": "CAST(amount AS DOUBLE)",
    **{name: f"CAST({name} AS BIGINT)" for name in ("id", "seq", "customer", "qty")},
}
ROW = ", ".join(f"{_VALUES.get(name, name)} AS {name}" for name in COLUMNS)


def assert_same(catalog: Catalog, dataset: str, peer: str) -> int:
    """Hold the live rows of a dataset against a peer's table; how many rows both have.

    Both are called `schema.name`. Raises AssertionError with the first rows that differ.
    """
    schema, name = dataset.split(".")
    internal = _scan(catalog, f"{schema}_internal.{name}_internal")
    ours = f"{internal} WHERE hdr__partition = 'current'"
    theirs = _scan(catalog, peer)
    extensions = str(Path(next(iter(duckdb_ext.__path__))) / "extensions")
    with duckdb.connect(config={"extension_directory": extensions}) as connection:
        for extension in ("avro", "iceberg"):
            connection.execute(f"LOAD {extension}")
        connection.execute("SET TimeZone = 'UTC'")
        (own,) = connection.execute(prints(ours)).fetchall()
        (other,) = connection.execute(prints(theirs)).fetchall()
        if own != other:
            only = f"(({ours}) EXCEPT ALL ({theirs})) ORDER BY id LIMIT 3"
            reverse = f"(({theirs}) EXCEPT ALL ({ours})) ORDER BY id LIMIT 3"
            ours_only = connection.execute(f"SELECT * FROM {only}").fetchall()
            peer_only = connection.execute(f"SELECT * FROM {reverse}").fetchall()
            raise AssertionError(
                f"{dataset} has {own[0]} rows and {peer} {other[0]}; "
                f"only {dataset}: {ours_only}; only {peer}: {peer_only}"
            )
    return int(own[0])


def _scan(catalog: Catalog, table: str) -> str:
    place = catalog.load_table(table).metadata_location.removeprefix("file:")
    return f"SELECT {ROW} FROM iceberg_scan('{place}')"


def prints(rows: str) -> str:
    """Count and a sum of hashes: two tables of the same rows have the same, in any order."""
    return f"SELECT count(*), sum(hash({', '.join(COLUMNS)})) FROM ({rows})"
