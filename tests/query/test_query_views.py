"""Both engines of `polynya query` answer a view that a transform makes of a query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polynya.engine.answers import answer_embedded
from polynya.engine.served_catalog import ServedCatalog
from polynya.lake.spark.api import SparkSession
from polynya.model.loader import load_project
from polynya.query.translate import NotEmbeddedError
from tests.lab.commands import InProcessDriver
from tests.projects import write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets:
  - {name: orders, path: orders/*, keys: [id], sequence_by: [seq], except_columns: [seq]}
"""
REPORTS = """\
apiVersion: polynya/v1
kind: transform
name: reports
from: [shop]
datasets:
  - name: by_user
    sql: SELECT user_id, count(*) AS n, sum(amount) AS total FROM orders GROUP BY user_id
    materialize: view
  - name: large
    flow: [{filter: {input: orders, condition: "amount > 6"}}, {select: [id, amount]}]
    materialize: view
  - {name: shouted, sql: "SELECT id, upper(CAST(id AS string)) AS s FROM orders", materialize: view}
"""


def land(folder: Path, number: int, *records: dict[str, int]) -> None:
    place = folder / "landing/shop/orders"
    place.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"seq": number, **record}) for record in records)
    (place / f"{number}.json").write_text("\n".join(lines))


@pytest.mark.slow
def test_both_engines_answer_a_view_as_its_inputs_are_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, driver = write_project(tmp_path, shop=SHOP, reports=REPORTS), InProcessDriver(spark)
    land(folder, 1, {"id": 1, "user_id": 1, "amount": 5}, {"id": 2, "user_id": 1, "amount": 7})
    printed = driver.call("run", "--once", "-p", str(folder))
    assert printed.code == 0, printed

    # Only the task of the input runs: the views follow by themselves.
    land(folder, 2, {"id": 3, "user_id": 2, "amount": 9})
    assert driver.call("run", "shop", "--once", "-p", str(folder)).code == 0
    for statement, rows in (
        ("SELECT * FROM reports.by_user", [(1, 2, 12), (2, 1, 9)]),
        (
            "SELECT l.id, b.total FROM reports.large l JOIN reports.by_user b ON b.user_id = l.id",
            [(2, 9)],
        ),
        ("SELECT amount FROM reports.large WHERE id > 2", [(9,)]),
    ):
        _, batches = answer_embedded(load_project(folder), statement)
        here = sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())
        printed = driver.call("query", statement, "--engine", "spark", "--json", "-p", str(folder))
        lines = [json.loads(line) for line in printed.output.splitlines()]
        there = sorted(tuple(row.values()) for row in lines)
        assert here == there
        assert here == rows

    # A view that an engine may compute otherwise is named, and the others are printed.
    told = driver.call("views", "reports.*", "--engine", "trino", "-p", str(folder))
    assert told.code == 1
    assert told.output.count("CREATE OR REPLACE VIEW") == 2
    assert "POLYNYA-VIEW-005" in told.errors
    assert "reports.shouted" in told.errors
    assert "line 1, column 12 of the query" in " ".join(told.errors.split())
    # The catalog that is served has a text for each engine, if the view has one.
    served = ServedCatalog(load_project(folder))
    for view, dialects in (("by_user", {"spark", "trino", "duckdb"}), ("shouted", {"spark"})):
        document = json.loads(served.view(("reports",), view).metadata)
        [texts] = [
            version["representations"]
            for version in document["versions"]
            if version["version-id"] == document["current-version-id"]
        ]
        assert {one["dialect"] for one in texts} == dialects

    edited = REPORTS.replace("amount > 6", "amount > 8")
    (folder / "tasks/reports.yml").write_text(edited)
    with pytest.raises(NotEmbeddedError, match="made in another way"):
        answer_embedded(load_project(folder), "SELECT * FROM reports.large")
