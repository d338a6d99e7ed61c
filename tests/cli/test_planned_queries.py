"""`polynya plan` of edited queries: names without Spark, types by its analyser, nothing written."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from polynya.cli.main import main
from tests.lab.commands import commands_over, fresh_session, use_everywhere
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
SALES = """\
apiVersion: polynya/v1
kind: transform
name: sales
from: [shop]
datasets:
  - {name: spending, sql: "QUERY", keys: [user_id]}
"""
REPORTS = """\
apiVersion: polynya/v1
kind: transform
name: reports
from: [sales]
datasets:
  - {name: totals, sql: "QUERY", keys: [total]}
"""
SPENDING = (
    "SELECT user_id, CAST(count(*) AS INT) AS orders, sum(amount) AS total FROM orders GROUP BY 1"
)
TOTALS = "SELECT total, count(*) AS users FROM spending GROUP BY total"


class Shop:
    """A project whose commands run over the JVM of the tests; `started` counts their sessions."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder, self._spark = folder, spark
        self.started = 0
        landed = folder / "landing" / "shop" / "orders"
        landed.mkdir(parents=True)
        (landed / "1.json").write_text('{"id":1,"user_id":1,"amount":5,"seq":1}\n', "utf-8")

    def write(self, spending: str = SPENDING, totals: str = TOTALS) -> None:
        sales, reports = SALES.replace("QUERY", spending), REPORTS.replace("QUERY", totals)
        write_project(self.folder, shop=SHOP, sales=sales, reports=reports)

    def call(self, *arguments: str) -> tuple[int, str]:
        """The exit code of a command, and what it prints."""

        def session(project: Any) -> Any:
            self.started += 1
            return fresh_session(self._spark, project)

        printed = io.StringIO()
        self.started = 0
        try:
            with commands_over(session), redirect_stdout(printed), redirect_stderr(printed):
                code = main([*arguments, "-p", str(self.folder)])
        finally:
            use_everywhere(self._spark)
        return code, printed.getvalue()


@pytest.mark.slow
def test_a_plan_tells_what_an_edited_query_does_to_its_table(tmp_path: Path, spark: Any) -> None:
    shop = Shop(tmp_path, spark)
    shop.write()

    code, printed = shop.call("plan")
    assert (code, shop.started) == (3, 0)
    assert "sales.spending: how a step is restricted is known when its inputs have" in printed

    # The tables of a new transform, one over the other, whose inputs are there.
    write_project(tmp_path, shop=SHOP)
    for name in ("sales", "reports"):
        (tmp_path / "tasks" / f"{name}.yml").unlink()
    assert shop.call("run", "--once")[0] == 0
    shop.write()
    code, printed = shop.call("plan")
    assert (code, shop.started) == (3, 1)
    assert "columns: user_id bigint, orders int, total bigint" in printed
    assert "columns: total bigint, users bigint" in printed
    assert shop.call("run", "--once")[0] == 0

    # Nothing changed: Spark is not asked.
    assert shop.call("plan") == (0, _unchanged())
    assert shop.started == 0

    # One column wider, one more, one less; the next table gets what the first one will have.
    wider = SPENDING.replace("CAST(count(*) AS INT)", "count(*)").replace(
        "sum(amount) AS total", "CAST(sum(amount) AS DECIMAL(9,2)) AS net"
    )
    shop.write(wider, TOTALS.replace("total", "net").replace("net, count", "net AS total, count"))
    code, printed = shop.call("plan", "--json")
    lines = [json.loads(line) for line in printed.splitlines()]
    assert (code, shop.started) == (1, 1)
    (first,) = (line for line in lines if line["type"] == "plan.dataset")
    assert [(one["kind"], one["what"], one["destructive"]) for one in first["changes"]] == [
        ("column_widened", "column widened: orders int → bigint", False),
        ("column_added", "column added: net decimal(9,2)", False),
        ("column_dropped", "column dropped: total bigint", True),
    ]
    # A step would refuse the other type of `total`, by the same rule.
    (error,) = (line for line in lines if line["type"] == "error")
    assert (error["code"], error["where"]) == ("POLYNYA-TRF-077", "reports.totals")
    assert "cast the column" in error["fix"]

    # What no table can hold, and what Spark refuses.
    shop.write(SPENDING.replace("sum(amount)", "NULL"))
    assert "POLYNYA-TRF-075" in shop.call("plan")[1]
    shop.write(SPENDING.replace("sum(amount)", "sum(map(1, amount))"))
    code, printed = shop.call("plan")
    assert code == 1
    assert "POLYNYA-TRF-073" in printed

    # Wrong names need no Spark; what reads the table has no error by them.
    shop.write(SPENDING.replace("amount", "amout"))
    code, printed = shop.call("plan")
    assert (code, shop.started) == (1, 0)
    assert "no column is called `amout` at line 1" in printed
    assert "did you mean `amount`?" in printed
    assert printed.count("error[") == 1

    # A column that the same edit brings upstream is no error.
    shop.write(
        f"{SPENDING}".replace("AS orders", "AS orders, max(id) AS last"),
        "SELECT total, last FROM spending",
    )
    code, printed = shop.call("plan")
    assert (code, shop.started) == (3, 1)
    assert "column added: last bigint" in printed


def _unchanged() -> str:
    return (
        "nothing changes\n"
        "sales.spending: a step computes the rows that changes concern, by user_id; no row of its "
        "inputs has changed since its last step\n"
        "reports.totals: a step computes the rows that changes concern, by total; no row of its "
        "inputs has changed since its last step\n"
    )
