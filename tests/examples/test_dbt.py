"""The example of dbt: live views become a mart, tests hold, the next run sees new changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.consumers import consume
from tests.docs.pages import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

_PANDAS = """
import json, polynya
frame = polynya.open(".").table("shop.orders").current().to_pandas().sort_values("id")
types = {name: str(kind) for name, kind in frame.dtypes.items()}
kind = type(frame["amount"].iloc[0]).__name__
print(json.dumps([types, [str(one) for one in frame["amount"]], kind, list(frame["items"])]))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example after its first run."""
    folder = tmp_path_factory.mktemp("example") / "dbt"
    left_out = shutil.ignore_patterns("build", "warehouse", "sources.yml", "__pycache__")
    shutil.copytree(ROOT / "examples" / "dbt", folder, ignore=left_out)
    polynya(folder, "run", "--once", "--apply", "always")
    return folder


def polynya(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "polynya", *words],
        cwd=folder, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dbt(folder: Path, *words: str) -> str:
    return consume(folder, "-m", "dbt.cli.main", *words, "--profiles-dir", ".")


def mart(folder: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(folder / "build" / "shop.duckdb"), read_only=True) as database:
        query = "SELECT customer, orders, revenue::varchar FROM customers ORDER BY customer"
        return database.execute(query).fetchall()


def test_pandas_gets_the_types_that_are_documented(project: Path) -> None:
    types, amounts, kind, items = json.loads(consume(project, "-c", _PANDAS))

    assert types == {
        "amount": "object",
        "customer": "str",
        "id": "int64",
        "items": "object",
        "paid": "bool",
        "hdr__from_timestamp": "datetime64[us, UTC]",
    }
    assert (amounts, kind) == (["10.50", "7.00", "99.90"], "Decimal")
    assert items == [1, 2, None]


def test_a_mart_over_live_views_is_built_tested_and_sees_new_changes(project: Path) -> None:
    sources = project / "models" / "sources.yml"
    command = ("dbt", "sources", "--out", "models/sources.yml", "--warn-after", "1d")
    polynya(project, *command)
    first = sources.read_text()
    polynya(project, *command)
    assert sources.read_text() == first

    built = dbt(project, "build")
    assert "source_unique_shop_orders_id" in built
    assert mart(project) == [("Ann", 1, "10.50"), ("Ben", 1, "7.00")]

    changes = [
        {"id": 3, "customer": "Ann", "amount": "99.90", "paid": True, "n": 4},
        {"id": 2, "op": "D", "n": 5},
        {"id": 4, "customer": "Cid", "amount": "3.25", "paid": True, "n": 6},
    ]
    lines = [json.dumps({**change, "at": "2026-11-03T10:00:00Z"}) for change in changes]
    (project / "landing" / "orders" / "2.json").write_text("\n".join(lines) + "\n")
    polynya(project, "run", "--once", "--apply", "never")
    dbt(project, "build")
    assert mart(project) == [("Ann", 2, "110.40"), ("Cid", 1, "3.25")]
    assert "WARN freshness of shop.orders" in dbt(project, "source", "freshness")
