"""The watcher sees what is committed, when it is committed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from sqlite3 import OperationalError

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.newcomer.shop.watching import Watcher
from tests.oracle.packs.read_back import CATALOG

NAME = ("shop_internal", "orders_internal")


@pytest.fixture
def orders(tmp_path: Path) -> Table:
    """A table in the catalog of a project."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    uri = f"sqlite:///{warehouse}/catalog.db"
    catalog = SqlCatalog(CATALOG, uri=uri, warehouse=f"file://{warehouse}")
    catalog.create_namespace(NAME[0])
    return catalog.create_table(NAME, pa.schema([("id", pa.int64()), ("batch", pa.int64())]))


def rows(*batches: int | None) -> pa.Table:
    return pa.table({"id": range(len(batches)), "batch": pa.array(batches, pa.int64())})


def test_files_are_seen_once_they_are_committed(tmp_path: Path, orders: Table) -> None:
    watcher = Watcher(tmp_path, {NAME: "orders"})
    watcher.look()
    assert watcher.seen == {}

    orders.append(rows(1, 1, 2, None))
    orders.append(rows(3))
    watcher.look()
    first = dict(watcher.seen)
    orders.append(rows(3, 4))
    watcher.look()

    assert set(first) == {("orders", 1), ("orders", 2), ("orders", 3)}
    assert set(watcher.seen) - set(first) == {("orders", 4)}
    assert watcher.seen["orders", 3] == first["orders", 3]


def test_a_file_that_nobody_committed_is_not_seen(tmp_path: Path, orders: Table) -> None:
    orders.append(rows(1))
    watcher = Watcher(tmp_path, {NAME: "orders"})
    (data,) = Path(orders.location().removeprefix("file://")).glob("data/*.parquet")
    pq.write_table(rows(2), data.with_name("staged.parquet"))

    watcher.look()

    assert set(watcher.seen) == {("orders", 1)}


def test_what_goes_wrong_while_it_watches_is_not_swallowed(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path / "nowhere", {NAME: "orders"})

    with pytest.raises(OperationalError, match="unable to open"), watcher:
        pass
