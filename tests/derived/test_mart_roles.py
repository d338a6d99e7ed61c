"""A star as in retail benchmarks: composite keys, roles by relationship and by time, filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import sqlglot

from polynya.model.config.derived import DerivedTask
from polynya.model.loader import load_project
from tests.projects import PROJECT

RETAIL = """\
apiVersion: polynya/v1
kind: storage
name: retail
schema: retail
landing: {path: retail, format: json}
defaults: {sequence_by: [seq]}
datasets:
  - {name: item, path: item/*, keys: [sku, region], history: true}
  - {name: address, path: address/*, keys: [id]}
  - {name: sales, path: sales/*, keys: [ticket, line]}
"""
STAR = """\
apiVersion: polynya/v1
kind: data_mart
name: star
from: [retail]
relationships:
  - {from: sales, to: item, on: {region: region, item_sku: sku}}
  - {name: bill, from: sales, to: address, on: {bill_id: id}}
  - {name: ship, from: sales, to: address, on: {ship_id: id}}
dimensions:
  - {name: item, type: 2, table: item, keys: [sku, region], columns: [price], where: price > 0}
  - {name: address, table: address, keys: [id], columns: [town], key: town_key}
facts:
  - name: sold
    table: sales
    keys: [ticket, line]
    time: sold_at
    where: quantity > 0
    columns: [{name: bill_town, table: address, column: town, via: [bill]}]
    dimensions:
      - item
      - {dimension: item, as: shipped_item, at: shipped_at}
      - {dimension: address, as: bill, via: [bill]}
      - {dimension: address, as: ship, via: [ship]}
    measures: {quantity: quantity}
"""
ROWS = """
CREATE SCHEMA retail; CREATE SCHEMA star; SET TimeZone = 'UTC';
CREATE TABLE retail.item__history AS FROM (VALUES
    ('a', 1, 5, TIMESTAMPTZ '2026-01-01', TIMESTAMPTZ '2026-02-01', false),
    ('a', 1, 0, '2026-02-01', '2026-03-01', false),
    ('a', 1, 7, '2026-03-01', NULL, false),
    ('1', 11, 2, '2026-01-01', NULL, false),
    ('11', 1, 3, '2026-01-01', NULL, false)
) v(sku, region, price, hdr__from_timestamp, hdr__to_timestamp, hdr__deleted);
CREATE TABLE retail.address AS FROM (VALUES (1, 'Ulm'), (2, 'Bonn')) v(id, town);
CREATE TABLE retail.sales AS FROM (VALUES
    (1, 1, 'a', 1, 1, 2, TIMESTAMPTZ '2026-01-15', TIMESTAMPTZ '2026-03-02', 1),
    (1, 2, 'a', 1, 2, 9, '2026-02-15', NULL, 2),
    (1, 3, 'b', 1, 1, 1, '2026-01-15', NULL, 0),
    (2, 1, '11', 1, NULL, 1, '2025-01-15', '2026-01-15', 4)
) v(ticket, line, item_sku, region, bill_id, ship_id, sold_at, shipped_at, quantity)
"""


def star(folder: Path) -> DerivedTask:
    (folder / "tasks").mkdir()
    (folder / "polynya.yml").write_text(PROJECT)
    (folder / "tasks" / "retail.yml").write_text(RETAIL)
    (folder / "tasks" / "star.yml").write_text(STAR)
    (task,) = (one for one in load_project(folder).tasks if isinstance(one, DerivedTask))
    return task


def answer(folder: Path, question: str) -> list[tuple[Any, ...]]:
    """The rows of a query over the star."""
    with duckdb.connect() as database:
        database.execute(ROWS)
        for name, query in star(folder).queries.items():
            (sql,) = sqlglot.transpile(query.text, read="spark", write="duckdb")
            database.execute(f"CREATE TABLE star.{name} AS {sql}")
        return database.sql(question).fetchall()


def test_roles_find_their_rows_by_relationship_and_by_time(tmp_path: Path) -> None:
    rows = answer(
        tmp_path,
        "SELECT s.ticket, s.line, i.price, x.price, b.town, d.town, s.bill_town, s.quantity "
        "FROM star.sold s JOIN star.item i ON i.item_key = s.item_key "
        "JOIN star.item x ON x.item_key = s.shipped_item_key "
        "JOIN star.address b ON b.town_key = s.bill_key "
        "JOIN star.address d ON d.town_key = s.ship_key ORDER BY ALL",
    )

    assert rows == [
        (1, 1, 5, 7, "Ulm", "Bonn", "Ulm", 1),
        # Without a price the item is not in the dimension, and address 9 is unknown.
        (1, 2, None, None, "Bonn", None, "Bonn", 2),
        # Sold long before the first price that is known.
        (2, 1, 3, 3, None, "Ulm", None, 4),
    ]


def test_parts_of_a_key_are_told_apart(tmp_path: Path) -> None:
    """`1` and 11 are not `11` and 1."""
    keys = answer(tmp_path, "SELECT item_key FROM star.item WHERE price < 5")

    assert len(set(keys)) == 2
