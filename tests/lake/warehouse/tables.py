"""Warehouses of small tables, made and read without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from polynya.lake.spark.catalog import CATALOG
from polynya.model.config.target import ResolvedTarget


def target_in(folder: Path) -> ResolvedTarget:
    """The target of a project in a folder, as `polynya init` sets it."""
    warehouse = folder / "warehouse"
    return ResolvedTarget(
        name="local",
        landing=folder / "landing",
        warehouse=warehouse,
        catalog_type="jdbc",
        catalog_uri=f"jdbc:sqlite:{warehouse / 'catalog.db'}",
    )


def catalog_in(folder: Path) -> SqlCatalog:
    """The catalog of that target, for PyIceberg."""
    warehouse = folder / "warehouse"
    uri = f"sqlite:///{warehouse / 'catalog.db'}"
    return SqlCatalog(CATALOG, uri=uri, warehouse=str(warehouse))


def make_tables(folder: Path, *names: str) -> ResolvedTarget:
    """A warehouse with tables of two snapshots, of the rows 1 and 2."""
    (folder / "warehouse").mkdir(parents=True)
    catalog = catalog_in(folder)
    catalog.create_namespace("shop_internal")
    for name in names:
        rows = [pa.table({"id": pa.array([number], pa.int64())}) for number in (1, 2)]
        location = str(folder / "warehouse" / "shop_internal" / name)
        table = catalog.create_table(("shop_internal", name), rows[0].schema, location=location)
        for one in rows:
            table.append(one)
    return target_in(folder)


def ids(folder: Path, name: str) -> list[int]:
    """The rows of a table, as the catalog in a folder has it."""
    found = catalog_in(folder).load_table(("shop_internal", name)).scan().to_arrow()
    return sorted(found.column("id").to_pylist())
