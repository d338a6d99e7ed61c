"""kill -9 at each commit of a chain of transforms, then restart: no row lost, doubled or torn."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from polynya import open as open_project
from tests.e2e.killing import KILLED, run_to_end, running

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_PROJECT = """\
apiVersion: polynya/v1
kind: project
name: mall
targets:
  local: {landing: ./landing, warehouse: ./warehouse}
"""
_SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets:
  - {name: users, path: users/*, keys: [id], sequence_by: [seq], apply_as_deletes: "gone"}
  - {name: orders, path: orders/*, keys: [id], sequence_by: [seq], apply_as_deletes: "gone"}
"""
_SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop]
datasets:
  - {name: spending, sql: sql/spending.sql, keys: [id], history: true, changes_retention: keep}
"""
_TOP = """\
apiVersion: polynya/v1
kind: transform
name: top
from: [sales, shop]
datasets:
  - {name: cities, sql: sql/cities.sql, keys: [city], history: true, changes_retention: keep}
"""
_SPENDING = """\
SELECT u.id, u.city, coalesce(sum(o.amount), 0) AS total
FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id, u.city
"""
_CITIES = """\
SELECT s.city, count(*) AS people, sum(s.total) AS total
FROM spending s JOIN users u ON u.id = s.id GROUP BY s.city
"""
#: The commit at which a run is killed, and whether it was made.
KILLS = [(number, mode) for number in (3, 4, 5, 6) for mode in ("before", "after")]


class Mall:
    """The project, and what has landed in it."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.draw = directory, random.Random(7)
        self.rows: dict[str, dict[int, dict[str, Any]]] = {"users": {}, "orders": {}}
        files = {
            "polynya.yml": _PROJECT,
            "tasks/shop.yml": _SHOP,
            "tasks/sales.yml": _SALES,
            "tasks/top.yml": _TOP,
            "sql/spending.sql": _SPENDING,
            "sql/cities.sql": _CITIES,
        }
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def land(self, step: int) -> None:
        """Land changes of both tables."""
        for table, values in (("users", self._user), ("orders", self._order)):
            lines = []
            for _ in range(12):
                key = self.draw.randint(1, 15)
                record = {"id": key, **values(), "seq": step * 100 + len(lines), "gone": False}
                record["gone"] = self.draw.random() < 0.2
                lines.append(json.dumps(record))
                if record["gone"]:
                    self.rows[table].pop(key, None)
                else:
                    self.rows[table][key] = record
            folder = self.directory / "landing" / "shop" / table
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{step:03d}.json").write_text("\n".join(lines) + "\n")

    def _user(self) -> dict[str, Any]:
        return {"city": self.draw.choice(["Ulm", "Bonn", "Rom"])}

    def _order(self) -> dict[str, Any]:
        return {"user_id": self.draw.randint(1, 15), "amount": self.draw.randint(1, 9)}

    def shown(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a derived table, by a reader without Spark."""
        table = open_project(self.directory).table(name).current().to_arrow()
        return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)

    def expected(self) -> tuple[list[Any], list[Any]]:
        """The rows of both derived tables, by DuckDB over what has landed."""
        with duckdb.connect() as database:
            for table, columns in (("users", "city VARCHAR"), ("orders", "user_id BIGINT")):
                more = ", amount BIGINT" if table == "orders" else ""
                database.sql(f"CREATE TABLE {table} (id BIGINT, {columns}{more})")
                names = ("id", "city") if table == "users" else ("id", "user_id", "amount")
                for row in self.rows[table].values():
                    values = [row[name] for name in names]
                    marks = ", ".join("?" for _ in names)
                    database.execute(f"INSERT INTO {table} VALUES ({marks})", values)
            spending = database.sql(_SPENDING)
            rows = sorted(spending.fetchall(), key=repr)
            database.sql(f"CREATE TABLE spending AS {_SPENDING}")
            return rows, sorted(database.sql(_CITIES).fetchall(), key=repr)


def test_a_chain_of_transforms_is_right_after_kills_at_each_commit(tmp_path: Path) -> None:
    mall = Mall(tmp_path)
    mall.land(0)
    run_to_end(tmp_path)
    killed = 0
    for step, (number, mode) in enumerate(KILLS, 1):
        mall.land(step)
        with running(tmp_path, mode=mode, number=number) as run:
            killed += run.wait() == KILLED
        run_to_end(tmp_path)

        spending, cities = mall.expected()
        assert mall.shown("sales.spending") == spending, (number, mode)
        assert mall.shown("top.cities") == cities, (number, mode)
    assert killed > len(KILLS) // 2
    with running(tmp_path, "verify") as check:
        assert check.wait() == 0, check.text()
