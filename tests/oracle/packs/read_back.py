"""Reads tables without the engine: DuckDB and PyIceberg, through the catalog's SQLite file.

Both see what any other reader of Iceberg sees: the committed files with their position deletes.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CATALOG = "polynya"
Table = list[dict[str, Any]]


def tables(directory: Path) -> list[tuple[str, str]]:
    """(namespace, name) of every table in the project's catalog, views left out."""
    return [(space, name) for space, name, _ in _registered(directory)]


def metadata_location(directory: Path, namespace: str, table: str) -> str:
    """Path of a table's newest metadata file."""
    found = {(space, name): place for space, name, place in _registered(directory)}
    return found[namespace, table].removeprefix("file://").removeprefix("file:")


@contextmanager
def duckdb_with_iceberg() -> Iterator[Any]:
    """A connection to DuckDB that has `iceberg_scan`."""
    import duckdb
    import duckdb_ext

    # A namespace package that the extension wheels share; only `duckdb-ext` itself adds functions.
    extensions = str(Path(next(iter(duckdb_ext.__path__))) / "extensions")
    with duckdb.connect(config={"extension_directory": extensions}) as connection:
        for name in ("avro", "iceberg"):
            connection.execute(f"LOAD {name}")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def read_duckdb(
    directory: Path, namespace: str, table: str, columns: Sequence[str] = ("*",), where: str = ""
) -> Table:
    """Rows as DuckDB's iceberg_scan gives them; `where` is SQL."""
    with duckdb_with_iceberg() as connection:
        place = metadata_location(directory, namespace, table)
        names = ", ".join(name if name == "*" else f'"{name}"' for name in columns)
        condition = f" WHERE {where}" if where else ""
        scan = f"SELECT {names} FROM iceberg_scan(?){condition}"
        # Through Arrow: DuckDB's own conversion of timestamps with a zone needs pytz.
        return connection.execute(scan, [place]).fetch_arrow_table().to_pylist()


def read_pyiceberg(
    directory: Path, namespace: str, table: str, columns: Sequence[str] = ("*",), where: str = ""
) -> Table:
    """Rows as PyIceberg scans them; `where` is PyIceberg's filter text."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog(
        CATALOG,
        uri=f"sqlite:///{_catalog_file(directory)}",
        warehouse=f"file://{directory / 'warehouse'}",
    )
    scan = catalog.load_table((namespace, table)).scan(
        row_filter=where or "hdr__partition is not null", selected_fields=tuple(columns)
    )
    return scan.to_arrow().to_pylist()


READERS = {"duckdb": read_duckdb, "pyiceberg": read_pyiceberg}


def internal_table(schema: str, dataset: str) -> tuple[str, str]:
    """Namespace and name of a dataset's internal table."""
    return f"{schema}_internal", f"{dataset}_internal"


def partition_counts(
    directory: Path, schema: str, dataset: str, *, reader: str = "duckdb"
) -> dict[str, int]:
    """Number of rows by `hdr__partition`; empty when the table does not exist."""
    namespace, table = internal_table(schema, dataset)
    if (namespace, table) not in tables(directory):
        return {}
    rows = READERS[reader](directory, namespace, table, ("hdr__partition",))
    return dict(Counter(row["hdr__partition"] for row in rows))


def partition_rows(
    directory: Path,
    schema: str,
    dataset: str,
    partition: str,
    columns: Sequence[str],
    *,
    reader: str = "duckdb",
) -> list[tuple[Any, ...]]:
    """Rows of one partition, columns in the order asked for."""
    namespace, table = internal_table(schema, dataset)
    rows = READERS[reader](directory, namespace, table, columns, f"hdr__partition = '{partition}'")
    return [tuple(row[name] for name in columns) for row in rows]


def _registered(directory: Path) -> list[tuple[str, str, str]]:
    with sqlite3.connect(f"file:{_catalog_file(directory)}?mode=ro", uri=True) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(iceberg_tables)")]
        tables_only = " WHERE iceberg_type IS NULL OR iceberg_type = 'TABLE'"
        rows = connection.execute(
            "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
            + (tables_only if "iceberg_type" in names else "")
        )
        return [(str(space), str(name), str(place)) for space, name, place in rows]


def _catalog_file(directory: Path) -> Path:
    return directory / "warehouse" / "catalog.db"
